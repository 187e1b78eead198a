//! Endpoints of the box office.

mod bookings;
mod shows;
mod tills;

use utoipa_axum::router::OpenApiRouter;

use super::CounterStaff;
use crate::BackofficeState;
use domain::roles::Role;
use http::Problem;
use http::idempotency::{IdempotencyKey, Intent};
use identity::accounts::Staff;
use serde::Serialize;

/// Roles that may use the counter. A manager may do all that the box office may.
const COUNTER: &[Role] = &[Role::BoxOffice];
/// Roles that may close the day.
const MANAGER: &[Role] = &[Role::Manager];

/// The routes of the box office, under `/api/v1`.
pub fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new().merge(tills::routes()).merge(shows::routes()).merge(bookings::routes())
}

/// Checks that the caller may work at the counter of this theatre.
///
/// # Errors
/// 404 for callers without a role in the theatre, 403 for staff with another role.
fn at<'a>(staff: &'a Staff, theatre: &'a str, wanted: &[Role]) -> Result<CounterStaff<'a>, Problem> {
    staff.at(theatre, wanted)?;
    Ok(CounterStaff { staff, theatre })
}

/// Builds the idempotency intent of a counter request; `rest` is the path after `box-office/`.
fn intent(counter: CounterStaff<'_>, key: IdempotencyKey, rest: &str, body: &impl Serialize) -> Intent {
    let path = format!("POST /theatres/{}/box-office/{rest}", counter.theatre);
    Intent::new(&counter.staff.session.owner, key, &path, body)
}
