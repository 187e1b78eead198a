//! Lists for everybody are read from a standby that streams from a Postgres of the test's own, as long as it is near;
//! whatever happens to it, pages go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use catalogue::LAG_LIMIT;
use reqwest::StatusCode;
use sqlx::PgPool;

use crate::checking::{check, state};
use crate::postgres_process::Postgres;
use crate::telemetry::{TOKEN, value};
use crate::world::{World, insert_show, text, until};

/// The finding of `rowlock check`.
const ABOUT: &str = "postgres standby";
/// An address where nobody listens.
const NOBODY: &str = "postgres://rowlock@127.0.0.1:1/rowlock";
/// People who look at pages while the standby is killed.
const READERS: u32 = 4;
/// Pages and lists that a standby may answer.
const PAGES: [&str; 6] =
    ["/", "/cities/lisbon", "/theatres/aurora", "/films/tide", "/search?q=tide", "/api/v1/cities/lisbon/theatres"];

/// A primary, its standby, and a server that knows both.
struct Pair {
    world: World,
    standby: Postgres,
    /// The database of the world, at the standby.
    url: String,
    /// The same.
    there: PgPool,
    /// Dropped last: the world ends at it.
    _primary: Postgres,
}

impl Pair {
    /// With a standby that is read from already.
    async fn start() -> Self {
        let primary = Postgres::start().await;
        let mut world = World::start_on(primary.url(), 0, &[("METRICS_TOKEN", TOKEN)]).await;
        let standby = primary.standby().await;
        let url = standby.url_like(world.setting("DATABASE_URL"));
        world.add_server(&[("CATALOGUE_DATABASE_URL", &url)]).await;
        let there = platform::database::connect(&url, 2).await.expect("the standby answers");
        let pair = Self { world, standby, url, there, _primary: primary };
        pair.answers_more("standby").await;
        pair
    }

    /// What the city is called on the list of cities, which no process keeps.
    async fn city(&self) -> String {
        city(&self.world).await
    }

    async fn rename(&self, name: &str) {
        let done = sqlx::query("UPDATE cities SET name = $1").bind(name).execute(&self.world.pg).await;
        done.expect("it is renamed");
    }

    async fn reads(&self, outcome: &str) -> f64 {
        reads(&self.world, outcome).await
    }

    /// Looks at a list until one more is answered so.
    async fn answers_more(&self, outcome: &str) {
        let before = self.reads(outcome).await;
        until(&format!("a read is counted as {outcome}"), || async {
            self.city().await;
            self.reads(outcome).await > before
        })
        .await;
    }

    /// Has the standby show no more of what is written, until it is resumed.
    async fn pause(&self) {
        sqlx::query("SELECT pg_wal_replay_pause()").execute(&self.there).await.expect("it is told to pause");
        until("the standby pauses", || async {
            let said = sqlx::query_scalar::<_, String>("SELECT pg_get_wal_replay_pause_state()");
            said.fetch_one(&self.there).await.expect("it says how it stands") == "paused"
        })
        .await;
    }

    async fn resume(&self) {
        sqlx::query("SELECT pg_wal_replay_resume()").execute(&self.there).await.expect("it goes on");
    }

    async fn check(&self) -> serde_json::Value {
        check(&self.world, &["--catalogue-database-url", &self.url]).await.1
    }

    async fn end(self) {
        self.there.close().await;
        self.world.end().await;
    }
}

async fn city(world: &World) -> String {
    let (status, cities) = world.visitor().get("/api/v1/cities").await;
    assert_eq!(status, StatusCode::OK, "{cities}");
    text(&cities[0]["name"]).to_owned()
}

