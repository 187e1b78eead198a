//! The page of what waits for a manager, and its forms. They do what the API does, through the same service.

use app::language::Hindrance;
use app::staff::pages::parked::{ParkedForm, ParkedPage};
use app::staff::pages::{Field, Section};
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Form, Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use domain::api::systems::ReasonRequest;

use super::{DoneQuery, ReasonForm, StaffPageResult, StaffResult, desk, hindrance, on_its_clocks, zone_of};
use crate::AppState;
use crate::web::pages::booking::passing_or_fault;
use crate::web::pages::{FormResult, PathResult, QueryResult};
use crate::web::pages::{PRIVATE_CACHE, PageError, html};
use http::idempotency::{IdempotencyKey, Intent};
use http::{Code, Problem, describe_rejection, page_locale};
use platform::ids;
use selling::bookings::{self, Decision};

/// Largest form, bytes.
const MAX_FORM_BYTES: usize = 8 * 1024;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/staff/{theatre}/parked", get(show_page))
        .route("/staff/{theatre}/parked/{parked}/{decision}", post(decide))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
}

async fn show_page(
    State(state): State<AppState>,
    who: StaffResult,
    theatre: PathResult<String>,
    asked: QueryResult<DoneQuery>,
) -> StaffPageResult {
    let Path(theatre) = theatre?;
    page(&state, who, &theatre, asked.map(|Query(asked)| asked.done), None).await
}

/// The page; with the refused input and the reason, if there is one.
async fn page(
    state: &AppState,
    who: StaffResult,
    theatre: &str,
    done: Result<bool, QueryRejection>,
    refused: Option<(ParkedForm, Problem)>,
) -> StaffPageResult {
    // Permission is checked before any data of the theatre, or the query, is read.
    let (_, desk) = desk(state, who, theatre, Section::Parked).await?;
    let (done, zone) = (done?, zone_of(state, theatre).await?);
    let mut parked = bookings::parked_at(state, theatre).await.map_err(passing_or_fault)?;
    parked.iter_mut().for_each(|one| one.since = on_its_clocks(&one.since, zone));
    let (mut status, mut form, mut trouble) = (StatusCode::OK, None, None);
    if let Some((typed, problem)) = refused {
        status = problem.code().describe().0;
        trouble = Some(if typed.reason.is_refused() { marked() } else { in_words(&problem) });
        form = Some(typed);
    }
    let page = ParkedPage { desk, parked, refused: form, done, trouble, intent: ids::new_id().to_string() };
    Ok((status, html(page, PRIVATE_CACHE)).into_response())
}

/// The problem is beside its field.
fn marked() -> Hindrance {
    app::say!(in page_locale::language(), "field.refused").into()
}

fn in_words(problem: &Problem) -> Hindrance {
    match problem.code() {
        Code::NotFound => app::say!(in page_locale::language(), "parked.gone").into(),
        _ => hindrance(problem),
    }
}

async fn decide(
    State(state): State<AppState>,
    who: StaffResult,
    named: PathResult<(String, i64, String)>,
    sent: FormResult<ReasonForm>,
) -> StaffPageResult {
    let Path((theatre, id, name)) = named?;
    let (staff, _) = desk(&state, who, &theatre, Section::Parked).await?;
    let decision = Decision::parse(&name).ok_or(PageError::NotFound)?;
    let Form(sent) = sent.map_err(|rejection| PageError::Unreadable(describe_rejection(&rejection.body_text())))?;
    let request = ReasonRequest { reason: sent.reason };
    let done = async {
        let path = format!("form /staff/{theatre}/parked/{id}/{name}");
        let intent = Intent::new(&staff.session.owner, IdempotencyKey::of_form(&sent.key)?, &path, &request);
        bookings::decide_parked(&state, &staff, (&theatre, id, decision), &request, &intent).await
    };
    match done.await {
        Ok(_) => Ok(see(&format!("{}?done=true", Section::Parked.href(&theatre)))),
        Err(problem) if matches!(problem.code(), Code::Internal | Code::DatabaseUnavailable) => {
            Err(passing_or_fault(problem).into())
        }
        Err(problem) => {
            let typed = ParkedForm { id, decision: name, reason: Field::reason(request.reason) };
            page(&state, Ok(staff.clone()), &theatre, Ok(false), Some((typed, problem))).await
        }
    }
}

fn see(path: &str) -> Response {
    let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/staff"));
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE_CACHE))];
    (StatusCode::SEE_OTHER, headers).into_response()
}
