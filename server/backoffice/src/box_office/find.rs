//! Finds bookings at the counter by reference or by customer, only for shows of the theatre.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::api::box_office::{BookingMatch, CounterBooking, MAX_MATCHES};
use domain::api::systems::one_line;
use domain::booking::BookingState;
use domain::till::undo_until;
use domain::time::MINUTE_MS;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{CounterStaff, tills};
use crate::BackofficeState;
use catalogue::{Show, containing};
use http::{ApiResult, Code, Problem};
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;
use platform::rate_limits::Allowance;
use selling::bookings::{self, CounterLookup};

/// Minimum and maximum length of a searched name or address, characters.
pub const SEARCH_TERM_CHARS: (usize, usize) = (2, 100);
/// Age of the oldest shows that are searched: two months, milliseconds.
const MAX_SHOW_AGE_MS: i64 = 60 * 24 * 60 * MINUTE_MS;
/// Maximum number of shows whose bookings are searched.
const MAX_SHOWS: i64 = 10_000;
/// Searches by one member of staff.
const SEARCHES: Allowance = Allowance { name: "booking-search", burst: 20, each_ms: 1_000 };
/// The timeout bounds the load of a search: sales use the same tables.
const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = '3s'";

fn booking_not_found() -> Problem {
    Problem::not_found("booking")
}

/// Returns the booking with this reference.
///
/// # Errors
/// 404 when no show of this theatre has such a booking.
pub async fn by_reference(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    reference: &str,
) -> ApiResult<CounterBooking> {
    let found = bookings::find_by_reference(&mut *state.pg.acquire().await?, reference).await?;
    view(state, counter, found).await
}

/// Returns the booking with this id.
///
/// # Errors
/// 404 when no show of this theatre has such a booking.
pub async fn by_id(state: &BackofficeState, counter: CounterStaff<'_>, booking: Uuid) -> ApiResult<CounterBooking> {
    let found = bookings::find_by_id(&mut *state.pg.acquire().await?, booking).await?;
    view(state, counter, found).await
}

/// Finds bookings by a part of the customer's name or address, the newest first. The audit list records the references
/// of the results, not the searched name: audit entries are never deleted.
///
/// # Errors
/// 400 for a search text that is too short or too long, 429 after many searches, 503 on a timeout.
pub async fn by_person(state: &BackofficeState, counter: CounterStaff<'_>, term: &str) -> ApiResult<Vec<BookingMatch>> {
    let now = state.clock.now();
    let (least, most) = SEARCH_TERM_CHARS;
    let term = one_line(term, most).filter(|term| term.chars().count() >= least);
    let term = term.ok_or_else(|| {
        Problem::new(Code::Malformed, format!("Name {least} to {most} characters of a name or an e-mail address."))
    })?;
    state.rate_limits.take(&SEARCHES, &counter.account().to_string()).await?;
    let mut tx = state.pg.begin_with(BEGIN).await?;
    let shows = shows_since(&mut tx, counter.theatre, to_utc(now.plus_ms(-MAX_SHOW_AGE_MS))).await?;
    let found = bookings::find_by_person(&mut tx, &shows, &containing(term), MAX_MATCHES as i64).await?;
    let shown: Vec<&str> = found.iter().map(|one| one.reference.as_str()).collect();
    let words = if shown.is_empty() { "None found".to_owned() } else { shown.join(", ") };
    let subject = format!("theatre {}", counter.theatre);
    counter.record(&mut tx, "bookings_looked_for", subject, &words, now).await?;
    tx.commit().await?;
    let ids: Vec<Uuid> = found.iter().map(|one| one.id).collect();
    let summaries = bookings::summaries(state, &ids).await?;
    let views = found.into_iter().zip(summaries).map(|(one, booking)| BookingMatch {
        booking,
        holder: Some(one.holder).filter(|holder| !holder.is_empty() && *holder != one.name),
        name: one.name,
        email: one.email,
    });
    Ok(views.collect())
}

/// Returns the shows of a theatre that started at `since` or later.
async fn shows_since(tx: &mut PgConnection, theatre: &str, since: DateTime<Utc>) -> sqlx::Result<Vec<Uuid>> {
    let sql = "SELECT show.id FROM shows show JOIN screens screen ON screen.id = show.screen_id
               WHERE screen.theatre_id = $1 AND show.starts_at >= $2 ORDER BY show.starts_at, show.id LIMIT $3";
    sqlx::query_scalar(sql).bind_all((theatre, since, MAX_SHOWS)).fetch_all(tx).await
}

async fn view(
    state: &BackofficeState,
    counter: CounterStaff<'_>,
    found: Option<CounterLookup>,
) -> ApiResult<CounterBooking> {
    let found = found.ok_or_else(booking_not_found)?;
    let show = show_here(state, counter, found.show).await.map_err(|problem| match problem.code() {
        Code::NotFound => booking_not_found(),
        _ => problem,
    })?;
    let mut connection = state.pg.acquire().await?;
    let mut view = found.view(&mut connection, &show).await?;
    if view.state == BookingState::Confirmed
        && let Some((till, seller, at)) = tills::sale_of(&mut connection, view.id).await?
    {
        let open = tills::open_till(&mut connection, counter.theatre, counter.account()).await?;
        let until = undo_until(from_utc(at));
        let may = seller == counter.account() && open.is_some_and(|open| open.id == till) && state.clock.now() < until;
        view.undo_until_ms = may.then_some(until.0);
    }
    Ok(view)
}

/// Returns the show of a booking, if it is one of the theatre's.
///
/// # Errors
/// 404 when the theatre has no such booking.
pub(super) async fn show_of(state: &BackofficeState, counter: CounterStaff<'_>, booking: Uuid) -> ApiResult<Arc<Show>> {
    let found = bookings::find_by_id(&mut *state.pg.acquire().await?, booking).await?.ok_or_else(booking_not_found)?;
    show_here(state, counter, found.show).await
}

/// Returns a show, if it is one of the theatre's.
///
/// # Errors
/// 404 when it is not.
pub(super) async fn show_here(state: &BackofficeState, counter: CounterStaff<'_>, show: Uuid) -> ApiResult<Arc<Show>> {
    let show = state.catalogue.find_show(show).await?;
    if show.theatre_id == counter.theatre { Ok(show) } else { Err(Problem::not_found("show")) }
}
