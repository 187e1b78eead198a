//! Flags for managers: their endpoints, the list, and dismissals.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::api::ProblemView;
use domain::api::fairness::UnusualView;
use domain::api::systems::ReasonRequest;
use domain::time::Timestamp;
use serde::Deserialize;
use sqlx::{PgConnection, PgPool};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::batch::is_show_unavailable;
use crate::AdmissionState;
use catalogue::Show;
use http::Problem;
use http::idempotency::Answer;
use http::problem::ApiResult;
use identity::accounts::{Managers, StaffAction, StaffMutation, StaffRequest};
use platform::clock::{from_utc, rfc3339, to_utc};
use platform::database::BindAll;

/// Maximum of flags listed for a theatre.
const MAX_LISTED: i64 = 200;
/// Displayed digits of a pseudonym: enough to distinguish some hundreds.
const SHOWN_DIGITS: usize = 8;

/// Lists the flags in the shows of a theatre: first those not dismissed, then the latest.
pub async fn list(state: &AdmissionState, theatre: &str) -> ApiResult<Vec<UnusualView>> {
    let mut views = Vec::new();
    for flag in of_theatre(&state.pg, theatre).await? {
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

fn view(flag: Flag, show: &Show) -> ApiResult<UnusualView> {
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
pub async fn dismiss(state: &AdmissionState, action: &StaffAction<'_>, id: Uuid) -> ApiResult<Answer> {
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let by = (action.staff.session.account, begun.reason);
    let is_change = mark_dismissed(&mut begun.tx, action.theatre, id, by, begun.now)
        .await?
        .ok_or_else(|| Problem::not_found("flag"))?;
    if is_change {
        begun.record("unusual_dismissed", format!("flag {id}")).await?;
    }
    begun.commit(Answer::no_content()).await
}

/// A row of `unusual_flags`.
#[derive(platform::FromRow)]
struct Flag {
    pub(super) id: Uuid,
    pub(super) show_id: Uuid,
    pub(super) kind: String,
    pub(super) subject: String,
    pub(super) tag: String,
    pub(super) seen: i64,
    pub(super) since: DateTime<Utc>,
    pub(super) last_at: DateTime<Utc>,
    pub(super) dismissed_at: Option<DateTime<Utc>>,
    pub(super) reason: Option<String>,
}

/// Flags of a theatre: those not dismissed first, then the latest.
async fn of_theatre(pg: &PgPool, theatre: &str) -> sqlx::Result<Vec<Flag>> {
    let sql = "SELECT id, show_id, kind, subject, tag, seen, since, last_at, dismissed_at, reason FROM unusual_flags
               WHERE theatre_id = $1 ORDER BY dismissed_at IS NOT NULL, last_at DESC, id LIMIT $2";
    sqlx::query_as(sql).bind_all((theatre, MAX_LISTED)).fetch_all(pg).await
}

/// Dismisses a flag. `None`: the theatre has no such flag; `false`: it was dismissed before.
async fn mark_dismissed(
    tx: &mut PgConnection,
    theatre: &str,
    id: Uuid,
    (by, reason): (Uuid, &str),
    now: Timestamp,
) -> sqlx::Result<Option<bool>> {
    let sql = "UPDATE unusual_flags SET dismissed_at = $3, dismissed_by = $4, reason = $5
               WHERE id = $1 AND theatre_id = $2 AND dismissed_at IS NULL";
    let put_aside = sqlx::query(sql).bind_all((id, theatre, to_utc(now), by, reason)).execute(&mut *tx).await?;
    if put_aside.rows_affected() == 1 {
        return Ok(Some(true));
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM unusual_flags WHERE id = $1 AND theatre_id = $2)";
    let there: bool = sqlx::query_scalar(sql).bind_all((id, theatre)).fetch_one(tx).await?;
    Ok(there.then_some(false))
}

/// The routes, under `/api/v1`.
pub fn routes() -> OpenApiRouter<AdmissionState> {
    OpenApiRouter::new().routes(routes!(list_flags)).routes(routes!(dismiss_flag))
}

/// List unusual behaviour in attempts at seats of your theatre. A flag refuses nothing.
#[utoipa::path(get, path = "/theatres/{theatre}/unusual", tag = "fairness",
    responses((status = 200, body = Vec<UnusualView>)))]
async fn list_flags(
    State(state): State<AdmissionState>,
    from: StaffRequest<Managers>,
) -> ApiResult<Json<Vec<UnusualView>>> {
    list(&state, &from.theatre).await.map(Json)
}

#[derive(Deserialize)]
struct FlagPath {
    flag: Uuid,
}

/// Dismiss a flag: you know its cause, or have seen enough of it.
///
/// Dismiss an entry, `{"reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/unusual/{flag}/dismiss", tag = "fairness",
    request_body = ReasonRequest, params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 404, body = ProblemView, description = "No such flag; also for another theatre's staff")))]
async fn dismiss_flag(
    State(state): State<AdmissionState>,
    mutation: StaffMutation<Managers, FlagPath, ReasonRequest>,
) -> ApiResult<Answer> {
    dismiss(&state, &mutation.action(&mutation.body.reason), mutation.from.path.flag).await
}
