//! Where schedules are played: a world, a server an actor behind its gate, and a clerk who prepares and finishes.
//!
//! All servers run in the test's process, without their background work: nothing happens that no schedule asks for. What
//! the relay and the rounds of called-off and moved shows would do after a schedule, the clerk does.

use axum::Router;
use axum::extract::FromRef;
use backoffice::relocation;
use clap::FromArgMatches;
use rowlock::config::{Config, settings};
use rowlock::{AppState, start, web};
use selling::SellingState;
use selling::bookings::{self, Batch};
use selling::outbox::{self, Lane};
use simulator::Simulator;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::called_off;
use super::controller::{Act, Controller, Played};
use super::gate::Gate;
use super::schedule::Schedule;
use crate::accounts::Browser;
use crate::box_office::at_work;
use crate::organiser::organiser;
use crate::world::{PATIENCE, World, insert_show, simulator_at};

/// Actors at most.
pub const ACTORS: usize = 3;
/// Standing places of every show.
pub const PLACES: i32 = 12;
/// How long a show holds seats, milliseconds.
const HOLD_MS: i64 = 3_600_000;
/// When a show starts, seconds from now.
const STARTS_IN_S: i64 = 24 * 3_600;
/// Connections of a server to Postgres at most.
const CONNECTIONS: &str = "6";
/// How soon Postgres looks for a deadlock: it resolves what no schedule can.
const DEADLOCKS_AFTER: &str = "50ms";

/// A server of one actor.
pub struct Server {
    pub state: AppState,
    gate: Gate,
    /// Its place in the world's servers.
    pub place: usize,
}

pub struct Stage {
    pub world: World,
    pub clerk: AppState,
    pub servers: Vec<Server>,
    /// One an actor, each with a till.
    pub sellers: Vec<Browser>,
    pub organiser: Browser,
    gateway: Simulator,
    controller: Controller,
    /// A schedule left something wrong behind.
    is_wrong: bool,
}

impl Stage {
    pub async fn open(commits: &str) -> Self {
        let (gateway, gateway_url) = serve_simulator().await;
        let ignored = ignore_webhooks().await;
        let settings = [
            ("SIMULATOR_URL", gateway_url.as_str()),
            ("PUBLIC_URL", ignored.as_str()),
            ("COMMITS", commits),
            ("DATABASE_CONNECTIONS", CONNECTIONS),
        ];
        let mut world = World::start(0, &settings).await;
        let database: String =
            sqlx::query_scalar("SELECT current_database()").fetch_one(&world.pg).await.expect("a name");
        // A schedule does not depend on the disk. Where a deadlock's time may not be set, one takes a second.
        for (setting, value) in [("synchronous_commit", "off"), ("deadlock_timeout", DEADLOCKS_AFTER)] {
            let set = format!("ALTER DATABASE {database} SET {setting} = '{value}'");
            let _ = sqlx::query(sqlx::AssertSqlSafe(set)).execute(&world.pg).await;
        }
        let (clerk, url) = serve(world.settings(), world.database_url()).await;
        world.add_own_server(url);
        let (sender, events) = mpsc::unbounded_channel();
        let mut servers = Vec::new();
        for actor in 0..ACTORS {
            let gate = Gate::new(world.database_url(), actor, sender.clone()).await;
            let (state, url) = serve(world.settings(), &gate.url).await;
            servers.push(Server { state, gate, place: world.add_own_server(url) });
        }
        let mut sellers = Vec::new();
        for actor in 0..ACTORS {
            sellers.push(at_work(&world, &format!("seller{actor}@example.org")).await);
        }
        let organiser = organiser(&world).await;
        let controller = Controller::new(events, sender, world.pg.clone());
        Self { world, clerk, servers, sellers, organiser, gateway, controller, is_wrong: false }
    }

    /// A show of its own for the next schedule, with standing places.
    pub async fn next_show(&mut self) -> Uuid {
        let show = insert_show(&self.world.pg, HOLD_MS, STARTS_IN_S).await;
        self.world.show = show;
        sqlx::query(
            "INSERT INTO area_stock (show_id, area_no, name, category, capacity) VALUES ($1, 0, 'Floor', 'gold', $2)",
        )
        .bind(show)
        .bind(PLACES)
        .execute(&self.world.pg)
        .await
        .expect("the floor is opened");
        show
    }

    /// Plays a schedule of these acts.
    pub async fn play(&mut self, schedule: &Schedule, acts: Vec<Act>) -> Result<Played, String> {
        let gates: Vec<&Gate> = self.servers.iter().take(acts.len()).map(|server| &server.gate).collect();
        self.controller.play(schedule, &gates, acts).await
    }

    /// Finishes what a schedule left to be done; what is wrong after it.
    pub async fn look(&mut self) -> Vec<String> {
        let mut findings = self.finish().await;
        findings.extend(self.findings().await);
        self.is_wrong |= !findings.is_empty();
        findings
    }

