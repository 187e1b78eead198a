//! The choice between standby and primary, with a standby without listener: results are given.

use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::*;

fn unreachable_pool() -> PgPool {
    PgPoolOptions::new().connect_lazy_with(PgConnectOptions::new().host("127.0.0.1").port(1))
}

/// A standby whose lag was just measured as small.
fn near() -> Standby {
    let standby = Standby::new(unreachable_pool(), unreachable_pool());
    standby.set_state(StandbyState::Near { until: Instant::now() + LAG_LIMIT });
    standby
}

async fn answered(standby: &Standby) -> Result<u32, CatalogueRead> {
    standby.read(|_| async { Ok(7) }).await
}

#[tokio::test]
async fn a_standby_is_read_while_its_lag_is_known_and_small() {
    let standby = Standby::new(unreachable_pool(), unreachable_pool());
    assert_eq!(answered(&standby).await, Err(CatalogueRead::Behind), "not compared yet");
    standby.set_state(StandbyState::Near { until: Instant::now() + LAG_LIMIT });
    assert_eq!(answered(&standby).await, Ok(7));
    // Without another comparison it is not read any more.
    standby.set_state(StandbyState::Near { until: Instant::now() });
    assert_eq!(answered(&standby).await, Err(CatalogueRead::Behind));
    for unfit in [StandbyState::NotAStandby, StandbyState::Another] {
        standby.set_state(unfit);
        assert_eq!(answered(&standby).await, Err(CatalogueRead::Unfit));
    }
}

#[tokio::test]
async fn a_standby_that_times_out_opens_the_breaker() {
    let standby = near();
    let asked = AtomicU32::new(0);
    let never = |_: PgPool| {
        asked.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<sqlx::Result<u32>>()
    };
    for _ in 0..BREAKER.failures_to_open {
        assert_eq!(standby.read(never).await, Err(CatalogueRead::Failed));
    }
    assert_eq!(standby.read(never).await, Err(CatalogueRead::CircuitOpen));
    assert_eq!(asked.load(Ordering::Relaxed), BREAKER.failures_to_open);
}

#[tokio::test]
async fn an_invalid_row_does_not_count_for_the_breaker_and_a_lost_connection_does() {
    let standby = near();
    for _ in 0..2 * BREAKER.failures_to_open {
        let wrong = standby.read(|_| async { Err::<u32, _>(sqlx::Error::Decode("a row that cannot be".into())) }).await;
        assert_eq!(wrong, Err(CatalogueRead::Failed));
    }
    assert_eq!(answered(&standby).await, Ok(7));
    for _ in 0..BREAKER.failures_to_open {
        let cut = standby.read(|_| async { Err::<u32, _>(sqlx::Error::PoolTimedOut) }).await;
        assert_eq!(cut, Err(CatalogueRead::Failed));
    }
    assert_eq!(answered(&standby).await, Err(CatalogueRead::CircuitOpen));
}
