//! Queries of `show_moves`, the moved show and its bookings.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::time::Timestamp;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::relocation::RequestedMove;
use platform::clock::to_utc;

/// The facts of a show that a move depends on.
#[derive(sqlx::FromRow)]
pub(in super::super) struct ShowNow {
    pub screen_id: String,
    pub layout_id: Uuid,
    pub starts_at: DateTime<Utc>,
    pub currency: String,
    pub prices: Json<BTreeMap<String, i64>>,
    pub blocked: Vec<i32>,
    pub sales: String,
    pub called_off: bool,
    pub is_moving: bool,
    pub times_moved: i16,
}

const SHOW: &str = "SELECT screen_id, layout_id, starts_at, currency, prices, blocked, sales, called_off, is_moving,
                           times_moved FROM shows WHERE id = $1";

pub(in super::super) async fn show(tx: &mut PgConnection, show: Uuid) -> Result<Option<ShowNow>, sqlx::Error> {
    sqlx::query_as(SHOW).bind(show).fetch_optional(tx).await
}

/// Locks a show against writers of its bookings: FOR UPDATE waits for the FOR KEY SHARE of their foreign key, which an
/// update of the show would not.
pub(in super::super) async fn lock_show(tx: &mut PgConnection, show: Uuid) -> Result<Option<ShowNow>, sqlx::Error> {
    sqlx::query("SELECT 1 FROM shows WHERE id = $1 FOR UPDATE").bind(show).execute(&mut *tx).await?;
    // Two statements: the second one sees the changes that the lock has waited for.
    sqlx::query_as(SHOW).bind(show).fetch_optional(tx).await
}

/// Marks a show as moving and inserts the move. The caller has locked the show.
pub(in super::super) async fn begin(
    tx: &mut PgConnection,
    id: Uuid,
    requested: &RequestedMove,
    show: &ShowNow,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO show_moves (id, show_id, from_screen, to_screen, from_layout, to_layout, prices, reason, sales,
                                 state, requested_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'closing', $10)",
    )
    .bind(id)
    .bind(requested.show)
    .bind(&show.screen_id)
    .bind(&requested.screen)
    .bind(show.layout_id)
    .bind(requested.layout)
    .bind(Json(&requested.prices))
    .bind(&requested.reason)
    .bind(&show.sales)
    .bind(to_utc(now))
    .execute(&mut *tx)
    .await?;
    let marked = sqlx::query(
        "UPDATE shows SET is_moving = true, sales = CASE sales WHEN 'open' THEN 'paused' ELSE sales END,
                terms_version = terms_version + 1, terms_at = $2
         WHERE id = $1 AND NOT is_moving AND NOT called_off",
    )
    .bind(requested.show)
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    if marked.rows_affected() == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

/// A running move.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(in super::super) struct MoveRow {
    pub id: Uuid,
    pub show_id: Uuid,
    pub to_screen: String,
    pub from_layout: Uuid,
    pub to_layout: Uuid,
    pub prices: Json<BTreeMap<String, i64>>,
    pub reason: String,
    pub state: String,
    pub requested_at: DateTime<Utc>,
    pub carried_at: Option<DateTime<Utc>>,
    pub from_name: String,
    pub to_name: String,
}

macro_rules! moves {
    ($condition:literal) => {
        concat!(
            "SELECT move.id, move.show_id, move.to_screen, move.from_layout, move.to_layout, move.prices, move.reason,
                    move.state, move.requested_at, move.carried_at,
                    (SELECT name FROM screens WHERE id = move.from_screen) AS from_name,
                    (SELECT name FROM screens WHERE id = move.to_screen) AS to_name
             FROM show_moves move WHERE ",
            $condition
        )
    };
}

