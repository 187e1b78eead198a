//! `rowlock release-holds`: releases every hold of a show.

use rowlock::start;
use seats::seat_locks::{ReleasedAll, SeatLocks, StoreError};
use uuid::Uuid;

pub async fn run(show: Uuid, redis_url: &str, redis_prefix: &str) -> anyhow::Result<()> {
    let (_, locks) = start::lock_store(redis_url, redis_prefix).await?;
    match locks.release_all(show).await {
        Ok(ReleasedAll { released, paying }) => println!("{released} holds let go, {paying} being paid stay"),
        Err(StoreError::NoMap(_)) => println!("no seat of that show is held"),
        Err(cause) => return Err(cause.into()),
    }
    Ok(())
}
