//! Queries of moves: `show_moves` and their bookings, the renumbering of seats and places, and `moved_bookings` with their
//! mails.
//!
//! Seats and places are renumbered in one transaction, under the locks of the show and of all its sold bookings. One seat's
//! old number may be another's new number, also within a booking. Rows therefore pass through negative numbers, which no
//! seat has.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::layout::{Area, Layout};
use domain::time::Timestamp;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::placement::{PlaceColumns, SeatColumns};
use super::{NewStart, RequestedMove};
use platform::clock::to_utc;
use platform::database::BindAll;

/// The facts of a show that a move depends on.
#[derive(platform::FromRow)]
pub(super) struct ShowNow {
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

pub(super) async fn show(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<Option<ShowNow>> {
    sqlx::query_as(SHOW).bind(show).fetch_optional(tx).await
}

/// Locks a show against writers of its bookings: FOR UPDATE waits for the FOR KEY SHARE of their foreign key, which an
/// update of the show would not. All bookings are visible to the next statement.
pub(crate) async fn lock_against_bookings(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<()> {
    sqlx::query("SELECT 1 FROM shows WHERE id = $1 FOR UPDATE").bind(show).execute(tx).await.map(drop)
}

/// Locks a show against writers of its bookings, and reads it.
pub(super) async fn lock_show(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<Option<ShowNow>> {
    lock_against_bookings(tx, show).await?;
    // Two statements: the second one sees the changes that the lock has waited for.
    sqlx::query_as(SHOW).bind(show).fetch_optional(tx).await
}

/// Marks a show as moving and inserts the move. The caller has locked the show. `terms_at` of a draft stays, here and in
/// the next steps: servers do not cache drafts.
pub(super) async fn begin(
    tx: &mut PgConnection,
    id: Uuid,
    requested: &RequestedMove,
    show: &ShowNow,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO show_moves (id, show_id, from_screen, to_screen, from_layout, to_layout, prices, reason, sales,
                                 state, requested_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'closing', $10)",
    )
    .bind_all((id, requested.show, &show.screen_id, &requested.screen, show.layout_id))
    .bind_all((requested.layout, Json(&requested.prices), &requested.reason, &show.sales, to_utc(now)))
    .execute(&mut *tx)
    .await?;
    let sql = "UPDATE shows SET is_moving = true, sales = CASE sales WHEN 'open' THEN 'paused' ELSE sales END,
                      terms_version = terms_version + 1, terms_at = CASE sales WHEN 'planned' THEN terms_at ELSE $2 END
               WHERE id = $1 AND NOT is_moving AND NOT called_off";
    let marked = sqlx::query(sql).bind_all((requested.show, to_utc(now))).execute(tx).await?;
    if marked.rows_affected() == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

/// A running move.
#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct MoveRow {
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
pub(super) async fn open_moves(pg: &PgPool, limit: i64) -> sqlx::Result<Vec<MoveRow>> {
    let sql = moves!("move.state IN ('closing', 'carried') ORDER BY move.requested_at LIMIT $1");
    sqlx::query_as(sql).bind(limit).fetch_all(pg).await
}

/// Locks a move in this state; `None` when another replica works on it, or its state differs.
pub(super) async fn lock_move(tx: &mut PgConnection, id: Uuid, state: &str) -> sqlx::Result<Option<MoveRow>> {
    let sql = moves!("move.id = $1 AND move.state = $2 FOR UPDATE SKIP LOCKED");
    sqlx::query_as(sql).bind_all((id, state)).fetch_optional(tx).await
}

/// The last move of a show.
#[derive(platform::FromRow)]
pub(super) struct LastRow {
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

pub(super) async fn last(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<Option<LastRow>> {
    let sql = "SELECT move.state, move.reason, move.same, move.offered, move.refunded, move.answer_until,
                (SELECT count(*) FROM moved_bookings WHERE move_id = move.id AND state = 'offered') AS unanswered,
                (SELECT name FROM screens WHERE id = move.from_screen) AS from_name,
                (SELECT name FROM screens WHERE id = move.to_screen) AS to_name
         FROM show_moves move WHERE move.show_id = $1 ORDER BY move.requested_at DESC LIMIT 1";
    sqlx::query_as(sql).bind(show).fetch_optional(tx).await
}

/// A sold booking with its places.
#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct SoldRow {
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
pub(super) async fn sold(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<Vec<SoldRow>> {
    let sql = "SELECT booking.id, booking.reference, booking.version, booking.fence,
                ARRAY(SELECT seat_no FROM booking_seats WHERE booking_id = booking.id ORDER BY seat_no) AS seats,
                ARRAY(SELECT label FROM booking_seats WHERE booking_id = booking.id ORDER BY seat_no) AS labels,
                ARRAY(SELECT area_no FROM booking_places WHERE booking_id = booking.id ORDER BY area_no) AS areas,
                ARRAY(SELECT quantity FROM booking_places WHERE booking_id = booking.id ORDER BY area_no) AS counts,
                ARRAY(SELECT name FROM booking_places WHERE booking_id = booking.id ORDER BY area_no) AS area_names
         FROM bookings booking
         WHERE booking.show_id = $1 AND NOT booking.is_open AND booking.state = 'CONFIRMED'
         ORDER BY booking.created_at, booking.id";
    sqlx::query_as(sql).bind(show).fetch_all(tx).await
}

/// Locks all sold bookings of a show, in the order of their ids.
pub(super) async fn lock_sold(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<()> {
    sqlx::query(
        "SELECT 1 FROM bookings WHERE show_id = $1 AND NOT is_open AND state = 'CONFIRMED' ORDER BY id FOR UPDATE",
    )
    .bind(show)
    .execute(tx)
    .await?;
    Ok(())
}

/// An area of a show as it is sold.
#[derive(platform::FromRow)]
pub(super) struct FloorRow {
    pub area_no: i16,
    pub name: String,
    pub category: String,
    pub capacity: i32,
}

pub(super) async fn floors(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<Vec<FloorRow>> {
    let sql = "SELECT area_no, name, category, capacity FROM area_stock WHERE show_id = $1 ORDER BY area_no";
    sqlx::query_as(sql).bind(show).fetch_all(tx).await
}

pub(super) async fn count_open(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<i64> {
    sqlx::query_scalar("SELECT count(*) FROM bookings WHERE show_id = $1 AND is_open").bind(show).fetch_one(tx).await
}

/// Returns `true` when a booking of the show is open, or a pending outbox effect names seats of the old layout. Effects
/// of a cancelled booking do not count: their fence matches nothing in the new layout.
pub(super) async fn is_unsettled(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM bookings WHERE show_id = $1 AND is_open)
                   OR EXISTS (SELECT 1 FROM outbox JOIN bookings ON bookings.id = outbox.booking_id
                              WHERE bookings.show_id = $1 AND outbox.parked_why IS NULL
                                AND outbox.effect IN ('mark_booked', 'release_part', 'place_late'))";
    sqlx::query_scalar(sql).bind(show).fetch_one(tx).await
}

/// Locks unpaid bookings and skips locked rows: those in checkout, and with `submitted_too` those with a submitted
/// payment.
pub(super) async fn take_unpaid(
    tx: &mut PgConnection,
    show: Uuid,
    submitted_too: bool,
    limit: i64,
) -> sqlx::Result<Vec<Uuid>> {
    let sql = "SELECT id FROM bookings
               WHERE show_id = $1 AND is_open AND (state = 'SEATS_LOCKED' OR ($2 AND state = 'PAYMENT_PENDING'))
               ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED";
    sqlx::query_scalar(sql).bind_all((show, submitted_too, limit)).fetch_all(tx).await
}

/// The counts of a completed move.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CarriedCounts {
    pub same: i32,
    pub offered: i32,
    pub refunded: i32,
}

/// Marks a move as carried.
pub(super) async fn carried(
    tx: &mut PgConnection,
    id: Uuid,
    outcome: CarriedCounts,
    answer_until: Timestamp,
    now: Timestamp,
) -> sqlx::Result<()> {
    let done = sqlx::query(
        "UPDATE show_moves SET state = 'carried', same = $2, offered = $3, refunded = $4, answer_until = $5,
                carried_at = $6
         WHERE id = $1 AND state = 'closing'",
    )
    .bind_all((id, outcome.same, outcome.offered, outcome.refunded, to_utc(answer_until), to_utc(now)))
    .execute(tx)
    .await?;
    if done.rows_affected() == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

/// Drops a move, because the show was called off.
pub(super) async fn drop_move(tx: &mut PgConnection, row: &MoveRow, now: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE show_moves SET state = 'dropped', finished_at = $2 WHERE id = $1 AND state = 'closing'";
    sqlx::query(sql).bind_all((row.id, to_utc(now))).execute(&mut *tx).await?;
    sqlx::query("UPDATE shows SET is_moving = false WHERE id = $1").bind(row.show_id).execute(tx).await.map(drop)
}

/// Finishes a move: restores the state of sales from before it. A draft keeps the version that its organiser was given.
pub(super) async fn finish(tx: &mut PgConnection, row: &MoveRow, now: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE shows SET is_moving = false, sales = move.sales,
                      terms_version = terms_version + (move.sales <> 'planned')::integer,
                      terms_at = CASE move.sales WHEN 'planned' THEN terms_at ELSE $2 END
               FROM show_moves move WHERE move.id = $1 AND move.state = 'carried' AND shows.id = move.show_id";
    sqlx::query(sql).bind_all((row.id, to_utc(now))).execute(&mut *tx).await?;
    let sql = "UPDATE show_moves SET state = 'done', finished_at = $2 WHERE id = $1 AND state = 'carried'";
    sqlx::query(sql).bind_all((row.id, to_utc(now))).execute(tx).await.map(drop)
}

/// Distance between the number ranges of returned seats of earlier layouts; larger than all temporary negative numbers.
const APART: i32 = 1_000_000;

/// Deletes all claims of the current layout. [`carry_seats`] and [`carry_places`] insert the sold ones again.
pub(super) async fn take_out_claims(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<()> {
    // The lock order of all writers of claims: areas, claims on places, claims on seats.
    let sql = "SELECT 1 FROM area_stock WHERE show_id = $1 ORDER BY area_no FOR UPDATE";
    sqlx::query(sql).bind(show).execute(&mut *tx).await?;
    sqlx::query("DELETE FROM area_claims WHERE show_id = $1").bind(show).execute(&mut *tx).await?;
    sqlx::query("DELETE FROM area_stock WHERE show_id = $1").bind(show).execute(&mut *tx).await?;
    let sql = "SELECT 1 FROM seat_claims WHERE show_id = $1 ORDER BY seat_no FOR UPDATE";
    sqlx::query(sql).bind(show).execute(&mut *tx).await?;
    sqlx::query("DELETE FROM seat_claims WHERE show_id = $1").bind(show).execute(tx).await.map(drop)
}

/// Gives the show its new layout: screen, seats, prices, areas, labels; and its new start, if it has one. Increments
/// `times_moved`. A show with a new start has no bookings, so it only becomes a relocated one.
pub(super) async fn open_room(
    tx: &mut PgConnection,
    row: &MoveRow,
    room: &Layout,
    kept: &[i32],
    start: Option<NewStart>,
    now: Timestamp,
) -> sqlx::Result<()> {
    let moved = sqlx::query(
        "UPDATE shows SET screen_id = $2, layout_id = $3, prices = $4, blocked = $5,
                times_moved = CASE WHEN $8 IS NULL THEN times_moved + 1 ELSE greatest(times_moved, 1) END,
                terms_version = terms_version + 1, terms_at = CASE sales WHEN 'planned' THEN terms_at ELSE $6 END,
                starts_at = coalesce($8, starts_at), local_date = coalesce($9, local_date)
         WHERE id = $1 AND layout_id = $7 AND is_moving AND NOT called_off",
    )
    .bind_all((row.show_id, &row.to_screen, row.to_layout, &row.prices, kept))
    .bind_all((to_utc(now), row.from_layout, start.map(|start| start.at), start.map(|start| start.day)))
    .execute(&mut *tx)
    .await?;
    if moved.rows_affected() != 1 {
        return Err(sqlx::Error::RowNotFound);
    }
    open_areas(tx, row.show_id, room.areas()).await?;
    let labels: Vec<String> = room.seats().map(|seat| seat.label).collect();
    let sql = "INSERT INTO moved_rooms (show_id, labels) VALUES ($1, $2)
               ON CONFLICT (show_id) DO UPDATE SET labels = EXCLUDED.labels";
    sqlx::query(sql).bind_all((row.show_id, labels)).execute(tx).await.map(drop)
}

async fn open_areas(tx: &mut PgConnection, show: Uuid, areas: &[Area]) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO area_stock (show_id, area_no, name, category, capacity)
         SELECT $1, * FROM UNNEST($2::smallint[], $3::text[], $4::text[], $5::integer[])",
    )
    .bind(show)
    .bind((0_i16..).take(areas.len()).collect::<Vec<_>>())
    .bind(areas.iter().map(|area| area.name.as_str()).collect::<Vec<_>>())
    .bind(areas.iter().map(|area| area.category.as_str()).collect::<Vec<_>>())
    .bind(areas.iter().map(|area| area.capacity.cast_signed()).collect::<Vec<_>>())
    .execute(tx)
    .await?;
    Ok(())
}

/// Moves returned seats and their revoked tickets to numbers that no seat can get; they stay as history. Call it before
/// [`open_room`], which increments `times_moved`.
pub(super) async fn archive_returned(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<()> {
    for table in [
        "UPDATE tickets SET seat_no = -1 - seat_no - $2::integer * (shows.times_moved + 1)
         FROM bookings JOIN shows ON shows.id = bookings.show_id
         WHERE bookings.show_id = $1 AND tickets.booking_id = bookings.id AND tickets.revoked_at IS NOT NULL
           AND tickets.seat_no >= 0",
        "UPDATE returned_seats SET seat_no = -1 - seat_no - $2::integer * (shows.times_moved + 1)
         FROM bookings JOIN shows ON shows.id = bookings.show_id
         WHERE bookings.show_id = $1 AND returned_seats.booking_id = bookings.id AND returned_seats.seat_no >= 0",
    ] {
        sqlx::query(table).bind(show).bind(APART).execute(&mut *tx).await?;
    }
    Ok(())
}

/// Renumbers seats of bookings and their tickets, and inserts their claims.
pub(super) async fn carry_seats(
    tx: &mut PgConnection,
    show: Uuid,
    seats: &SeatColumns,
    now: Timestamp,
) -> sqlx::Result<()> {
    let renumbered = sqlx::query(
        "UPDATE booking_seats seat SET seat_no = -1 - moved.to_no, label = moved.label, category = moved.category
         FROM UNNEST($1::uuid[], $2::integer[], $3::integer[], $4::text[], $5::text[])
              AS moved (booking_id, from_no, to_no, label, category)
         WHERE seat.booking_id = moved.booking_id AND seat.seat_no = moved.from_no",
    )
    .bind_all((&seats.bookings, &seats.from, &seats.to, &seats.labels, &seats.categories))
    .execute(&mut *tx)
    .await?;
    let sql = "UPDATE tickets ticket SET seat_no = -1 - moved.to_no
         FROM UNNEST($1::uuid[], $2::integer[], $3::integer[]) AS moved (booking_id, from_no, to_no)
         WHERE ticket.booking_id = moved.booking_id AND ticket.seat_no = moved.from_no AND ticket.revoked_at IS NULL";
    let ticketed = sqlx::query(sql).bind_all((&seats.bookings, &seats.from, &seats.to)).execute(&mut *tx).await?;
    let claimed = sqlx::query(
        "INSERT INTO seat_claims (show_id, seat_no, booking_id, fence, state, expires_at)
         SELECT $1, moved.seat_no, moved.booking_id, moved.fence, 'sold', $5
         FROM UNNEST($2::integer[], $3::uuid[], $4::bigint[]) AS moved (seat_no, booking_id, fence)
         ORDER BY moved.seat_no",
    )
    .bind_all((show, &seats.to, &seats.bookings, &seats.fences, to_utc(now)))
    .execute(&mut *tx)
    .await?;
    let count = seats.to.len() as u64;
    for (what, rows) in [("seats", renumbered), ("tickets", ticketed), ("claims", claimed)] {
        if rows.rows_affected() != count {
            let detail = format!("{} of {count} {what} of show {show} moved", rows.rows_affected());
            return Err(sqlx::Error::Protocol(detail));
        }
    }
    for arrive in [
        "UPDATE booking_seats SET seat_no = -1 - seat_no WHERE booking_id = ANY($1) AND seat_no BETWEEN -$2::integer AND -1",
        "UPDATE tickets SET seat_no = -1 - seat_no WHERE booking_id = ANY($1) AND seat_no BETWEEN -$2::integer AND -1",
    ] {
        sqlx::query(arrive).bind(&seats.bookings).bind(APART).execute(&mut *tx).await?;
    }
    Ok(())
}

/// Renumbers places in areas and their tickets, and inserts their claims.
pub(super) async fn carry_places(
    tx: &mut PgConnection,
    show: Uuid,
    places: &PlaceColumns,
    now: Timestamp,
) -> sqlx::Result<()> {
    if places.bookings.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "UPDATE booking_places place SET area_no = -1 - moved.to_no, name = moved.name, category = moved.category
         FROM UNNEST($1::uuid[], $2::smallint[], $3::smallint[], $4::text[], $5::text[])
              AS moved (booking_id, from_no, to_no, name, category)
         WHERE place.booking_id = moved.booking_id AND place.area_no = moved.from_no",
    )
    .bind_all((&places.bookings, &places.from, &places.to, &places.names, &places.categories))
    .execute(&mut *tx)
    .await?;
    let sql = "UPDATE place_tickets ticket SET area_no = -1 - moved.to_no
               FROM UNNEST($1::uuid[], $2::smallint[], $3::smallint[]) AS moved (booking_id, from_no, to_no)
               WHERE ticket.booking_id = moved.booking_id AND ticket.area_no = moved.from_no";
    sqlx::query(sql).bind_all((&places.bookings, &places.from, &places.to)).execute(&mut *tx).await?;
    for arrive in [
        "UPDATE booking_places SET area_no = -1 - area_no WHERE booking_id = ANY($1) AND area_no < 0",
        "UPDATE place_tickets SET area_no = -1 - area_no WHERE booking_id = ANY($1) AND area_no < 0",
    ] {
        sqlx::query(arrive).bind(&places.bookings).execute(&mut *tx).await?;
    }
    sqlx::query(
        "INSERT INTO area_claims (booking_id, show_id, area_no, quantity, fence, state, expires_at)
         SELECT moved.booking_id, $1, moved.area_no, moved.quantity, moved.fence, 'sold', $6
         FROM UNNEST($2::uuid[], $3::smallint[], $4::integer[], $5::bigint[])
              AS moved (booking_id, area_no, quantity, fence)",
    )
    .bind_all((show, &places.bookings, &places.to, &places.counts, &places.fences, to_utc(now)))
    .execute(&mut *tx)
    .await?;
    // A table constraint refuses an overfull area.
    sqlx::query(
        "UPDATE area_stock stock SET sold = claim.sold, version = version + 1
         FROM (SELECT area_no, sum(quantity)::integer AS sold FROM area_claims WHERE show_id = $1 GROUP BY area_no) claim
         WHERE stock.show_id = $1 AND stock.area_no = claim.area_no",
    )
    .bind(show)
    .execute(tx)
    .await?;
    Ok(())
}

/// Adds one version and one event to every moved booking, with a version check.
pub(super) async fn step_all(
    tx: &mut PgConnection,
    event: &str,
    bookings: &[(Uuid, i32)],
    reasons: &[String],
    now: Timestamp,
) -> sqlx::Result<()> {
    let (ids, versions): (Vec<Uuid>, Vec<i32>) = bookings.iter().copied().unzip();
    let sql = "UPDATE bookings SET version = bookings.version + 1, updated_at = $3
               FROM UNNEST($1::uuid[], $2::integer[]) AS known (id, version)
               WHERE bookings.id = known.id AND bookings.version = known.version AND bookings.state = 'CONFIRMED'";
    let stepped = sqlx::query(sql).bind_all((&ids, &versions, to_utc(now))).execute(&mut *tx).await?;
    if stepped.rows_affected() != ids.len() as u64 {
        return Err(sqlx::Error::Protocol("a booking moved under its lock".to_owned()));
    }
    sqlx::query(
        "INSERT INTO booking_events (booking_id, number, event, from_state, to_state, money, actor, reason, at)
         SELECT booking.id, booking.version, $3, booking.state, booking.state, booking.money, 'staff', history.reason, $4
         FROM UNNEST($1::uuid[], $2::text[]) AS history (id, reason) JOIN bookings booking ON booking.id = history.id",
    )
    .bind_all((&ids, reasons, event, to_utc(now)))
    .execute(tx)
    .await?;
    Ok(())
}

pub(super) async fn standing_seats(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<Vec<i32>> {
    let sql = "SELECT seat_no FROM house_seats WHERE show_id = $1 AND is_standing";
    sqlx::query_scalar(sql).bind(show).fetch_all(tx).await
}

/// Carries the reasons of house seats over to the seats with the same labels; deletes the others.
pub(super) async fn keep_house_seats(tx: &mut PgConnection, show: Uuid, kept: &[(i32, i32)]) -> sqlx::Result<()> {
    let (from, to): (Vec<i32>, Vec<i32>) = kept.iter().copied().unzip();
    let sql = "SELECT house.reason, house.kept_by, house.kept_at, moved.to_no
               FROM house_seats house
               JOIN UNNEST($2::integer[], $3::integer[]) AS moved (from_no, to_no) ON moved.from_no = house.seat_no
               WHERE house.show_id = $1";
    let kept: Vec<(String, Uuid, chrono::DateTime<chrono::Utc>, i32)> =
        sqlx::query_as(sql).bind_all((show, &from, &to)).fetch_all(&mut *tx).await?;
    sqlx::query("DELETE FROM house_seats WHERE show_id = $1").bind(show).execute(&mut *tx).await?;
    for (reason, who, at, seat) in kept {
        let sql = "INSERT INTO house_seats (show_id, seat_no, reason, kept_by, kept_at) VALUES ($1, $2, $3, $4, $5)";
        sqlx::query(sql).bind_all((show, seat, reason, who, at)).execute(&mut *tx).await?;
    }
    Ok(())
}

/// Ends the callers' holds of a show: their seats no longer exist.
pub(super) async fn end_caller_holds(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<()> {
    let sql = "UPDATE caller_holds SET ended_as = 'released' WHERE show_id = $1 AND ended_as IS NULL";
    sqlx::query(sql).bind(show).execute(tx).await.map(drop)
}

/// Returns waiting-list entries with an offer in the old layout to the queue.
pub(super) async fn requeue_offers(tx: &mut PgConnection, show: Uuid, now: Timestamp) -> sqlx::Result<()> {
    // Locks the list: no offers are made concurrently.
    sqlx::query("SELECT 1 FROM waiting_lists WHERE show_id = $1 FOR UPDATE").bind(show).execute(&mut *tx).await?;
    let sql = "UPDATE waiting_list SET state = 'waiting', offer_seats = '{}', offer_area = NULL, offer_until = NULL,
                      not_before = $2, updated_at = $2
               WHERE show_id = $1 AND state IN ('offering', 'offered')";
    sqlx::query(sql).bind_all((show, to_utc(now))).execute(tx).await.map(drop)
}

pub(super) struct MovedBooking {
    pub booking: Uuid,
    pub is_same: bool,
    pub before: Vec<String>,
    pub after: Vec<String>,
}

/// Inserts the outcomes of all moved bookings.
pub(super) async fn put_all(
    tx: &mut PgConnection,
    move_id: Uuid,
    meant: &[MovedBooking],
    answer_until: Timestamp,
    now: Timestamp,
) -> sqlx::Result<()> {
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
pub(super) async fn has_open_offers(tx: &mut PgConnection, show: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM moved_bookings moved JOIN show_moves move ON move.id = moved.move_id
                              WHERE move.show_id = $1 AND moved.state = 'offered')";
    sqlx::query_scalar(sql).bind(show).fetch_one(tx).await
}

#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct DueMail {
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
    pub starts_at: DateTime<Utc>,
    pub mail_tries: i32,
}

/// Leases one due mail for one attempt.
pub(super) async fn take_mail(pg: &PgPool, now: Timestamp, lease_until: Timestamp) -> sqlx::Result<Option<DueMail>> {
    let sql = "UPDATE moved_bookings moved SET mail_tries = moved.mail_tries + 1, mail_after = $2
               FROM (SELECT move_id, booking_id FROM moved_bookings
                     WHERE mailed_at IS NULL AND mail_after <= $1
                     ORDER BY mail_after LIMIT 1 FOR UPDATE SKIP LOCKED) AS due
               JOIN show_moves move ON move.id = due.move_id
               WHERE moved.move_id = due.move_id AND moved.booking_id = due.booking_id
               RETURNING moved.move_id, moved.booking_id, moved.state, moved.before, moved.after, moved.answer_until,
                         move.reason,
                         (SELECT name FROM screens WHERE id = move.from_screen) AS from_name,
                         (SELECT name FROM screens WHERE id = move.to_screen) AS to_name,
                         (SELECT count(*) FROM show_moves other
                          WHERE other.show_id = move.show_id AND other.requested_at <= move.requested_at) AS ordinal,
                         (SELECT starts_at FROM shows WHERE id = move.show_id) AS starts_at, moved.mail_tries";
    sqlx::query_as(sql).bind_all((to_utc(now), to_utc(lease_until))).fetch_optional(pg).await
}

/// Marks a mail as sent, not needed or given up.
pub(super) async fn mark_mailed(pg: &PgPool, mail: &DueMail, now: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE moved_bookings SET mailed_at = $3 WHERE move_id = $1 AND booking_id = $2";
    sqlx::query(sql).bind_all((mail.move_id, mail.booking_id, to_utc(now))).execute(pg).await.map(drop)
}

pub(super) async fn postpone_mail(pg: &PgPool, mail: &DueMail, not_before: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE moved_bookings SET mail_after = $3 WHERE move_id = $1 AND booking_id = $2 AND mailed_at IS NULL";
    sqlx::query(sql).bind_all((mail.move_id, mail.booking_id, to_utc(not_before))).execute(pg).await.map(drop)
}
