//! The public list of the sold seats of a show, in which buyers verify that their seats were sold once
//! (docs/decisions/0083). `domain::sold_seats` has its format.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use domain::layout::Layout;
use domain::seats::SeatIndex;
use domain::sold_seats::push_line;
use moka::future::Cache;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::SellingState;
use catalogue::load_once;
use http::{ApiPath, ApiResult};

/// Lifetime of a list. A replica reads the sold seats of a show once in this time, for all callers.
const LIST_LIFE: Duration = Duration::from_secs(2);
/// Maximum size of all cached lists, bytes: thirty of sold-out arenas.
const LIST_BYTES_KEPT: u64 = 64 * 1024 * 1024;

/// The lists of sold seats by show, cached for [`LIST_LIFE`].
pub struct SoldSeatLists(Cache<Uuid, Bytes>);

impl Default for SoldSeatLists {
    fn default() -> Self {
        let bytes = |_: &Uuid, list: &Bytes| u32::try_from(list.len()).unwrap_or(u32::MAX);
        Self(Cache::builder().max_capacity(LIST_BYTES_KEPT).weigher(bytes).time_to_live(LIST_LIFE).build())
    }
}

/// The route, under `/api/v1`.
pub(super) fn routes() -> OpenApiRouter<SellingState> {
    OpenApiRouter::new().routes(routes!(sold_seats))
}

/// The sold seats of a show, so that buyers can verify that theirs were sold once.
///
/// The sold seats as text, each with a digest of its booking, see *The sold-seat list*. Up to two seconds old.
#[utoipa::path(get, path = "/shows/{show}/sold-seats", tag = "live",
    responses((status = 200, content_type = "text/plain", body = String)))]
async fn sold_seats(State(state): State<SellingState>, ApiPath(show): ApiPath<Uuid>) -> ApiResult<Response> {
    let show = state.catalogue.find_public_show(show).await?;
    let list = load_once(&state.sold_seats.0, show.id, || read(&state, show.id)).await?;
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], list).into_response())
}

async fn read(state: &SellingState, show: Uuid) -> sqlx::Result<Bytes> {
    // One statement: a show that moves to another screen changes its layout and its claims in one transaction.
    let sql = "SELECT layout_id,
                      ARRAY(SELECT seat_no FROM seat_claims WHERE show_id = $1 AND state = 'sold' ORDER BY seat_no),
                      ARRAY(SELECT booking_id FROM seat_claims WHERE show_id = $1 AND state = 'sold' ORDER BY seat_no)
               FROM shows WHERE id = $1";
    let (layout, seats, bookings): (Uuid, Vec<i32>, Vec<Uuid>) =
        sqlx::query_as(sql).bind(show).fetch_one(&state.pg).await?;
    let layout = state.catalogue.layout(layout).await?;
    // The digests of an arena take long enough that they would hold up every request on this thread.
    let writing = tokio::task::spawn_blocking(move || {
        write(show, &layout, seats.into_iter().map(i32::cast_unsigned).zip(bookings))
    });
    writing.await.map_err(|cause| sqlx::Error::Decode(cause.into()))
}

/// Writes the list of these seats, which are in ascending order, with the booking of each.
fn write(show: Uuid, layout: &Layout, sold: impl Iterator<Item = (SeatIndex, Uuid)>) -> Bytes {
    let mut list = String::new();
    for (seat, booking) in sold {
        let label = layout.label(seat).expect("a claim is on a seat of the show's layout");
        push_line(&mut list, show, &label, booking);
    }
    list.into()
}
