//! Queries of the door: its own tables (`door_admissions`, `door_scans`, `door_conflicts`), and tickets, their bookings and
//! shows, which it only reads. At most one active admission exists per ticket.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::VariantName;
use domain::api::door::{DoorCounts, Outcome};
use domain::door::ScanAdmission;
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;
use platform::ids;

#[derive(Clone, Copy, Debug)]
pub(super) struct NewAdmission<'a> {
    pub(super) code: &'a str,
    pub(super) theatre: &'a str,
    pub(super) show: Uuid,
    pub(super) device: &'a str,
    pub(super) let_in: ScanAdmission,
}

/// The active admission of a ticket.
#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct Admission {
    pub(super) id: Uuid,
    scan_id: Uuid,
    pub(super) device: String,
    at: DateTime<Utc>,
}

impl Admission {
    /// The scan of the admission.
    pub(super) fn let_in(&self) -> ScanAdmission {
        ScanAdmission { at: from_utc(self.at), scan: self.scan_id }
    }
}

/// Inserts an admission; `false` when the ticket already has an active one. Waits for concurrent transactions that
/// admit the same ticket.
pub(super) async fn admit(
    tx: &mut PgConnection,
    id: Uuid,
    new_admission: &NewAdmission<'_>,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let admitted = sqlx::query(
        "INSERT INTO door_admissions (id, ticket_code, theatre_id, show_id, scan_id, device, at, recorded_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (ticket_code) WHERE undone_at IS NULL DO NOTHING",
    )
    .bind_all((id, new_admission.code, new_admission.theatre, new_admission.show))
    .bind_all((new_admission.let_in.scan, new_admission.device, to_utc(new_admission.let_in.at), to_utc(now)))
    .execute(tx)
    .await?;
    Ok(admitted.rows_affected() == 1)
}

/// Returns the active admission of a ticket, locked.
pub(super) async fn current(tx: &mut PgConnection, code: &str) -> sqlx::Result<Option<Admission>> {
    sqlx::query_as(
        "SELECT id, scan_id, device, at FROM door_admissions WHERE ticket_code = $1 AND undone_at IS NULL FOR UPDATE",
    )
    .bind(code)
    .fetch_optional(tx)
    .await
}

/// Replaces an admission by an earlier scan; `false` when another transaction replaced it first.
pub(super) async fn take_over(
    tx: &mut PgConnection,
    previous: &Admission,
    new_admission: &NewAdmission<'_>,
) -> sqlx::Result<bool> {
    let taken = sqlx::query(
        "UPDATE door_admissions SET scan_id = $4, device = $5, at = $6
         WHERE id = $1 AND ticket_code = $2 AND scan_id = $3 AND undone_at IS NULL",
    )
    .bind_all((previous.id, new_admission.code, previous.scan_id))
    .bind_all((new_admission.let_in.scan, new_admission.device, to_utc(new_admission.let_in.at)))
    .execute(tx)
    .await?;
    Ok(taken.rows_affected() == 1)
}

/// Undoes the active admissions of a scan, or of one ticket of it; returns the codes of their tickets. Where another
/// scan let in a person with the same ticket, it becomes the admission.
pub(super) async fn undo(
    tx: &mut PgConnection,
    show: Uuid,
    (scan, ticket): (Uuid, Option<&str>),
    by: Uuid,
    now: Timestamp,
) -> sqlx::Result<Vec<String>> {
    // Locked in the same order as scans do.
    let sql = "SELECT id, ticket_code FROM door_admissions
               WHERE scan_id = $1 AND show_id = $2 AND undone_at IS NULL AND ($3::text IS NULL OR ticket_code = $3)
               ORDER BY ticket_code FOR UPDATE";
    let ids: Vec<(Uuid, String)> = sqlx::query_as(sql).bind_all((scan, show, ticket)).fetch_all(&mut *tx).await?;
    let (ids, codes): (Vec<Uuid>, Vec<String>) = ids.into_iter().unzip();
    let sql = "UPDATE door_admissions SET undone_at = $2, undone_by = $3
               WHERE id = ANY($1) AND scan_id = $4 AND undone_at IS NULL";
    sqlx::query(sql).bind_all((&ids, to_utc(now), by, scan)).execute(&mut *tx).await?;
    admit_duplicates(tx, show, &codes, now).await?;
    Ok(codes)
}

