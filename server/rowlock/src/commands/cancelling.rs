//! `rowlock cancel-booking` and `cancel-show`: cancel bookings in full and notify the buyers. `rowlock release-holds`: releases
//! every hold of a show.

use std::time::Duration;

use platform::clock;
use rowlock::start;
use seats::seat_locks::{ReleasedAll, SeatLocks, StoreError};
use selling::bookings;
use uuid::Uuid;

use super::{Database, in_words};

/// Maximum number of retries for bookings that are locked by others; replicas retry without limit.
const MAX_LOCKED_RETRIES: u32 = 50;
/// Pause between the retries.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

pub async fn booking(reference: &str, seats: &[String], reason: &str, database: &Database) -> anyhow::Result<()> {
    let pg = database.connect(1).await?;
    let undone = bookings::cancel_booking(&pg, reference, seats, reason, clock::now()).await;
    println!("cancelled; {} goes back to the buyer", undone.map_err(in_words)?.back);
    Ok(())
}

pub async fn show(show: Uuid, reason: &str, database: &Database) -> anyhow::Result<()> {
    let pg = database.connect(2).await?;
    if !bookings::call_off(&pg, show, reason, clock::now()).await.map_err(in_words)? {
        eprintln!("it was cancelled before; going on with what is left");
    }
    let (mut undone, mut retries) = (0, 0);
    while retries < MAX_LOCKED_RETRIES {
        match bookings::undo_batch(&pg, show, clock::now()).await.map_err(in_words)? {
            bookings::CallOffProgress::Cancelled(count) => {
                (undone, retries) = (undone + count, 0);
                eprintln!("{undone} bookings undone");
            }
            bookings::CallOffProgress::Busy => {
                retries += 1;
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            bookings::CallOffProgress::NoneLeft => break,
        }
    }
    if retries == MAX_LOCKED_RETRIES {
        eprintln!("the servers go on with what is left");
    }
    println!("cancelled; {undone} bookings undone here, refunds and mails are queued");
    Ok(())
}

pub async fn release_holds(show: Uuid, redis_url: &str, redis_prefix: &str) -> anyhow::Result<()> {
    let (_, locks) = start::lock_store(redis_url, redis_prefix).await?;
    match locks.release_all(show).await {
        Ok(ReleasedAll { released, paying }) => println!("{released} holds let go, {paying} being paid stay"),
        Err(StoreError::NoMap(_)) => println!("no seat of that show is held"),
        Err(cause) => return Err(cause.into()),
    }
    Ok(())
}
