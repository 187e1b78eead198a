//! Holds seats in a hidden show, as two visitors.

use domain::time::MINUTE_MS;
use uuid::Uuid;

use super::CheckFinding;
use platform::ids;
use seats::seat_locks::{
    HoldLimits, LockAttempt, RebuildInput, RedisLocks, Refusal, RequestIdentity, SeatLocks, Selection, StoreError,
    StoredHold,
};

/// Seats of its room.
const SEATS: usize = 2;
const TERMS: HoldLimits = HoldLimits { per_person: 10, length_ms: MINUTE_MS, life_ms: MINUTE_MS };

/// Checks that a seat is granted once, refused to a second visitor, and granted again after its release.
pub(super) async fn try_seats(locks: &RedisLocks) -> CheckFinding {
    let show = ids::new_id();
    let tried = try_in(locks, show).await;
    // Whatever happened: nothing is left of it.
    let forgotten = locks.forget(show).await;
    match (tried, forgotten) {
        (Ok(None), Ok(())) => CheckFinding::good("a seat was granted, refused to a second, let go and granted again"),
        (Ok(Some(wrong)), _) => CheckFinding::bad(wrong),
        (Err(cause), _) | (Ok(None), Err(cause)) => CheckFinding::bad(format!("the scripts do not run: {cause:?}")),
    }
}

/// The failure, if there is one.
async fn try_in(locks: &RedisLocks, show: Uuid) -> Result<Option<String>, StoreError> {
    locks.load(show, &RebuildInput { map: vec![0; SEATS], ..RebuildInput::default() }).await?;
    let ann = match wants(locks, show, "check-one", vec![0, 1]).await? {
        Some(Ok(held)) => held,
        other => return Ok(Some(format!("free seats were not granted: {other:?}"))),
    };
    match wants(locks, show, "check-two", vec![1]).await? {
        Some(Err(Refusal::Taken(seats))) if seats.len() == 1 => {}
        other => return Ok(Some(format!("a seat that is held was not refused: {other:?}"))),
    }
    if let Err(refusal) = locks.release(show, ann.hold, "check-one").await? {
        return Ok(Some(format!("a hold could not be let go: {refusal:?}")));
    }
    match wants(locks, show, "check-two", vec![1]).await? {
        Some(Ok(_)) => Ok(None),
        other => Ok(Some(format!("a seat that was let go was not granted: {other:?}"))),
    }
}

async fn wants(
    locks: &RedisLocks,
    show: Uuid,
    owner: &str,
    seats: Vec<u32>,
) -> Result<Option<Result<StoredHold, Refusal>>, StoreError> {
    let asked = RequestIdentity { id: ids::new_id(), digest: 1 };
    let attempt =
        LockAttempt { asked, owner: owner.to_owned(), selection: Selection::of_seats(seats), takes_kept: false };
    Ok(locks.lock(show, TERMS, &[attempt]).await?.pop())
}
