//! Payments and refunds by the day of the money's movement.
//!
//! Money transferred to another booking, by an exchange or after a late payment, stays on the day of its arrival. The
//! other booking counts only the amount beyond the remainder transferred; its refunds count on their own day. A past
//! day's figures therefore never change. Late money that a gateway returns by itself after the booking left it is in
//! neither column: it was never ours.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use domain::api::reports::{TakingsLine, TakingsReport, TakingsTotal};

use super::range::Range;
use super::reading::{LATE_DAYS, Reading, check_screen, query_error};
use crate::BackofficeState;
use http::ApiResult;
use platform::database::BindAll;

/// Each booking has at most one `payment_succeeded` event.
const PAYMENTS: &str = "
    WITH of_theatre AS MATERIALIZED (
        SELECT show.id FROM screens screen
        JOIN shows show ON show.screen_id = screen.id AND show.starts_at >= $2 - $5 * interval '1 day'
        WHERE screen.theatre_id = $1 AND ($6::text IS NULL OR screen.id = $6)
    ), booked AS (
        SELECT booking.id FROM of_theatre show
        JOIN bookings booking ON booking.show_id = show.id AND NOT booking.is_open
        UNION ALL
        SELECT booking.id FROM bookings booking JOIN of_theatre show ON show.id = booking.show_id
        WHERE booking.is_open AND booking.state = 'PAYMENT_SUCCEEDED'
    )
    SELECT (event.at AT TIME ZONE $4)::date AS day, payment.gateway AS way, payment.currency::text AS currency,
           count(*) FILTER (WHERE came.minor IS NULL) AS number,
           sum(coalesce(payment.charged_minor, payment.amount_minor) - coalesce(came.minor, 0))::bigint AS minor,
           0::bigint AS fees_minor
    FROM booked
    JOIN booking_events event ON event.booking_id = booked.id AND event.event = 'payment_succeeded'
         AND event.at >= $2 AND event.at < $3
    JOIN payments payment ON payment.booking_id = booked.id
    LEFT JOIN LATERAL (SELECT coalesce(other.charged_minor, other.amount_minor)
                              - (SELECT coalesce(sum(back.amount_minor + back.fee_minor), 0)
                                 FROM refunds back WHERE back.booking_id = other.booking_id)::bigint AS minor
                       FROM payments other WHERE other.moved_to = booked.id) came ON true
    GROUP BY 1, 2, 3";

const REFUNDS: &str = "
    SELECT (refund.settled_at AT TIME ZONE $4)::date AS day, payment.gateway AS way,
           payment.currency::text AS currency, count(*) AS number, sum(refund.amount_minor)::bigint AS minor,
           sum(refund.fee_minor)::bigint AS fees_minor
    FROM refunds refund
    JOIN bookings booking ON booking.id = refund.booking_id
    JOIN shows show ON show.id = booking.show_id
    JOIN screens screen ON screen.id = show.screen_id
    JOIN payments payment ON payment.booking_id = refund.booking_id
    WHERE screen.theatre_id = $1 AND ($5::text IS NULL OR screen.id = $5)
      AND refund.state = 'settled' AND refund.settled_at >= $2 AND refund.settled_at < $3
    GROUP BY 1, 2, 3";

const UNDER_WAY: &str = "
    SELECT payment.currency::text AS currency, sum(refund.amount_minor)::bigint AS minor
    FROM refunds refund
    JOIN bookings booking ON booking.id = refund.booking_id
    JOIN shows show ON show.id = booking.show_id
    JOIN screens screen ON screen.id = show.screen_id
    JOIN payments payment ON payment.booking_id = refund.booking_id
    WHERE screen.theatre_id = $1 AND ($2::text IS NULL OR screen.id = $2) AND refund.state = 'requested'
    GROUP BY 1";

#[derive(platform::FromRow)]
struct MoneyRow {
    day: NaiveDate,
    way: String,
    currency: String,
    number: i64,
    minor: i64,
    fees_minor: i64,
}

/// Returns the takings of a theatre, or of one of its screens, on these days. Money belongs to the booking's current
/// screen.
///
/// # Errors
/// 404 for an unknown screen, 503 on a timeout or when no report slot is free.
pub async fn takings(
    state: &BackofficeState,
    theatre: &str,
    range: &Range,
    screen: Option<&str>,
) -> ApiResult<TakingsReport> {
    let mut reading = Reading::begin(state, theatre).await?;
    let screen = check_screen(&mut reading.tx, theatre, screen).await?;
    let payments: Vec<MoneyRow> = sqlx::query_as(PAYMENTS)
        .bind_all((theatre, range.begins, range.ends, range.zone.name(), LATE_DAYS, screen))
        .fetch_all(&mut *reading.tx)
        .await
        .map_err(query_error)?;
    let refunds: Vec<MoneyRow> = sqlx::query_as(REFUNDS)
        .bind_all((theatre, range.begins, range.ends, range.zone.name(), screen))
        .fetch_all(&mut *reading.tx)
        .await
        .map_err(query_error)?;
    let under_way: Vec<(String, i64)> =
        sqlx::query_as(UNDER_WAY).bind(theatre).bind(screen).fetch_all(&mut *reading.tx).await.map_err(query_error)?;
    Ok(build_report(payments, refunds, &under_way, range))
}

fn build_report(
    payments: Vec<MoneyRow>,
    refunds: Vec<MoneyRow>,
    under_way: &[(String, i64)],
    range: &Range,
) -> TakingsReport {
    let mut lines: BTreeMap<(NaiveDate, String, String), TakingsLine> = BTreeMap::new();
    let mut line_of = |moved: MoneyRow, is_refund: bool| {
        let key = (moved.day, moved.way.clone(), moved.currency.clone());
        let line = lines.entry(key).or_insert_with(|| TakingsLine {
            date: moved.day.to_string(),
            way: moved.way,
            currency: moved.currency,
            payments: 0,
            taken_minor: 0,
            refunds: 0,
            refunded_minor: 0,
            fees_minor: 0,
        });
        if is_refund {
            line.refunds += moved.number;
            line.refunded_minor += moved.minor;
            line.fees_minor += moved.fees_minor;
        } else {
            line.payments += moved.number;
            line.taken_minor += moved.minor;
        }
    };
    payments.into_iter().for_each(|moved| line_of(moved, false));
    refunds.into_iter().for_each(|moved| line_of(moved, true));
    let lines: Vec<TakingsLine> = lines.into_values().collect();
    let mut totals: BTreeMap<String, TakingsTotal> = BTreeMap::new();
    let mut total_of = |currency: &str, add: &dyn Fn(&mut TakingsTotal)| {
        let empty = || TakingsTotal { currency: currency.to_owned(), ..TakingsTotal::default() };
        add(totals.entry(currency.to_owned()).or_insert_with(empty));
    };
    for line in &lines {
        total_of(&line.currency, &|total| {
            total.taken_minor += line.taken_minor;
            total.refunded_minor += line.refunded_minor;
            total.net_minor += line.taken_minor - line.refunded_minor;
            total.fees_minor += line.fees_minor;
        });
    }
    for (currency, minor) in under_way {
        total_of(currency, &|total| total.under_way_minor += minor);
    }
    TakingsReport { days: range.view(), lines, totals: totals.into_values().collect() }
}
