//! Lists flags for managers, and dismisses them.

use domain::api::fairness::UnusualView;
use domain::api::systems::ReasonRequest;
use uuid::Uuid;

use super::batch::is_show_unavailable;
use super::sql::{self, Flag};
use crate::AdmissionState;
use catalogue::Show;
use http::Problem;
use http::idempotency::{Answer, Intent};
use identity::accounts::{Staff, reason_of};
use identity::audit::{self, AuditEntry};
use platform::clock::{from_utc, rfc3339};

/// Maximum of flags listed for a theatre.
const MAX_LISTED: i64 = 200;
/// Displayed digits of a pseudonym: enough to distinguish some hundreds.
const SHOWN_DIGITS: usize = 8;

/// Lists the flags in the shows of a theatre: first those not dismissed, then the latest.
pub async fn list(state: &AdmissionState, theatre: &str) -> Result<Vec<UnusualView>, Problem> {
    let mut views = Vec::new();
    for flag in sql::of_theatre(&state.pg, theatre, MAX_LISTED).await? {
        let show = match state.catalogue.find_show(flag.show_id).await {
            Ok(show) => show,
            // Deleted from the programme since, or sold in another region.
            Err(problem) if is_show_unavailable(&problem) => continue,
            Err(problem) => return Err(problem),
        };
        views.push(view(flag, &show)?);
    }
    Ok(views)
}

fn view(flag: Flag, show: &Show) -> Result<UnusualView, Problem> {
    let corrupt = |column: &str| Problem::internal(&format!("unusual_flags({}).{column} cannot be", flag.id));
    let starts: String = show.local_iso(show.starts_at).chars().take("2026-12-01T20:15".len()).collect();
    Ok(UnusualView {
        id: flag.id,
        show: flag.show_id,
        film: show.film.clone(),
        starts_local: starts,
        kind: flag.kind.parse().map_err(|_| corrupt("kind"))?,
        subject: flag.subject.parse().map_err(|_| corrupt("subject"))?,
        tag: flag.tag.chars().take(SHOWN_DIGITS).collect(),
        seen: u32::try_from(flag.seen).unwrap_or(u32::MAX),
        since: rfc3339(from_utc(flag.since)),
        last_at: rfc3339(from_utc(flag.last_at)),
        dismissed_at: flag.dismissed_at.map(|at| rfc3339(from_utc(at))),
        reason: flag.reason,
    })
}

/// Dismisses a flag. A dismissed flag stays dismissed, and repeating it writes no second audit entry.
///
/// # Errors
/// 404 if the theatre has no such flag, 400 for an invalid reason.
pub async fn dismiss(
    state: &AdmissionState,
    staff: &Staff,
    (theatre, id): (&str, Uuid),
    request: &ReasonRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let reason = reason_of(&request.reason)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let by = (staff.session.account, reason);
    let is_change = sql::dismiss(&mut tx, theatre, id, by, now).await?.ok_or_else(|| Problem::not_found("flag"))?;
    if is_change {
        let entry =
            AuditEntry::by(staff.session.account, "unusual_dismissed", format!("flag {id}"), reason).at(theatre);
        audit::record(&mut tx, &entry, now).await?;
    }
    let answer = Answer::no_content();
    intent.commit(tx, answer, now).await
}
