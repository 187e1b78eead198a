//! Renumbers seats and places for another layout, in one transaction, under the locks of the show and of all its sold
//! bookings.
//!
//! One seat's old number may be another's new number, also within a booking. Rows therefore pass through negative
//! numbers, which no seat has.
//! which no seat has, and come back from there.

use domain::layout::{Area, Layout};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::moves::MoveRow;
use crate::relocation::lines::{PlaceColumns, SeatColumns};
use platform::clock::to_utc;

/// Distance between the number ranges of returned seats of earlier layouts; larger than all temporary negative numbers.
const APART: i32 = 1_000_000;

/// Deletes all claims of the current layout. [`carry_seats`] and [`carry_places`] insert the sold ones again.
pub(in super::super) async fn take_out_claims(tx: &mut PgConnection, show: Uuid) -> Result<(), sqlx::Error> {
    // The lock order of all writers of claims: areas, claims on places, claims on seats.
    sqlx::query("SELECT 1 FROM area_stock WHERE show_id = $1 ORDER BY area_no FOR UPDATE")
        .bind(show)
        .execute(&mut *tx)
        .await?;
    sqlx::query("DELETE FROM area_claims WHERE show_id = $1").bind(show).execute(&mut *tx).await?;
    sqlx::query("DELETE FROM area_stock WHERE show_id = $1").bind(show).execute(&mut *tx).await?;
    sqlx::query("SELECT 1 FROM seat_claims WHERE show_id = $1 ORDER BY seat_no FOR UPDATE")
        .bind(show)
        .execute(&mut *tx)
        .await?;
    sqlx::query("DELETE FROM seat_claims WHERE show_id = $1").bind(show).execute(tx).await?;
    Ok(())
}

/// Gives the show its new layout: screen, seats, prices, areas, labels. Increments `times_moved`.
pub(in super::super) async fn open_room(
    tx: &mut PgConnection,
    row: &MoveRow,
    room: &Layout,
    kept: &[i32],
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    let moved = sqlx::query(
        "UPDATE shows SET screen_id = $2, layout_id = $3, prices = $4, blocked = $5, times_moved = times_moved + 1,
                terms_version = terms_version + 1, terms_at = $6
         WHERE id = $1 AND layout_id = $7 AND is_moving AND NOT called_off",
    )
    .bind(row.show_id)
    .bind(&row.to_screen)
    .bind(row.to_layout)
    .bind(&row.prices)
    .bind(kept)
    .bind(to_utc(now))
    .bind(row.from_layout)
    .execute(&mut *tx)
    .await?;
    if moved.rows_affected() != 1 {
        return Err(sqlx::Error::RowNotFound);
    }
    open_areas(tx, row.show_id, room.areas()).await?;
    let labels: Vec<String> = room.seats().map(|seat| seat.label).collect();
    sqlx::query(
        "INSERT INTO moved_rooms (show_id, labels) VALUES ($1, $2)
         ON CONFLICT (show_id) DO UPDATE SET labels = EXCLUDED.labels",
    )
    .bind(row.show_id)
    .bind(labels)
    .execute(tx)
    .await?;
    Ok(())
}

