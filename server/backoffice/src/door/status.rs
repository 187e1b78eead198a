//! The state of doors: shows with open doors, admissions and conflicts.

use domain::api::door::{ConflictView, DoorCounts, DoorShow, DoorView};
use domain::door::{CLOSES_AFTER_MS, OPENS_BEFORE_MS};

use super::sql::{self, ConflictRow, DoorShowRow};
use super::ticket_lookup::code_suffix;
use crate::BackofficeState;
use catalogue::Show;
use http::ApiResult;
use platform::clock::from_utc;

/// Returns the shows of a theatre whose doors are open, in the order of their start. The caller has checked the role.
pub async fn shows(state: &BackofficeState, theatre: &str) -> ApiResult<Vec<DoorShow>> {
    let now = state.clock.now();
    let (from, to) = (now.plus_ms(-CLOSES_AFTER_MS), now.plus_ms(OPENS_BEFORE_MS));
    let rows = sql::shows(&state.pg, theatre, from, to).await?;
    let view = |row: DoorShowRow| DoorShow {
        id: row.id,
        film: row.film,
        screen: row.screen,
        starts_local: row.starts_local,
        starts_at_ms: from_utc(row.starts_at).0,
        counts: DoorCounts { sold: row.sold, admitted: row.admitted, conflicts: row.conflicts },
    };
    Ok(rows.into_iter().map(view).collect())
}

/// Returns the state of the door of a show. The caller has checked the role.
pub async fn show_status(state: &BackofficeState, show: &Show) -> ApiResult<DoorView> {
    let counts = sql::counts(&state.pg, show.id).await?;
    let rows = if counts.conflicts == 0 { Vec::new() } else { sql::conflicts(&state.pg, show.id).await? };
    let view = |row: ConflictRow| {
        Ok(ConflictView {
            number: row.number,
            ends: code_suffix(&row.ticket_code),
            why: row.why()?,
            at: show.local_iso(from_utc(row.at)),
            first_at: row.first_at.map(|at| show.local_iso(from_utc(at))),
            seat: row.seat,
            device: row.device,
            first_device: row.first_device,
        })
    };
    let conflicts = rows.into_iter().map(view).collect::<sqlx::Result<Vec<_>>>()?;
    Ok(DoorView { counts, conflicts })
}
