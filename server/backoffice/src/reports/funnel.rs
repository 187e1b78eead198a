//! The sales funnel: holds, checkouts, payments, tickets, and the losses at each step.
//!
//! Counts bookings created on the days of the report, by their events. Two kinds are left out: bookings created for a
//! late payment, which have no checkout, and box-office sales, which do not pass through the pages.

use domain::api::reports::FunnelReport;

use super::range::Range;
use super::reading::{LATE_DAYS, Reading, check_screen, query_error};
use crate::BackofficeState;
use http::ApiResult;
use platform::database::BindAll;

/// `OFFSET 0` makes the planner find bookings by their show; otherwise it scans an index with a date from end to end.
const FUNNEL: &str = "
    WITH of_theatre AS MATERIALIZED (
        SELECT show.id FROM screens screen
        JOIN shows show ON show.screen_id = screen.id AND show.starts_at >= $2 - $4 * interval '1 day'
        WHERE screen.theatre_id = $1 AND ($5::text IS NULL OR screen.id = $5)
    ), made AS MATERIALIZED (
        SELECT booking.id, booking.state, booking.is_open
        FROM of_theatre show CROSS JOIN LATERAL (
            SELECT id, state, is_open, created_at, channel
            FROM bookings WHERE show_id = show.id AND NOT is_open OFFSET 0
        ) booking
        WHERE booking.created_at >= $2 AND booking.created_at < $3 AND booking.channel = 'online'
        UNION ALL
        SELECT booking.id, booking.state, booking.is_open
        FROM bookings booking JOIN of_theatre show ON show.id = booking.show_id
        WHERE booking.is_open AND booking.created_at >= $2 AND booking.created_at < $3
          AND booking.channel = 'online'
    )
    SELECT count(*) AS checked_out,
           count(*) FILTER (WHERE story.submitted) AS submitted,
           count(*) FILTER (WHERE story.paid) AS paid,
           count(*) FILTER (WHERE story.ticketed) AS ticketed,
           count(*) FILTER (WHERE NOT story.paid AND made.state = 'EXPIRED') AS ran_out,
           count(*) FILTER (WHERE NOT story.paid AND made.state = 'CANCELLED' AND story.declined) AS declined,
           count(*) FILTER (WHERE NOT story.paid AND made.state = 'CANCELLED' AND NOT story.declined) AS let_go,
           count(*) FILTER (WHERE NOT story.paid AND made.is_open) AS open
    FROM made CROSS JOIN LATERAL (
        SELECT bool_or(event = 'payment_submitted') AS submitted,
               bool_or(event = 'payment_succeeded') AS paid,
               bool_or(to_state = 'CONFIRMED') AS ticketed,
               bool_or(event IN ('payment_failed', 'payment_voided') AND from_state = 'PAYMENT_PENDING') AS declined,
               bool_or(event = 'payment_moved_in') AS moved_in
        FROM booking_events WHERE booking_id = made.id
    ) story
    WHERE NOT story.moved_in";

const HOLDS: &str = "
    SELECT coalesce(sum(counted.granted), 0)::bigint
    FROM screens screen
    JOIN shows show ON show.screen_id = screen.id AND show.starts_at >= $2 - $5 * interval '1 day'
    JOIN hold_counts counted ON counted.show_id = show.id AND counted.day BETWEEN $3 AND $4
    WHERE screen.theatre_id = $1 AND ($6::text IS NULL OR screen.id = $6)";

#[derive(platform::FromRow)]
struct FunnelRow {
    checked_out: i64,
    submitted: i64,
    paid: i64,
    ticketed: i64,
    ran_out: i64,
    declined: i64,
    let_go: i64,
    open: i64,
}

/// Returns the funnel of a theatre, or of one of its screens, on these days.
///
/// # Errors
/// 404 for an unknown screen, 503 on a timeout or when no report slot is free.
pub async fn funnel(
    state: &BackofficeState,
    theatre: &str,
    range: &Range,
    screen: Option<&str>,
) -> ApiResult<FunnelReport> {
    let mut reading = Reading::begin(state, theatre).await?;
    let screen = check_screen(&mut reading.tx, theatre, screen).await?;
    let counted: FunnelRow = sqlx::query_as(FUNNEL)
        .bind_all((theatre, range.begins, range.ends, LATE_DAYS, screen))
        .fetch_one(&mut *reading.tx)
        .await
        .map_err(query_error)?;
    let holds: i64 = sqlx::query_scalar(HOLDS)
        .bind_all((theatre, range.begins, range.from, range.to, LATE_DAYS, screen))
        .fetch_one(&mut *reading.tx)
        .await
        .map_err(query_error)?;
    let FunnelRow { checked_out, submitted, paid, ticketed, ran_out, declined, let_go, open } = counted;
    let days = range.view();
    Ok(FunnelReport { days, holds, checked_out, submitted, paid, ticketed, ran_out, declined, let_go, open })
}
