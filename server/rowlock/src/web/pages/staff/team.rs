//! The pages of who works in a theatre and of what was done there. They do what the API does, through the same service.

use app::language::Hindrance;
use app::staff::pages::team::{Acts, Team, TeamForm, take_form};
use app::staff::pages::{Field, Section};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Form, Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use domain::api::accounts::{AuditQuery, GrantRequest};
use domain::roles::Role;
use serde::Deserialize;

use super::super::booking::passing_or_fault;
use super::super::{PRIVATE_CACHE, PageError, html};
use super::{DoneQuery, StaffPageResult, StaffResult, desk, hindrance, on_its_clocks, zone_of};
use crate::AppState;
use crate::web::pages::{FormResult, PathResult, QueryResult};
use http::idempotency::{IdempotencyKey, Intent};
use http::{Code, Problem, describe_rejection, page_locale};
use identity::{accounts, audit};
use platform::ids;

/// Largest form, bytes.
const MAX_FORM_BYTES: usize = 8 * 1024;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/staff/{theatre}/team", get(show_page).post(change))
        .route("/staff/{theatre}/team/acts", get(acts))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
}

async fn show_page(
    State(state): State<AppState>,
    who: StaffResult,
    theatre: PathResult<String>,
    asked: QueryResult<DoneQuery>,
) -> StaffPageResult {
    let Path(theatre) = theatre?;
    // Permission is checked before any data of the theatre is read.
    let (_, desk) = desk(&state, who, &theatre, Section::Team).await?;
    let Query(DoneQuery { done }) = asked?;
    let people = accounts::people_at(&state, &theatre).await.map_err(passing_or_fault)?;
    let intent = ids::new_id().to_string();
    Ok(html(Team { desk, people, form: TeamForm::default(), done, trouble: None, intent }, PRIVATE_CACHE))
}

#[derive(Deserialize)]
struct GrantForm {
    key: String,
    email: String,
    role: Role,
    granted: bool,
    reason: String,
}

async fn change(
    State(state): State<AppState>,
    who: StaffResult,
    theatre: PathResult<String>,
    sent: FormResult<GrantForm>,
) -> StaffPageResult {
    let Path(theatre) = theatre?;
    let (staff, desk) = desk(&state, who, &theatre, Section::Team).await?;
    let Form(sent) = sent.map_err(|rejection| PageError::Unreadable(describe_rejection(&rejection.body_text())))?;
    let GrantForm { key, email, role, granted, reason } = sent;
    let request = GrantRequest { email, role, granted, reason };
    let done = async {
        let path = format!("form /staff/{theatre}/team");
        let intent = Intent::new(&staff.session.owner, IdempotencyKey::of_form(&key)?, &path, &request);
        accounts::change_role(&state, &staff, &theatre, &request, &intent).await
    };
    let problem = match done.await {
        Ok(_) => return Ok(see(&format!("/staff/{theatre}/team?done=true"))),
        Err(problem) if matches!(problem.code(), Code::Internal | Code::DatabaseUnavailable) => {
            return Err(passing_or_fault(problem).into());
        }
        Err(problem) => problem,
    };
    let people = accounts::people_at(&state, &theatre).await.map_err(passing_or_fault)?;
    let (status, form) = (problem.code().describe().0, typed(request));
    let trouble = Some(in_words(&problem));
    let page = Team { desk, people, form, done: false, trouble, intent: ids::new_id().to_string() };
    Ok((status, html(page, PRIVATE_CACHE)).into_response())
}

/// The input, in its form.
fn typed(request: GrantRequest) -> TeamForm {
    let GrantRequest { email, role, granted, reason } = request;
    let reason = Field::reason(reason);
    if granted {
        return TeamForm { email, role: Some(role), reason, taken: None };
    }
    TeamForm { taken: Some((take_form(&email, role), reason)), ..TeamForm::default() }
}

/// The problem's message. "Not found" does not fit an address without an account.
fn in_words(problem: &Problem) -> Hindrance {
    match problem.code() {
        Code::NotFound => app::say!(in page_locale::language(), "team.no_account").into(),
        _ => hindrance(problem),
    }
}

async fn acts(
    State(state): State<AppState>,
    who: StaffResult,
    theatre: PathResult<String>,
    asked: QueryResult<AuditQuery>,
) -> StaffPageResult {
    let Path(theatre) = theatre?;
    let (_, desk) = desk(&state, who, &theatre, Section::Team).await?;
    let Query(AuditQuery { before }) = asked?;
    let zone = zone_of(&state, &theatre).await?;
    let lines = audit::of_theatre(&state.pg, &theatre, before).await.map_err(|cause| passing_or_fault(cause.into()))?;
    // A page that is full is followed by another, perhaps an empty one.
    let is_full = i64::try_from(lines.len()).is_ok_and(|count| count == audit::PER_PAGE);
    let next = lines.last().filter(|_| is_full).map(|line| line.number);
    let lines = lines.into_iter().map(|line| (line.clone(), on_its_clocks(&line.at, zone))).collect();
    Ok(html(Acts { desk, lines, is_later_page: before.is_some(), before: next }, PRIVATE_CACHE))
}

fn see(path: &str) -> Response {
    let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/staff"));
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE_CACHE))];
    (StatusCode::SEE_OTHER, headers).into_response()
}