    /// Does what the outbox holds, as the relay would; then shows that were called off or move are looked after, as any
    /// replica would.
    pub async fn finish(&self) -> Vec<String> {
        let mut findings = Vec::new();
        if let Err(why) = self.empty_outbox().await {
            findings.push(why);
        }
        let open = "SELECT show_id FROM show_cancellations WHERE finished_at IS NULL";
        let called_off: Vec<Uuid> = sqlx::query_scalar(open).fetch_all(&self.world.pg).await.expect("shows are read");
        for show in called_off {
            while let Batch::Undone(_) = bookings::undo_batch(&self.world.pg, show, self.clerk.clock.now())
                .await
                .unwrap_or_else(|problem| panic!("bookings are undone: {problem:?}"))
            {}
            finish_calling_off(&self.world.pg, show).await;
        }
        let moving = "SELECT count(*) FROM show_moves WHERE state IN ('closing', 'carried')";
        if self.world.count(moving).await > 0 {
            for _ in 0..3 {
                // Every replica had time to hear of it.
                let heard =
                    "UPDATE show_moves SET carried_at = carried_at - interval '1 minute' WHERE state = 'carried'";
                sqlx::query(heard).execute(&self.world.pg).await.expect("time passes");
                relocation::round(&self.clerk).await.unwrap_or_else(|problem| panic!("a round: {problem:?}"));
            }
        }
        if let Err(why) = self.empty_outbox().await {
            findings.push(why);
        }
        findings
    }

    /// Has the relay's lanes do all effects but mails, those that are to wait for a while included.
    async fn empty_outbox(&self) -> Result<(), String> {
        if self.effects_left().await == 0 {
            return Ok(());
        }
        let now = "UPDATE outbox SET run_after = now() - interval '1 second' WHERE parked_why IS NULL";
        sqlx::query(now).execute(&self.world.pg).await.expect("time passes");
        let lanes = [Lane::Gateway, Lane::Map]
            .map(|lane| tokio::spawn(outbox::relay_forever(SellingState::from_ref(&self.clerk), lane)));
        let emptied = async {
            while self.effects_left().await > 0 {
                outbox::wake(&self.clerk);
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let emptied = tokio::time::timeout(PATIENCE, emptied).await;
        lanes.iter().for_each(tokio::task::JoinHandle::abort);
        emptied.map_err(|_| "effects are left in the outbox".to_owned())
    }

    /// Effects in the outbox that no person is to look at, once mails are dropped: a mail takes longer to write than all the
    /// rest, others wait for it, and no book depends on it.
    async fn effects_left(&self) -> i64 {
        let mails = "DELETE FROM outbox WHERE effect IN ('send_ticket', 'send_notice')";
        sqlx::query(mails).execute(&self.world.pg).await.expect("mails are dropped");
        self.world.count("SELECT count(*) FROM outbox WHERE parked_why IS NULL").await
    }

    /// All that is wrong in the whole database, the gateway's ledger and the map.
    async fn findings(&self) -> Vec<String> {
        let redis_url = self.world.setting("REDIS_URL").to_owned();
        let books = self.world.books(&redis_url, &self.gateway);
        let mut findings = match books.findings().await {
            Ok((findings, _)) => findings.all(),
            Err(cause) => vec![format!("the books cannot be read: {cause:#}")],
        };
        findings.extend(called_off::findings(&self.world.pg).await);
        findings
    }

    /// Waits until no server has anything left to do of what was prepared.
    pub async fn is_quiet(&self) {
        let left = self.finish().await;
        assert!(left.is_empty(), "{left:?}");
    }

    /// Ends its servers and its world.
    pub async fn end(self) {
        self.clerk.stop.cancel();
        self.servers.iter().for_each(|server| server.state.stop.cancel());
        for state in self.servers.iter().map(|server| &server.state).chain([&self.clerk]) {
            state.pg.close().await;
        }
        if self.is_wrong {
            // All of it is in the findings of the schedule.
            self.world.end_despite(&[""]).await;
        } else {
            self.world.end().await;
        }
    }
}

/// Writes down that nothing is left to undo of a show that was called off.
pub async fn finish_calling_off(pg: &sqlx::PgPool, show: Uuid) {
    let finished =
        "UPDATE show_cancellations SET holds_released_at = coalesce(holds_released_at, now()), finished_at = now()
                    WHERE show_id = $1";
    sqlx::query(finished).bind(show).execute(pg).await.expect("it is written");
}

/// A server with these settings, on that Postgres, without its background work; and its address.
async fn serve(all: &[(String, String)], database_url: &str) -> (AppState, String) {
    let mut known = settings();
    known.build();
    let mut words = Vec::new();
    for arg in known.get_arguments() {
        let (Some(name), Some(flag)) = (arg.get_env().and_then(|name| name.to_str()), arg.get_long()) else { continue };
        // The last word counts, as it does for processes.
        let value = all.iter().rfind(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let value = if name == "DATABASE_URL" { Some(database_url) } else { value };
        words.extend(value.map(|value| format!("--{flag}={value}")));
    }
    let matches = settings().try_get_matches_from(words).expect("settings are read");
    let config = Config::from_arg_matches(&matches).expect("settings are usable");
    let state = start::assemble(config).await.expect("a server is assembled");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let limits = web::connections::Limits::of(&state.config);
    tokio::spawn(web::connections::serve(listener, web::router::build(state.clone()), limits, state.stop.clone()));
    (state, url)
}

async fn serve_simulator() -> (Simulator, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    // A client of HTTP is made for it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let simulator = simulator_at(&url);
    tokio::spawn(simulator::serve(listener, simulator.clone(), std::future::pending()));
    (simulator, url)
}

/// An address that accepts the gateway's webhooks and does nothing: those that matter are sent as part of a schedule.
async fn ignore_webhooks() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let ignore = Router::new().fallback(|| async { "" });
    tokio::spawn(async move { axum::serve(listener, ignore).await });
    url
}