async fn open_areas(tx: &mut PgConnection, show: Uuid, areas: &[Area]) -> Result<(), sqlx::Error> {
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
pub(in super::super) async fn archive_returned(tx: &mut PgConnection, show: Uuid) -> Result<(), sqlx::Error> {
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
pub(in super::super) async fn carry_seats(
    tx: &mut PgConnection,
    show: Uuid,
    seats: &SeatColumns,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    let renumbered = sqlx::query(
        "UPDATE booking_seats seat SET seat_no = -1 - moved.to_no, label = moved.label, category = moved.category
         FROM UNNEST($1::uuid[], $2::integer[], $3::integer[], $4::text[], $5::text[])
              AS moved (booking_id, from_no, to_no, label, category)
         WHERE seat.booking_id = moved.booking_id AND seat.seat_no = moved.from_no",
    )
    .bind(&seats.bookings)
    .bind(&seats.from)
    .bind(&seats.to)
    .bind(&seats.labels)
    .bind(&seats.categories)
    .execute(&mut *tx)
    .await?;
    let ticketed = sqlx::query(
        "UPDATE tickets ticket SET seat_no = -1 - moved.to_no
         FROM UNNEST($1::uuid[], $2::integer[], $3::integer[]) AS moved (booking_id, from_no, to_no)
         WHERE ticket.booking_id = moved.booking_id AND ticket.seat_no = moved.from_no AND ticket.revoked_at IS NULL",
    )
    .bind(&seats.bookings)
    .bind(&seats.from)
    .bind(&seats.to)
    .execute(&mut *tx)
    .await?;
    let claimed = sqlx::query(
        "INSERT INTO seat_claims (show_id, seat_no, booking_id, fence, state, expires_at)
         SELECT $1, moved.seat_no, moved.booking_id, moved.fence, 'sold', $5
         FROM UNNEST($2::integer[], $3::uuid[], $4::bigint[]) AS moved (seat_no, booking_id, fence)
         ORDER BY moved.seat_no",
    )
    .bind(show)
    .bind(&seats.to)
    .bind(&seats.bookings)
    .bind(&seats.fences)
    .bind(to_utc(now))
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
pub(in super::super) async fn carry_places(
    tx: &mut PgConnection,
    show: Uuid,
    places: &PlaceColumns,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    if places.bookings.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "UPDATE booking_places place SET area_no = -1 - moved.to_no, name = moved.name, category = moved.category
         FROM UNNEST($1::uuid[], $2::smallint[], $3::smallint[], $4::text[], $5::text[])
              AS moved (booking_id, from_no, to_no, name, category)
         WHERE place.booking_id = moved.booking_id AND place.area_no = moved.from_no",
    )
    .bind(&places.bookings)
    .bind(&places.from)
    .bind(&places.to)
    .bind(&places.names)
    .bind(&places.categories)
    .execute(&mut *tx)
    .await?;
    sqlx::query(
        "UPDATE place_tickets ticket SET area_no = -1 - moved.to_no
         FROM UNNEST($1::uuid[], $2::smallint[], $3::smallint[]) AS moved (booking_id, from_no, to_no)
         WHERE ticket.booking_id = moved.booking_id AND ticket.area_no = moved.from_no",
    )
    .bind(&places.bookings)
    .bind(&places.from)
    .bind(&places.to)
    .execute(&mut *tx)
    .await?;
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
    .bind(show)
    .bind(&places.bookings)
    .bind(&places.to)
    .bind(&places.counts)
    .bind(&places.fences)
    .bind(to_utc(now))
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
pub(in super::super) async fn step_all(
    tx: &mut PgConnection,
    event: &str,
    bookings: &[(Uuid, i32)],
    reasons: &[String],
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    let (ids, versions): (Vec<Uuid>, Vec<i32>) = bookings.iter().copied().unzip();
    let stepped = sqlx::query(
        "UPDATE bookings SET version = bookings.version + 1, updated_at = $3
         FROM UNNEST($1::uuid[], $2::integer[]) AS known (id, version)
         WHERE bookings.id = known.id AND bookings.version = known.version AND bookings.state = 'CONFIRMED'",
    )
    .bind(&ids)
    .bind(&versions)
    .bind(to_utc(now))
    .execute(&mut *tx)
    .await?;
    if stepped.rows_affected() != ids.len() as u64 {
        return Err(sqlx::Error::Protocol("a booking moved under its lock".to_owned()));
    }
    sqlx::query(
        "INSERT INTO booking_events (booking_id, number, event, from_state, to_state, money, actor, reason, at)
         SELECT booking.id, booking.version, $3, booking.state, booking.state, booking.money, 'staff', history.reason, $4
         FROM UNNEST($1::uuid[], $2::text[]) AS history (id, reason) JOIN bookings booking ON booking.id = history.id",
    )
    .bind(&ids)
    .bind(reasons)
    .bind(event)
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the standing house seats of a show.
pub(in super::super) async fn standing_seats(tx: &mut PgConnection, show: Uuid) -> Result<Vec<i32>, sqlx::Error> {
    sqlx::query_scalar("SELECT seat_no FROM house_seats WHERE show_id = $1 AND is_standing")
        .bind(show)
        .fetch_all(tx)
        .await
}

/// Carries the reasons of house seats over to the seats with the same labels; deletes the others.
pub(in super::super) async fn keep_house_seats(
    tx: &mut PgConnection,
    show: Uuid,
    kept: &[(i32, i32)],
) -> Result<(), sqlx::Error> {
    let (from, to): (Vec<i32>, Vec<i32>) = kept.iter().copied().unzip();
    let kept: Vec<(String, Uuid, chrono::DateTime<chrono::Utc>, i32)> = sqlx::query_as(
        "SELECT house.reason, house.kept_by, house.kept_at, moved.to_no
         FROM house_seats house
         JOIN UNNEST($2::integer[], $3::integer[]) AS moved (from_no, to_no) ON moved.from_no = house.seat_no
         WHERE house.show_id = $1",
    )
    .bind(show)
    .bind(&from)
    .bind(&to)
    .fetch_all(&mut *tx)
    .await?;
    sqlx::query("DELETE FROM house_seats WHERE show_id = $1").bind(show).execute(&mut *tx).await?;
    for (reason, who, at, seat) in kept {
        sqlx::query("INSERT INTO house_seats (show_id, seat_no, reason, kept_by, kept_at) VALUES ($1, $2, $3, $4, $5)")
            .bind(show)
            .bind(seat)
            .bind(reason)
            .bind(who)
            .bind(at)
            .execute(&mut *tx)
            .await?;
    }
    Ok(())
}

/// Ends the callers' holds of a show: their seats no longer exist.
pub(in super::super) async fn end_caller_holds(tx: &mut PgConnection, show: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE caller_holds SET ended_as = 'released' WHERE show_id = $1 AND ended_as IS NULL")
        .bind(show)
        .execute(tx)
        .await?;
    Ok(())
}

/// Returns waiting-list entries with an offer in the old layout to the queue.
pub(in super::super) async fn requeue_offers(
    tx: &mut PgConnection,
    show: Uuid,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    // Locks the list: no offers are made concurrently.
    sqlx::query("SELECT 1 FROM waiting_lists WHERE show_id = $1 FOR UPDATE").bind(show).execute(&mut *tx).await?;
    sqlx::query(
        "UPDATE waiting_list SET state = 'waiting', offer_seats = '{}', offer_area = NULL, offer_until = NULL,
                not_before = $2, updated_at = $2
         WHERE show_id = $1 AND state IN ('offering', 'offered')",
    )
    .bind(show)
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}
