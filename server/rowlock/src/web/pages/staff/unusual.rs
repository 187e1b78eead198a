//! The page of what is unusual, and its form. They do what the API does, through the same service.

use app::language::Hindrance;
use app::staff::pages::Section;
use app::staff::pages::unusual::Unusual;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Form, Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use domain::api::systems::ReasonRequest;
use uuid::Uuid;

use super::{ReasonForm, StaffPageResult, StaffResult, desk, hindrance};
use crate::AppState;
use crate::web::pages::booking::passing_or_fault;
use crate::web::pages::{FormResult, PathResult};
use crate::web::pages::{PRIVATE_CACHE, PageError, html};
use admission::fairness;
use http::idempotency::{IdempotencyKey, Intent};
use http::{Code, Problem, describe_rejection, page_locale};
use platform::ids;

/// Largest form, bytes.
const MAX_FORM_BYTES: usize = 8 * 1024;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/staff/{theatre}/unusual", get(page))
        .route("/staff/{theatre}/unusual/{flag}/dismiss", post(dismiss))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
}

async fn page(State(state): State<AppState>, who: StaffResult, theatre: PathResult<String>) -> StaffPageResult {
    let Path(theatre) = theatre?;
    shown(&state, who, &theatre, None).await
}

/// The page, with the problem if there is one.
async fn shown(state: &AppState, who: StaffResult, theatre: &str, problem: Option<Problem>) -> StaffPageResult {
    let (_, desk) = desk(state, who, theatre, Section::Unusual).await?;
    let flags = fairness::list(state, theatre).await.map_err(passing_or_fault)?;
    let status = problem.as_ref().map_or(StatusCode::OK, |problem| problem.code().describe().0);
    let trouble = problem.map(|problem| in_words(&problem));
    let unusual = Unusual { desk, flags, trouble, intent: ids::new_id().to_string() };
    Ok((status, html(unusual, PRIVATE_CACHE)).into_response())
}

/// The problem's message. The general messages about bookings do not fit this page.
fn in_words(problem: &Problem) -> Hindrance {
    match problem.code() {
        Code::Malformed => app::say!(in page_locale::language(), "unusual.refused").into(),
        _ => hindrance(problem),
    }
}

async fn dismiss(
    State(state): State<AppState>,
    who: StaffResult,
    named: PathResult<(String, Uuid)>,
    sent: FormResult<ReasonForm>,
) -> StaffPageResult {
    let Path((theatre, id)) = named?;
    // Permission is checked before any data of the theatre, or the form, is read.
    let (staff, _) = desk(&state, who, &theatre, Section::Unusual).await?;
    let Form(sent) = sent.map_err(|rejection| PageError::Unreadable(describe_rejection(&rejection.body_text())))?;
    let request = ReasonRequest { reason: sent.reason };
    let done = async {
        let path = format!("form /staff/{theatre}/unusual/{id}/dismiss");
        let intent = Intent::new(&staff.session.owner, IdempotencyKey::of_form(&sent.key)?, &path, &request);
        fairness::dismiss(&state, &staff, (&theatre, id), &request, &intent).await
    };
    match done.await {
        Ok(_) => Ok(see(&Section::Unusual.href(&theatre))),
        Err(problem) if matches!(problem.code(), Code::Internal | Code::DatabaseUnavailable) => {
            Err(passing_or_fault(problem).into())
        }
        Err(problem) => shown(&state, Ok(staff.clone()), &theatre, Some(problem)).await,
    }
}

fn see(path: &str) -> Response {
    let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/staff"));
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE_CACHE))];
    (StatusCode::SEE_OTHER, headers).into_response()
}
