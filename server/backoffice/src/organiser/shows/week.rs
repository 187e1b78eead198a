//! The programme for organisers.

use chrono::{Days, NaiveDate};
use domain::api::organiser::{CancellationView, OrganisedShow};
use domain::seats::MAX_SEATS_PER_PERSON;
use sqlx::PgConnection;
use uuid::Uuid;

use super::plan::terms_view;
use super::{SaleTerms, zone_of};
use crate::organiser::sql::shows as sql;
use crate::organiser::sql::shows::OrganisedRow;
use crate::{BackofficeState, relocation};
use catalogue::today_in;
use http::{Code, Problem};
use platform::clock::{from_utc, to_utc};

/// Days per answer, including the first.
const DAYS: u64 = 7;
/// Format of local times for programs.
pub(super) const LOCAL_SECOND: &str = "%Y-%m-%dT%H:%M:%S";
/// Maximum number of shows per answer.
const MAX_SHOWS: i64 = 1_000;

/// Returns seven days of a theatre from `from` (default: today), with the first day.
///
/// # Errors
/// 400 for an invalid day.
pub async fn week(
    state: &BackofficeState,
    theatre: &str,
    from: Option<&str>,
) -> Result<(NaiveDate, Vec<OrganisedShow>), Problem> {
    let mut connection = state.pg.acquire().await?;
    let zone = sql::zone(&mut connection, theatre).await?.ok_or_else(|| Problem::not_found("theatre"))?;
    let from = match from.map(str::trim).filter(|text| !text.is_empty()) {
        None => today_in(&zone, state.clock.now())?,
        Some(text) => {
            let no_day = || Problem::new(Code::Malformed, format!("{text:?} is no day like 2026-12-07."));
            catalogue::day(text).ok_or_else(no_day)?
        }
    };
    let last = from.checked_add_days(Days::new(DAYS - 1)).unwrap_or(from);
    let rows = sql::between(&mut connection, theatre, (from, last), MAX_SHOWS).await?;
    Ok((from, rows.into_iter().map(view_of).collect::<Result<_, _>>()?))
}

/// Returns one show of a theatre.
///
/// # Errors
/// 404 when the theatre has no such show.
pub async fn show(state: &BackofficeState, theatre: &str, show: Uuid) -> Result<OrganisedShow, Problem> {
    let mut connection = state.pg.acquire().await?;
    let row = sql::one(&mut connection, theatre, show).await?.ok_or_else(|| Problem::not_found("show"))?;
    of_row(&mut connection, row).await
}

/// Returns one show with its last move.
pub(super) async fn of_row(connection: &mut PgConnection, row: OrganisedRow) -> Result<OrganisedShow, Problem> {
    let zone = zone_of(&row.time_zone)?;
    let local = move |at| to_utc(at).with_timezone(&zone).format(LOCAL_SECOND).to_string();
    let moved = relocation::last_move(connection, row.id, local).await?;
    Ok(OrganisedShow { moved, ..view_of(row)? })
}

pub(super) fn view_of(row: OrganisedRow) -> Result<OrganisedShow, Problem> {
    let zone = zone_of(&row.time_zone)?;
    let count = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    let terms = SaleTerms {
        sales: row.sales.parse().map_err(|_| Problem::internal(&format!("shows.sales of {} is none", row.id)))?,
        sales_from: row.sales_from.map(from_utc),
        hold_ms: row.hold_ms,
        flash_sale: row.flash_sale,
        per_person: row.per_person.unwrap_or(MAX_SEATS_PER_PERSON as i16),
        email_code: row.email_code,
        per_instrument: row.per_instrument,
    };
    let cancellation = row.called_off.then(|| CancellationView {
        reason: row.reason.unwrap_or_default(),
        undone: row.undone.unwrap_or(0).unsigned_abs(),
        left: count(row.bookings_left),
        refunds_open: count(row.refunds_open),
        refunds_at_counter: count(row.refunds_at_counter),
        finished: row.finished.unwrap_or(false),
    });
    Ok(OrganisedShow {
        id: row.id,
        film: row.film,
        title: row.title,
        screen: row.screen,
        screen_name: row.screen_name,
        starts_local: row.starts_at.with_timezone(&zone).format("%Y-%m-%dT%H:%M:%S").to_string(),
        starts_at_ms: from_utc(row.starts_at).0,
        language: row.language,
        format: row.format,
        currency: row.currency,
        prices: row.prices.0,
        terms: terms_view(terms, zone),
        version: row.terms_version.unsigned_abs(),
        seats: count(row.seats),
        sold: count(row.sold),
        cancellation,
        moved: None,
    })
}
