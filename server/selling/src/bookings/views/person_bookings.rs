//! Searches bookings by the name or address of buyer or holder.

use sqlx::PgConnection;
use uuid::Uuid;

/// A booking with its buyer and holder.
#[derive(Clone, Debug, sqlx::FromRow)]
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
    sqlx::query_as(
        "SELECT id, reference, buyer_name AS name, buyer_email AS email, holder_name AS holder FROM bookings
         WHERE show_id = ANY($1) AND NOT is_open AND (state <> 'EXPIRED' OR money NOT IN ('NONE', 'FAILED'))
           AND (buyer_name ILIKE $2 OR buyer_email ILIKE $2 OR holder_name ILIKE $2 OR holder_email ILIKE $2)
         ORDER BY created_at DESC, id LIMIT $3",
    )
    .bind(shows)
    .bind(pattern)
    .bind(limit)
    .fetch_all(tx)
    .await
}
