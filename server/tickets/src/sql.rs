//! The rows of `tickets` and `place_tickets`: one a sold seat or place, made once.

use std::collections::HashMap;

use domain::seats::{Places, sort_for_display};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::TicketCode;
use platform::cte_batch::CteBatch;
use platform::database::BindAll;
use platform::{clock, ids};

/// A ticket as its page and its mail show it.
#[derive(Clone, Debug, PartialEq, Eq, platform::FromRow)]
pub struct Ticket {
    /// The seat's or area's name for people, for example `Circle C7`.
    pub label: String,
    /// Its category's name for people.
    pub category: String,
    /// The code that admits the holder: a [`TicketCode`].
    pub code: String,
}

/// Makes the tickets of a booking, in the caller's transaction. Existing tickets stay unchanged, so that a repeated effect
/// never invalidates a code that was sent.
pub async fn issue(connection: &mut PgConnection, booking: Uuid, at: Timestamp) -> sqlx::Result<()> {
    let sql = "SELECT seat_no
                 FROM booking_seats
                WHERE booking_id = $1
                ORDER BY seat_no";
    let seats: Vec<i32> = sqlx::query_scalar(sql).bind(booking).fetch_all(&mut *connection).await?;
    let codes: Vec<String> = seats.iter().map(|_| TicketCode::signed(ids::random_bits()).to_string()).collect();
    let sql = "INSERT INTO tickets (booking_id, seat_no, code, issued_at)
               SELECT $1, seat_no, code, $4
                 FROM UNNEST($2::integer[], $3::text[]) AS fresh (seat_no, code)
               ON CONFLICT (booking_id, seat_no) DO NOTHING";
    sqlx::query(sql).bind_all((booking, &seats, &codes, clock::to_utc(at))).execute(connection).await.map(drop)
}

/// Revokes the tickets of these seats, or all of the booking; they admit no one any more. The caller releases the seats in
/// the same transaction.
pub async fn revoke(
    connection: &mut PgConnection,
    booking: Uuid,
    seats: Option<&[i32]>,
    at: Timestamp,
) -> sqlx::Result<()> {
    let sql = "UPDATE tickets SET revoked_at = $3
                WHERE booking_id = $1 AND ($2::integer[] IS NULL OR seat_no = ANY($2)) AND revoked_at IS NULL";
    sqlx::query(sql).bind_all((booking, seats, clock::to_utc(at))).execute(connection).await.map(drop)
}

/// True if someone was admitted with a valid ticket of these seats, or of any seat of the booking. The caller has locked the
/// booking: scans wait for it, so no one is admitted meanwhile.
pub async fn has_admissions(connection: &mut PgConnection, booking: Uuid, seats: Option<&[i32]>) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (
                  SELECT 1
                    FROM door_admissions admission
                   WHERE admission.undone_at IS NULL
                     AND admission.ticket_code IN (
                         SELECT tickets.code
                           FROM tickets
                           JOIN booking_seats USING (booking_id, seat_no)
                          WHERE booking_id = $1 AND ($2::integer[] IS NULL OR seat_no = ANY($2))
                         UNION ALL
                         SELECT code FROM place_tickets WHERE booking_id = $1 AND $2::integer[] IS NULL))";
    sqlx::query_scalar(sql).bind_all((booking, seats)).fetch_one(connection).await
}

macro_rules! insert_tickets {
    ($on_conflict:literal) => {
        concat!(
            "INSERT INTO tickets (booking_id, seat_no, code, issued_at)
             SELECT fresh.*, $4
               FROM UNNEST($1::uuid[], $2::integer[], $3::text[]) AS fresh ",
            $on_conflict
        )
    };
}

/// Adds the tickets of many bookings, each with its seats, to a batch. `assume_new`: the bookings have no tickets yet; if
/// one has, the statement fails with a unique violation. Otherwise existing tickets stay unchanged, as in [`issue`].
///
/// # Errors
/// When an argument cannot be encoded.
pub fn add_issued(cte: &mut CteBatch, sold: &[(Uuid, Vec<i32>)], assume_new: bool, at: Timestamp) -> sqlx::Result<()> {
    let seats = || sold.iter().flat_map(|(booking, seats)| seats.iter().map(move |seat| (*booking, *seat)));
    let statement = match assume_new {
        true => insert_tickets!(""),
        false => insert_tickets!("ON CONFLICT (booking_id, seat_no) DO NOTHING"),
    };
    cte.add("issued", statement, &[])
        .each(seats().map(|(booking, _)| booking))
        .each(seats().map(|(_, seat)| seat))
        .each(seats().map(|_| TicketCode::signed(ids::random_bits()).to_string()))
        .value(clock::to_utc(at))
        .done()
}

