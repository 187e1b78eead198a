//! Compares a show's map with the claims when a replica first uses the show, and then once an hour.
//!
//! A store that was killed may come back without its last second. Replicas that have seen newer versions detect it
//! ("REGRESSED"); a replica started since cannot. It therefore compares in the background: a seat that Postgres has
//! sold and the map offers would be refused at the claim anyway, but only after a visitor had chosen it.
//!
//! The opposite is a sale whose map update arrives after its return: its seats would stay booked until a rebuild.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::seats::{SeatIndex, SeatState};
use sqlx::PgPool;
use uuid::Uuid;

use super::{FencedSelection, MAX_PER_CALL, MapSnapshot, Selection, StoreError, free_or_block};
use crate::SeatsState;
use http::ApiResult;

/// Shows remembered at most. Beyond, all are forgotten and compared again, which costs only reads.
const MAX_SHOWS: usize = 10_000;
/// Pause between two comparisons of a show on this replica.
const COMPARE_EVERY: Duration = Duration::from_secs(3_600);

/// Shows that this replica has compared, or is comparing, and the start of the last comparison.
#[derive(Default)]
pub struct ComparedShows(Mutex<HashMap<Uuid, Instant>>);

impl ComparedShows {
    /// Marks a show as compared. False if it was marked less than [`COMPARE_EVERY`] ago.
    fn try_mark(&self, show: Uuid) -> bool {
        let mut marked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if marked.get(&show).is_some_and(|at| at.elapsed() < COMPARE_EVERY) {
            return false;
        }
        if marked.len() >= MAX_SHOWS {
            marked.clear();
        }
        marked.insert(show, Instant::now());
        true
    }

    fn unmark(&self, show: Uuid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&show);
    }
}

/// Starts the comparison of a show with a loaded map, unless this replica has compared it lately.
pub(super) fn start_once(state: &SeatsState, show: Uuid) {
    if state.compared_shows.try_mark(show) {
        let comparing = state.clone();
        state.tasks.spawn(async move {
            match compare(&comparing, show).await {
                Ok(0) => {}
                Ok(repaired) => {
                    tracing::warn!(%show, repaired, "{repaired} seats of {show} differed from their claims; repaired");
                }
                Err(problem) => {
                    tracing::warn!(?problem, %show, "compare the map of {show} with its claims failed, retrying");
                    comparing.compared_shows.unmark(show);
                }
            }
        });
    }
}

/// Books the sold seats that the map lacks, and frees the returned seats that it shows as booked. Returns their number.
async fn compare(state: &SeatsState, show: Uuid) -> ApiResult<usize> {
    let Some(before) = read_map(state, show).await? else { return Ok(0) };
    let claims = load_claims(&state.pg, show).await?;
    // Read again: the map may lag behind a sale or a return between the two reads.
    let Some(after) = read_map(state, show).await? else { return Ok(0) };
    let (mut sales, mut returns) = (BookingsByHold::new(), BookingsByHold::new());
    let mut repaired = 0;
    for claim in claims {
        let seat = claim.seat_no.cast_unsigned();
        let group = match (claim.is_sold, is_booked(&before, seat), is_booked(&after, seat)) {
            (true, Some(false), Some(false)) => &mut sales,
            (false, Some(true), Some(true)) => &mut returns,
            _ => continue,
        };
        repaired += 1;
        let ClaimRow { hold_id: hold, owner, fence, .. } = claim;
        let booking = group.entry((hold, fence)).or_insert_with(|| FencedSelection {
            hold,
            owner,
            fence,
            selection: Selection::default(),
        });
        booking.selection.seats.push(seat);
    }
    let sales: Vec<FencedSelection> = sales.into_values().collect();
    for sales in sales.chunks(MAX_PER_CALL) {
        state.locks.book_all(show, sales).await?;
    }
    for returned in returns.into_values() {
        // The fence proves that the map shows this booking. Its hold is not named: a buyer may have kept it.
        let returned = FencedSelection { hold: Uuid::nil(), ..returned };
        free_or_block(state, show, &returned).await??;
    }
    Ok(repaired)
}

/// Parts of bookings, by hold and fence.
type BookingsByHold = BTreeMap<(Uuid, i64), FencedSelection>;

/// Reads the map, or nothing if it is not loaded: a rebuild reads the claims anyway.
async fn read_map(state: &SeatsState, show: Uuid) -> ApiResult<Option<MapSnapshot>> {
    match state.locks.snapshot(show).await {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(StoreError::NoMap(_)) => Ok(None),
        Err(cause) => Err(cause.into()),
    }
}

/// True if the map shows a seat as booked; `None` if it has no such seat.
fn is_booked(seen: &MapSnapshot, seat: SeatIndex) -> Option<bool> {
    seen.map.get(seat as usize).map(|state| *state == SeatState::Booked as u8)
}

#[derive(platform::FromRow)]
struct ClaimRow {
    seat_no: i32,
    hold_id: Uuid,
    owner: String,
    fence: i64,
    is_sold: bool,
}

/// Reads the claims that are sold or released. The map may show a pending one as held or as booked.
async fn load_claims(pg: &PgPool, show: Uuid) -> sqlx::Result<Vec<ClaimRow>> {
    let sql = "SELECT claim.seat_no, booking.hold_id, booking.owner, claim.fence, claim.state = 'sold' AS is_sold
               FROM seat_claims claim JOIN bookings booking ON booking.id = claim.booking_id
               WHERE claim.show_id = $1 AND claim.state <> 'claimed' ORDER BY claim.seat_no";
    sqlx::query_as(sql).bind(show).fetch_all(pg).await
}
