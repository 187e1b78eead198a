//! Public lists are read from a streaming standby of the test's own Postgres while its lag is low. A failing standby
//! does not affect pages. A pool on a primary and a standby chooses its host.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use catalogue::LAG_LIMIT;
use sqlx::PgPool;

use crate::postgres_process::Postgres;
use crate::prelude::*;
use crate::settings::{check, state};
use crate::telemetry::{TOKEN, value};

/// The finding's name in `rowlock check`.
const ABOUT: &str = "postgres standby";
const UNREACHABLE: &str = "postgres://rowlock@127.0.0.1:1/rowlock";
const READERS: u32 = 4;
/// Pages and lists that a standby may answer.
const PAGES: [&str; 6] =
    ["/", "/cities/lisbon", "/theatres/aurora", "/films/tide", "/search?q=tide", "/api/v1/cities/lisbon/theatres"];

/// A primary, its standby, and a server with both.
struct PrimaryWithStandby {
    world: World,
    standby: Postgres,
    /// URL of the world's database at the standby.
    url: String,
    /// Connections to the same.
    standby_pool: PgPool,
    /// Dropped last, because the world ends on it.
    _primary: Postgres,
}

impl PrimaryWithStandby {
    /// Starts all, and waits until lists are read from the standby.
    async fn start() -> Self {
        let primary = Postgres::start().await;
        let mut world = World::start_on(primary.url(), 0, &[("METRICS_TOKEN", TOKEN)]).await;
        let standby = primary.standby().await;
        let url = standby.url_like(world.setting("DATABASE_URL"));
        world.add_server(&[("CATALOGUE_DATABASE_URL", &url)]).await;
        let standby_pool = platform::database::connect(&url, 2).await.expect("the standby answers");
        let setup = Self { world, standby, url, standby_pool, _primary: primary };
        setup.wait_for_read("standby").await;
        setup
    }

    /// Name of the city in the list of cities, which no server caches.
    async fn city(&self) -> String {
        city(&self.world).await
    }

    async fn rename(&self, name: &str) {
        self.world.run(sqlx::query("UPDATE cities SET name = $1").bind(name)).await;
    }

    async fn reads(&self, outcome: &str) -> f64 {
        reads(&self.world, outcome).await
    }

    /// Requests a list until one more read has this outcome.
    async fn wait_for_read(&self, outcome: &str) {
        let before = self.reads(outcome).await;
        wait_until(&format!("a read is counted as {outcome}"), || async {
            self.city().await;
            self.reads(outcome).await > before
        })
        .await;
    }

    async fn pause(&self) {
        sqlx::query("SELECT pg_wal_replay_pause()").execute(&self.standby_pool).await.expect("the pause is requested");
        wait_until("the standby pauses", || async {
            let said = sqlx::query_scalar::<_, String>("SELECT pg_get_wal_replay_pause_state()");
            said.fetch_one(&self.standby_pool).await.expect("the state is read") == "paused"
        })
        .await;
    }

    async fn resume(&self) {
        sqlx::query("SELECT pg_wal_replay_resume()").execute(&self.standby_pool).await.expect("replay resumes");
    }

    async fn check(&self) -> Value {
        check(&self.world, &["--catalogue-database-url", &self.url]).await.1
    }

    async fn end(self) {
        self.standby_pool.close().await;
        self.world.end().await;
    }
}

async fn city(world: &World) -> String {
    let cities = expect_answer(world.visitor().get("/api/v1/cities").await, StatusCode::OK);
    text(&cities[0]["name"]).to_owned()
}

