//! Queries about offers: planned, held, mailed, bought or ended.

use domain::time::Timestamp;
use domain::waiting_list::OfferedPlaces;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::ListEntry;
use platform::clock::to_utc;

/// Counts the open offers of a show.
pub(crate) async fn count_offers(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<i64> {
    sqlx::query_scalar("SELECT count(*) FROM waiting_list WHERE show_id = $1 AND state IN ('offering', 'offered')")
        .bind(show)
        .fetch_one(tx)
        .await
}

/// Returns offers that are planned and perhaps not held, in order. Bounded by the maximum of open offers.
pub(crate) async fn offering(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<Vec<ListEntry>> {
    sqlx::query_as(entries!("WHERE show_id = $1 AND state = 'offering' ORDER BY place FOR UPDATE"))
        .bind(show)
        .fetch_all(tx)
        .await
}

/// Plans an offer for an entry; `false` when the entry has left the line.
pub(crate) async fn plan_offer(
    tx: &mut PgConnection,
    entry: &ListEntry,
    number: i32,
    hold: Uuid,
    offer: &OfferedPlaces,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let (seats, area) = match offer {
        OfferedPlaces::Seats(seats) => (seats.iter().map(|seat| seat.cast_signed()).collect(), None),
        OfferedPlaces::Places(places) => (Vec::new(), Some(places.area.cast_signed())),
    };
    let intended = sqlx::query(
        "UPDATE waiting_list
         SET state = 'offering', offer_number = $3, offer_hold = $4, offer_seats = $5, offer_area = $6,
             offer_until = NULL, mail_tries = 0, mail_after = $7, updated_at = $7
         WHERE id = $1 AND state = 'waiting' AND offer_number = $2",
    )
    .bind(entry.id)
    .bind(entry.offer_number)
    .bind(number)
    .bind(hold)
    .bind(seats)
    .bind(area)
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(intended.rows_affected() == 1)
}

/// Marks a planned offer as held.
pub(crate) async fn offered(
    tx: &mut PgConnection,
    entry: &ListEntry,
    until: Timestamp,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE waiting_list SET state = 'offered', offer_until = $3, updated_at = $4
         WHERE id = $1 AND state = 'offering' AND offer_number = $2",
    )
    .bind(entry.id)
    .bind(entry.offer_number)
    .bind(to_utc(until))
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns an entry to the line after its planned offer could not be held.
pub(crate) async fn back_in_line(
    tx: &mut PgConnection,
    entry: &ListEntry,
    not_before: Timestamp,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE waiting_list SET state = 'waiting', not_before = $3, updated_at = $4
         WHERE id = $1 AND state = 'offering' AND offer_number = $2",
    )
    .bind(entry.id)
    .bind(entry.offer_number)
    .bind(to_utc(not_before))
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

/// Marks the entry of a released offer as left.
pub(crate) async fn close_released_offer(pg: &PgPool, hold: Uuid, now: Timestamp) -> sqlx::Result<()> {
    sqlx::query("UPDATE waiting_list SET state = 'left', updated_at = $2 WHERE offer_hold = $1 AND state = 'offered'")
        .bind(hold)
        .bind(to_utc(now))
        .execute(pg)
        .await?;
    Ok(())
}

/// Replaces the hold of an offer, the first id, by its renewal, the second, until `until`.
pub(crate) async fn note_renewed(
    tx: &mut PgConnection,
    (hold, next): (Uuid, Uuid),
    until: Timestamp,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE waiting_list SET offer_hold = $2, offer_until = $3, updated_at = $4
         WHERE offer_hold = $1 AND state = 'offered'",
    )
    .bind(hold)
    .bind(next)
    .bind(to_utc(until))
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

/// Gives an offer to another owner, with its hold under this id. `false` when the entry has changed since it was read.
pub(crate) async fn hand_over(
    tx: &mut PgConnection,
    entry: &ListEntry,
    hold: Uuid,
    owner: &str,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "UPDATE waiting_list SET owner = $4, offer_hold = $5, updated_at = $6
         WHERE id = $1 AND state = 'offered' AND owner = $2 AND offer_hold = $3",
    )
    .bind(entry.id)
    .bind(&entry.owner)
    .bind(entry.offer_hold)
    .bind(owner)
    .bind(hold)
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Marks bought offers as taken.
pub(crate) async fn note_taken(pg: &PgPool, now: Timestamp) -> sqlx::Result<u64> {
    let done = sqlx::query(
        "UPDATE waiting_list entry SET state = 'taken', updated_at = $1
         FROM bookings booking
         WHERE entry.state = 'offered' AND booking.hold_id = entry.offer_hold AND booking.state = 'CONFIRMED'",
    )
    .bind(to_utc(now))
    .execute(pg)
    .await?;
    Ok(done.rows_affected())
}

/// Marks expired offers as lapsed, unless they are being paid for.
pub(crate) async fn note_lapsed(pg: &PgPool, now: Timestamp) -> sqlx::Result<u64> {
    let done = sqlx::query(
        "UPDATE waiting_list entry SET state = 'lapsed', updated_at = $1
         WHERE entry.state = 'offered' AND entry.offer_until <= $1
           AND NOT EXISTS (SELECT 1 FROM bookings booking
                           WHERE booking.hold_id = entry.offer_hold
                             AND booking.state IN ('PAYMENT_PENDING', 'PAYMENT_SUCCEEDED', 'CONFIRMED'))",
    )
    .bind(to_utc(now))
    .execute(pg)
    .await?;
    Ok(done.rows_affected())
}

/// Leases the mail that has been due longest, until `lease_until`.
pub(crate) async fn take_mail(
    pg: &PgPool,
    now: Timestamp,
    lease_until: Timestamp,
    max_tries: i32,
) -> sqlx::Result<Option<ListEntry>> {
    sqlx::query_as(
        "UPDATE waiting_list entry SET mail_after = $2, mail_tries = entry.mail_tries + 1
         FROM (SELECT id FROM waiting_list
               WHERE state = 'offered' AND mailed < offer_number AND mail_after <= $1 AND mail_tries < $3
               ORDER BY mail_after LIMIT 1 FOR UPDATE SKIP LOCKED) AS due
         WHERE entry.id = due.id
         RETURNING entry.id, entry.place, entry.show_id, entry.owner, entry.email, entry.quantity, entry.category,
                   entry.state, entry.offer_number, entry.offer_hold, entry.offer_seats, entry.offer_area,
                   entry.offer_until, entry.joined_at",
    )
    .bind(to_utc(now))
    .bind(to_utc(lease_until))
    .bind(max_tries)
    .fetch_optional(pg)
    .await
}

/// Records that the mail of an offer was sent.
pub(crate) async fn note_mailed(pg: &PgPool, entry: &ListEntry) -> sqlx::Result<()> {
    sqlx::query("UPDATE waiting_list SET mailed = $2 WHERE id = $1 AND mailed < $2")
        .bind(entry.id)
        .bind(entry.offer_number)
        .execute(pg)
        .await?;
    Ok(())
}

/// Schedules a retry of an offer's mail.
pub(crate) async fn postpone_mail(pg: &PgPool, entry: &ListEntry, at: Timestamp) -> sqlx::Result<()> {
    sqlx::query("UPDATE waiting_list SET mail_after = $3 WHERE id = $1 AND offer_number = $2")
        .bind(entry.id)
        .bind(entry.offer_number)
        .bind(to_utc(at))
        .execute(pg)
        .await?;
    Ok(())
}
