//! Checks that no booking of a cancelled and finished show is sold or being paid for.
//!
//! A booking that was checked out later may remain: it has no claims, Postgres refuses its payment, and it expires.

use sqlx::PgPool;
use uuid::Uuid;

/// Bookings that escaped the cancellation, one sentence each.
pub async fn findings(pg: &PgPool) -> Vec<String> {
    let escaped: Vec<(Uuid, String)> = sqlx::query_as(
        "SELECT id, state FROM bookings JOIN show_cancellations USING (show_id)
         WHERE finished_at IS NOT NULL AND state NOT IN ('CANCELLED', 'EXPIRED', 'CREATED', 'SEATS_LOCKED')",
    )
    .fetch_all(pg)
    .await
    .expect("bookings are read");
    let describe = |(booking, state): (Uuid, String)| format!("booking {booking}: {state}, but its show is cancelled");
    escaped.into_iter().map(describe).collect()
}
