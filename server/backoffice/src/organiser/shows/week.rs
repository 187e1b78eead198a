//! The programme for organisers.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, Utc};
use domain::api::organiser::{CancellationView, OrganisedShow};
use domain::seats::MAX_SEATS_PER_PERSON;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::plan::terms_view;
use super::{SaleTerms, zone_of};
use crate::{BackofficeState, relocation};
use catalogue::today_in;
use http::{ApiResult, Code, Problem};
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;

/// Days per answer, including the first.
const DAYS: u64 = 7;
/// Format of local times for programs.
pub(super) const LOCAL_SECOND: &str = "%Y-%m-%dT%H:%M:%S";
/// Maximum number of shows per answer.
const MAX_SHOWS: usize = 1_000;

/// Seven days of a theatre.
#[derive(Debug)]
pub struct WeekOfShows {
    /// The first day.
    pub from: NaiveDate,
    /// The first shows by start, at most 1,000.
    pub shows: Vec<OrganisedShow>,
    /// True if there are more shows.
    pub is_cut: bool,
}

/// Returns seven days of a theatre from `from` (default: today).
///
/// # Errors
/// 400 for an invalid day.
pub async fn week(state: &BackofficeState, theatre: &str, from: Option<&str>) -> ApiResult<WeekOfShows> {
    let mut connection = state.pg.acquire().await?;
    let zone = time_zone_of(&mut connection, theatre).await?.ok_or_else(|| Problem::not_found("theatre"))?;
    let from = match from.map(str::trim).filter(|text| !text.is_empty()) {
        None => today_in(&zone, state.clock.now())?,
        Some(text) => {
            let no_day = || Problem::new(Code::Malformed, format!("{text:?} is no day like 2026-12-07."));
            catalogue::day(text).ok_or_else(no_day)?
        }
    };
    let last = from.checked_add_days(Days::new(DAYS - 1)).unwrap_or(from);
    let mut rows = between(&mut connection, theatre, (from, last)).await?;
    let is_cut = rows.len() > MAX_SHOWS;
    rows.truncate(MAX_SHOWS);
    Ok(WeekOfShows { from, shows: rows.into_iter().map(view_of).collect::<Result<_, _>>()?, is_cut })
}

/// Returns one show of a theatre.
///
/// # Errors
/// 404 when the theatre has no such show.
pub async fn show(state: &BackofficeState, theatre: &str, show: Uuid) -> ApiResult<OrganisedShow> {
    let mut connection = state.pg.acquire().await?;
    let row = find(&mut connection, theatre, show).await?;
    of_row(&mut connection, row).await
}

pub(super) async fn of_row(connection: &mut PgConnection, row: OrganisedRow) -> ApiResult<OrganisedShow> {
    let zone = zone_of(&row.time_zone)?;
    let local = move |at| to_utc(at).with_timezone(&zone).format(LOCAL_SECOND).to_string();
    let moved = relocation::last_move(connection, row.id, local).await?;
    Ok(OrganisedShow { moved, ..view_of(row)? })
}

pub(super) fn view_of(row: OrganisedRow) -> ApiResult<OrganisedShow> {
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
        running_minutes: row.running_minutes.unsigned_abs(),
        cleaning_minutes: row.cleaning_minutes.unsigned_abs(),
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
        kept_prices: BTreeMap::new(),
    })
}

/// A show as stored, for its organiser.
#[derive(platform::FromRow)]
pub(super) struct OrganisedRow {
    pub id: Uuid,
    pub film: String,
    pub title: String,
    pub screen: String,
    pub screen_name: String,
    pub starts_at: DateTime<Utc>,
    pub time_zone: String,
    pub running_minutes: i32,
    pub cleaning_minutes: i32,
    pub language: String,
    pub format: String,
    pub currency: String,
    pub prices: Json<BTreeMap<String, i64>>,
    pub sales: String,
    pub sales_from: Option<DateTime<Utc>>,
    pub hold_ms: i64,
    pub flash_sale: bool,
    pub per_person: Option<i16>,
    pub email_code: bool,
    pub per_instrument: Option<i16>,
    pub terms_version: i32,
    pub terms_at: Option<DateTime<Utc>>,
    pub called_off: bool,
    pub is_moving: bool,
    pub seats: i64,
    pub sold: i64,
    pub reason: Option<String>,
    pub undone: Option<i32>,
    pub finished: Option<bool>,
    pub bookings_left: i64,
    pub refunds_open: i64,
    pub refunds_at_counter: i64,
}