async fn reads(world: &World, outcome: &str) -> f64 {
    value(&world.servers[0].url, &format!("rowlock_catalogue_reads_total{{outcome=\"{outcome}\"}}")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn list_is_never_older_than_the_lag_limit() {
    let setup = PrimaryWithStandby::start().await;
    assert_eq!(state(&setup.check().await, ABOUT), "ok", "the standby's lag is low");

    setup.pause().await;
    setup.rename("Lisboa").await;
    let renamed = Instant::now();
    let old = AtomicU32::new(0);
    wait_until("the list is read from the primary", || async {
        let asked = Instant::now();
        if setup.city().await == "Lisboa" {
            return true;
        }
        old.fetch_add(1, Ordering::Relaxed);
        let age = asked.duration_since(renamed);
        assert!(age < LAG_LIMIT, "a stale read {age:?} after the change");
        false
    })
    .await;
    assert!(old.load(Ordering::Relaxed) > 0, "the standby was not read");
    assert!(setup.reads("behind").await > 0.0);
    let report = setup.check().await;
    assert!(state(&report, ABOUT) == "warning" && report.to_string().contains("bytes behind"), "{report:#}");

    setup.resume().await;
    setup.wait_for_read("standby").await;
    assert_eq!(setup.city().await, "Lisboa");
    setup.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_never_read_from_the_standby_and_new_rows_are_found() {
    let mut setup = PrimaryWithStandby::start().await;
    setup.pause().await;
    let unknown_there = setup.reads("not_there").await;
    setup.world.show = insert_show(&setup.world.pg, 300_000, 24 * 3600).await;
    setup.world.execute("INSERT INTO theatres VALUES ('borealis', 'lisbon', 'Borealis', 'Rua 2', 'EUR')").await;
    let shows = "SELECT count(*) FROM shows";
    let standby_pool =
        sqlx::query_scalar::<_, i64>(shows).fetch_one(&setup.standby_pool).await.expect("shows are counted");
    assert_eq!((standby_pool, setup.world.count(shows).await), (1, 2), "the standby lacks the show");

    let ann = setup.world.visitor();
    for path in [format!("/api/v1/shows/{}", ann.show), "/api/v1/theatres/borealis/shows".to_owned()] {
        let (status, body) = ann.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
    }
    let (_, booking) = ann.check_out(&[0, 1]).await;
    ann.pay(&booking, Some("tok_paid")).await;
    ann.wait_for_booking(&booking, "CONFIRMED").await;
    assert!(setup.reads("not_there").await >= unknown_there + 1.0, "a missing row is read again from the primary");
    setup.resume().await;
    setup.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_continue_from_the_primary_after_the_standby_is_killed() {
    let mut setup = PrimaryWithStandby::start().await;
    let (is_over, read) = (Arc::<AtomicBool>::default(), Arc::<AtomicU32>::default());
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let (visitor, is_over, read) = (setup.world.visitor(), is_over.clone(), read.clone());
            tokio::spawn(async move {
                let mut slowest = Duration::ZERO;
                while !is_over.load(Ordering::SeqCst) {
                    for page in PAGES {
                        let asked = Instant::now();
                        let answer = visitor.client.get(format!("{}{page}", visitor.base)).send().await;
                        assert_eq!(answer.expect("an answer").status(), StatusCode::OK, "{page}");
                        slowest = slowest.max(asked.elapsed());
                        read.fetch_add(1, Ordering::SeqCst);
                    }
                }
                slowest
            })
        })
        .collect();
    let more_pages = async || {
        let before = read.load(Ordering::SeqCst);
        let enough = before + READERS * u32::try_from(PAGES.len()).expect("a small number");
        wait_until("readers continue", || async { read.load(Ordering::SeqCst) >= enough }).await;
    };
    more_pages().await;
    let failed = setup.reads("failed").await;
    setup.standby.kill().await;
    wait_until("the standby is skipped", || async { setup.reads("resting").await > 0.0 }).await;
    assert!(setup.reads("failed").await > failed, "a read failed first");
    more_pages().await;
    assert_eq!(state(&setup.check().await, ABOUT), "warning");

    setup.standby.wait_until_restarted().await;
    setup.wait_for_read("standby").await;
    more_pages().await;
    is_over.store(true, Ordering::SeqCst);
    for reader in readers {
        let slowest = reader.await.expect("no reader failed");
        assert!(slowest < Duration::from_secs(10), "a read took {slowest:?}");
    }
    setup.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promoted_standby_is_not_read_any_more() {
    let setup = PrimaryWithStandby::start().await;
    sqlx::query("SELECT pg_promote()").execute(&setup.standby_pool).await.expect("the standby is promoted");
    setup.wait_for_read("unfit").await;
    setup.rename("Lisboa").await;
    assert_eq!(setup.city().await, "Lisboa", "the primary is read");
    let before = setup.reads("standby").await;
    setup.wait_for_read("unfit").await;
    assert_eq!(setup.reads("standby").await.to_bits(), before.to_bits());
    let report = setup.check().await;
    assert!(state(&report, ABOUT) == "warning" && report.to_string().contains("is no standby"), "{report:#}");
    setup.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn standby_of_another_database_is_not_accepted() {
    let mut setup = PrimaryWithStandby::start().await;
    let wrong = setup.standby.url();
    let (_, report) = check(&setup.world, &["--catalogue-database-url", &wrong]).await;
    assert!(state(&report, ABOUT) == "warning" && report.to_string().contains("another database"), "{report:#}");
    setup.world.kill(0).await;
    let server = setup.world.add_server(&[("CATALOGUE_DATABASE_URL", &wrong)]).await;
    setup.world.servers.swap(0, server);
    setup.wait_for_read("unfit").await;
    assert_eq!(setup.reads("standby").await.to_bits(), 0.0_f64.to_bits());
    assert_eq!(setup.city().await, "Lisbon");
    setup.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_starts_and_serves_without_its_standby() {
    let mut world = World::start(0, &[("METRICS_TOKEN", TOKEN)]).await;
    world.add_server(&[("CATALOGUE_DATABASE_URL", UNREACHABLE)]).await;
    wait_until("the missing standby is skipped", || async {
        assert_eq!(city(&world).await, "Lisbon");
        reads(&world, "resting").await > 0.0
    })
    .await;
    let (_, report) = check(&world, &["--catalogue-database-url", UNREACHABLE]).await;
    assert!(state(&report, ABOUT) == "warning" && report.to_string().contains("does not answer"), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_only_the_primary_is_read() {
    let world = World::start(1, &[("METRICS_TOKEN", TOKEN)]).await;
    let before = reads(&world, "primary").await;
    assert_eq!(city(&world).await, "Lisbon");
    assert_eq!(reads(&world, "primary").await.to_bits(), (before + 1.0).to_bits());
    let (_, report) = check(&world, &[]).await;
    assert!(!report.to_string().contains(ABOUT), "{report:#}");
}

/// A busy host gives no answer for this long, which exceeds the timeout of a running server.
const SILENCE: Duration = Duration::from_secs(3);

/// A primary and its standby, with the URL that names both.
struct PrimaryAndStandby {
    primary: Postgres,
    standby: Postgres,
    address: String,
}

impl PrimaryAndStandby {
    async fn start() -> Self {
        let primary = Postgres::start().await;
        let standby = primary.standby().await;
        let address = format!("postgres://rowlock@{},{}/postgres", primary.address(), standby.address());
        Self { primary, standby, address }
    }
}

async fn pool(address: &str) -> PgPool {
    platform::database::connect(address, 1).await.expect("there is a primary")
}

async fn is_connected_to(pool: &PgPool, postgres: &Postgres) -> bool {
    let asked = sqlx::query_scalar::<_, String>("SELECT current_setting('port')").fetch_one(pool).await;
    // A failover may happen during the query.
    asked.is_ok_and(|port| postgres.address().ends_with(&format!(":{port}")))
}

/// Returns whether a connection has queried the host's role twice.
async fn is_watched(pool: &PgPool) -> bool {
    let asked_again = "SELECT count(*) FROM pg_stat_activity
                       WHERE pid <> pg_backend_pid() AND query LIKE '%pg_is_in_recovery%'
                         AND query_start > backend_start + interval '0.5 s'";
    sqlx::query_scalar::<_, i64>(asked_again).fetch_one(pool).await.expect("the primary answers") > 0
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_primary_is_left_while_it_still_answers() {
    let PrimaryAndStandby { primary, standby, address } = PrimaryAndStandby::start().await;
    let pool = pool(&address).await;
    assert!(is_connected_to(&pool, &primary).await, "the pool uses the primary");
    wait_until("the primary's role is queried repeatedly", || is_watched(&pool)).await;

    standby.promote().await;
    wait_until("the pool connects to the host that was promoted", || is_connected_to(&pool, &standby)).await;
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_pool_waits_for_a_silent_host_before_it_uses_an_old_primary() {
    let PrimaryAndStandby { primary: _primary, standby, address } = PrimaryAndStandby::start().await;
    standby.promote().await;

    standby.suspend().await;
    let opened = tokio::spawn(async move { pool(&address).await });
    tokio::time::sleep(SILENCE).await;
    standby.resume().await;
    let pool = opened.await.expect("a pool");
    assert!(is_connected_to(&pool, &standby).await, "the first connection leads to the host of the later timeline");
    pool.close().await;
}