/// Returns unfinished moves, the oldest first.
pub(in super::super) async fn open_moves(pg: &PgPool, limit: i64) -> Result<Vec<MoveRow>, sqlx::Error> {
    sqlx::query_as(moves!("move.state IN ('closing', 'carried') ORDER BY move.requested_at LIMIT $1"))
        .bind(limit)
        .fetch_all(pg)
        .await
}

/// Locks a move in this state; `None` when another replica works on it, or its state differs.
pub(in super::super) async fn lock_move(
    tx: &mut PgConnection,
    id: Uuid,
    state: &str,
) -> Result<Option<MoveRow>, sqlx::Error> {
    sqlx::query_as(moves!("move.id = $1 AND move.state = $2 FOR UPDATE SKIP LOCKED"))
        .bind(id)
        .bind(state)
        .fetch_optional(tx)
        .await
}

/// The last move of a show.
#[derive(sqlx::FromRow)]
pub(in super::super) struct LastRow {
    pub state: String,
    pub reason: String,
    pub same: i32,
    pub offered: i32,
    pub refunded: i32,
    pub unanswered: i64,
    pub answer_until: Option<DateTime<Utc>>,
    pub from_name: String,
    pub to_name: String,
}

pub(in super::super) async fn last(tx: &mut PgConnection, show: Uuid) -> Result<Option<LastRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT move.state, move.reason, move.same, move.offered, move.refunded, move.answer_until,
                (SELECT count(*) FROM moved_bookings WHERE move_id = move.id AND state = 'offered') AS unanswered,
                (SELECT name FROM screens WHERE id = move.from_screen) AS from_name,
                (SELECT name FROM screens WHERE id = move.to_screen) AS to_name
         FROM show_moves move WHERE move.show_id = $1 ORDER BY move.requested_at DESC LIMIT 1",
    )
    .bind(show)
    .fetch_optional(tx)
    .await
}

/// A sold booking with its places.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(in super::super) struct SoldRow {
    pub id: Uuid,
    pub reference: String,
    pub version: i32,
    pub fence: i64,
    pub seats: Vec<i32>,
    pub labels: Vec<String>,
    pub areas: Vec<i16>,
    pub counts: Vec<i32>,
    pub area_names: Vec<String>,
}

/// Returns sold bookings in the order of their creation.
pub(in super::super) async fn sold(tx: &mut PgConnection, show: Uuid) -> Result<Vec<SoldRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT booking.id, booking.reference, booking.version, booking.fence,
                ARRAY(SELECT seat_no FROM booking_seats WHERE booking_id = booking.id ORDER BY seat_no) AS seats,
                ARRAY(SELECT label FROM booking_seats WHERE booking_id = booking.id ORDER BY seat_no) AS labels,
                ARRAY(SELECT area_no FROM booking_places WHERE booking_id = booking.id ORDER BY area_no) AS areas,
                ARRAY(SELECT quantity FROM booking_places WHERE booking_id = booking.id ORDER BY area_no) AS counts,
                ARRAY(SELECT name FROM booking_places WHERE booking_id = booking.id ORDER BY area_no) AS area_names
         FROM bookings booking
         WHERE booking.show_id = $1 AND NOT booking.is_open AND booking.state = 'CONFIRMED'
         ORDER BY booking.created_at, booking.id",
    )
    .bind(show)
    .fetch_all(tx)
    .await
}

/// Locks all sold bookings of a show, in the order of their ids.
pub(in super::super) async fn lock_sold(tx: &mut PgConnection, show: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query(
        "SELECT 1 FROM bookings WHERE show_id = $1 AND NOT is_open AND state = 'CONFIRMED' ORDER BY id FOR UPDATE",
    )
    .bind(show)
    .execute(tx)
    .await?;
    Ok(())
}

/// An area of a show as it is sold.
#[derive(sqlx::FromRow)]
pub(in super::super) struct FloorRow {
    pub area_no: i16,
    pub name: String,
    pub category: String,
    pub capacity: i32,
}

