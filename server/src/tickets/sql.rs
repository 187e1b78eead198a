//! The rows of `tickets`: one a sold seat, made once.

use domain::seats::SeatIndex;
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool, Row};
use uuid::Uuid;

use super::TicketCode;
use crate::{clock, ids};

/// A ticket as its page and its mail show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The seat.
    pub seat: SeatIndex,
    /// Its name for people, for example `Circle C7`.
    pub label: String,
    /// Its category's name for people.
    pub category: String,
    /// What opens the door: a [`TicketCode`].
    pub code: String,
}

/// Makes the tickets of a booking, in the caller's transaction. Tickets that exist stay as they are,
/// so that a repeated effect never invalidates a code already sent.
///
/// # Errors
/// Whatever Postgres says.
pub async fn issue(connection: &mut PgConnection, booking: Uuid, at: Timestamp) -> sqlx::Result<()> {
    let seats: Vec<i32> = sqlx::query_scalar(
        "SELECT seat_no
           FROM booking_seats
          WHERE booking_id = $1
          ORDER BY seat_no",
    )
    .bind(booking)
    .fetch_all(&mut *connection)
    .await?;
    let codes: Vec<String> = seats.iter().map(|_| TicketCode::from_bits(ids::random_bits()).to_string()).collect();
    sqlx::query(
        "INSERT INTO tickets (booking_id, seat_no, code, issued_at)
         SELECT $1, seat_no, code, $4
           FROM UNNEST($2::integer[], $3::text[]) AS fresh (seat_no, code)
         ON CONFLICT (booking_id, seat_no) DO NOTHING",
    )
    .bind(booking)
    .bind(&seats)
    .bind(&codes)
    .bind(clock::to_utc(at))
    .execute(connection)
    .await?;
    Ok(())
}

/// Makes the tickets of many bookings (each with its seats), as [`issue`] does.
///
/// # Errors
/// Whatever Postgres says.
pub async fn issue_all(connection: &mut PgConnection, sold: &[(Uuid, Vec<i32>)], at: Timestamp) -> sqlx::Result<()> {
    let seats = || sold.iter().flat_map(|(booking, seats)| seats.iter().map(move |seat| (*booking, *seat)));
    sqlx::query(
        "INSERT INTO tickets (booking_id, seat_no, code, issued_at)
         SELECT fresh.*, $4
           FROM UNNEST($1::uuid[], $2::integer[], $3::text[]) AS fresh
         ON CONFLICT (booking_id, seat_no) DO NOTHING",
    )
    .bind(seats().map(|(booking, _)| booking).collect::<Vec<_>>())
    .bind(seats().map(|(_, seat)| seat).collect::<Vec<_>>())
    .bind(seats().map(|_| TicketCode::from_bits(ids::random_bits()).to_string()).collect::<Vec<_>>())
    .bind(clock::to_utc(at))
    .execute(connection)
    .await?;
    Ok(())
}

/// The tickets of a booking in the order of the room; none while it is not confirmed. The caller has
/// checked whose booking it is.
///
/// # Errors
/// Whatever Postgres says; a negative seat number is a row that cannot be.
pub async fn of_booking(pg: &PgPool, booking: Uuid) -> sqlx::Result<Vec<Ticket>> {
    let rows = sqlx::query(
        "SELECT tickets.seat_no, booking_seats.label, booking_seats.category, tickets.code
           FROM tickets
           JOIN booking_seats USING (booking_id, seat_no)
          WHERE tickets.booking_id = $1
          ORDER BY tickets.seat_no",
    )
    .bind(booking)
    .fetch_all(pg)
    .await?;
    rows.iter()
        .map(|row| {
            let seat: i32 = row.try_get("seat_no")?;
            Ok(Ticket {
                seat: SeatIndex::try_from(seat).map_err(|negative| sqlx::Error::ColumnDecode {
                    index: format!("tickets.seat_no of booking {booking}"),
                    source: Box::new(negative),
                })?,
                label: row.try_get("label")?,
                category: row.try_get("category")?,
                code: row.try_get("code")?,
            })
        })
        .collect()
}
