//! Queries of planned shows and their terms of sale.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use domain::VariantName;
use domain::layout::Area;
use domain::money::Currency;
use domain::pricing::Format;
use domain::time::Timestamp;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::organiser::shows::{SaleTerms, Start};
use http::{Code, Problem};
use platform::clock::to_utc;

/// A new show.
pub(in crate::organiser) struct NewShow {
    pub id: Uuid,
    pub start: Start,
    /// Category to minor units, JSON.
    pub prices: String,
}

/// The common values of a plan's shows.
pub(in crate::organiser) struct PlanValues<'a> {
    pub screen: &'a str,
    pub film: &'a str,
    pub layout: Uuid,
    pub language: &'a str,
    pub format: Format,
    pub currency: Currency,
    pub cleaning_minutes: u32,
    pub terms: SaleTerms,
    /// House seats from the start.
    pub house: &'a [i32],
}

/// Inserts shows and their areas.
pub(in crate::organiser) async fn insert(
    tx: &mut PgConnection,
    common: &PlanValues<'_>,
    shows: &[NewShow],
    areas: &[Area],
) -> Result<(), sqlx::Error> {
    let ids: Vec<Uuid> = shows.iter().map(|show| show.id).collect();
    sqlx::query(
        "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices,
                            hold_ms, flash_sale, sales, sales_from, per_person, cleaning_minutes,
                            email_code, per_instrument, blocked)
         SELECT new.id, $5, $6, $7, new.starts_at, new.local_date, $8, $9, $10, new.prices::jsonb,
                $11, $12, $13, $14, $15, $16, $17, $18, $19
         FROM UNNEST($1::uuid[], $2::timestamptz[], $3::date[], $4::text[]) AS new (id, starts_at, local_date, prices)",
    )
    .bind(&ids)
    .bind(shows.iter().map(|show| show.start.at).collect::<Vec<_>>())
    .bind(shows.iter().map(|show| show.start.local.date()).collect::<Vec<NaiveDate>>())
    .bind(shows.iter().map(|show| show.prices.as_str()).collect::<Vec<_>>())
    .bind(common.screen)
    .bind(common.film)
    .bind(common.layout)
    .bind(common.language)
    .bind(common.format.as_str())
    .bind(common.currency.code())
    .bind(common.terms.hold_ms)
    .bind(common.terms.flash_sale)
    .bind(common.terms.sales.as_str())
    .bind(common.terms.sales_from.map(to_utc))
    .bind(common.terms.per_person)
    .bind(common.cleaning_minutes.cast_signed())
    .bind(common.terms.email_code)
    .bind(common.terms.per_instrument)
    .bind(common.house)
    .execute(&mut *tx)
    .await?;
    let numbers: Vec<i16> = (0_i16..).take(areas.len()).collect();
    sqlx::query(
        "INSERT INTO area_stock (show_id, area_no, name, category, capacity)
         SELECT show.id, area.area_no, area.name, area.category, area.capacity
         FROM UNNEST($1::uuid[]) AS show (id)
         CROSS JOIN UNNEST($2::smallint[], $3::text[], $4::text[], $5::integer[])
                    AS area (area_no, name, category, capacity)",
    )
    .bind(&ids)
    .bind(&numbers)
    .bind(areas.iter().map(|area| area.name.as_str()).collect::<Vec<_>>())
    .bind(areas.iter().map(|area| area.category.as_str()).collect::<Vec<_>>())
    .bind(areas.iter().map(|area| area.capacity.cast_signed()).collect::<Vec<_>>())
    .execute(tx)
    .await?;
    Ok(())
}

/// The facts of a screen that planning depends on.
#[derive(sqlx::FromRow)]
pub(in crate::organiser) struct ScreenFacts {
    pub name: String,
    pub layout_id: Uuid,
    pub currency: String,
    pub time_zone: String,
}

pub(in crate::organiser) async fn screen(
    connection: &mut PgConnection,
    theatre: &str,
    screen: &str,
) -> Result<Option<ScreenFacts>, sqlx::Error> {
    sqlx::query_as(
        "SELECT screen.name, screen.layout_id, theatre.currency, city.time_zone
         FROM screens screen
         JOIN theatres theatre ON theatre.id = screen.theatre_id
         JOIN cities city ON city.id = theatre.city_id
         WHERE theatre.id = $1 AND screen.id = $2",
    )
    .bind(theatre)
    .bind(screen)
    .fetch_optional(connection)
    .await
}

