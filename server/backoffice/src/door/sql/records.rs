//! Queries of `door_scans`, every scanned code, and of `door_conflicts`.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::VariantName;
use domain::api::door::{DoorCounts, Outcome};
use domain::time::Timestamp;
use sqlx::{FromRow, PgConnection, PgPool};
use uuid::Uuid;

use super::admissions::{Admission, NewAdmission};
use platform::clock::to_utc;

/// Maximum number of conflicts in an answer.
const MAX_CONFLICTS: i64 = 50;

/// The device and account of a scan, and whether the device was offline.
#[derive(Clone, Copy, Debug)]
pub(in crate::door) struct Scanner {
    pub(in crate::door) device: Uuid,
    pub(in crate::door) account: Uuid,
    pub(in crate::door) offline: bool,
}

/// Records the outcome of a code. A recorded admission never changes. A recorded refusal becomes an admission if the
/// device, which missed the answer, admitted the ticket offline.
pub(in crate::door) async fn record_scan(
    tx: &mut PgConnection,
    scanner: Scanner,
    new_admission: &NewAdmission<'_>,
    outcome: Outcome,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO door_scans (theatre_id, scan_id, code, show_id, device_id, device, account_id, at, recorded_at,
                                 offline, let_in, outcome)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         ON CONFLICT (theatre_id, scan_id, code) DO UPDATE
         SET at = EXCLUDED.at, recorded_at = EXCLUDED.recorded_at, offline = EXCLUDED.offline,
             let_in = EXCLUDED.let_in, outcome = EXCLUDED.outcome
         WHERE NOT door_scans.let_in AND EXCLUDED.let_in",
    )
    .bind(new_admission.theatre)
    .bind(new_admission.let_in.scan)
    .bind(new_admission.code)
    .bind(new_admission.show)
    .bind(scanner.device)
    .bind(new_admission.device)
    .bind(scanner.account)
    .bind(to_utc(new_admission.let_in.at))
    .bind(to_utc(now))
    .bind(scanner.offline)
    .bind(matches!(outcome, Outcome::Admitted | Outcome::Conflict))
    .bind(outcome.as_str())
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the outcomes of codes in recorded admissions, by scan and code: these need no settling.
pub(in crate::door) async fn recorded_outcomes(
    tx: &mut PgConnection,
    theatre: &str,
    scans: &[Uuid],
) -> Result<HashMap<(Uuid, String), Outcome>, sqlx::Error> {
    let rows: Vec<(Uuid, String, String)> = sqlx::query_as(
        "SELECT scan_id, code, outcome FROM door_scans WHERE theatre_id = $1 AND scan_id = ANY($2) AND let_in",
    )
    .bind(theatre)
    .bind(scans)
    .fetch_all(tx)
    .await?;
    rows.into_iter().map(|(scan, code, outcome)| Ok(((scan, code), read(&outcome)?))).collect()
}

/// An invalid stored value is an error that names it, never a default.
fn read(outcome: &str) -> Result<Outcome, sqlx::Error> {
    outcome.parse().map_err(|_| sqlx::Error::Decode(format!("an outcome of the door is {outcome:?}").into()))
}

/// Reports an admission with an invalid ticket.
pub(in crate::door) async fn report(
    tx: &mut PgConnection,
    new_admission: &NewAdmission<'_>,
    seat: Option<&str>,
    why: Outcome,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO door_conflicts (theatre_id, show_id, ticket_code, seat, why, scan_id, device, at, recorded_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (scan_id, ticket_code) DO NOTHING",
    )
    .bind(new_admission.theatre)
    .bind(new_admission.show)
    .bind(new_admission.code)
    .bind(seat)
    .bind(why.as_str())
    .bind(new_admission.let_in.scan)
    .bind(new_admission.device)
    .bind(to_utc(new_admission.let_in.at))
    .bind(to_utc(now))
    .execute(tx)
    .await?;
    Ok(())
}

/// Reports that `second` came after `first` with the same ticket.
pub(in crate::door) async fn report_second(
    tx: &mut PgConnection,
    first: &NewAdmission<'_>,
    second: &NewAdmission<'_>,
    seat: Option<&str>,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO door_conflicts (theatre_id, show_id, ticket_code, seat, why, scan_id, device, at,
                                     first_scan, first_device, first_at, recorded_at)
         VALUES ($1, $2, $3, $4, 'already_used', $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (scan_id, ticket_code) DO NOTHING",
    )
    .bind(second.theatre)
    .bind(second.show)
    .bind(second.code)
    .bind(seat)
    .bind(second.let_in.scan)
    .bind(second.device)
    .bind(to_utc(second.let_in.at))
    .bind(first.let_in.scan)
    .bind(first.device)
    .bind(to_utc(first.let_in.at))
    .bind(to_utc(now))
    .execute(&mut *tx)
    .await?;
    // A replaced admission becomes a conflict in the list of scans as well.
    sqlx::query(
        "UPDATE door_scans SET outcome = 'conflict'
         WHERE theatre_id = $1 AND scan_id = $2 AND code = $3 AND outcome = 'admitted'",
    )
    .bind(second.theatre)
    .bind(second.let_in.scan)
    .bind(second.code)
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the replaced admission in the form the conflict report needs.
pub(in crate::door) fn recorded_admission<'a>(admission: &'a Admission, like: &NewAdmission<'a>) -> NewAdmission<'a> {
    NewAdmission { device: &admission.device, let_in: admission.let_in(), ..*like }
}

/// Returns the counts of tickets sold, admissions and conflicts of a show.
pub(in crate::door) async fn counts(pg: &PgPool, show: Uuid) -> Result<DoorCounts, sqlx::Error> {
    let (sold, admitted, conflicts): (i64, i64, i64) =
        sqlx::query_as("SELECT door_sold($1), door_admitted($1), door_conflicted($1)").bind(show).fetch_one(pg).await?;
    Ok(DoorCounts { sold, admitted, conflicts })
}

/// A conflict as stored.
#[derive(Clone, Debug, FromRow)]
pub(in crate::door) struct ConflictRow {
    pub(in crate::door) number: i64,
    pub(in crate::door) ticket_code: String,
    pub(in crate::door) seat: Option<String>,
    pub(in crate::door) why: String,
    pub(in crate::door) device: String,
    pub(in crate::door) at: DateTime<Utc>,
    pub(in crate::door) first_device: Option<String>,
    pub(in crate::door) first_at: Option<DateTime<Utc>>,
}

impl ConflictRow {
    /// The reason of the conflict.
    pub(in crate::door) fn why(&self) -> Result<Outcome, sqlx::Error> {
        read(&self.why)
    }
}

/// Returns the conflicts of a show, the newest first.
pub(in crate::door) async fn conflicts(pg: &PgPool, show: Uuid) -> Result<Vec<ConflictRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT number, ticket_code, seat, why, device, at, first_device, first_at
         FROM door_conflicts WHERE show_id = $1 ORDER BY number DESC LIMIT $2",
    )
    .bind(show)
    .bind(MAX_CONFLICTS)
    .fetch_all(pg)
    .await
}
