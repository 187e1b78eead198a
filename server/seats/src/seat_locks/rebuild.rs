//! Builds a show's map in the lock store from Postgres: at its first use, and again after the
//! store lost it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{MapSnapshot, RebuildInput, RebuildSource, StoreError, StoreResult, claims_check};
use crate::SeatsState;
use catalogue::{CLAIM_GRACE_MS, claim_is_alive};
use catalogue::{Catalogue, Show};
use http::{ApiResult, Code, Problem};
use platform::redis_link::LinkError;

/// Deadline for reading a show from Postgres: a caller may serve others meanwhile (`bookings/commits`).
const READ_TIMEOUT: Duration = Duration::from_secs(8);
const NO_SEAT_LOST: &str = "No seat was lost. Please try again in a few seconds.";

/// Calls the store; if the map is not there, loads it and retries once. Every use of the store
/// goes through here.
///
/// # Errors
/// 503 when the store or the database cannot be reached.
pub async fn with_map<T, F>(state: &SeatsState, show: &Show, call: impl Fn() -> F) -> ApiResult<T>
where
    F: Future<Output = StoreResult<T>>,
{
    let mut answer = call().await;
    if matches!(answer, Err(StoreError::NoMap(_))) {
        // Boxed: otherwise the future of every call would include its size, and hardly any call needs it.
        let known = Box::pin(read_show_in_time(&state.pg, show)).await?;
        state.locks.load(show.id, &known).await?;
        answer = call().await;
    }
    let answer = answer?;
    claims_check::start_once(state, show.id);
    Ok(answer)
}

/// The map of a show, for display. While the lock store is unavailable it is read from Postgres: it shows seats that
/// are sold, being paid for or blocked, and no holds.
///
/// # Errors
/// 503 when the database cannot be reached.
pub async fn read_map_or_claims(state: &SeatsState, show: &Show) -> ApiResult<MapSnapshot> {
    match with_map(state, show, || state.locks.snapshot(show.id)).await {
        Err(away) if away.code() == Code::LockStoreUnavailable => {
            let known = Box::pin(read_show_in_time(&state.pg, show)).await?;
            Ok(MapSnapshot { epoch: 0, version: 0, map: known.map.into(), areas: known.areas })
        }
        map => map,
    }
}

/// Reads shows from Postgres for the second of two stores.
#[must_use]
pub fn rebuild_source(pg: PgPool, catalogue: Catalogue) -> RebuildSource {
    Arc::new(move |show| {
        let (pg, catalogue) = (pg.clone(), catalogue.clone());
        Box::pin(async move {
            let known = async { read_show_in_time(&pg, &*catalogue.find_show_or_rehearsal(show).await?).await };
            known
                .await
                .inspect_err(|problem| tracing::warn!(?problem, %show, "read a map for the second lock store failed"))
                .ok()
        })
    })
}

impl From<StoreError> for Problem {
    fn from(cause: StoreError) -> Self {
        match &cause {
            StoreError::NoMap(_) => tracing::warn!(%cause, "the map is still missing after a load"),
            // Logged once, when the breaker opened; not again for each request that is refused.
            StoreError::Unavailable(source @ LinkError::CircuitOpen { retry_after }) => {
                tracing::debug!(%source, "the circuit breaker of the lock store is open");
                return Self::new(Code::LockStoreUnavailable, NO_SEAT_LOST).with_retry_after(*retry_after);
            }
            StoreError::Unavailable(source) => tracing::warn!(%source, "the lock store is unavailable"),
            StoreError::UnexpectedAnswer(_) => return Self::internal(&cause),
        }
        Self::new(Code::LockStoreUnavailable, NO_SEAT_LOST)
    }
}

/// Live claims keep their seats even without their hold, because a payment may be in progress. `$2`: milliseconds for
/// which a claim outlives its end.
const CLAIMS: &str = concat!(
    "
    SELECT claim.seat_no, claim.fence, booking.owner
    FROM seat_claims claim JOIN bookings booking ON booking.id = claim.booking_id
    WHERE claim.show_id = $1 AND ",
    claim_is_alive!("claim", "now() - $2 * interval '1 millisecond'")
);

/// The claims on places in areas, ordered by fence: all of a booking share its fence.
const AREA_CLAIMS: &str = concat!(
    "
    SELECT claim.area_no, claim.quantity, claim.fence, booking.owner
    FROM area_claims claim JOIN bookings booking ON booking.id = claim.booking_id
    WHERE claim.show_id = $1 AND ",
    claim_is_alive!("claim", "now() - $2 * interval '1 millisecond'"),
    "
    ORDER BY claim.fence, claim.area_no"
);

const AREAS: &str = "SELECT area_no, capacity FROM area_stock WHERE show_id = $1 ORDER BY area_no";

/// House seats, the number of seats in the room, and true if the show is over (as `sweeper::PAST_SHOWS`).
const ROOM: &str = "
    SELECT show.blocked, room.seat_count, show.starts_at < now() - interval '1 day'
    FROM shows show JOIN layouts room ON room.id = show.layout_id WHERE show.id = $1";

