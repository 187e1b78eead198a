//! Compares a show's map with the claims when a replica first uses the show.
//!
//! A store that was killed may come back without its last second. Replicas that have seen newer versions detect it
//! ("REGRESSED"); a replica started since cannot. It therefore compares once per show, in the background:
//! a seat that Postgres has sold and the map offers would be refused at the claim anyway, but only after
//! a visitor had chosen it.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use domain::seats::{SeatIndex, SeatState};
use sqlx::PgPool;
use uuid::Uuid;

use super::{FencedSelection, MAX_PER_CALL, MapSnapshot, Selection, StoreError};
use crate::SeatsState;
use http::ApiResult;

/// Shows remembered at most. Beyond, all are forgotten and compared again, which costs only reads.
const MAX_SHOWS: usize = 10_000;

/// Shows that this replica has compared, or is comparing.
#[derive(Default)]
pub struct ComparedShows(Mutex<HashSet<Uuid>>);

impl ComparedShows {
    /// Marks a show as compared. False if it was marked before.
    fn try_mark(&self, show: Uuid) -> bool {
        let mut marked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if marked.len() >= MAX_SHOWS && !marked.contains(&show) {
            marked.clear();
        }
        marked.insert(show)
    }

    fn unmark(&self, show: Uuid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&show);
    }
}

/// Starts the comparison of a show with a loaded map, unless this replica has compared it before.
pub(super) fn start_once(state: &SeatsState, show: Uuid) {
    if state.compared_shows.try_mark(show) {
        let comparing = state.clone();
        state.tasks.spawn(async move {
            match compare(&comparing, show).await {
                Ok(0) => {}
                Ok(repaired) => {
                    tracing::warn!(%show, repaired, "the seat map of {show} lacked {repaired} sold seats; repaired");
                }
                Err(problem) => {
                    tracing::warn!(?problem, %show, "compare the map of {show} with its claims failed, retrying");
                    comparing.compared_shows.unmark(show);
                }
            }
        });
    }
}

/// Books the sold seats that the map lacks. Returns their number.
async fn compare(state: &SeatsState, show: Uuid) -> ApiResult<usize> {
    let Some(before) = read_map(state, show).await? else { return Ok(0) };
    let claims = load_claims(&state.pg, show).await?;
    // Read again: the map may lag behind a sale between the two reads.
    let Some(after) = read_map(state, show).await? else { return Ok(0) };
    let unknown =
        |seat: SeatIndex| [&before, &after].iter().all(|seen| state_of(seen, seat) != SeatState::Booked as u8);
    let mut sales = BTreeMap::<(Uuid, i64), FencedSelection>::new();
    let mut repaired = 0;
    for claim in claims {
        let seat = claim.seat_no.cast_unsigned();
        if unknown(seat) {
            repaired += 1;
            let ClaimRow { hold_id: hold, owner, fence, .. } = claim;
            let sale = sales.entry((hold, fence)).or_insert_with(|| FencedSelection {
                hold,
                owner,
                fence,
                selection: Selection::default(),
            });
            sale.selection.seats.push(seat);
        }
    }
    let sales: Vec<FencedSelection> = sales.into_values().collect();
    for sales in sales.chunks(MAX_PER_CALL) {
        state.locks.book_all(show, sales).await?;
    }
    Ok(repaired)
}

/// Reads the map, or nothing if it is not loaded: a rebuild reads the claims anyway.
async fn read_map(state: &SeatsState, show: Uuid) -> ApiResult<Option<MapSnapshot>> {
    match state.locks.snapshot(show).await {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(StoreError::NoMap(_)) => Ok(None),
        Err(cause) => Err(cause.into()),
    }
}

/// The state of a seat; one that the room does not have counts as booked, so that it is not repaired.
fn state_of(seen: &MapSnapshot, seat: SeatIndex) -> u8 {
    seen.map.get(seat as usize).copied().unwrap_or(SeatState::Booked as u8)
}

#[derive(platform::FromRow)]
struct ClaimRow {
    seat_no: i32,
    hold_id: Uuid,
    owner: String,
    fence: i64,
}

async fn load_claims(pg: &PgPool, show: Uuid) -> sqlx::Result<Vec<ClaimRow>> {
    let sql = "SELECT claim.seat_no, booking.hold_id, booking.owner, claim.fence
               FROM seat_claims claim JOIN bookings booking ON booking.id = claim.booking_id
               WHERE claim.show_id = $1 AND claim.state = 'sold' ORDER BY claim.seat_no";
    sqlx::query_as(sql).bind(show).fetch_all(pg).await
}
