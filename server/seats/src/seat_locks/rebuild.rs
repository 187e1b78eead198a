//! Building a show's map in the lock store from what Postgres knows: at first touch, and again
//! whenever the store came back empty.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{KnownSeats, KnownSource, MapSnapshot, StoreError, claims_check};
use crate::SeatsState;
use catalogue::{CLAIM_GRACE_MS, claim_is_alive};
use catalogue::{Catalogue, Show};
use http::{Code, Problem};
use platform::redis_link::LinkError;

/// What Postgres knows of a show is read within this time: who waits for it may be serving others (`bookings/commits`).
const READ_WITHIN: Duration = Duration::from_secs(8);
const NO_SEAT_LOST: &str = "No seat was lost. Please try again in a few seconds.";

/// Runs `ask`; if the map is not there, loads it and asks once more. The one road from a capability
/// to the store.
///
/// # Errors
/// 503 when the store or the database cannot be reached.
pub async fn with_map<T, F>(state: &SeatsState, show: &Show, ask: impl Fn() -> F) -> Result<T, Problem>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut answer = ask().await;
    if matches!(answer, Err(StoreError::NoMap(_))) {
        // Boxed: every call would carry the room for it along, and hardly any finds no map.
        let known = Box::pin(known_in_time(&state.pg, show)).await?;
        state.locks.load(show.id, &known).await?;
        answer = ask().await;
    }
    let answer = answer?;
    claims_check::take(state, show.id);
    Ok(answer)
}

/// The map of a show, for display. While the lock store is away it is read from Postgres: seats that are sold, being paid
/// for or kept, and no holds.
///
/// # Errors
/// 503 when the database cannot be reached.
pub async fn map_or_claims(state: &SeatsState, show: &Show) -> Result<MapSnapshot, Problem> {
    match with_map(state, show, || state.locks.snapshot(show.id)).await {
        Err(away) if away.code() == Code::LockStoreUnavailable => {
            let known = Box::pin(known_in_time(&state.pg, show)).await?;
            Ok(MapSnapshot { epoch: 0, version: 0, map: known.map.into(), areas: known.areas })
        }
        map => map,
    }
}

/// What Postgres knows of any show, for the second of two stores.
#[must_use]
pub fn known_source(pg: PgPool, catalogue: Catalogue) -> KnownSource {
    Arc::new(move |show| {
        let (pg, catalogue) = (pg.clone(), catalogue.clone());
        Box::pin(async move {
            let known = async { known_in_time(&pg, &*catalogue.known_show(show).await?).await };
            known.await.inspect_err(|problem| tracing::warn!(?problem, %show, "the second store gets no map")).ok()
        })
    })
}

impl From<StoreError> for Problem {
    fn from(cause: StoreError) -> Self {
        match &cause {
            StoreError::NoMap(_) => tracing::warn!(%cause, "the lock store lost a map twice in a row"),
            // Logged once, when the breaker opened; not again for each request that is refused.
            StoreError::Unavailable(source @ LinkError::Resting { retry_after }) => {
                tracing::debug!(%source, "the lock store did not answer lately and is not asked");
                return Self::new(Code::LockStoreUnavailable, NO_SEAT_LOST).with_retry_after(*retry_after);
            }
            StoreError::Unavailable(source) => tracing::warn!(%source, "the lock store is unavailable"),
            StoreError::Nonsense(_) => return Self::internal(&cause),
        }
        Self::new(Code::LockStoreUnavailable, NO_SEAT_LOST)
    }
}

/// Live claims keep their seats even when their hold is lost: someone may be paying for them. `$2`: how long a claim
/// outlives its end, in milliseconds.
const CLAIMS: &str = concat!(
    "
    SELECT claim.seat_no, claim.fence, booking.owner
    FROM seat_claims claim JOIN bookings booking ON booking.id = claim.booking_id
    WHERE claim.show_id = $1 AND ",
    claim_is_alive!("claim", "now() - $2 * interval '1 millisecond'")
);

/// The same of places in areas; every one of a booking with the others, for they share its fence.
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

/// House seats, and how many seats the room has.
const ROOM: &str = "
    SELECT show.blocked, room.seat_count FROM shows show JOIN layouts room ON room.id = show.layout_id WHERE show.id = $1";

/// Fences of released claims count as well: an old message must not pass for a new one.
const LOWEST_FENCE: &str = "
    SELECT greatest((SELECT coalesce(max(fence), 0) FROM seat_claims WHERE show_id = $1),
                    (SELECT coalesce(max(fence), 0) FROM area_claims WHERE show_id = $1))";

/// What Postgres knows of a show. A connection on which it does not say so in time is closed.
async fn known_in_time(pg: &PgPool, show: &Show) -> Result<KnownSeats, Problem> {
    let mut connection = pg.acquire().await?;
    let Ok(known) = tokio::time::timeout(READ_WITHIN, known_seats(&mut connection, show)).await else {
        tracing::warn!(show = %show.id, "Postgres does not say in time what it knows of a show");
        connection.close_on_drop();
        return Err(Problem::new(Code::DatabaseUnavailable, NO_SEAT_LOST));
    };
    Ok(known?)
}

async fn known_seats(pg: &mut PgConnection, show: &Show) -> Result<KnownSeats, sqlx::Error> {
    let claims: Vec<(i32, i64, String)> =
        sqlx::query_as(CLAIMS).bind(show.id).bind(CLAIM_GRACE_MS).fetch_all(&mut *pg).await?;
    let lowest_fence: i64 = sqlx::query_scalar(LOWEST_FENCE).bind(show.id).fetch_one(&mut *pg).await?;
    // Read anew: staff keep seats and put them back while a show is on sale, an organiser moves it to another screen,
    // and a show is remembered for minutes.
    let room: Option<(Vec<i32>, i32)> = sqlx::query_as(ROOM).bind(show.id).fetch_optional(&mut *pg).await?;
    let (blocked, seat_count) = room.unwrap_or((Vec::new(), show.seat_count.cast_signed()));
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
    let (areas, sold_places) = known_places(pg, show.id, &mut bought).await?;
    let bought = bought.into_iter().collect();
    Ok(KnownSeats { map, sold, areas, sold_places, bought, lowest_fence })
}

type PlacesLeft = Vec<(AreaIndex, u32)>;
type SoldPlaces = Vec<(i64, Vec<Places>)>;

/// Places left in every area, and the fence and places of every booking that has some; `bought` counts them.
async fn known_places(
    pg: &mut PgConnection,
    show: Uuid,
    bought: &mut BTreeMap<String, u32>,
) -> Result<(PlacesLeft, SoldPlaces), sqlx::Error> {
    let stock: Vec<(i16, i32)> = sqlx::query_as(AREAS).bind(show).fetch_all(&mut *pg).await?;
    if stock.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let claims: Vec<(i16, i32, i64, String)> =
        sqlx::query_as(AREA_CLAIMS).bind(show).bind(CLAIM_GRACE_MS).fetch_all(&mut *pg).await?;
    let mut gone = BTreeMap::<AreaIndex, u32>::new();
    let mut sales: SoldPlaces = Vec::new();
    // The table keeps areas and quantities from being negative.
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

/// A row that cannot be is an error that names it, never a default.
fn seat_index(show: Uuid, seat_no: i32) -> Result<SeatIndex, sqlx::Error> {
    SeatIndex::try_from(seat_no)
        .map_err(|_| sqlx::Error::Decode(format!("seat_claims({show}).seat_no is {seat_no}").into()))
}