/// Makes the earliest duplicate of each of these tickets its admission: that person is inside, although the first one
/// was turned away. A duplicate that was undone itself does not count.
async fn admit_duplicates(tx: &mut PgConnection, show: Uuid, codes: &[String], now: Timestamp) -> sqlx::Result<()> {
    let sql = "SELECT DISTINCT ON (scan.code) scan.code, scan.theatre_id, scan.scan_id, scan.device, scan.at
               FROM door_conflicts conflict
               JOIN door_scans scan ON scan.theatre_id = conflict.theatre_id AND scan.scan_id = conflict.scan_id
                                   AND scan.code = conflict.ticket_code
               WHERE conflict.show_id = $1 AND conflict.ticket_code = ANY($2) AND conflict.why = 'already_used'
                 AND scan.outcome = 'conflict'
                 AND NOT EXISTS (SELECT FROM door_admissions ended
                                 WHERE ended.scan_id = scan.scan_id AND ended.ticket_code = scan.code
                                   AND ended.undone_at IS NOT NULL)
               ORDER BY scan.code, scan.at, scan.scan_id";
    let duplicates: Vec<(String, String, Uuid, String, DateTime<Utc>)> =
        sqlx::query_as(sql).bind_all((show, codes)).fetch_all(&mut *tx).await?;
    for (code, theatre, scan, device, at) in &duplicates {
        let let_in = ScanAdmission { at: from_utc(*at), scan: *scan };
        let admission = NewAdmission { code, theatre, show, device, let_in };
        if admit(tx, ids::new_id(), &admission, now).await? {
            let sql = "UPDATE door_scans SET outcome = 'admitted'
                       WHERE theatre_id = $1 AND scan_id = $2 AND code = $3 AND outcome = 'conflict'";
            sqlx::query(sql).bind_all((theatre, scan, code)).execute(&mut *tx).await?;
        }
    }
    Ok(())
}

/// Maximum number of conflicts in an answer.
const MAX_CONFLICTS: i64 = 50;

/// The device and account of a scan, and whether the device was offline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner {
    pub(super) device: Uuid,
    pub(super) account: Uuid,
    pub(super) offline: bool,
}

/// Records the outcome of a code. A recorded admission never changes. A recorded refusal becomes an admission if the
/// device, which missed the answer, admitted the ticket offline.
pub(super) async fn record_scan(
    tx: &mut PgConnection,
    scanner: Scanner,
    new_admission: &NewAdmission<'_>,
    outcome: Outcome,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO door_scans (theatre_id, scan_id, code, show_id, device_id, device, account_id, at, recorded_at,
                                 offline, let_in, outcome)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         ON CONFLICT (theatre_id, scan_id, code) DO UPDATE
         SET at = EXCLUDED.at, recorded_at = EXCLUDED.recorded_at, offline = EXCLUDED.offline,
             let_in = EXCLUDED.let_in, outcome = EXCLUDED.outcome
         WHERE NOT door_scans.let_in AND EXCLUDED.let_in",
    )
    .bind_all((new_admission.theatre, new_admission.let_in.scan, new_admission.code, new_admission.show))
    .bind_all((scanner.device, new_admission.device, scanner.account, to_utc(new_admission.let_in.at), to_utc(now)))
    .bind_all((scanner.offline, matches!(outcome, Outcome::Admitted | Outcome::Conflict), outcome.as_str()))
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the outcomes of codes in recorded admissions, by scan and code: these need no settling.
pub(super) async fn recorded_outcomes(
    tx: &mut PgConnection,
    theatre: &str,
    scans: &[Uuid],
) -> sqlx::Result<HashMap<(Uuid, String), Outcome>> {
    let sql = "SELECT scan_id, code, outcome FROM door_scans WHERE theatre_id = $1 AND scan_id = ANY($2) AND let_in";
    let rows: Vec<(Uuid, String, String)> = sqlx::query_as(sql).bind_all((theatre, scans)).fetch_all(tx).await?;
    rows.into_iter().map(|(scan, code, outcome)| Ok(((scan, code), read(&outcome)?))).collect()
}

