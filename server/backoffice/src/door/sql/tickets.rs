//! Read-only queries of tickets, their bookings and shows.

use chrono::{DateTime, Utc};
use domain::time::Timestamp;
use sqlx::{FromRow, PgConnection, PgPool};
use uuid::Uuid;

use platform::clock::to_utc;

/// Maximum number of shows in one theatre in one evening.
const MAX_SHOWS: i64 = 300;

/// A ticket with the facts that decide its validity.
#[derive(Clone, Debug, FromRow)]
pub(in crate::door) struct TicketRow {
    pub(in crate::door) code: String,
    pub(in crate::door) show_id: Uuid,
    /// Label of its seat or area.
    pub(in crate::door) seat: Option<String>,
    /// Its booking is confirmed.
    pub(in crate::door) is_confirmed: bool,
    /// The ticket itself was revoked.
    pub(in crate::door) is_revoked: bool,
    /// Its seat was refunded.
    pub(in crate::door) is_returned: bool,
}

/// Returns the tickets of a theatre by their codes. Locks their bookings against change before reading, so that no
/// ticket is admitted while it is being refunded.
pub(in crate::door) async fn of_codes(
    tx: &mut PgConnection,
    theatre: &str,
    codes: &[String],
) -> Result<Vec<TicketRow>, sqlx::Error> {
    // Two statements: the second one sees the changes that the first one has waited for.
    sqlx::query(
        "SELECT id FROM bookings
         WHERE id IN (SELECT booking_id FROM tickets WHERE code = ANY($1)
                      UNION ALL SELECT booking_id FROM place_tickets WHERE code = ANY($1))
         ORDER BY id FOR SHARE",
    )
    .bind(codes)
    .execute(&mut *tx)
    .await?;
    sqlx::query_as(
        "SELECT found.code, booking.show_id, found.seat, booking.state = 'CONFIRMED' AS is_confirmed,
                found.is_revoked, found.is_returned
         FROM (SELECT ticket.code, ticket.booking_id, coalesce(kept.label, gone.label) AS seat,
                      ticket.revoked_at IS NOT NULL AS is_revoked, gone.label IS NOT NULL AS is_returned
               FROM tickets ticket
               LEFT JOIN booking_seats kept ON kept.booking_id = ticket.booking_id AND kept.seat_no = ticket.seat_no
               LEFT JOIN returned_seats gone ON gone.booking_id = ticket.booking_id AND gone.seat_no = ticket.seat_no
               WHERE ticket.code = ANY($1)
               UNION ALL
               SELECT ticket.code, ticket.booking_id, place.name, false, false
               FROM place_tickets ticket
               LEFT JOIN booking_places place
                      ON place.booking_id = ticket.booking_id AND place.area_no = ticket.area_no
               WHERE ticket.code = ANY($1)) AS found
         JOIN bookings booking ON booking.id = found.booking_id
         JOIN shows show ON show.id = booking.show_id
         JOIN screens screen ON screen.id = show.screen_id
         WHERE screen.theatre_id = $2",
    )
    .bind(codes)
    .bind(theatre)
    .fetch_all(tx)
    .await
}

/// A ticket of a show, with its admission.
#[derive(Clone, Debug, FromRow)]
pub(in crate::door) struct ListedTicket {
    pub(in crate::door) code: String,
    pub(in crate::door) is_good: bool,
    pub(in crate::door) used_at: Option<DateTime<Utc>>,
    pub(in crate::door) used_where: Option<String>,
}

/// Returns all tickets of a show, valid or not, by code.
pub(in crate::door) async fn of_show(pg: &PgPool, show: Uuid, limit: i64) -> Result<Vec<ListedTicket>, sqlx::Error> {
    sqlx::query_as(
        "SELECT ticket.code, ticket.is_good, admission.at AS used_at, admission.device AS used_where
         FROM (SELECT ticket.code, booking.state = 'CONFIRMED' AND ticket.revoked_at IS NULL AS is_good
               FROM bookings booking JOIN tickets ticket ON ticket.booking_id = booking.id
               WHERE booking.show_id = $1 AND NOT booking.is_open
               UNION ALL
               SELECT ticket.code, booking.state = 'CONFIRMED'
               FROM bookings booking JOIN place_tickets ticket ON ticket.booking_id = booking.id
               WHERE booking.show_id = $1 AND NOT booking.is_open) AS ticket
         LEFT JOIN door_admissions admission ON admission.ticket_code = ticket.code AND admission.undone_at IS NULL
         ORDER BY ticket.code LIMIT $2",
    )
    .bind(show)
    .bind(limit)
    .fetch_all(pg)
    .await
}

/// A show with the counts of its door.
#[derive(Clone, Debug, FromRow)]
pub(in crate::door) struct DoorShowRow {
    pub(in crate::door) id: Uuid,
    pub(in crate::door) film: String,
    pub(in crate::door) screen: String,
    pub(in crate::door) starts_at: DateTime<Utc>,
    pub(in crate::door) starts_local: String,
    pub(in crate::door) sold: i64,
    pub(in crate::door) admitted: i64,
    pub(in crate::door) conflicts: i64,
}

/// Returns the shows of a theatre that begin in this period and are not called off, in the order of their start.
pub(in crate::door) async fn shows(
    pg: &PgPool,
    theatre: &str,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<DoorShowRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT show.id, film.title AS film, screen.name AS screen, show.starts_at,
                to_char(show.starts_at AT TIME ZONE city.time_zone, 'YYYY-MM-DD\"T\"HH24:MI:SS') AS starts_local,
                door_sold(show.id) AS sold, door_admitted(show.id) AS admitted, door_conflicted(show.id) AS conflicts
         FROM shows show
         JOIN screens screen ON screen.id = show.screen_id
         JOIN theatres theatre ON theatre.id = screen.theatre_id
         JOIN cities city ON city.id = theatre.city_id
         JOIN films film ON film.id = show.film_id
         WHERE screen.theatre_id = $1 AND show.starts_at BETWEEN $2 AND $3 AND NOT show.called_off
         ORDER BY show.starts_at, screen.name, show.id LIMIT $4",
    )
    .bind(theatre)
    .bind(to_utc(from))
    .bind(to_utc(to))
    .bind(MAX_SHOWS)
    .fetch_all(pg)
    .await
}
