//! Pages of a theatre's staff, a file per section. Callers who are not signed in are redirected to the sign-in page; for
//! strangers these pages do not exist.

mod box_office;
mod door;
mod organiser;
mod parked;
mod reports;
mod systems;
mod team;
mod theatre;
mod unusual;

use std::collections::HashMap;

use app::language::{self, Hindrance};
use app::pages::accounts::Notice;
use app::staff::pages::{Desk, Entrance, NewTheatre, NewTheatreForm, Section, Workplace};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde::Deserialize;

use super::booking::passing_or_fault;
use super::{PRIVATE_CACHE, PageError, html};
use crate::AppState;
use http::{Code, Problem, page_locale};
use identity::accounts::{self, Staff};
use platform::ids;
use selling::bookings;

/// The pages.
pub fn routes() -> Router<AppState> {
    Router::new()
        .route("/staff", get(entrance))
        .merge(door::routes())
        .route("/staff/{theatre}/reports", get(reports::page))
        .merge(parked::routes())
        .merge(unusual::routes())
        .merge(systems::routes())
        .merge(team::routes())
        .merge(theatre::routes())
        .merge(organiser::routes())
        .merge(box_office::routes())
}

/// The problem in the reader's language.
fn hindrance(problem: &Problem) -> Hindrance {
    language::with_language(page_locale::language(), || language::problem_for_staff(&problem.view()))
}

/// Why a page of staff is not shown.
#[derive(Debug)]
pub(super) enum StaffPageError {
    /// Not signed in; the address to return to.
    SignIn(String),
    /// Any other error page.
    ErrorPage(PageError),
}

impl<T: Into<PageError>> From<T> for StaffPageError {
    fn from(why: T) -> Self {
        Self::ErrorPage(why.into())
    }
}

impl IntoResponse for StaffPageError {
    fn into_response(self) -> Response {
        match self {
            Self::ErrorPage(why) => why.into_response(),
            Self::SignIn(next) => {
                let path = format!("/login?notice={}&next={next}", Notice::SignInFirst.as_str());
                let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/login"));
                let headers =
                    [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE_CACHE))];
                (StatusCode::SEE_OTHER, headers).into_response()
            }
        }
    }
}

/// A page of staff, a redirection to the sign-in, or an error page.
type StaffPageResult = Result<Response, StaffPageError>;

/// The query of a page that its form leads back to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DoneQuery {
    done: bool,
}

/// A form with no field but the reason.
#[derive(Deserialize)]
struct ReasonForm {
    key: String,
    reason: String,
}

/// The signed-in member of staff, or the problem.
pub(super) type StaffResult = Result<Staff, Problem>;

fn signed_in(who: StaffResult, next: &str) -> Result<Staff, StaffPageError> {
    who.map_err(|problem| match problem.code() {
        Code::NotSignedIn | Code::TokenInvalid => StaffPageError::SignIn(next.to_owned()),
        _ => StaffPageError::ErrorPage(passing_or_fault(problem)),
    })
}

/// The frame of a section, for its roles. Called before any data of the theatre is read.
pub(super) async fn desk(
    state: &AppState,
    who: StaffResult,
    theatre: &str,
    section: Section,
) -> Result<(Staff, Desk), StaffPageError> {
    let staff = signed_in(who, &section.href(theatre))?;
    // Another role of the same theatre gets 404 like a stranger: the navigation never leads here.
    staff.at(theatre, section.roles()).map_err(|_| PageError::NotFound)?;
    let found = state.catalogue.theatre(theatre).await?.ok_or(PageError::NotFound)?;
    let desk = Desk { theatre: theatre.to_owned(), name: found.name, roles: staff.roles_at(theatre), section };
    Ok((staff, desk))
}

/// The clocks of a theatre.
async fn zone_of(state: &AppState, theatre: &str) -> Result<Tz, PageError> {
    let found = state.catalogue.theatre(theatre).await?.ok_or(PageError::NotFound)?;
    found.time_zone.parse().map_err(|_| {
        tracing::error!(theatre, zone = found.time_zone, "read a theatre's time zone failed");
        PageError::Fault
    })
}

/// An instant of the API in local time: `2026-11-21T20:15:07`.
fn on_its_clocks(at: &str, zone: Tz) -> String {
    let read = DateTime::parse_from_rfc3339(at).map(|at| at.with_timezone(&Utc));
    read.map_or_else(|_| at.to_owned(), |at| at.with_timezone(&zone).format("%Y-%m-%dT%H:%M:%S").to_string())
}

async fn entrance(State(state): State<AppState>, who: StaffResult) -> StaffPageResult {
    let staff = signed_in(who, "/staff")?;
    entrance_page(&state, &staff, None).await
}

/// Number of parked effects per theatre, for the given theatres that the caller manages.
async fn parked_in(state: &AppState, staff: &Staff, theatres: &[String]) -> Result<HashMap<String, i64>, sqlx::Error> {
    let may_decide = |theatre: &&String| staff.at(theatre, Section::Parked.roles()).is_ok();
    let managed: Vec<String> = theatres.iter().filter(may_decide).cloned().collect();
    if managed.is_empty() { Ok(HashMap::new()) } else { bookings::parked_counts(&state.pg, &managed).await }
}

/// The caller's theatres; with the refused input of a new theatre, and the reason.
async fn entrance_page(
    state: &AppState,
    staff: &Staff,
    refused: Option<(NewTheatreForm, Hindrance)>,
) -> StaffPageResult {
    let mut places = Vec::new();
    let theatres = staff.theatres();
    let parked = parked_in(state, staff, &theatres).await?;
    for theatre in theatres {
        if let Some(found) = state.catalogue.theatre(&theatre).await? {
            let parked = parked.get(&theatre).copied().unwrap_or_default();
            places.push(Workplace { roles: staff.roles_at(&theatre), name: found.name, parked, theatre });
        }
    }
    places.sort_by(|one, other| one.name.cmp(&other.name));
    let new = match accounts::require_manager_of_all(state, staff).await {
        Ok(()) => Some(NewTheatre { cities: state.catalogue.cities().await?, key: ids::new_id().to_string(), refused }),
        Err(problem) if problem.code() == Code::NotAllowed => None,
        Err(problem) => return Err(passing_or_fault(problem).into()),
    };
    Ok(html(Entrance { places, new }, PRIVATE_CACHE))
}
