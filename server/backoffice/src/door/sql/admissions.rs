//! Queries of `door_admissions`: at most one active admission per ticket.

use chrono::{DateTime, Utc};
use domain::door::ScanAdmission;
use domain::time::Timestamp;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use platform::clock::{from_utc, to_utc};

/// A new admission by a scan.
#[derive(Clone, Copy, Debug)]
pub(in crate::door) struct NewAdmission<'a> {
    pub(in crate::door) code: &'a str,
    pub(in crate::door) theatre: &'a str,
    pub(in crate::door) show: Uuid,
    pub(in crate::door) device: &'a str,
    pub(in crate::door) let_in: ScanAdmission,
}

/// The active admission of a ticket.
#[derive(Clone, Debug, FromRow)]
pub(in crate::door) struct Admission {
    pub(in crate::door) id: Uuid,
    scan_id: Uuid,
    pub(in crate::door) device: String,
    at: DateTime<Utc>,
}

impl Admission {
    /// The scan of the admission.
    pub(in crate::door) fn let_in(&self) -> ScanAdmission {
        ScanAdmission { at: from_utc(self.at), scan: self.scan_id }
    }
}

/// Inserts an admission; `false` when the ticket already has an active one. Waits for concurrent transactions that
/// admit the same ticket.
pub(in crate::door) async fn admit(
    tx: &mut PgConnection,
    id: Uuid,
    new_admission: &NewAdmission<'_>,
    now: Timestamp,
) -> Result<bool, sqlx::Error> {
    let admitted = sqlx::query(
        "INSERT INTO door_admissions (id, ticket_code, theatre_id, show_id, scan_id, device, at, recorded_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (ticket_code) WHERE undone_at IS NULL DO NOTHING",
    )
    .bind(id)
    .bind(new_admission.code)
    .bind(new_admission.theatre)
    .bind(new_admission.show)
    .bind(new_admission.let_in.scan)
    .bind(new_admission.device)
    .bind(to_utc(new_admission.let_in.at))
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(admitted.rows_affected() == 1)
}

/// Returns the active admission of a ticket, locked.
pub(in crate::door) async fn current(tx: &mut PgConnection, code: &str) -> Result<Option<Admission>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, scan_id, device, at FROM door_admissions WHERE ticket_code = $1 AND undone_at IS NULL FOR UPDATE",
    )
    .bind(code)
    .fetch_optional(tx)
    .await
}

/// Replaces an admission by an earlier scan; `false` when another transaction replaced it first.
pub(in crate::door) async fn take_over(
    tx: &mut PgConnection,
    previous: &Admission,
    new_admission: &NewAdmission<'_>,
) -> Result<bool, sqlx::Error> {
    let taken = sqlx::query(
        "UPDATE door_admissions SET scan_id = $4, device = $5, at = $6
         WHERE id = $1 AND ticket_code = $2 AND scan_id = $3 AND undone_at IS NULL",
    )
    .bind(previous.id)
    .bind(new_admission.code)
    .bind(previous.scan_id)
    .bind(new_admission.let_in.scan)
    .bind(new_admission.device)
    .bind(to_utc(new_admission.let_in.at))
    .execute(tx)
    .await?;
    Ok(taken.rows_affected() == 1)
}

/// Undoes the active admissions of a scan, or of one ticket of it; returns the codes of their tickets.
pub(in crate::door) async fn undo(
    tx: &mut PgConnection,
    show: Uuid,
    (scan, ticket): (Uuid, Option<&str>),
    by: Uuid,
    now: Timestamp,
) -> Result<Vec<String>, sqlx::Error> {
    // Locked in the same order as scans do.
    let ids: Vec<(Uuid, String)> = sqlx::query_as(
        "SELECT id, ticket_code FROM door_admissions
         WHERE scan_id = $1 AND show_id = $2 AND undone_at IS NULL AND ($3::text IS NULL OR ticket_code = $3)
         ORDER BY ticket_code FOR UPDATE",
    )
    .bind(scan)
    .bind(show)
    .bind(ticket)
    .fetch_all(&mut *tx)
    .await?;
    let (ids, codes): (Vec<Uuid>, Vec<String>) = ids.into_iter().unzip();
    sqlx::query(
        "UPDATE door_admissions SET undone_at = $2, undone_by = $3
         WHERE id = ANY($1) AND scan_id = $4 AND undone_at IS NULL",
    )
    .bind(&ids)
    .bind(to_utc(now))
    .bind(by)
    .bind(scan)
    .execute(tx)
    .await?;
    Ok(codes)
}
