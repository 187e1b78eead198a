//! Bookings by the name or the address of whom they are for.

use sqlx::PgConnection;
use uuid::Uuid;

/// A booking, and whose it is.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct OfPerson {
    /// The booking.
    pub id: Uuid,
    /// Its name for people.
    pub reference: String,
    /// Who bought.
    pub name: String,
    /// Their address.
    pub email: String,
    /// Who comes with it.
    pub holder: String,
}

/// Bookings of these shows in whose names or addresses the pattern is found, the newest first. Those that are not done
/// yet, and those nobody ever paid for, are left out: nobody comes to the counter with one.
///
/// # Errors
/// When the database fails.
pub async fn of_person(
    tx: &mut PgConnection,
    shows: &[Uuid],
    pattern: &str,
    limit: i64,
) -> Result<Vec<OfPerson>, sqlx::Error> {
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
