//! The environment of one test: a fresh database, a Redis prefix, the payment simulator, server processes, and visitors
//! who send HTTP requests to them.

mod duration;
mod template;
mod visitor;

pub use visitor::{
    JsonAnswer, LiveSocket, RawAnswer, Visitor, expect_answer, expect_page, expect_problem, expect_state,
};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use platform::database::BindAll;
use platform::postgres_hosts::PostgresHosts;
use reqwest::StatusCode;
use serde_json::{Value, json};
use simulator::{Settings, Simulator};
use sqlx::postgres::{PgArguments, PgQueryResult, PgRow};
use sqlx::query::{Query, QueryScalar};
use sqlx::{FromRow, PgConnection, PgPool, Postgres, Transaction};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::books::Books;
use crate::signals::{Signal, send_signal};
use duration::WorldDuration;
use template::copy_of_template;

/// Timeout of every wait in a test. Long, because a busy machine may pause. Tests of the product's own deadlines use
/// their own constants.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub const SECRET: &str = "a secret of this test; 32 bytes or more";
pub const API_KEY: &str = "a key of this test; thirty-two bytes or more";
/// Key that servers sign tokens with.
pub const TOKEN_SECRET: &str = "a secret of this test; thirty-two bytes or more";
/// Fifteen rows of twenty: the 300 seats of opening night.
const LAYOUT: &str = r#"{
    "sketch": 1, "name": "Test room", "focus": {"kind": "screen", "at": [0, -60], "width": 300},
    "categories": [{"name": "gold", "label": "Gold"}],
    "zones": [{"category": "gold", "rows": [{"rows": "A-O", "seats": "1-20"}]}]
}"#;
/// SQLSTATE of a violated CHECK, and of the triggers in our schema.
pub const CHECK_VIOLATION: &str = "23514";
/// SQLSTATE of a duplicate key.
pub const UNIQUE_VIOLATION: &str = "23505";
/// SQLSTATE of a missing value.
pub const NOT_NULL_VIOLATION: &str = "23502";
/// Price of every seat, cents.
pub const PRICE: i64 = 1_250;

pub struct World {
    pub pg: PgPool,
    pub show: Uuid,
    pub screen: String,
    pub layout: Uuid,
    pub servers: Vec<TestServer>,
    admin_url: String,
    database: String,
    settings: Vec<(String, String)>,
    mailbox: PathBuf,
    client: reqwest::Client,
    is_ended: bool,
    /// Dropped after the world has ended.
    _duration: WorldDuration,
}

pub struct TestServer {
    pub url: String,
    /// None: it runs in the test's own process.
    process: Option<Child>,
}

impl TestServer {
    fn is_running(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.id().is_some())
    }
}

/// Ends the world of a test that has not failed. The drop may block, because these tests have several threads. A test
/// with one thread, or whose later values the servers still need, calls [`World::end`].
impl Drop for World {
    fn drop(&mut self) {
        if !self.is_ended && !std::thread::panicking() {
            tokio::task::block_in_place(|| Handle::current().block_on(self.check_and_stop(&[])));
        }
    }
}

/// Payment simulators of all tests of this process by URL. The end of a world takes its own from here.
static GATEWAYS: Mutex<BTreeMap<String, Simulator>> = Mutex::new(BTreeMap::new());

/// Creates a payment simulator at its `public_url`. Every simulator is created here, because the books check all
/// simulators of a world.
pub fn new_simulator(settings: Settings) -> Simulator {
    let url = settings.public_url.clone();
    let simulator = Simulator::new(settings).expect("the simulator can be made");
    GATEWAYS.lock().unwrap_or_else(PoisonError::into_inner).insert(url, simulator.clone());
    simulator
}

impl World {
    /// Starts a world with `servers` servers. `settings` override the defaults.
    pub async fn start(servers: usize, settings: &[(&str, &str)]) -> Self {
        let admin_url = std::env::var("DATABASE_URL").expect("DATABASE_URL; `cargo xtask test` sets it");
        Self::start_on(admin_url, servers, settings).await
    }