const ORGANISED: &str = "
    SELECT show.id, film.id AS film, film.title, screen.id AS screen, screen.name AS screen_name, show.starts_at,
           city.time_zone, film.running_minutes, show.cleaning_minutes, show.language, show.format, show.currency,
           show.prices, show.sales, show.sales_from, show.hold_ms, show.flash_sale, show.per_person, show.email_code, show.per_instrument, show.terms_version, show.terms_at,
           show.called_off, show.is_moving,
           room.seat_count + stock.places AS seats,
           (SELECT count(*) FROM seat_claims WHERE show_id = show.id AND state = 'sold') + stock.sold AS sold,
           gone.reason, gone.cancelled AS undone, gone.finished_at IS NOT NULL AS finished,
           CASE WHEN show.called_off THEN
               (SELECT count(*) FROM bookings WHERE show_id = show.id AND NOT is_open AND state = 'CONFIRMED')
               + (SELECT count(*) FROM bookings WHERE show_id = show.id AND is_open
                  AND state IN ('SEATS_LOCKED', 'PAYMENT_PENDING', 'PAYMENT_SUCCEEDED'))
           ELSE 0 END AS bookings_left,
           coalesce(back.at_gateways, 0) AS refunds_open, coalesce(back.at_counter, 0) AS refunds_at_counter
    FROM shows show
    JOIN films film ON film.id = show.film_id
    JOIN screens screen ON screen.id = show.screen_id
    JOIN theatres theatre ON theatre.id = screen.theatre_id
    JOIN cities city ON city.id = theatre.city_id
    JOIN layouts room ON room.id = show.layout_id
    LEFT JOIN show_cancellations gone ON gone.show_id = show.id
    -- Counter payments are refunded at the counter: no gateway is involved.
    LEFT JOIN LATERAL (
        SELECT count(*) FILTER (WHERE NOT paid.at_counter) AS at_gateways,
               count(*) FILTER (WHERE paid.at_counter) AS at_counter
        FROM refunds JOIN bookings ON bookings.id = refunds.booking_id
        CROSS JOIN LATERAL (SELECT EXISTS (SELECT 1 FROM payments WHERE payments.booking_id = bookings.id
                                           AND payments.gateway LIKE 'counter\\_%') AS at_counter) paid
        WHERE bookings.show_id = show.id AND NOT bookings.is_open AND refunds.state = 'requested'
    ) back ON show.called_off
    CROSS JOIN LATERAL (SELECT coalesce(sum(capacity), 0)::bigint AS places, coalesce(sum(sold), 0)::bigint AS sold
                        FROM area_stock WHERE show_id = show.id) stock
    WHERE theatre.id = $1 AND ($2::uuid IS NULL OR show.id = $2)
      AND ($3::date IS NULL OR show.local_date BETWEEN $3 AND $4)
    ORDER BY show.starts_at, screen.name, show.id LIMIT $5";

/// Returns the shows of these days, at most one more than an answer has.
async fn between(
    connection: &mut PgConnection,
    theatre: &str,
    days: (NaiveDate, NaiveDate),
) -> sqlx::Result<Vec<OrganisedRow>> {
    let limit = MAX_SHOWS as i64 + 1;
    sqlx::query_as(ORGANISED).bind_all((theatre, None::<Uuid>, days.0, days.1, limit)).fetch_all(connection).await
}

pub(super) async fn find(connection: &mut PgConnection, theatre: &str, show: Uuid) -> ApiResult<OrganisedRow> {
    let found: Option<OrganisedRow> = sqlx::query_as(ORGANISED)
        .bind_all((theatre, show, None::<NaiveDate>, None::<NaiveDate>, 1_i64))
        .fetch_optional(connection)
        .await?;
    found.ok_or_else(|| Problem::not_found("show"))
}

async fn time_zone_of(connection: &mut PgConnection, theatre: &str) -> sqlx::Result<Option<String>> {
    let sql = "SELECT time_zone FROM cities JOIN theatres ON theatres.city_id = cities.id WHERE theatres.id = $1";
    sqlx::query_scalar(sql).bind(theatre).fetch_optional(connection).await
}

/// Locks a show of a theatre against other organisers but not against sales.
pub(super) async fn lock(tx: &mut PgConnection, theatre: &str, show: Uuid) -> ApiResult<()> {
    let sql = "SELECT 1 FROM shows WHERE id = $2 AND screen_id IN (SELECT id FROM screens WHERE theatre_id = $1)
               FOR NO KEY UPDATE";
    let found: Option<i32> = sqlx::query_scalar(sql).bind_all((theatre, show)).fetch_optional(tx).await?;
    found.map(|_| ()).ok_or_else(|| Problem::not_found("show"))
}