/// An invalid stored value is an error that names it, never a default.
fn read(outcome: &str) -> sqlx::Result<Outcome> {
    outcome.parse().map_err(|_| sqlx::Error::Decode(format!("an outcome of the door is {outcome:?}").into()))
}

/// Reports an admission with an invalid ticket.
pub(super) async fn report(
    tx: &mut PgConnection,
    new_admission: &NewAdmission<'_>,
    seat: Option<&str>,
    why: Outcome,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO door_conflicts (theatre_id, show_id, ticket_code, seat, why, scan_id, device, at, recorded_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (scan_id, ticket_code) DO NOTHING",
    )
    .bind_all((new_admission.theatre, new_admission.show, new_admission.code, seat, why.as_str()))
    .bind_all((new_admission.let_in.scan, new_admission.device, to_utc(new_admission.let_in.at), to_utc(now)))
    .execute(tx)
    .await?;
    Ok(())
}

/// Reports that `second` came after `first` with the same ticket.
pub(super) async fn report_second(
    tx: &mut PgConnection,
    first: &NewAdmission<'_>,
    second: &NewAdmission<'_>,
    seat: Option<&str>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO door_conflicts (theatre_id, show_id, ticket_code, seat, why, scan_id, device, at,
                                     first_scan, first_device, first_at, recorded_at)
         VALUES ($1, $2, $3, $4, 'already_used', $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (scan_id, ticket_code) DO NOTHING",
    )
    .bind_all((second.theatre, second.show, second.code, seat, second.let_in.scan, second.device))
    .bind_all((to_utc(second.let_in.at), first.let_in.scan, first.device, to_utc(first.let_in.at), to_utc(now)))
    .execute(&mut *tx)
    .await?;
    // A replaced admission becomes a conflict in the list of scans as well.
    let sql = "UPDATE door_scans SET outcome = 'conflict'
               WHERE theatre_id = $1 AND scan_id = $2 AND code = $3 AND outcome = 'admitted'";
    sqlx::query(sql).bind_all((second.theatre, second.let_in.scan, second.code)).execute(tx).await.map(drop)
}

/// Returns the replaced admission in the form the conflict report needs.
pub(super) fn recorded_admission<'a>(admission: &'a Admission, like: &NewAdmission<'a>) -> NewAdmission<'a> {
    NewAdmission { device: &admission.device, let_in: admission.let_in(), ..*like }
}

/// Returns the counts of tickets sold, admissions and conflicts of a show.
pub(super) async fn counts(pg: &PgPool, show: Uuid) -> sqlx::Result<DoorCounts> {
    let (sold, admitted, conflicts): (i64, i64, i64) =
        sqlx::query_as("SELECT door_sold($1), door_admitted($1), door_conflicted($1)").bind(show).fetch_one(pg).await?;
    Ok(DoorCounts { sold, admitted, conflicts })
}

/// A conflict as stored.
#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct ConflictRow {
    pub(super) number: i64,
    pub(super) ticket_code: String,
    pub(super) seat: Option<String>,
    pub(super) why: String,
    pub(super) device: String,
    pub(super) at: DateTime<Utc>,
    pub(super) first_device: Option<String>,
    pub(super) first_at: Option<DateTime<Utc>>,
}

impl ConflictRow {
    /// The reason of the conflict.
    pub(super) fn why(&self) -> sqlx::Result<Outcome> {
        read(&self.why)
    }
}

/// Returns the conflicts of a show, the newest first.
pub(super) async fn conflicts(pg: &PgPool, show: Uuid) -> sqlx::Result<Vec<ConflictRow>> {
    let sql = "SELECT number, ticket_code, seat, why, device, at, first_device, first_at
               FROM door_conflicts WHERE show_id = $1 ORDER BY number DESC LIMIT $2";
    sqlx::query_as(sql).bind_all((show, MAX_CONFLICTS)).fetch_all(pg).await
}

/// Maximum number of shows in one theatre in one evening.
const MAX_SHOWS: i64 = 300;

