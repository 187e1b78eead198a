//! Reads a booking for a theatre's other systems, for example after a webhook.

use chrono::{DateTime, Utc};
use domain::api::Person;
use domain::api::systems::{BookedLine, RefundLine, TheatreBookingView};
use domain::booking::BookingState;
use domain::money::{Currency, Money};
use uuid::Uuid;

use crate::BackofficeState;
use http::{ApiResult, Problem};
use platform::clock::{from_utc, rfc3339};

#[derive(platform::FromRow)]
struct StoredBooking {
    reference: String,
    show_id: Uuid,
    state: String,
    money: String,
    currency: String,
    version: i32,
    created_at: DateTime<Utc>,
    buyer_name: String,
    buyer_email: String,
}

const BOOKING: &str = "
    SELECT booking.reference, booking.show_id, booking.state, booking.money,
           booking.currency::text AS currency, booking.version, booking.created_at, booking.buyer_name,
           booking.buyer_email
    FROM bookings booking
    JOIN shows show ON show.id = booking.show_id
    JOIN screens screen ON screen.id = show.screen_id
    WHERE booking.id = $1 AND screen.theatre_id = $2";

const LINES: &str = "
    SELECT label, category, 1 AS quantity, price_minor, false AS given_back FROM booking_seats WHERE booking_id = $1
    UNION ALL
    SELECT label, category, 1, price_minor, true FROM returned_seats WHERE booking_id = $1
    UNION ALL
    SELECT name, category, quantity, price_minor, false FROM booking_places WHERE booking_id = $1";

/// Reads a booking of a theatre; with the buyer only if `with_people` is set.
///
/// # Errors
/// 404 when the theatre has no such booking.
pub(super) async fn read(
    state: &BackofficeState,
    theatre: &str,
    id: Uuid,
    with_people: bool,
) -> ApiResult<TheatreBookingView> {
    let mut connection = state.pg.acquire().await?;
    let row: Option<StoredBooking> =
        sqlx::query_as(BOOKING).bind(id).bind(theatre).fetch_optional(&mut *connection).await?;
    let row = row.ok_or_else(|| Problem::not_found("booking"))?;
    let lines: Vec<(String, String, i32, i64, bool)> =
        sqlx::query_as(LINES).bind(id).fetch_all(&mut *connection).await?;
    let sql = "SELECT number, amount_minor, fee_minor, settled_at FROM refunds WHERE booking_id = $1 ORDER BY number";
    let refunds: Vec<(i32, i64, i64, Option<DateTime<Utc>>)> =
        sqlx::query_as(sql).bind(id).fetch_all(&mut *connection).await?;
    // Released first: loading the show may take another connection.
    drop(connection);
    let show = state.catalogue.find_show(row.show_id).await?;
    let corrupt = |column: &str| Problem::internal(&format!("bookings({id}).{column} cannot be"));
    let currency = Currency::parse(&row.currency).ok_or_else(|| corrupt("currency"))?;
    let booking_state = row.state.parse::<BookingState>().map_err(|_| corrupt("state"))?;
    // Returned seats are not in the current price.
    let prices = lines.iter().filter(|(.., is_returned)| !is_returned);
    let prices = prices.map(|(_, _, quantity, minor, _)| (*minor, quantity.unsigned_abs()));
    let breakdown = show.tax_and_fee.breakdown(prices, currency);
    let is_undone = booking_state == BookingState::Cancelled;
    let line = |(label, category, quantity, minor, given_back)| BookedLine {
        label,
        category,
        quantity,
        price: Money::new(minor, currency),
        given_back: given_back || is_undone,
    };
    let refund = |(number, minor, fee_minor, settled_at): (_, _, _, Option<DateTime<Utc>>)| RefundLine {
        number,
        amount: Money::new(minor, currency),
        fee_minor,
        settled_at: settled_at.map(|at| rfc3339(from_utc(at))),
    };
    Ok(TheatreBookingView {
        id,
        reference: row.reference,
        show: row.show_id,
        film: show.film.clone(),
        starts_local: show.local_iso(show.starts_at),
        state: booking_state,
        money: row.money.parse().map_err(|_| corrupt("money"))?,
        total: breakdown.total,
        breakdown,
        lines: lines.into_iter().map(line).collect(),
        refunds: refunds.into_iter().map(refund).collect(),
        version: row.version,
        created_at: rfc3339(from_utc(row.created_at)),
        buyer: with_people.then_some(Person { name: row.buyer_name, email: row.buyer_email }),
    })
}
