//! Films, and one more.

use app::staff::pages::Form;
use app::staff::pages::organiser::{Films, film_request};

use super::super::super::SignedInPageResult;
use super::super::visit::{SentForm, StaffVisit, malformed};
use backoffice::organiser;

pub(in super::super) async fn show_page(visit: StaffVisit) -> SignedInPageResult {
    page(visit, Form::default()).await
}

async fn page(visit: StaffVisit, form: Form) -> SignedInPageResult {
    let films = organiser::films(&visit.state).await?;
    Ok(visit.show(|desk| Films { desk, films, form }))
}

pub(in super::super) async fn add(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let done = async {
        let request = film_request(&form).map_err(malformed)?;
        let intent = visit.intent(&form, &request)?;
        organiser::add_film(&visit.state, &visit.action(&intent, &request.reason), &request).await
    };
    match done.await {
        Ok(_) => Ok(visit.see("films?done=true")),
        Err(problem) => page(visit.refuse(&problem)?, form.with_checked_reason()).await,
    }
}
