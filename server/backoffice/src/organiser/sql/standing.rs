//! Queries of `standing_house_seats`. Writers hold the lock of the screen.

use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use platform::clock::to_utc;

/// A standing house seat of a screen.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(in crate::organiser) struct StandingRow {
    pub label: String,
    pub seat_no: Option<i32>,
    pub reason: String,
    pub kept_by: Uuid,
    pub person: String,
}

/// Returns a screen's standing seats for one layout, in seat order; seats the layout lacks come last.
pub(in crate::organiser) async fn of_room(
    connection: &mut PgConnection,
    screen: &str,
    layout: Uuid,
) -> Result<Vec<StandingRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT kept.label, kept.seat_no, kept.reason, kept.kept_by, account.name AS person
         FROM standing_house_seats kept JOIN accounts account ON account.id = kept.kept_by
         WHERE kept.screen_id = $1 AND kept.layout_id = $2 ORDER BY kept.seat_no NULLS LAST, kept.label",
    )
    .bind(screen)
    .bind(layout)
    .fetch_all(connection)
    .await
}

/// Inserts standing seats; updates the reason of existing ones.
pub(in crate::organiser) async fn keep(
    tx: &mut PgConnection,
    (screen, layout): (&str, Uuid),
    (labels, numbers): (&[String], &[i32]),
    (reason, who): (&str, Uuid),
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO standing_house_seats (screen_id, layout_id, label, seat_no, reason, kept_by, kept_at)
         SELECT $1, $2, seat.label, seat.number, $5, $6, $7
         FROM UNNEST($3::text[], $4::integer[]) AS seat (label, number)
         ON CONFLICT (screen_id, layout_id, label) DO UPDATE
         SET reason = EXCLUDED.reason, kept_by = EXCLUDED.kept_by, kept_at = EXCLUDED.kept_at",
    )
    .bind(screen)
    .bind(layout)
    .bind(labels)
    .bind(numbers)
    .bind(reason)
    .bind(who)
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

/// Deletes standing seats.
pub(in crate::organiser) async fn put_back(
    tx: &mut PgConnection,
    (screen, layout): (&str, Uuid),
    labels: &[String],
) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM standing_house_seats WHERE screen_id = $1 AND layout_id = $2 AND label = ANY ($3)")
        .bind(screen)
        .bind(layout)
        .bind(labels)
        .execute(tx)
        .await?;
    Ok(())
}

/// Copies standing seats to another layout, with its seat numbers. Replaces the seats from an earlier use of that
/// layout.
pub(in crate::organiser) async fn carry_over(
    tx: &mut PgConnection,
    screen: &str,
    (before, after): (Uuid, Uuid),
    (labels, numbers): (&[String], &[Option<i32>]),
) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM standing_house_seats WHERE screen_id = $1 AND layout_id = $2")
        .bind(screen)
        .bind(after)
        .execute(&mut *tx)
        .await?;
    sqlx::query(
        "INSERT INTO standing_house_seats (screen_id, layout_id, label, seat_no, reason, kept_by, kept_at)
         SELECT kept.screen_id, $3, kept.label, seat.number, kept.reason, kept.kept_by, kept.kept_at
         FROM standing_house_seats kept
         JOIN UNNEST($4::text[], $5::integer[]) AS seat (label, number) ON seat.label = kept.label
         WHERE kept.screen_id = $1 AND kept.layout_id = $2",
    )
    .bind(screen)
    .bind(before)
    .bind(after)
    .bind(labels)
    .bind(numbers)
    .execute(tx)
    .await?;
    Ok(())
}
