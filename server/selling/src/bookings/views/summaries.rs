//! Bookings for lists: summaries, and the search by the name or address of buyer or holder.

use chrono::{DateTime, Utc};
use domain::api::accounts::BookingSummary;
use domain::money::{Currency, Money};
use domain::seats::sort_for_display;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{SellingState, outbox};
use http::{ApiResult, Problem};
use platform::clock::from_utc;
use platform::database::BindAll;

#[derive(platform::FromRow)]
struct SummaryRow {
    id: Uuid,
    reference: String,
    show_id: Uuid,
    state: String,
    money: String,
    total_minor: i64,
    currency: String,
    created_at: DateTime<Utc>,
    /// True if a gateway ever failed to send the refund of the rest.
    has_failed: bool,
    seats: Vec<String>,
    places: Vec<String>,
}

/// Returns these bookings, in this order, of any owner: the caller has checked the access.
///
/// # Errors
/// When the database fails, or a row is corrupt.
pub async fn summaries(state: &SellingState, ids: &[Uuid]) -> ApiResult<Vec<BookingSummary>> {
    let sql =
        "SELECT booking.id, booking.reference, booking.show_id, booking.state, booking.money, booking.total_minor,
                      booking.currency, booking.created_at,
                      EXISTS (SELECT 1 FROM refund_failures failure
                              WHERE failure.booking_id = booking.id AND failure.number = 0) AS has_failed,
                      ARRAY(SELECT label FROM booking_seats WHERE booking_id = booking.id ORDER BY seat_no) AS seats,
                      ARRAY(SELECT quantity || ' × ' || name FROM booking_places WHERE booking_id = booking.id
                            ORDER BY area_no) AS places
               FROM unnest($1::uuid[]) WITH ORDINALITY AS asked (id, place)
               JOIN bookings booking ON booking.id = asked.id ORDER BY asked.place";
    let rows: Vec<SummaryRow> = sqlx::query_as(sql).bind(ids).fetch_all(&state.pg).await?;
    let failed: Vec<Uuid> = rows.iter().filter(|row| row.has_failed).map(|row| row.id).collect();
    let came_back = outbox::with_parked_refund(&state.pg, &failed).await?;
    let mut summaries = Vec::with_capacity(rows.len());
    for mut row in rows {
        sort_for_display(&mut row.seats, String::as_str);
        let show = state.catalogue.find_show(row.show_id).await?;
        let corrupt = |column: &str| Problem::internal(&format!("bookings({}).{column} cannot be", row.id));
        let currency = Currency::parse(&row.currency).ok_or_else(|| corrupt("currency"))?;
        summaries.push(BookingSummary {
            id: row.id,
            reference: row.reference.clone(),
            show: row.show_id,
            film: show.film.clone(),
            place: format!("{}, {}, {}", show.theatre, show.screen, show.city),
            starts: show.starts_local.clone(),
            starts_local: show.local_iso(show.starts_at),
            starts_at_ms: show.starts_at.0,
            state: row.state.parse().map_err(|_| corrupt("state"))?,
            money: row.money.parse().map_err(|_| corrupt("money"))?,
            came_back: came_back.contains(&row.id),
            what: row.seats.iter().chain(&row.places).cloned().collect(),
            total: Money::new(row.total_minor, currency),
            created_at_ms: from_utc(row.created_at).0,
        });
    }
    Ok(summaries)
}

/// A booking with its buyer and holder.
#[derive(Clone, Debug, platform::FromRow)]
pub struct PersonBooking {
    /// The booking.
    pub id: Uuid,
    /// Its reference.
    pub reference: String,
    /// The buyer's name.
    pub name: String,
    /// The buyer's address.
    pub email: String,
    /// The holder's name.
    pub holder: String,
}

/// Returns bookings of these shows whose names or addresses match the pattern, newest first. Open bookings and
/// bookings that were never paid are left out: the counter has no use for them.
///
/// # Errors
/// When the database fails.
pub async fn find_by_person(
    tx: &mut PgConnection,
    shows: &[Uuid],
    pattern: &str,
    limit: i64,
) -> sqlx::Result<Vec<PersonBooking>> {
    let sql = "SELECT id, reference, buyer_name AS name, buyer_email AS email, holder_name AS holder FROM bookings
               WHERE show_id = ANY($1) AND NOT is_open AND (state <> 'EXPIRED' OR money NOT IN ('NONE', 'FAILED'))
                 AND (buyer_name ILIKE $2 OR buyer_email ILIKE $2 OR holder_name ILIKE $2 OR holder_email ILIKE $2)
               ORDER BY created_at DESC, id LIMIT $3";
    sqlx::query_as(sql).bind_all((shows, pattern, limit)).fetch_all(tx).await
}