/// Fences of released claims count as well: an old message must not pass as a new one.
const LOWEST_FENCE: &str = "
    SELECT greatest((SELECT coalesce(max(fence), 0) FROM seat_claims WHERE show_id = $1),
                    (SELECT coalesce(max(fence), 0) FROM area_claims WHERE show_id = $1))";

/// Reads a show from Postgres. After the deadline, the connection is closed.
async fn read_show_in_time(pg: &PgPool, show: &Show) -> ApiResult<RebuildInput> {
    let mut connection = pg.acquire().await?;
    let Ok(known) = tokio::time::timeout(READ_TIMEOUT, read_show(&mut connection, show)).await else {
        tracing::warn!(show = %show.id, "read a show for its seat map failed: deadline exceeded");
        connection.close_on_drop();
        return Err(Problem::new(Code::DatabaseUnavailable, NO_SEAT_LOST));
    };
    Ok(known?)
}

async fn read_show(pg: &mut PgConnection, show: &Show) -> sqlx::Result<RebuildInput> {
    let claims: Vec<(i32, i64, String)> =
        sqlx::query_as(CLAIMS).bind(show.id).bind(CLAIM_GRACE_MS).fetch_all(&mut *pg).await?;
    let lowest_fence: i64 = sqlx::query_scalar(LOWEST_FENCE).bind(show.id).fetch_one(&mut *pg).await?;
    // Read from Postgres, because the cached show may be minutes old: meanwhile staff block and unblock seats, and an
    // organiser moves the show to another screen.
    let room: Option<(Vec<i32>, i32, bool)> = sqlx::query_as(ROOM).bind(show.id).fetch_optional(&mut *pg).await?;
    // A rehearsal has no row, and its house seats do not change.
    let (blocked, seat_count, is_past) = room.unwrap_or_else(|| {
        (show.blocked.iter().map(|seat| seat.cast_signed()).collect(), show.seat_count.cast_signed(), false)
    });
    let mut map = vec![SeatState::Available as u8; seat_count.unsigned_abs() as usize];
    let mut mark = |seat: SeatIndex, state: SeatState| {
        if let Some(byte) = map.get_mut(seat as usize) {
            *byte = state as u8;
        }
    };
    for seat_no in blocked {
        mark(seat_index(show.id, seat_no)?, SeatState::Blocked);
    }
    let mut sold = Vec::new();
    let mut bought = BTreeMap::<String, u32>::new();
    for (seat_no, fence, owner) in claims {
        let seat = seat_index(show.id, seat_no)?;
        mark(seat, SeatState::Booked);
        sold.push((seat, fence));
        *bought.entry(owner).or_default() += 1;
    }
    let (areas, sold_places) = claimed_places(pg, show.id, &mut bought).await?;
    let bought = bought.into_iter().collect();
    Ok(RebuildInput { map, sold, areas, sold_places, bought, lowest_fence, is_past })
}

type AreasLeft = Vec<(AreaIndex, u32)>;
type SoldPlaces = Vec<(i64, Vec<Places>)>;

/// Places left in every area, and fence and places of every booking with places; adds them to `bought`.
async fn claimed_places(
    pg: &mut PgConnection,
    show: Uuid,
    bought: &mut BTreeMap<String, u32>,
) -> sqlx::Result<(AreasLeft, SoldPlaces)> {
    let stock: Vec<(i16, i32)> = sqlx::query_as(AREAS).bind(show).fetch_all(&mut *pg).await?;
    if stock.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let claims: Vec<(i16, i32, i64, String)> =
        sqlx::query_as(AREA_CLAIMS).bind(show).bind(CLAIM_GRACE_MS).fetch_all(&mut *pg).await?;
    let mut gone = BTreeMap::<AreaIndex, u32>::new();
    let mut sales: SoldPlaces = Vec::new();
    // A table constraint keeps areas and quantities from being negative.
    for (area_no, quantity, fence, owner) in claims {
        let places = Places { area: area_no.cast_unsigned(), count: quantity.cast_unsigned() };
        *gone.entry(places.area).or_default() += places.count;
        *bought.entry(owner).or_default() += places.count;
        match sales.last_mut() {
            Some((last, sale)) if *last == fence => sale.push(places),
            _ => sales.push((fence, vec![places])),
        }
    }
    let left = |(area_no, capacity): (i16, i32)| {
        let area = area_no.cast_unsigned();
        (area, capacity.cast_unsigned().saturating_sub(gone.get(&area).copied().unwrap_or(0)))
    };
    Ok((stock.into_iter().map(left).collect(), sales))
}

/// Converts a seat number. An invalid row is an error with its table and column, never a default.
fn seat_index(show: Uuid, seat_no: i32) -> sqlx::Result<SeatIndex> {
    SeatIndex::try_from(seat_no)
        .map_err(|_| sqlx::Error::Decode(format!("seat_claims({show}).seat_no is {seat_no}").into()))
}
