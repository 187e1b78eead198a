//! The page of a theatre's details, for its managers; and of a new theatre, for managers of all theatres.

use app::language::Hindrance;
use app::staff::pages::{Desk, NewTheatreForm, Section, TheatrePage};
use axum::Router;
use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use domain::api::theatres::{ManagedTheatre, NewCity, TheatreChange, TheatreRequest};
use serde::Deserialize;

use super::super::booking::passing_or_fault;
use super::super::{PRIVATE_CACHE, html};
use super::{DoneQuery, StaffPageError, StaffPageResult, StaffResult, desk, entrance_page, hindrance, signed_in};
use crate::AppState;
use crate::web::pages::{FormResult, QueryResult};
use backoffice::organiser::{self, OrganiserAction};
use http::idempotency::{IdempotencyKey, Intent};
use http::{Code, Problem};
use platform::ids;

/// The pages.
pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/staff/theatres", post(create)).route("/staff/{theatre}/theatre", get(one).post(change))
}

async fn one(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
    asked: QueryResult<DoneQuery>,
) -> StaffPageResult {
    let (_, desk) = desk(&state, who, &theatre, Section::Theatre).await?;
    let Query(DoneQuery { done }) = asked?;
    page(&state, desk, done, None).await
}

/// The theatre as it is; or with a change as it was typed and refused, and why.
async fn page(state: &AppState, desk: Desk, done: bool, refused: Option<(TheatreChange, Problem)>) -> StaffPageResult {
    let mut theatre = organiser::theatre(state, &desk.theatre).await.map_err(passing_or_fault)?;
    let (typed, problem) = refused.unzip();
    let (status, trouble) = problem.map(hindrance_of).transpose()?.unzip();
    let mut reason = String::new();
    if let Some(typed) = typed {
        let TheatreChange { name, address, currency, version, reason: why } = typed;
        // A stale form must not overwrite newer details: it keeps its old version.
        theatre = ManagedTheatre { name, address, currency, version, ..theatre };
        reason = why;
    }
    let key = ids::new_id().to_string();
    let page = html(TheatrePage { desk, theatre, reason, key, done, trouble }, PRIVATE_CACHE);
    Ok((status.unwrap_or(StatusCode::OK), page).into_response())
}

/// The problem in the reader's language; internal errors have their own page.
fn hindrance_of(problem: Problem) -> Result<(StatusCode, Hindrance), StaffPageError> {
    match problem.code() {
        Code::Internal | Code::DatabaseUnavailable => Err(passing_or_fault(problem).into()),
        _ => Ok((problem.code().describe().0, hindrance(&problem))),
    }
}

#[derive(Deserialize)]
struct ChangeForm {
    key: String,
    version: u32,
    name: String,
    address: String,
    currency: String,
    reason: String,
}

async fn change(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
    form: FormResult<ChangeForm>,
) -> StaffPageResult {
    let (staff, desk) = desk(&state, who, &theatre, Section::Theatre).await?;
    let Form(ChangeForm { key, version, name, address, currency, reason }) = form?;
    let request = TheatreChange { name, address, currency, version, reason };
    let done = async {
        let key = IdempotencyKey::of_form(&key)?;
        let intent = Intent::new(&staff.session.owner, key, &format!("form /staff/{theatre}/theatre"), &request);
        let act = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
        organiser::change_theatre(&state, &act, &request).await
    };
    match done.await {
        Ok(_) => Ok(see(&format!("/staff/{theatre}/theatre?done=true"))),
        Err(problem) => page(&state, desk, false, Some((request, problem))).await,
    }
}

/// The request of a form; with a new city only if no existing one was chosen.
fn read(form: NewTheatreForm) -> TheatreRequest {
    let NewTheatreForm { name, address, currency, city, city_name, country, time_zone, reason, .. } = form;
    let city = Some(city).filter(|city| !city.is_empty());
    let new_city = city.is_none().then_some(NewCity { name: city_name, country, time_zone });
    TheatreRequest { name, address, city, new_city, currency, reason }
}

async fn create(State(state): State<AppState>, who: StaffResult, form: FormResult<NewTheatreForm>) -> StaffPageResult {
    let staff = signed_in(who, "/staff")?;
    let Form(form) = form?;
    let request = read(form.clone());
    let done = async {
        let key = IdempotencyKey::of_form(&form.key)?;
        let intent = Intent::new(&staff.session.owner, key, "form /staff/theatres", &request);
        let answer = organiser::create_theatre(&state, &staff, &intent, &request).await?;
        serde_json::from_slice::<ManagedTheatre>(answer.body()).map_err(|cause| Problem::internal(&cause))
    };
    match done.await {
        Ok(made) => Ok(see(&format!("/staff/{}/theatre?done=true", made.id))),
        Err(problem) => {
            let (status, words) = hindrance_of(problem)?;
            Ok((status, entrance_page(&state, &staff, Some((form, words))).await?).into_response())
        }
    }
}

fn see(path: &str) -> Response {
    let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/staff"));
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE_CACHE))];
    (StatusCode::SEE_OTHER, headers).into_response()
}
