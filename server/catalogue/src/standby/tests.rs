//! Who is asked, with a standby nobody listens at: reads are given in.

use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::*;

fn nowhere() -> PgPool {
    PgPoolOptions::new().connect_lazy_with(PgConnectOptions::new().host("127.0.0.1").port(1))
}

/// A standby that was just seen to be near.
fn near() -> Standby {
    let standby = Standby::new(nowhere(), nowhere());
    standby.stands(StandbyState::Near { until: Instant::now() + LAG_LIMIT });
    standby
}

async fn answered(standby: &Standby) -> Result<u32, CatalogueRead> {
    standby.read(|_| async { Ok(7) }).await
}

#[tokio::test]
async fn it_is_read_while_it_is_near_and_no_longer() {
    let standby = Standby::new(nowhere(), nowhere());
    assert_eq!(answered(&standby).await, Err(CatalogueRead::Behind), "nobody has compared it yet");
    standby.stands(StandbyState::Near { until: Instant::now() + LAG_LIMIT });
    assert_eq!(answered(&standby).await, Ok(7));
    // Nobody compares it any more: it is not read for ever on an old word.
    standby.stands(StandbyState::Near { until: Instant::now() });
    assert_eq!(answered(&standby).await, Err(CatalogueRead::Behind));
    for unfit in [StandbyState::FollowsNobody, StandbyState::Another] {
        standby.stands(unfit);
        assert_eq!(answered(&standby).await, Err(CatalogueRead::Unfit));
    }
}

#[tokio::test]
async fn who_does_not_answer_in_time_is_soon_not_asked_any_more() {
    let standby = near();
    let asked = AtomicU32::new(0);
    let never = |_: PgPool| {
        asked.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<Result<u32, sqlx::Error>>()
    };
    for _ in 0..BREAKER.failures_to_open {
        assert_eq!(standby.read(never).await, Err(CatalogueRead::Failed));
    }
    assert_eq!(standby.read(never).await, Err(CatalogueRead::Resting));
    assert_eq!(asked.load(Ordering::Relaxed), BREAKER.failures_to_open);
}

#[tokio::test]
async fn a_row_that_cannot_be_says_nothing_against_it_and_a_cut_line_does() {
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
    assert_eq!(answered(&standby).await, Err(CatalogueRead::Resting));
}
