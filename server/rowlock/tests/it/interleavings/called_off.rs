//! No booking of a show that was called off and done with is sold or being paid for.
//!
//! One that was checked out since may be left: it claims nothing, Postgres lets nobody begin to pay for it, and its time
//! runs out.

use sqlx::PgPool;
use uuid::Uuid;

/// Bookings that escaped, a sentence each.
pub async fn findings(pg: &PgPool) -> Vec<String> {
    let escaped: Vec<(Uuid, String)> = sqlx::query_as(
        "SELECT id, state FROM bookings JOIN show_cancellations USING (show_id)
         WHERE finished_at IS NOT NULL AND state NOT IN ('CANCELLED', 'EXPIRED', 'CREATED', 'SEATS_LOCKED')",
    )
    .fetch_all(pg)
    .await
    .expect("bookings are read");
    let describe =
        |(booking, state): (Uuid, String)| format!("booking {booking}: {state}, and its show was called off");
    escaped.into_iter().map(describe).collect()
}
