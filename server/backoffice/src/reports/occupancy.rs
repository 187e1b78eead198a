//! Number of sales per seat in the shows of a period.
//!
//! An edited layout is a new one with other seat numbers. The report counts shows with the layout of the last show, and
//! states how many had another one.

use domain::api::reports::OccupancyReport;
use uuid::Uuid;

use super::range::Range;
use super::reading::{Reading, query_error, screens_of};
use crate::BackofficeState;
use http::{ApiResult, Code, Problem};
use platform::database::BindAll;

/// Maximum number of shows: more than a screen can have in the longest report.
const MAX_SHOWS: i64 = 2_000;

const SHOWS: &str = "
    SELECT id, layout_id FROM shows
    WHERE screen_id = $1 AND starts_at >= $2 AND starts_at < $3 AND NOT called_off
    ORDER BY starts_at DESC LIMIT $4";

/// OFFSET 0 keeps the planner from flattening the subquery: each show then reads its own partition of the claims.
const SOLD: &str = "
    SELECT claim.seat_no, count(*) AS times
    FROM unnest($1::uuid[]) AS show (id)
    CROSS JOIN LATERAL (SELECT seat_no FROM seat_claims WHERE show_id = show.id AND state = 'sold' OFFSET 0) claim
    GROUP BY claim.seat_no";

/// Returns the occupancy of a screen, by default the theatre's first.
///
/// # Errors
/// 404 for an unknown screen, 503 on a timeout or when no report slot is free.
pub async fn occupancy(
    state: &BackofficeState,
    theatre: &str,
    range: &Range,
    screen: Option<&str>,
) -> ApiResult<OccupancyReport> {
    let mut reading = Reading::begin(state, theatre).await?;
    let screens = screens_of(&mut reading.tx, theatre).await?;
    let wanted = match screen.filter(|id| !id.is_empty()) {
        Some(id) => Some(screens.iter().find(|screen| screen.id == id).ok_or_else(|| Problem::not_found("screen"))?),
        None => screens.first(),
    };
    let mut report = OccupancyReport {
        days: range.view(),
        screen: wanted.cloned(),
        screens: screens.clone(),
        shows: 0,
        shows_in_other_rooms: 0,
        show: None,
        sold: Vec::new(),
    };
    let Some(wanted) = wanted else { return Ok(report) };
    let shows: Vec<(Uuid, Uuid)> = sqlx::query_as(SHOWS)
        .bind_all((&wanted.id, range.begins, range.ends, MAX_SHOWS))
        .fetch_all(&mut *reading.tx)
        .await
        .map_err(query_error)?;
    let Some((last, layout)) = shows.first().copied() else { return Ok(report) };
    if shows.len() as i64 == MAX_SHOWS {
        return Err(Problem::new(Code::Overloaded, "There are too many shows to count. Please ask for fewer days."));
    }
    let counted: Vec<Uuid> = shows.iter().filter(|(_, of)| *of == layout).map(|(show, _)| *show).collect();
    report.shows = counted.len() as i64;
    report.shows_in_other_rooms = (shows.len() - counted.len()) as i64;
    report.show = Some(last);
    let sold: Vec<(i32, i64)> =
        sqlx::query_as(SOLD).bind(&counted).fetch_all(&mut *reading.tx).await.map_err(query_error)?;
    // Frees the slot before the layout is loaded, which may take long.
    drop(reading);
    let room = state.catalogue.find_show(last).await?;
    report.sold = vec![0; room.seat_count as usize];
    for (seat, times) in sold {
        if let Some(count) = usize::try_from(seat).ok().and_then(|seat| report.sold.get_mut(seat)) {
            *count = u32::try_from(times).unwrap_or(u32::MAX);
        }
    }
    Ok(report)
}
