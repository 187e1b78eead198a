//! Endpoints of the box office.

mod bookings;
mod shows;
mod tills;

use utoipa_axum::router::OpenApiRouter;

use super::Counter;
use crate::BackofficeState;
use domain::roles::Role;
use http::Problem;
use http::idempotency::{IdempotencyKey, Intent};
use identity::accounts::Staff;
use serde::Serialize;

/// Whom the counter is for: a manager does what the box office does.
const COUNTER: &[Role] = &[Role::BoxOffice];
/// Whom the day's end is for.
const MANAGER: &[Role] = &[Role::Manager];

/// The routes of the box office, under `/api/v1`.
pub fn routes() -> OpenApiRouter<BackofficeState> {
    OpenApiRouter::new().merge(tills::routes()).merge(shows::routes()).merge(bookings::routes())
}

/// Somebody who may do this in that theatre.
///
/// # Errors
/// 404 for strangers, 403 for others who work there.
fn at<'a>(staff: &'a Staff, theatre: &'a str, wanted: &[Role]) -> Result<Counter<'a>, Problem> {
    staff.at(theatre, wanted)?;
    Ok(Counter { staff, theatre })
}

/// A key of this person for a request to the counter; `rest` is what stands behind the room in the path.
fn intent(counter: Counter<'_>, key: IdempotencyKey, rest: &str, body: &impl Serialize) -> Intent {
    let path = format!("POST /theatres/{}/box-office/{rest}", counter.theatre);
    Intent::new(&counter.staff.session.owner, key, &path, body)
}