async fn reads(world: &World, outcome: &str) -> f64 {
    value(&world.servers[0].url, &format!("rowlock_catalogue_reads_total{{outcome=\"{outcome}\"}}")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_as_old_as_the_limit_at_most() {
    let pair = Pair::start().await;
    assert_eq!(state(&pair.check().await, ABOUT), "ok", "it follows, and is near");

    pair.pause().await;
    pair.rename("Lisboa").await;
    let renamed = Instant::now();
    let old = AtomicU32::new(0);
    until("the list is read from the primary", || async {
        let asked = Instant::now();
        if pair.city().await == "Lisboa" {
            return true;
        }
        old.fetch_add(1, Ordering::Relaxed);
        let age = asked.duration_since(renamed);
        assert!(age < LAG_LIMIT, "asked {age:?} after the change, and told of before");
        false
    })
    .await;
    assert!(old.load(Ordering::Relaxed) > 0, "nobody asked the standby");
    assert!(pair.reads("behind").await > 0.0);
    let report = pair.check().await;
    assert!(state(&report, ABOUT) == "warning" && report.to_string().contains("bytes behind"), "{report:#}");

    pair.resume().await;
    pair.answers_more("standby").await;
    assert_eq!(pair.city().await, "Lisboa");
    pair.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_decided_is_never_read_from_it_and_what_is_new_is_found() {
    let mut pair = Pair::start().await;
    pair.pause().await;
    let unknown_there = pair.reads("not_there").await;
    pair.world.show = insert_show(&pair.world.pg, 300_000, 24 * 3600).await;
    sqlx::query("INSERT INTO theatres VALUES ('borealis', 'lisbon', 'Borealis', 'Rua 2', 'EUR')")
        .execute(&pair.world.pg)
        .await
        .expect("a theatre opens");
    let shows = "SELECT count(*) FROM shows";
    let there = sqlx::query_scalar::<_, i64>(shows).fetch_one(&pair.there).await.expect("they are counted");
    assert_eq!((there, pair.world.count(shows).await), (1, 2), "the standby knows nothing of it");

    let ann = pair.world.visitor();
    for path in [format!("/api/v1/shows/{}", ann.show), "/api/v1/theatres/borealis/shows".to_owned()] {
        let (status, body) = ann.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
    }
    let (status, hold) = ann.hold(&[0, 1]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let (_, booking) = ann.book(&hold).await;
    ann.pay(&booking, Some("tok_paid")).await;
    ann.sees_booking(&booking, "CONFIRMED").await;
    assert!(pair.reads("not_there").await >= unknown_there + 1.0, "a no of the standby is not believed");
    pair.resume().await;
    pair.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_it_is_killed_every_page_goes_on_from_the_primary() {
    let mut pair = Pair::start().await;
    let (is_over, read) = (Arc::<AtomicBool>::default(), Arc::<AtomicU32>::default());
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let (visitor, is_over, read) = (pair.world.visitor(), is_over.clone(), read.clone());
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
        let enough = before + READERS * u32::try_from(PAGES.len()).expect("they are few");
        until("people go on reading", || async { read.load(Ordering::SeqCst) >= enough }).await;
    };
    more_pages().await;
    let failed = pair.reads("failed").await;
    pair.standby.kill().await;
    until("it is left in peace", || async { pair.reads("resting").await > 0.0 }).await;
    assert!(pair.reads("failed").await > failed, "somebody asked it in vain first");
    more_pages().await;
    assert_eq!(state(&pair.check().await, ABOUT), "warning");

    pair.standby.comes_back().await;
    pair.answers_more("standby").await;
    more_pages().await;
    is_over.store(true, Ordering::SeqCst);
    for reader in readers {
        let slowest = reader.await.expect("nobody was sent away");
        assert!(slowest < Duration::from_secs(10), "somebody waited for {slowest:?}");
    }
    pair.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_promoted_is_not_read_any_more() {
    let pair = Pair::start().await;
    sqlx::query("SELECT pg_promote()").execute(&pair.there).await.expect("it is promoted");
    pair.answers_more("unfit").await;
    pair.rename("Lisboa").await;
    assert_eq!(pair.city().await, "Lisboa", "the primary is read");
    let before = pair.reads("standby").await;
    pair.answers_more("unfit").await;
    assert_eq!(pair.reads("standby").await.to_bits(), before.to_bits());
    let report = pair.check().await;
    assert!(state(&report, ABOUT) == "warning" && report.to_string().contains("is no standby"), "{report:#}");
    pair.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_database_of_a_standby_is_not_taken_for_ours() {
    let mut pair = Pair::start().await;
    let wrong = pair.standby.url();
    let (_, report) = check(&pair.world, &["--catalogue-database-url", &wrong]).await;
    assert!(state(&report, ABOUT) == "warning" && report.to_string().contains("another database"), "{report:#}");
    pair.world.kill(0).await;
    let server = pair.world.add_server(&[("CATALOGUE_DATABASE_URL", &wrong)]).await;
    pair.world.servers.swap(0, server);
    pair.answers_more("unfit").await;
    assert_eq!(pair.reads("standby").await.to_bits(), 0.0_f64.to_bits());
    assert_eq!(pair.city().await, "Lisbon");
    pair.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_without_it_and_serves() {
    let mut world = World::start(0, &[("METRICS_TOKEN", TOKEN)]).await;
    world.add_server(&[("CATALOGUE_DATABASE_URL", NOBODY)]).await;
    until("nobody is left in peace", || async {
        assert_eq!(city(&world).await, "Lisbon");
        reads(&world, "resting").await > 0.0
    })
    .await;
    let (_, report) = check(&world, &["--catalogue-database-url", NOBODY]).await;
    assert!(state(&report, ABOUT) == "warning" && report.to_string().contains("does not answer"), "{report:#}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_nobody_but_the_primary_is_asked() {
    let world = World::start(1, &[("METRICS_TOKEN", TOKEN)]).await;
    let before = reads(&world, "primary").await;
    assert_eq!(city(&world).await, "Lisbon");
    assert_eq!(reads(&world, "primary").await.to_bits(), (before + 1.0).to_bits());
    let (_, report) = check(&world, &[]).await;
    assert!(!report.to_string().contains(ABOUT), "{report:#}");
    world.end().await;
}