    /// Starts a world, and a visitor at its first server.
    pub async fn with_visitor(servers: usize, settings: &[(&str, &str)]) -> (Self, Visitor) {
        let (world, [visitor]) = Self::with_visitors(servers, settings).await;
        (world, visitor)
    }

    /// Starts a world, and visitors at its first server.
    pub async fn with_visitors<const N: usize>(servers: usize, settings: &[(&str, &str)]) -> (Self, [Visitor; N]) {
        let world = Self::start(servers, settings).await;
        let visitors = std::array::from_fn(|_| world.visitor());
        (world, visitors)
    }

    /// Starts a world on the test's own Postgres.
    pub async fn start_on(admin_url: String, servers: usize, settings: &[(&str, &str)]) -> Self {
        let duration = WorldDuration::start();
        // Fails if another test of this process has installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let redis_url = std::env::var("REDIS_URL").expect("REDIS_URL; `cargo xtask test` sets it");
        let name = platform::ids::new_id().simple().to_string();
        let database = format!("rowlock_test_{name}");
        let mut admin = connect(&admin_url).await;
        copy_of_template(&admin_url, &mut admin, &database).await;
        let url = url_of(&admin_url, &database);
        let pg = platform::database::connect(&url, 8).await.expect("the new database answers");
        let show = insert_show(&pg, 300_000, 24 * 3600).await;
        let sql = "SELECT screen_id, layout_id FROM shows WHERE id = $1";
        let (screen, layout) = sqlx::query_as(sql).bind(show).fetch_one(&pg).await.expect("the show is there");
        let mailbox = std::env::temp_dir().join(format!("rowlock-mail-{name}"));
        let mut all: Vec<(String, String)> = vec![
            ("DATABASE_URL".into(), url),
            ("REDIS_URL".into(), redis_url),
            ("REDIS_PREFIX".into(), format!("t{name}:")),
            ("SIMULATOR_API_KEY".into(), API_KEY.into()),
            ("SIMULATOR_WEBHOOK_SECRET".into(), SECRET.into()),
            ("TOKEN_SECRET".into(), TOKEN_SECRET.into()),
            ("SIMULATOR_URL".into(), start_simulator().await),
            ("MAILBOX_DIR".into(), mailbox.to_string_lossy().into_owned()),
            ("RUST_LOG".into(), "warn".into()),
            // The minimum. Each connection is a process of Postgres that fills its own caches.
            ("DATABASE_CONNECTIONS".into(), "10".into()),
            // All requests of a test come from one address, faster than a person sends them.
            ("HOLDS_PER_VISITOR_MIN".into(), "0".into()),
            ("HOLDS_PER_ADDRESS_MIN".into(), "0".into()),
            ("SOCKETS_PER_ADDRESS".into(), "0".into()),
            ("QUEUE_TICKETS_PER_ADDRESS".into(), "0".into()),
        ];
        all.extend(settings.iter().map(|(key, value)| ((*key).into(), (*value).into())));
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(60))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client");
        let mut world = Self {
            pg,
            show,
            screen,
            layout,
            servers: vec![],
            admin_url,
            database,
            settings: all,
            mailbox,
            client,
            is_ended: false,
            _duration: duration,
        };
        for _ in 0..servers {
            world.add_server(&[]).await;
        }
        world
    }

    /// Divides the layout into three sections of a hundred seats. Call it before the show is loaded.
    pub async fn divide_room(&self) {
        let rows = [("Left", "A-E", 0), ("Middle", "F-J", 500), ("Right", "K-O", 1_000)];
        let zones = rows.map(|(name, rows, x)| {
            json!({ "name": name, "category": "gold", "at": [x, 0], "rows": [{ "rows": rows, "seats": "1-20" }] })
        });
        let mut layout: Value = serde_json::from_str(LAYOUT).expect("the sketch is JSON");
        layout["zones"] = zones.to_vec().into();
        let done = sqlx::query("UPDATE layouts SET plan = $1").bind(layout).execute(&self.pg).await;
        done.expect("the room is divided");
    }

    /// Blocks every seat of the show but these. Call it before the show is loaded.
    pub async fn sell_only(&self, seats: &[i32]) {
        let others: Vec<i32> = (0..300).filter(|seat| !seats.contains(seat)).collect();
        let done = sqlx::query("UPDATE shows SET blocked = $1").bind(others).execute(&self.pg).await;
        done.expect("the other seats are blocked");
    }

    /// Adds a standing area 0 with `capacity` places. Call it before the show is loaded.
    pub async fn open_floor(&self, capacity: i32) {
        self.open_floor_of(self.show, capacity).await;
    }

    pub async fn open_floor_of(&self, show: Uuid, capacity: i32) {
        let floor = "INSERT INTO area_stock (show_id, area_no, name, category, capacity)
                     VALUES ($1, 0, 'Floor', 'gold', $2)";
        self.run(sqlx::query(floor).bind(show).bind(capacity)).await;
    }

    pub fn database_url(&self) -> &str {
        let url = self.settings.iter().find(|(key, _)| key == "DATABASE_URL");
        &url.expect("every world has one").1
    }

    /// Adds a server with extra settings and returns its index in `servers`.
    pub async fn add_server(&mut self, settings: &[(&str, &str)]) -> usize {
        let free = crate::replicas::free_address();
        let url = format!("http://{free}");
        let mut process = Command::new(env!("CARGO_BIN_EXE_rowlock"))
            .arg("serve")
            .envs(self.settings.iter().cloned())
            .env("LISTEN", free.to_string())
            .env("PUBLIC_URL", &url)
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the server starts");
        let ready = format!("{url}/readyz");
        let is_ready = wait_until("the server is ready", || async {
            self.client.get(&ready).send().await.is_ok_and(|answer| answer.status() == StatusCode::OK)
        });
        tokio::select! {
            () = is_ready => {}
            end = process.wait() => panic!("the server at {free} ended before it was ready: {end:?}"),
        }
        self.servers.push(TestServer { url, process: Some(process) });
        self.servers.len() - 1
    }

    /// Adds a server that runs in the test's process and returns its index in `servers`.
    pub fn add_in_process_server(&mut self, url: String) -> usize {
        self.servers.push(TestServer { url, process: None });
        self.servers.len() - 1
    }

    /// Runs another command of the server's binary. Returns whether it succeeded, and its output.
    pub async fn command(&self, arguments: &[&str]) -> (bool, String) {
        let run = Command::new(env!("CARGO_BIN_EXE_rowlock"))
            .args(arguments)
            .envs(self.settings.iter().cloned())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(TEST_TIMEOUT, run).await.expect("it ends").expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).expect("text"))
    }

    /// Kills a server without a graceful shutdown.
    pub async fn kill(&mut self, server: usize) {
        let process = self.servers[server].process.as_mut().expect("the server is a separate process");
        process.kill().await.expect("the server can be killed");
    }

    pub fn visitor(&self) -> Visitor {
        self.visitor_at(0)
    }

    pub fn visitor_at(&self, server: usize) -> Visitor {
        let cookie = format!("rowlock_visitor={}", platform::ids::new_id().simple());
        Visitor { client: self.client.clone(), base: self.servers[server].url.clone(), cookie, show: self.show }
    }

    /// Signs a webhook body as the gateway does. `at_s` is in seconds since 1970.
    pub fn sign(body: &str, at_s: i64) -> String {
        use hmac::{Hmac, KeyInit, Mac};
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).expect("any length is a key");
        mac.update(format!("{at_s}.{body}").as_bytes());
        format!("t={at_s},v1={}", hex::encode(mac.finalize().into_bytes()))
    }

    /// Runs a query that returns one number.
    pub async fn count(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(&self.pg).await.expect("the query counts")
    }

    /// Runs a statement with arguments. Returns the number of rows that it changed.
    pub async fn run(&self, statement: Query<'_, Postgres, PgArguments>) -> u64 {
        statement.execute(&self.pg).await.expect("the statement runs").rows_affected()
    }

    /// Runs a query that returns one value.
    pub async fn value<T>(&self, query: QueryScalar<'_, Postgres, T, PgArguments>) -> T
    where
        T: Send + Unpin,
        (T,): for<'r> FromRow<'r, PgRow>,
    {
        query.fetch_one(&self.pg).await.expect("the query returns a value")
    }

    /// Runs a query that returns one column.
    pub async fn values<T>(&self, query: QueryScalar<'_, Postgres, T, PgArguments>) -> Vec<T>
    where
        T: Send + Unpin,
        (T,): for<'r> FromRow<'r, PgRow>,
    {
        query.fetch_all(&self.pg).await.expect("the query runs")
    }

    pub async fn execute(&self, statement: &'static str) {
        let done = sqlx::query(statement).execute(&self.pg).await;
        assert!(done.is_ok(), "{statement}: {done:?}");
    }

    /// Starts a transaction that locks the row of a booking.
    pub async fn lock_booking(&self, id: &str) -> Transaction<'static, Postgres> {
        let mut keeper = self.pg.begin().await.expect("a transaction");
        let lock = sqlx::query("SELECT FROM bookings WHERE id = $1::uuid FOR UPDATE").bind(id);
        lock.execute(&mut *keeper).await.expect("the booking is locked");
        keeper
    }

    /// Waits until a query returns this number.
    pub async fn wait_for_count(&self, what: &str, query: &'static str, expected: i64) {
        wait_until(what, || async { self.count(query).await == expected }).await;
    }

    pub async fn wait_for_empty_outbox(&self) {
        self.wait_for_count("the outbox is empty", "SELECT count(*) FROM outbox", 0).await;
    }

    /// Waits until money in = tickets + refunds + fees + pending, and sold seats = claims.
    pub async fn wait_until_books_balance(&self) {
        self.wait_for_empty_outbox().await;
        let charges = "SELECT coalesce(sum(amount_minor), 0)::bigint
                       FROM payments WHERE state = 'succeeded' AND moved_to IS NULL";
        let charged = self.count(charges).await;
        let sold =
            self.count("SELECT coalesce(sum(total_minor), 0)::bigint FROM bookings WHERE state = 'CONFIRMED'").await;
        let back = self
            .count("SELECT coalesce(sum(amount_minor + fee_minor), 0)::bigint FROM refunds WHERE state = 'settled'")
            .await;
        assert_eq!(charged, sold + back, "the money balances");
        let seats = "SELECT count(*) FROM booking_seats JOIN bookings ON id = booking_id WHERE state = 'CONFIRMED'";
        let tickets = "SELECT count(*) FROM tickets WHERE revoked_at IS NULL";
        let claims = "SELECT count(*) FROM seat_claims WHERE state <> 'released'";
        let (seats, tickets, claims) = (self.count(seats).await, self.count(tickets).await, self.count(claims).await);
        assert_eq!((tickets, claims), (seats, seats), "tickets and claims of the seats that are sold");
    }

    /// Deletes every Redis key of this world, as if Redis had lost its disk.
    pub async fn delete_redis_keys(&self) {
        let (keys, mut connection) = (self.redis_keys("*").await, self.redis().await);
        redis::cmd("DEL").arg(keys).query_async::<()>(&mut connection).await.expect("keys are deleted");
    }

    /// Lists the Redis keys of this world that match a pattern after the prefix.
    pub async fn redis_keys(&self, pattern: &str) -> Vec<String> {
        let pattern = format!("{}{pattern}", self.setting("REDIS_PREFIX"));
        redis::cmd("KEYS").arg(pattern).query_async(&mut self.redis().await).await.expect("keys are listed")
    }

    /// Closes every pub/sub connection of Redis. Connections of other tests are closed too, so the world needs its own
    /// Redis.
    pub async fn close_pubsub_connections(&self) {
        let mut connection = self.redis().await;
        let kill = redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub").query_async::<i64>(&mut connection).await;
        assert!(kill.expect("Redis cuts them") > 0, "a pub/sub connection was open");
    }

    /// Deletes every hold, and all claimed and held places of area 0, as a failover that lost the last writes does.
    pub async fn delete_holds(&self, capacity: i32) {
        let keys = seats::seat_locks::Keys::of(self.setting("REDIS_PREFIX"), self.show).0;
        let mut connection = self.redis().await;
        let [_, holds, expiry, owners, sold, areas, ..] = &keys;
        redis::cmd("DEL")
            .arg(&[holds, expiry, owners, sold])
            .query_async::<()>(&mut connection)
            .await
            .expect("the keys are deleted");
        redis::cmd("HSET")
            .arg(areas)
            .arg(0)
            .arg(capacity)
            .query_async::<()>(&mut connection)
            .await
            .expect("the field is set");
    }

    /// Marks one seat as free in Redis, as a failover that lost the last write does.
    pub async fn mark_seat_free_in_redis(&self, seat: u32) {
        let map = &seats::seat_locks::Keys::of(self.setting("REDIS_PREFIX"), self.show).0[0];
        let mut connection = self.redis().await;
        redis::cmd("SETRANGE")
            .arg(map)
            .arg(seat)
            .arg(&[0_u8])
            .query_async::<()>(&mut connection)
            .await
            .expect("the byte is set");
    }

    pub async fn redis(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.setting("REDIS_URL")).expect("REDIS_URL is an address");
        client.get_multiplexed_async_connection().await.expect("Redis answers")
    }

    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    pub fn setting(&self, name: &str) -> &str {
        // The last value wins, as it does for the servers.
        &self.settings.iter().rfind(|(key, _)| key == name).expect("the setting exists").1
    }

    /// Closes every connection to the database and refuses new ones, or accepts them again.
    pub async fn set_postgres_blocked(&self, shut: bool) {
        let mut admin = connect(&self.admin_url).await;
        let allow = format!("ALTER DATABASE {} ALLOW_CONNECTIONS {}", self.database, !shut);
        sqlx::query(sqlx::AssertSqlSafe(allow)).execute(&mut admin).await.expect("ALLOW_CONNECTIONS is changed");
        if shut {
            let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1";
            let cut = sqlx::query_scalar::<_, i64>(cut).bind(&self.database).fetch_one(&mut admin).await;
            assert!(cut.expect("the connections are closed") > 0, "a connection was open");
        }
    }

    pub fn mails(&self) -> Vec<String> {
        let Ok(folder) = std::fs::read_dir(&self.mailbox) else { return vec![] };
        folder.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok()).collect()
    }

    /// Ends the world before its drop.
    pub async fn end(self) {
        self.end_with_known_findings(&[]).await;
    }

    /// Ends a world whose books the test broke on purpose, by writing to the database. Findings that contain one of
    /// `findings` are expected; any other fails the test.
    pub async fn end_with_known_findings(mut self, findings: &[&str]) {
        self.check_and_stop(findings).await;
    }

    /// Checks that the books balance, stops the servers with SIGTERM, and drops the database.
    async fn check_and_stop(&mut self, known_findings: &[&str]) {
        self.is_ended = true;
        self.check_books(known_findings).await;
        let processes: Vec<&mut Child> = self.servers.iter_mut().filter_map(|server| server.process.as_mut()).collect();
        for id in processes.iter().filter_map(|process| process.id()) {
            let _ = send_signal(id, Signal::TERM);
        }
        for process in processes {
            tokio::time::timeout(TEST_TIMEOUT, process.wait())
                .await
                .expect("the server stops after SIGTERM")
                .expect("the process ends");
        }
        self.pg.close().await;
        let mut admin = connect(&self.admin_url).await;
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.database);
        sqlx::query(sqlx::AssertSqlSafe(drop)).execute(&mut admin).await.expect("the database is dropped");
        let _ = std::fs::remove_dir_all(&self.mailbox);
    }

    /// Checks the books with all gateways in the servers' settings.
    async fn check_books(&self, known_findings: &[&str]) {
        let gateways: Vec<Simulator> = {
            let mut known = GATEWAYS.lock().unwrap_or_else(PoisonError::into_inner);
            self.settings.iter().filter_map(|(_, value)| known.remove(value)).collect()
        };
        let books = Books {
            pg: &self.pg,
            redis_url: self.setting("REDIS_URL"),
            redis_prefix: self.setting("REDIS_PREFIX"),
            gateways: gateways.iter().collect(),
        };
        books.check_at_end(self.servers.iter().any(TestServer::is_running), known_findings).await;
    }
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// Asserts that Postgres refused a statement with this SQLSTATE and for this reason: a constraint with exactly this
/// name or, for a trigger, a part of its message. A mistake in the statement does not count.
#[track_caller]
pub fn assert_refused(what: &str, outcome: sqlx::Result<PgQueryResult>, code: &str, why: &str) {
    let refused = outcome.expect_err(what);
    let Some(error) = refused.as_database_error() else {
        panic!("{what}: the error does not come from Postgres: {refused}")
    };
    assert_eq!(error.code().as_deref(), Some(code), "{what}: {error}");
    match error.constraint() {
        Some(constraint) => assert_eq!(constraint, why, "{what}: {error}"),
        None => assert!(error.message().contains(why), "{what}: refused, but not because of {why:?}: {error}"),
    }
}

