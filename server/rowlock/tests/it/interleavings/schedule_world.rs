//! A world for schedules: one server per actor behind a gate, and a clerk server for preparation and clean-up.
//!
//! All servers run in the test's process without background tasks, so only the schedule's actions happen. The clerk
//! does the work that the relay and the rounds of cancelled and moved shows would do after a schedule.

use axum::Router;
use axum::extract::FromRef;
use backoffice::relocation;
use clap::FromArgMatches;
use rowlock::config::{Config, settings};
use rowlock::{AppState, start, web};
use selling::SellingState;
use selling::bookings::{self, BookingEffects, CallOffProgress};
use selling::outbox::{self, Lane};
use simulator::Simulator;
use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::controller::{ActionFuture, Controller, ScheduleResult};
use super::gate::Gate;
use super::schedule_runner::Schedule;
use crate::box_office::seller_with_open_till;
use crate::organiser::organiser;
use crate::prelude::*;

pub const ACTORS: usize = 3;
pub const PLACES: i32 = 12;
const HOLD_MS: i64 = 3_600_000;
/// Start of a show, in seconds from now.
const STARTS_IN_S: i64 = 24 * 3_600;
/// Maximum of a server's connections to Postgres.
const CONNECTIONS: &str = "6";
/// Postgres' deadlock timeout: it resolves what no schedule can.
const DEADLOCKS_AFTER: &str = "50ms";

pub struct ActorServer {
    pub state: AppState,
    gate: Gate,
    pub place: usize,
}

pub struct ScheduleWorld {
    pub world: World,
    pub clerk: AppState,
    pub servers: Vec<ActorServer>,
    /// One per actor, each with a till.
    pub sellers: Vec<Browser>,
    pub organiser: Browser,
    gateway: Simulator,
    controller: Controller,
    is_wrong: bool,
}

impl ScheduleWorld {
    pub async fn open() -> Self {
        let (gateway, gateway_url) = serve_simulator().await;
        let ignored = ignore_webhooks().await;
        let settings = [
            ("SIMULATOR_URL", gateway_url.as_str()),
            ("PUBLIC_URL", ignored.as_str()),
            ("DATABASE_CONNECTIONS", CONNECTIONS),
        ];
        let mut world = World::start(0, &settings).await;
        let database: String = world.value(sqlx::query_scalar("SELECT current_database()")).await;
        // Schedules do not depend on the disk. Where `deadlock_timeout` may not be set, a deadlock takes a second.
        for (setting, value) in [("synchronous_commit", "off"), ("deadlock_timeout", DEADLOCKS_AFTER)] {
            let set = format!("ALTER DATABASE {database} SET {setting} = '{value}'");
            let _ = sqlx::query(sqlx::AssertSqlSafe(set)).execute(&world.pg).await;
        }
        let (clerk, url) = serve(world.settings(), world.database_url()).await;
        world.add_in_process_server(url);
        let (sender, events) = mpsc::unbounded_channel();
        let mut servers = Vec::new();
        for actor in 0..ACTORS {
            let gate = Gate::new(world.database_url(), actor, sender.clone()).await;
            let (state, url) = serve(world.settings(), &gate.url).await;
            servers.push(ActorServer { state, gate, place: world.add_in_process_server(url) });
        }
        let mut sellers = Vec::new();
        for actor in 0..ACTORS {
            sellers.push(seller_with_open_till(&world, &format!("seller{actor}@example.org")).await);
        }
        let organiser = organiser(&world).await;
        let controller = Controller::new(events, sender, world.pg.clone());
        Self { world, clerk, servers, sellers, organiser, gateway, controller, is_wrong: false }
    }

    /// Inserts a show with a standing area for the next schedule.
    pub async fn next_show(&mut self) -> Uuid {
        let show = insert_show(&self.world.pg, HOLD_MS, STARTS_IN_S).await;
        self.world.show = show;
        self.world.open_floor(PLACES).await;
        show
    }

    pub async fn play(&mut self, schedule: &Schedule, acts: Vec<ActionFuture>) -> Result<ScheduleResult, String> {
        let gates: Vec<&Gate> = self.servers.iter().take(acts.len()).map(|server| &server.gate).collect();
        self.controller.play(schedule, &gates, acts).await
    }

    pub async fn finish_and_check(&mut self) -> Vec<String> {
        let mut findings = self.finish().await;
        findings.extend(self.findings().await);
        self.is_wrong |= !findings.is_empty();
        findings
    }

    /// Performs the effects in the outbox, as the relay does. Then finishes cancelled and moved shows, as any replica
    /// does.
    pub async fn finish(&self) -> Vec<String> {
        let mut findings = Vec::new();
        if let Err(why) = self.empty_outbox().await {
            findings.push(why);
        }
        let open = "SELECT show_id FROM show_cancellations WHERE finished_at IS NULL";
        let cancelled_shows: Vec<Uuid> = self.world.values(sqlx::query_scalar(open)).await;
        for show in cancelled_shows {
            while let CallOffProgress::Cancelled(_) = bookings::undo_batch(&self.world.pg, show, self.clerk.clock.now())
                .await
                .unwrap_or_else(|problem| panic!("bookings are cancelled: {problem:?}"))
            {}
            mark_cancellation_finished(&self.world.pg, show).await;
        }
        let moving = "SELECT count(*) FROM show_moves WHERE state IN ('closing', 'carried')";
        if self.world.count(moving).await > 0 {
            for _ in 0..3 {
                // As if every replica had read the move.
                let heard =
                    "UPDATE show_moves SET carried_at = carried_at - interval '1 minute' WHERE state = 'carried'";
                self.world.execute(heard).await;
                relocation::round(&self.clerk).await.unwrap_or_else(|problem| panic!("a round: {problem:?}"));
            }
        }
        if let Err(why) = self.empty_outbox().await {
            findings.push(why);
        }
        findings
    }

