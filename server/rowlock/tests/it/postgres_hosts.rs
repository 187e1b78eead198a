//! Choice of a Postgres host by a pool, on a primary and a standby of the test.

use std::time::Duration;

use sqlx::PgPool;

use crate::postgres_process::Postgres;
use crate::world::wait_until;

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

/// Returns whether the pool is connected to this Postgres.
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