/// A show on a screen.
#[derive(sqlx::FromRow)]
pub(in crate::organiser) struct OnScreen {
    pub title: String,
    pub starts_at: DateTime<Utc>,
    pub running_minutes: i32,
    pub cleaning_minutes: i32,
}

/// Returns shows that start on a screen between two instants and are not called off, including shows being moved to it,
/// excluding `except`.
pub(in crate::organiser) async fn on_screen(
    tx: &mut PgConnection,
    screen: &str,
    (from, until): (DateTime<Utc>, DateTime<Utc>),
    except: Option<Uuid>,
) -> Result<Vec<OnScreen>, sqlx::Error> {
    sqlx::query_as(
        "SELECT film.title, show.starts_at, film.running_minutes, show.cleaning_minutes
         FROM shows show JOIN films film ON film.id = show.film_id
         WHERE (show.screen_id = $1
                OR EXISTS (SELECT 1 FROM show_moves
                           WHERE show_id = show.id AND to_screen = $1 AND state = 'closing'))
           AND NOT show.called_off AND show.starts_at BETWEEN $2 AND $3 AND show.id IS DISTINCT FROM $4
         ORDER BY show.starts_at",
    )
    .bind(screen)
    .bind(from)
    .bind(until)
    .bind(except)
    .fetch_all(tx)
    .await
}

/// A show as stored, for its organiser.
#[derive(sqlx::FromRow)]
pub(in crate::organiser) struct OrganisedRow {
    pub id: Uuid,
    pub film: String,
    pub title: String,
    pub screen: String,
    pub screen_name: String,
    pub starts_at: DateTime<Utc>,
    pub time_zone: String,
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
           city.time_zone, show.language, show.format, show.currency, show.prices, show.sales, show.sales_from,
           show.hold_ms, show.flash_sale, show.per_person, show.email_code, show.per_instrument, show.terms_version, show.terms_at,
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

/// Returns the shows of a theatre on these days.
pub(in crate::organiser) async fn between(
    connection: &mut PgConnection,
    theatre: &str,
    days: (NaiveDate, NaiveDate),
    limit: i64,
) -> Result<Vec<OrganisedRow>, sqlx::Error> {
    sqlx::query_as(ORGANISED)
        .bind(theatre)
        .bind(None::<Uuid>)
        .bind(days.0)
        .bind(days.1)
        .bind(limit)
        .fetch_all(connection)
        .await
}

/// Returns one show of a theatre.
pub(in crate::organiser) async fn one(
    connection: &mut PgConnection,
    theatre: &str,
    show: Uuid,
) -> Result<Option<OrganisedRow>, sqlx::Error> {
    sqlx::query_as(ORGANISED)
        .bind(theatre)
        .bind(show)
        .bind(None::<NaiveDate>)
        .bind(None::<NaiveDate>)
        .bind(1_i64)
        .fetch_optional(connection)
        .await
}

/// Returns the time zone of a theatre.
pub(in crate::organiser) async fn zone(
    connection: &mut PgConnection,
    theatre: &str,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT time_zone FROM cities JOIN theatres ON theatres.city_id = cities.id WHERE theatres.id = $1",
    )
    .bind(theatre)
    .fetch_optional(connection)
    .await
}

/// Locks a show of a theatre against other organisers but not against sales; `false` when the theatre has no such show.
pub(in crate::organiser) async fn lock(tx: &mut PgConnection, theatre: &str, show: Uuid) -> Result<bool, sqlx::Error> {
    let found: Option<i32> = sqlx::query_scalar(
        "SELECT 1 FROM shows WHERE id = $2 AND screen_id IN (SELECT id FROM screens WHERE theatre_id = $1)
         FOR NO KEY UPDATE",
    )
    .bind(theatre)
    .bind(show)
    .fetch_optional(tx)
    .await?;
    Ok(found.is_some())
}

