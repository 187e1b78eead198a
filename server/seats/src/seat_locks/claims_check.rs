//! What a replica does when it meets a show for the first time: the store's map is compared with the claims.
//!
//! A store that was killed may come back without its last second. Replicas that have seen more notice it
//! ("REGRESSED"); one that was started since cannot know. So it looks, once a show, while nobody waits for
//! it: a seat that Postgres has sold and the map offers would be refused at the claim anyway, but only after
//! somebody had chosen it.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use domain::seats::{SeatIndex, SeatState};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Lot, MAX_PER_CALL, MapSnapshot, Sale, StoreError};
use crate::SeatsState;
use http::Problem;

/// Shows remembered at most. Beyond, all are forgotten and looked at again: a glance too many.
const MAX_SHOWS: usize = 10_000;

/// Shows this replica has met.
#[derive(Default)]
pub struct FirstLooks(Mutex<HashSet<Uuid>>);

impl FirstLooks {
    /// Whether nobody asked about this show before.
    fn is_first(&self, show: Uuid) -> bool {
        let mut met = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if met.len() >= MAX_SHOWS && !met.contains(&show) {
            met.clear();
        }
        met.insert(show)
    }

    fn again(&self, show: Uuid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&show);
    }
}

/// Looks at a show whose map was just found, if nobody here has yet.
pub(super) fn take(state: &SeatsState, show: Uuid) {
    if state.first_looks.is_first(show) {
        let looking = state.clone();
        state.tasks.spawn(async move {
            match compare(&looking, show).await {
                Ok(0) => {}
                Ok(mended) => {
                    tracing::warn!(%show, mended, "the map of {show} did not know of {mended} sold seats; now it does");
                }
                Err(problem) => {
                    tracing::warn!(?problem, %show, "the map of {show} was not compared with the claims; the next caller sees to it");
                    looking.first_looks.again(show);
                }
            }
        });
    }
}

/// Tells the map of sales it does not show. How many seats it did not.
async fn compare(state: &SeatsState, show: Uuid) -> Result<usize, Problem> {
    let Some(before) = glance(state, show).await? else { return Ok(0) };
    let claims = sold(&state.pg, show).await?;
    // Looked at twice: what was sold in between is on its way.
    let Some(after) = glance(state, show).await? else { return Ok(0) };
    let unknown =
        |seat: SeatIndex| [&before, &after].iter().all(|seen| state_of(seen, seat) != SeatState::Booked as u8);
    let mut sales = BTreeMap::<(Uuid, i64), Sale>::new();
    let mut mended = 0;
    for claim in claims {
        let seat = claim.seat_no.cast_unsigned();
        if unknown(seat) {
            mended += 1;
            let Claim { hold_id: hold, owner, fence, .. } = claim;
            let sale = sales.entry((hold, fence)).or_insert_with(|| Sale { hold, owner, fence, lot: Lot::default() });
            sale.lot.seats.push(seat);
        }
    }
    let sales: Vec<Sale> = sales.into_values().collect();
    for sales in sales.chunks(MAX_PER_CALL) {
        state.locks.book_all(show, sales).await?;
    }
    Ok(mended)
}

/// The map, or nothing when it is to be built anyway.
async fn glance(state: &SeatsState, show: Uuid) -> Result<Option<MapSnapshot>, Problem> {
    match state.locks.snapshot(show).await {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(StoreError::NoMap(_)) => Ok(None),
        Err(cause) => Err(cause.into()),
    }
}

/// A seat the room has no more is no seat to tell of.
fn state_of(seen: &MapSnapshot, seat: SeatIndex) -> u8 {
    seen.map.get(seat as usize).copied().unwrap_or(SeatState::Booked as u8)
}

#[derive(sqlx::FromRow)]
struct Claim {
    seat_no: i32,
    hold_id: Uuid,
    owner: String,
    fence: i64,
}

async fn sold(pg: &PgPool, show: Uuid) -> Result<Vec<Claim>, sqlx::Error> {
    sqlx::query_as(
        "SELECT claim.seat_no, booking.hold_id, booking.owner, claim.fence
         FROM seat_claims claim JOIN bookings booking ON booking.id = claim.booking_id
         WHERE claim.show_id = $1 AND claim.state = 'sold' ORDER BY claim.seat_no",
    )
    .bind(show)
    .fetch_all(pg)
    .await
}