/// Makes a ticket for each of these places in areas, as [`issue`] does for seats.
pub async fn issue_places(
    connection: &mut PgConnection,
    booking: Uuid,
    places: &[Places],
    at: Timestamp,
) -> sqlx::Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    let each =
        || places.iter().flat_map(|places| (1..=places.count.cast_signed()).map(move |number| (places.area, number)));
    sqlx::query(
        "INSERT INTO place_tickets (booking_id, area_no, number, code, issued_at)
         SELECT $1, area_no, number, code, $5
           FROM UNNEST($2::smallint[], $3::integer[], $4::text[]) AS fresh (area_no, number, code)
         ON CONFLICT (booking_id, area_no, number) DO NOTHING",
    )
    .bind(booking)
    .bind(each().map(|(area, _)| area.cast_signed()).collect::<Vec<_>>())
    .bind(each().map(|(_, number)| number).collect::<Vec<_>>())
    .bind(each().map(|_| TicketCode::signed(ids::random_bits()).to_string()).collect::<Vec<_>>())
    .bind(clock::to_utc(at))
    .execute(connection)
    .await?;
    Ok(())
}

/// The tickets of a booking, row by row and by the number of the seat, places after seats; none while it is not confirmed.
/// The caller has checked whose booking it is.
pub async fn of_booking(pg: &PgPool, booking: Uuid) -> sqlx::Result<Vec<Ticket>> {
    Ok(of_bookings(pg, &[booking]).await?.remove(&booking).unwrap_or_default())
}

/// The tickets of several bookings, by booking; a booking without tickets is left out.
pub async fn of_bookings(pg: &PgPool, bookings: &[Uuid]) -> sqlx::Result<HashMap<Uuid, Vec<Ticket>>> {
    let sql = "SELECT booking_id, label, category, code
                 FROM (SELECT 0 AS part, tickets.booking_id, tickets.seat_no AS first, 0 AS second,
                              booking_seats.label, booking_seats.category, tickets.code
                         FROM tickets
                         JOIN booking_seats USING (booking_id, seat_no)
                        WHERE tickets.booking_id = ANY($1) AND tickets.revoked_at IS NULL
                       UNION ALL
                       SELECT 1, place_tickets.booking_id, place_tickets.area_no, place_tickets.number,
                              booking_places.name, booking_places.category, place_tickets.code
                         FROM place_tickets
                         JOIN booking_places USING (booking_id, area_no)
                         JOIN bookings ON bookings.id = place_tickets.booking_id AND bookings.state = 'CONFIRMED'
                        WHERE place_tickets.booking_id = ANY($1)) AS all_tickets
                ORDER BY booking_id, part, first, second";
    let rows: Vec<(Uuid, String, String, String)> = sqlx::query_as(sql).bind(bookings).fetch_all(pg).await?;
    let mut tickets: HashMap<Uuid, Vec<Ticket>> = HashMap::new();
    for (booking, label, category, code) in rows {
        tickets.entry(booking).or_default().push(Ticket { label, category, code });
    }
    for tickets in tickets.values_mut() {
        sort_for_display(tickets, |ticket| ticket.label.as_str());
    }
    Ok(tickets)
}

/// The booking of a ticket's code, if there is such a ticket and the booking is active.
pub async fn booking_of_code(pg: &PgPool, code: &str) -> sqlx::Result<Option<Uuid>> {
    let sql = "SELECT bookings.id
                 FROM (SELECT booking_id FROM tickets WHERE code = $1 AND revoked_at IS NULL
                       UNION ALL
                       SELECT booking_id FROM place_tickets WHERE code = $1) AS found
                 JOIN bookings ON bookings.id = found.booking_id
                WHERE bookings.state = 'CONFIRMED'";
    sqlx::query_scalar(sql).bind(code).fetch_optional(pg).await
}