/// Polls `holds` until it is true. Fails with `what` after [`TEST_TIMEOUT`].
pub async fn wait_until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let mut again = tokio::time::interval(POLL_INTERVAL);
    let looked = async {
        while !holds().await {
            again.tick().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, looked).await.unwrap_or_else(|_| panic!("timed out waiting until {what}"));
}

/// Connects to Postgres, or to the primary of several hosts.
async fn connect(url: &str) -> PgConnection {
    let hosts = PostgresHosts::parse(url).expect("DATABASE_URL is an address");
    hosts.connect().await.expect("Postgres answers")
}

/// Returns the URL of another database on the same hosts. The URL may name several hosts.
fn url_of(admin_url: &str, database: &str) -> String {
    let (address, query) =
        admin_url.split_once('?').map_or((admin_url, None), |(address, query)| (address, Some(query)));
    let (scheme, rest) = address.split_once("://").expect("DATABASE_URL is an address");
    let hosts = rest.split('/').next().unwrap_or(rest);
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{scheme}://{hosts}/{database}{query}")
}

async fn start_simulator() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(simulator::serve(listener, default_simulator(&url), std::future::pending()));
    url
}

/// Creates the payment simulator with the settings that every test uses.
pub fn default_simulator(url: &str) -> Simulator {
    new_simulator(Settings {
        api_key: API_KEY.into(),
        webhook_secret: SECRET.into(),
        public_url: url.into(),
        merchant: "Test Cinemas".into(),
        pending: Duration::from_millis(300),
        slow: Duration::from_secs(1),
        no_answer: Duration::from_secs(30),
        late: Duration::from_secs(1),
        backoff_base: Duration::from_millis(50),
    })
}

