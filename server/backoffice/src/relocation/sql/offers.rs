//! Queries of `moved_bookings`: the outcome of a move for each booking, the buyer's answer, and the mail about it.

use chrono::{DateTime, Utc};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use platform::clock::to_utc;

/// The outcome of a move for one booking.
pub(in super::super) struct MovedBooking {
    pub booking: Uuid,
    pub is_same: bool,
    pub before: Vec<String>,
    pub after: Vec<String>,
}

/// Inserts the outcomes of all moved bookings.
pub(in super::super) async fn put_all(
    tx: &mut PgConnection,
    move_id: Uuid,
    meant: &[MovedBooking],
    answer_until: Timestamp,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    let json =
        |lists: Vec<&Vec<String>>| serde_json::to_string(&lists).map_err(|cause| sqlx::Error::Encode(cause.into()));
    // Postgres arrays cannot hold lists of different lengths, so they are sent as JSON.
    sqlx::query(
        "INSERT INTO moved_bookings (move_id, booking_id, state, before, after, answer_until, mail_after)
         SELECT $1, meant.booking_id, CASE WHEN meant.is_same THEN 'same' ELSE 'offered' END,
                ARRAY(SELECT jsonb_array_elements_text(was.list)), ARRAY(SELECT jsonb_array_elements_text(will.list)),
                CASE WHEN meant.is_same THEN NULL ELSE $6::timestamptz END, $7
         FROM UNNEST($2::uuid[], $3::boolean[]) WITH ORDINALITY AS meant (booking_id, is_same, place)
         JOIN jsonb_array_elements($4::text::jsonb) WITH ORDINALITY AS was (list, place) ON was.place = meant.place
         JOIN jsonb_array_elements($5::text::jsonb) WITH ORDINALITY AS will (list, place) ON will.place = meant.place",
    )
    .bind(move_id)
    .bind(meant.iter().map(|one| one.booking).collect::<Vec<_>>())
    .bind(meant.iter().map(|one| one.is_same).collect::<Vec<_>>())
    .bind(json(meant.iter().map(|one| &one.before).collect())?)
    .bind(json(meant.iter().map(|one| &one.after).collect())?)
    .bind(to_utc(answer_until))
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns `true` when a show has unanswered offers.
pub(in super::super) async fn has_open_offers(tx: &mut PgConnection, show: Uuid) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM moved_bookings moved JOIN show_moves move ON move.id = moved.move_id
                        WHERE move.show_id = $1 AND moved.state = 'offered')",
    )
    .bind(show)
    .fetch_one(tx)
    .await
}

/// A mail that is due.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(in super::super) struct DueMail {
    pub move_id: Uuid,
    pub booking_id: Uuid,
    pub state: String,
    pub before: Vec<String>,
    pub after: Vec<String>,
    pub answer_until: Option<DateTime<Utc>>,
    pub reason: String,
    pub from_name: String,
    pub to_name: String,
    /// Ordinal number of the move of this show.
    pub ordinal: i64,
}

/// Leases one due mail for one attempt.
pub(in super::super) async fn take_mail(
    pg: &PgPool,
    now: Timestamp,
    lease_until: Timestamp,
    max_tries: i32,
) -> Result<Option<DueMail>, sqlx::Error> {
    sqlx::query_as(
        "UPDATE moved_bookings moved SET mail_tries = moved.mail_tries + 1, mail_after = $2
         FROM (SELECT move_id, booking_id FROM moved_bookings
               WHERE mailed_at IS NULL AND mail_after <= $1 AND mail_tries < $3
               ORDER BY mail_after LIMIT 1 FOR UPDATE SKIP LOCKED) AS due
         JOIN show_moves move ON move.id = due.move_id
         WHERE moved.move_id = due.move_id AND moved.booking_id = due.booking_id
         RETURNING moved.move_id, moved.booking_id, moved.state, moved.before, moved.after, moved.answer_until,
                   move.reason,
                   (SELECT name FROM screens WHERE id = move.from_screen) AS from_name,
                   (SELECT name FROM screens WHERE id = move.to_screen) AS to_name,
                   (SELECT count(*) FROM show_moves other
                    WHERE other.show_id = move.show_id AND other.requested_at <= move.requested_at) AS ordinal",
    )
    .bind(to_utc(now))
    .bind(to_utc(lease_until))
    .bind(max_tries)
    .fetch_optional(pg)
    .await
}

/// Marks a mail as sent, or as not needed.
pub(in super::super) async fn mark_mailed(pg: &PgPool, mail: &DueMail, now: Timestamp) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE moved_bookings SET mailed_at = $3 WHERE move_id = $1 AND booking_id = $2")
        .bind(mail.move_id)
        .bind(mail.booking_id)
        .bind(to_utc(now))
        .execute(pg)
        .await?;
    Ok(())
}

/// Postpones a failed mail.
pub(in super::super) async fn postpone_mail(
    pg: &PgPool,
    mail: &DueMail,
    not_before: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE moved_bookings SET mail_after = $3 WHERE move_id = $1 AND booking_id = $2 AND mailed_at IS NULL",
    )
    .bind(mail.move_id)
    .bind(mail.booking_id)
    .bind(to_utc(not_before))
    .execute(pg)
    .await?;
    Ok(())
}
