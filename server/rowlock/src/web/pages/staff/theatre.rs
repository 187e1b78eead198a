//! The page of a theatre's details, for its managers; and of a new theatre, for managers of all theatres.

use app::staff::pages::{Form, theatre_change, theatre_page, theatre_request};
use axum::extract::State;
use axum::response::IntoResponse;
use domain::api::theatres::ManagedTheatre;

use super::super::{PageError, SignedInPageResult, redirect_to, signed_in_sender};
use super::entrance_page;
use super::visit::{SentForm, StaffVisit, malformed, staff_error};
use crate::AppState;
use backoffice::organiser;
use http::idempotency::{IdempotencyKey, Intent};
use http::{Code, Problem};
use identity::accounts::Staff;

pub(super) async fn show_page(visit: StaffVisit) -> SignedInPageResult {
    page(visit, None).await
}

async fn page(visit: StaffVisit, refused: Option<Form>) -> SignedInPageResult {
    let theatre = organiser::theatre(&visit.state, &visit.desk.theatre).await?;
    Ok(visit.show(|desk| theatre_page(desk, theatre, refused)))
}

pub(super) async fn change(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let done = async {
        let request = theatre_change(&form).map_err(malformed)?;
        let intent = visit.intent(&form, &request)?;
        organiser::change_theatre(&visit.state, &visit.action(&intent, &request.reason), &request).await
    };
    match done.await {
        Ok(_) => Ok(visit.redirect_to("theatre?done=true")),
        Err(problem) => page(visit.refuse(&problem)?, Some(form)).await,
    }
}

pub(super) async fn create(
    State(state): State<AppState>,
    who: Result<Staff, Problem>,
    sent: Result<SentForm, PageError>,
) -> SignedInPageResult {
    let staff = signed_in_sender(who, "/staff")?;
    let SentForm(form) = sent?;
    let request = theatre_request(&form);
    let done = async {
        let key = IdempotencyKey::of_form(form.get("key"))?;
        let intent = Intent::new(&staff.session.owner, key, "form /staff/theatres", &request);
        let answer = organiser::create_theatre(&state, &staff, &intent, &request).await?;
        serde_json::from_slice::<ManagedTheatre>(answer.body()).map_err(|cause| Problem::internal(&cause))
    };
    match done.await {
        Ok(made) => Ok(redirect_to(&format!("/staff/{}/theatre?done=true", made.id))),
        Err(problem) if matches!(problem.code(), Code::Internal | Code::DatabaseUnavailable) => Err(problem.into()),
        Err(problem) => {
            let page = entrance_page(&state, &staff, Some((form, staff_error(&problem)))).await?;
            Ok((problem.code().describe().0, page).into_response())
        }
    }
}