/// A ticket with the facts that decide its validity.
#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct TicketRow {
    pub(super) code: String,
    pub(super) show_id: Uuid,
    /// Label of its seat or area.
    pub(super) seat: Option<String>,
    /// Its booking is confirmed.
    pub(super) is_confirmed: bool,
    /// The ticket itself was revoked.
    pub(super) is_revoked: bool,
    /// Its seat was refunded.
    pub(super) is_returned: bool,
}

/// Returns the tickets of a theatre by their codes. Locks their bookings against change before reading, so that no
/// ticket is admitted while it is being refunded.
pub(super) async fn of_codes(tx: &mut PgConnection, theatre: &str, codes: &[String]) -> sqlx::Result<Vec<TicketRow>> {
    // Two statements: the second one sees the changes that the first one has waited for.
    let sql = "SELECT id FROM bookings
               WHERE id IN (SELECT booking_id FROM tickets WHERE code = ANY($1)
                            UNION ALL SELECT booking_id FROM place_tickets WHERE code = ANY($1))
               ORDER BY id FOR SHARE";
    sqlx::query(sql).bind(codes).execute(&mut *tx).await?;
    let sql = "SELECT found.code, booking.show_id, found.seat, booking.state = 'CONFIRMED' AS is_confirmed,
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
         WHERE screen.theatre_id = $2";
    sqlx::query_as(sql).bind_all((codes, theatre)).fetch_all(tx).await
}

/// A ticket of a show, with its admission.
#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct ListedTicket {
    pub(super) code: String,
    pub(super) is_good: bool,
    pub(super) used_at: Option<DateTime<Utc>>,
    pub(super) used_where: Option<String>,
}

/// Returns all tickets of a show, valid or not, by code.
pub(super) async fn of_show(pg: &PgPool, show: Uuid, limit: i64) -> sqlx::Result<Vec<ListedTicket>> {
    let sql = "SELECT ticket.code, ticket.is_good, admission.at AS used_at, admission.device AS used_where
         FROM (SELECT ticket.code, booking.state = 'CONFIRMED' AND ticket.revoked_at IS NULL AS is_good
               FROM bookings booking JOIN tickets ticket ON ticket.booking_id = booking.id
               WHERE booking.show_id = $1 AND NOT booking.is_open
               UNION ALL
               SELECT ticket.code, booking.state = 'CONFIRMED'
               FROM bookings booking JOIN place_tickets ticket ON ticket.booking_id = booking.id
               WHERE booking.show_id = $1 AND NOT booking.is_open) AS ticket
         LEFT JOIN door_admissions admission ON admission.ticket_code = ticket.code AND admission.undone_at IS NULL
         ORDER BY ticket.code LIMIT $2";
    sqlx::query_as(sql).bind_all((show, limit)).fetch_all(pg).await
}

#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct DoorShowRow {
    pub(super) id: Uuid,
    pub(super) film: String,
    pub(super) screen: String,
    pub(super) starts_at: DateTime<Utc>,
    pub(super) starts_local: String,
    pub(super) sold: i64,
    pub(super) admitted: i64,
    pub(super) conflicts: i64,
}

/// Returns the shows of a theatre that begin in this period and are not called off, in the order of their start.
pub(super) async fn shows(
    pg: &PgPool,
    theatre: &str,
    from: Timestamp,
    to: Timestamp,
) -> sqlx::Result<Vec<DoorShowRow>> {
    let sql = "SELECT show.id, film.title AS film, screen.name AS screen, show.starts_at,
                to_char(show.starts_at AT TIME ZONE city.time_zone, 'YYYY-MM-DD\"T\"HH24:MI:SS') AS starts_local,
                door_sold(show.id) AS sold, door_admitted(show.id) AS admitted, door_conflicted(show.id) AS conflicts
         FROM shows show
         JOIN screens screen ON screen.id = show.screen_id
         JOIN theatres theatre ON theatre.id = screen.theatre_id
         JOIN cities city ON city.id = theatre.city_id
         JOIN films film ON film.id = show.film_id
         WHERE screen.theatre_id = $1 AND show.starts_at BETWEEN $2 AND $3 AND NOT show.called_off
         ORDER BY show.starts_at, screen.name, show.id LIMIT $4";
    sqlx::query_as(sql).bind_all((theatre, to_utc(from), to_utc(to), MAX_SHOWS)).fetch_all(pg).await
}