    /// Performs all effects but mails, including effects that are scheduled for later.
    async fn empty_outbox(&self) -> Result<(), String> {
        if self.effects_left().await == 0 {
            return Ok(());
        }
        let now = "UPDATE outbox SET run_after = now() - interval '1 second' WHERE parked_why IS NULL";
        self.world.execute(now).await;
        let selling = SellingState::from_ref(&self.clerk);
        let lanes = [Lane::Gateway, Lane::Map].map(|lane| {
            tokio::spawn(outbox::relay_forever(selling.clone(), BookingEffects::new(selling.clone()), lane))
        });
        let emptied = async {
            while self.effects_left().await > 0 {
                outbox::wake(&self.clerk);
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let emptied = tokio::time::timeout(TEST_TIMEOUT, emptied).await;
        lanes.iter().for_each(tokio::task::JoinHandle::abort);
        emptied.map_err(|_| "effects are left in the outbox".to_owned())
    }

    /// Counts effects in the outbox that are not parked, after it deletes mails: writing a mail takes longer than
    /// everything else, other effects wait for it, and no balance depends on it.
    async fn effects_left(&self) -> i64 {
        let mails = "DELETE FROM outbox WHERE effect IN ('send_ticket', 'send_notice')";
        self.world.execute(mails).await;
        self.world.count("SELECT count(*) FROM outbox WHERE parked_why IS NULL").await
    }

    /// Findings over the whole database, the gateway's ledger and the map.
    async fn findings(&self) -> Vec<String> {
        let redis_url = self.world.setting("REDIS_URL").to_owned();
        let books = self.world.books(&redis_url, &self.gateway);
        let mut findings = match books.findings().await {
            Ok((findings, _)) => findings.all(),
            Err(cause) => vec![format!("the books cannot be read: {cause:#}")],
        };
        findings.extend(find_sales_of_cancelled_shows(&self.world.pg).await);
        findings
    }

    pub async fn wait_until_idle(&self) {
        let left = self.finish().await;
        assert!(left.is_empty(), "{left:?}");
    }

    pub async fn end(self) {
        self.clerk.stop.cancel();
        self.servers.iter().for_each(|server| server.state.stop.cancel());
        for state in self.servers.iter().map(|server| &server.state).chain([&self.clerk]) {
            state.pg.close().await;
        }
        if self.is_wrong {
            // The schedule's findings name everything.
            self.world.end_with_known_findings(&[""]).await;
        } else {
            self.world.end().await;
        }
    }
}

pub async fn mark_cancellation_finished(pg: &sqlx::PgPool, show: Uuid) {
    let finished =
        "UPDATE show_cancellations SET holds_released_at = coalesce(holds_released_at, now()), finished_at = now()
                    WHERE show_id = $1";
    sqlx::query(finished).bind(show).execute(pg).await.expect("the show is marked finished");
}

/// Starts a server with these settings on this Postgres, without background tasks. Returns its state and URL.
async fn serve(all: &[(String, String)], database_url: &str) -> (AppState, String) {
    let mut known = settings();
    known.build();
    let mut words = Vec::new();
    for arg in known.get_arguments() {
        let (Some(name), Some(flag)) = (arg.get_env().and_then(|name| name.to_str()), arg.get_long()) else { continue };
        // The last value wins, as it does for processes.
        let value = all.iter().rfind(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let value = if name == "DATABASE_URL" { Some(database_url) } else { value };
        words.extend(value.map(|value| format!("--{flag}={value}")));
    }
    let matches = settings().try_get_matches_from(words).expect("settings are read");
    let config = Config::from_arg_matches(&matches).expect("settings are usable");
    let state = start::assemble(config).await.expect("a server is assembled");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let limits = web::connections::ConnectionLimits::of(&state.config);
    tokio::spawn(web::connections::serve(listener, web::router::build(state.clone()), limits, state.stop.clone()));
    (state, url)
}

async fn serve_simulator() -> (Simulator, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    // The HTTP client needs a TLS provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let simulator = default_simulator(&url);
    tokio::spawn(simulator::serve(listener, simulator.clone(), std::future::pending()));
    (simulator, url)
}

/// Starts a server that accepts webhooks and ignores them: schedules send the webhooks that matter.
async fn ignore_webhooks() -> String {
    crate::telemetry::serve(Router::new().fallback(|| async { "" })).await
}

/// Returns bookings of cancelled and finished shows that are sold or being paid for, one sentence each. A booking that
/// was checked out later may remain: it has no claims, Postgres refuses its payment, and it expires.
async fn find_sales_of_cancelled_shows(pg: &PgPool) -> Vec<String> {
    let sql = "SELECT id, state FROM bookings JOIN show_cancellations USING (show_id)
               WHERE finished_at IS NOT NULL AND state NOT IN ('CANCELLED', 'EXPIRED', 'CREATED', 'SEATS_LOCKED')";
    let escaped: Vec<(Uuid, String)> = sqlx::query_as(sql).fetch_all(pg).await.expect("bookings are read");
    let describe = |(booking, state): (Uuid, String)| format!("booking {booking}: {state}, but its show is cancelled");
    escaped.into_iter().map(describe).collect()
}
