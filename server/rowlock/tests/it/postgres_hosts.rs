//! Which of several hosts of Postgres a pool connects to, on a primary and a standby of the test's own.

use std::time::Duration;

use sqlx::PgPool;

use crate::postgres_process::Postgres;
use crate::world::until;

/// A busy host gives no answer for so long: more than a host has once servers run.
const SILENCE: Duration = Duration::from_secs(3);

/// A primary and a standby that may take its place, with the address that names both.
struct Pair {
    primary: Postgres,
    standby: Postgres,
    address: String,
}

impl Pair {
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

/// True if the pool's connections lead to this Postgres.
async fn leads_to(pool: &PgPool, postgres: &Postgres) -> bool {
    let asked = sqlx::query_scalar::<_, String>("SELECT current_setting('port')").fetch_one(pool).await;
    // The host changes while it is asked.
    asked.is_ok_and(|port| postgres.address().ends_with(&format!(":{port}")))
}

/// True if the host that the pool leads to was asked for its role twice on one connection.
async fn is_watched(pool: &PgPool) -> bool {
    let asked_again = "SELECT count(*) FROM pg_stat_activity
                       WHERE pid <> pg_backend_pid() AND query LIKE '%pg_is_in_recovery%'
                         AND query_start > backend_start + interval '0.5 s'";
    sqlx::query_scalar::<_, i64>(asked_again).fetch_one(pool).await.expect("the primary answers") > 0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_was_replaced_is_left_while_it_still_answers() {
    let Pair { primary, standby, address } = Pair::start().await;
    let pool = pool(&address).await;
    assert!(leads_to(&pool, &primary).await, "there is one primary");
    until("the primary is asked again and again", || is_watched(&pool)).await;

    standby.promote().await;
    until("the pool connects to the host that was promoted", || leads_to(&pool, &standby)).await;
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_is_opened_waits_for_a_silent_host_before_it_uses_an_old_primary() {
    let Pair { primary: _primary, standby, address } = Pair::start().await;
    standby.promote().await;

    standby.stop_answering().await;
    let opened = tokio::spawn(async move { pool(&address).await });
    tokio::time::sleep(SILENCE).await;
    standby.answer_again().await;
    let pool = opened.await.expect("a pool");
    assert!(leads_to(&pool, &standby).await, "the first connection leads to the host of the later timeline");
    pool.close().await;
}