/// Inserts the layout, a screen, and a show on it that starts in `starts_in_s` seconds.
pub async fn insert_show(pg: &PgPool, hold_ms: i64, starts_in_s: i64) -> Uuid {
    let statements = [
        "INSERT INTO cities VALUES ('lisbon', 'Lisbon', 'PT', 'Europe/Lisbon') ON CONFLICT DO NOTHING",
        "INSERT INTO theatres VALUES ('aurora', 'lisbon', 'Aurora', 'Rua 1', 'EUR') ON CONFLICT DO NOTHING",
        "INSERT INTO films VALUES ('tide', 'Tide', 'In and out.', 'Water.', 100, 'PG', 'Drama', 200) ON CONFLICT DO NOTHING",
    ];
    for statement in statements {
        sqlx::query(statement).execute(pg).await.expect("the catalogue is written");
    }
    let layout: Value = serde_json::from_str(LAYOUT).expect("the sketch is JSON");
    let (layout_id, show, screen) =
        (platform::ids::new_id(), platform::ids::new_id(), platform::ids::new_id().to_string());
    let sql = "INSERT INTO layouts VALUES ($1, 'Test room', $2, 300)";
    sqlx::query(sql).bind_all((layout_id, layout)).execute(pg).await.expect("the layout is written");
    let sql = "INSERT INTO screens VALUES ($1, 'aurora', 'Screen 1', $2)";
    sqlx::query(sql).bind_all((&screen, layout_id)).execute(pg).await.expect("the screen is written");
    sqlx::query(
        "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices, hold_ms)
         VALUES ($1, $2, 'tide', $3, now() + $4 * interval '1 second', current_date + 1, 'English', '2D', 'EUR', $5, $6)",
    )
    .bind_all((show, &screen, layout_id, starts_in_s as f64, json!({ "gold": PRICE }), hold_ms))
    .execute(pg)
    .await
    .expect("the show is written");
    show
}