pub(in super::super) async fn floors(tx: &mut PgConnection, show: Uuid) -> Result<Vec<FloorRow>, sqlx::Error> {
    sqlx::query_as("SELECT area_no, name, category, capacity FROM area_stock WHERE show_id = $1 ORDER BY area_no")
        .bind(show)
        .fetch_all(tx)
        .await
}

/// Counts the unpaid bookings of a show.
pub(in super::super) async fn count_open(tx: &mut PgConnection, show: Uuid) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) FROM bookings WHERE show_id = $1 AND is_open").bind(show).fetch_one(tx).await
}

/// Returns `true` when a booking of the show is open, or a pending outbox effect names seats of the old layout. Effects
/// of a cancelled booking do not count: their fence matches nothing in the new layout.
pub(in super::super) async fn is_unsettled(tx: &mut PgConnection, show: Uuid) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM bookings WHERE show_id = $1 AND is_open)
             OR EXISTS (SELECT 1 FROM outbox JOIN bookings ON bookings.id = outbox.booking_id
                        WHERE bookings.show_id = $1 AND outbox.parked_why IS NULL
                          AND outbox.effect IN ('mark_booked', 'release_part', 'place_late'))",
    )
    .bind(show)
    .fetch_one(tx)
    .await
}

/// Locks unpaid bookings and skips locked rows: those in checkout, and with `submitted_too` those with a submitted
/// payment.
pub(in super::super) async fn take_unpaid(
    tx: &mut PgConnection,
    show: Uuid,
    submitted_too: bool,
    limit: i64,
) -> Result<Vec<Uuid>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT id FROM bookings
         WHERE show_id = $1 AND is_open AND (state = 'SEATS_LOCKED' OR ($2 AND state = 'PAYMENT_PENDING'))
         ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED",
    )
    .bind(show)
    .bind(submitted_too)
    .bind(limit)
    .fetch_all(tx)
    .await
}

/// The counts of a completed move.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct CarriedCounts {
    pub same: i32,
    pub offered: i32,
    pub refunded: i32,
}

/// Marks a move as carried.
pub(in super::super) async fn carried(
    tx: &mut PgConnection,
    id: Uuid,
    outcome: CarriedCounts,
    answer_until: Timestamp,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    let done = sqlx::query(
        "UPDATE show_moves SET state = 'carried', same = $2, offered = $3, refunded = $4, answer_until = $5,
                carried_at = $6
         WHERE id = $1 AND state = 'closing'",
    )
    .bind(id)
    .bind(outcome.same)
    .bind(outcome.offered)
    .bind(outcome.refunded)
    .bind(to_utc(answer_until))
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    if done.rows_affected() == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

/// Drops a move, because the show was called off.
pub(in super::super) async fn drop_move(
    tx: &mut PgConnection,
    row: &MoveRow,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE show_moves SET state = 'dropped', finished_at = $2 WHERE id = $1 AND state = 'closing'")
        .bind(row.id)
        .bind(to_utc(now))
        .execute(&mut *tx)
        .await?;
    sqlx::query("UPDATE shows SET is_moving = false WHERE id = $1").bind(row.show_id).execute(tx).await?;
    Ok(())
}

/// Finishes a move: restores the state of sales from before it.
pub(in super::super) async fn finish(tx: &mut PgConnection, row: &MoveRow, now: Timestamp) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE shows SET is_moving = false, sales = move.sales, terms_version = terms_version + 1, terms_at = $2
         FROM show_moves move WHERE move.id = $1 AND move.state = 'carried' AND shows.id = move.show_id",
    )
    .bind(row.id)
    .bind(to_utc(now))
    .execute(&mut *tx)
    .await?;
    sqlx::query("UPDATE show_moves SET state = 'done', finished_at = $2 WHERE id = $1 AND state = 'carried'")
        .bind(row.id)
        .bind(to_utc(now))
        .execute(tx)
        .await?;
    Ok(())
}