/// Returns this show of a theatre, or all planned shows of its screen, each with its layout, by id. Shows that have
/// begun or were called off are excluded.
pub(in crate::organiser) async fn planned_on_screen(
    connection: &mut PgConnection,
    (theatre, show, all_shows): (&str, Uuid, bool),
    now: Timestamp,
    most: usize,
) -> Result<Vec<(Uuid, Uuid)>, Problem> {
    let screen: Option<String> = sqlx::query_scalar(
        "SELECT screen_id FROM shows WHERE id = $2 AND screen_id IN (SELECT id FROM screens WHERE theatre_id = $1)",
    )
    .bind(theatre)
    .bind(show)
    .fetch_optional(&mut *connection)
    .await?;
    let screen = screen.ok_or_else(|| Problem::not_found("show"))?;
    let planned: Vec<(Uuid, Uuid)> = sqlx::query_as(
        "SELECT id, layout_id FROM shows
         WHERE screen_id = $1 AND starts_at > $2 AND NOT called_off AND (id = $3 OR $4) ORDER BY id LIMIT $5",
    )
    .bind(screen)
    .bind(to_utc(now))
    .bind(show)
    .bind(all_shows)
    .bind(most as i64 + 1)
    .fetch_all(connection)
    .await?;
    if planned.len() > most {
        let detail = format!("More than {most} shows are planned on this screen. Take the seats out show by show.");
        return Err(Problem::new(Code::Malformed, detail));
    }
    Ok(planned)
}

/// Locks these shows in the order of their ids. Returns those that are still planned, each with its layout.
pub(in crate::organiser) async fn lock_planned(
    tx: &mut PgConnection,
    shows: &[Uuid],
    now: Timestamp,
) -> Result<Vec<(Uuid, Uuid)>, sqlx::Error> {
    sqlx::query_scalar::<_, Uuid>("SELECT id FROM shows WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE")
        .bind(shows)
        .fetch_all(&mut *tx)
        .await?;
    sqlx::query_as(
        "SELECT id, layout_id FROM shows WHERE id = ANY($1) AND starts_at > $2 AND NOT called_off ORDER BY id",
    )
    .bind(shows)
    .bind(to_utc(now))
    .fetch_all(tx)
    .await
}

/// Returns `true` when seats or places of a show are sold or claimed.
pub(in crate::organiser) async fn is_bought(tx: &mut PgConnection, show: Uuid) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM seat_claims WHERE show_id = $1 AND state <> 'released')
             OR EXISTS (SELECT 1 FROM area_stock WHERE show_id = $1 AND claimed + sold > 0)",
    )
    .bind(show)
    .fetch_one(tx)
    .await
}

/// Returns `true` when a booking of a show is between checkout and the end of its payment.
pub(in crate::organiser) async fn is_being_bought(tx: &mut PgConnection, show: Uuid) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM bookings WHERE show_id = $1 AND is_open
                        AND state IN ('CREATED', 'SEATS_LOCKED', 'PAYMENT_PENDING', 'PAYMENT_SUCCEEDED'))",
    )
    .bind(show)
    .fetch_one(tx)
    .await
}

/// Changes the terms of a locked show; `false` when its version differs.
pub(in crate::organiser) async fn set_terms(
    tx: &mut PgConnection,
    show: Uuid,
    version: i32,
    terms: &SaleTerms,
    prices: Option<&BTreeMap<String, i64>>,
    now: Timestamp,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE shows SET sales = $3, sales_from = $4, hold_ms = $5, flash_sale = $6, per_person = $7,
                prices = coalesce($8, prices), terms_version = terms_version + 1, terms_at = $9,
                email_code = $10, per_instrument = $11
         WHERE id = $1 AND terms_version = $2 AND NOT called_off AND NOT is_moving",
    )
    .bind(show)
    .bind(version)
    .bind(terms.sales.as_str())
    .bind(terms.sales_from.map(to_utc))
    .bind(terms.hold_ms)
    .bind(terms.flash_sale)
    .bind(terms.per_person)
    .bind(prices.map(Json))
    .bind(to_utc(now))
    .bind(terms.email_code)
    .bind(terms.per_instrument)
    .execute(tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Returns shows whose terms changed since then, the newest first, with version and time.
pub(in crate::organiser) async fn changed_since(
    connection: &mut PgConnection,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<(Uuid, i32, DateTime<Utc>)>, sqlx::Error> {
    sqlx::query_as("SELECT id, terms_version, terms_at FROM shows WHERE terms_at > $1 ORDER BY terms_at DESC LIMIT $2")
        .bind(to_utc(since))
        .bind(limit)
        .fetch_all(connection)
        .await
}
