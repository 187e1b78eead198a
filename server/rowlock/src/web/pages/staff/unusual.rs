//! The page of unusual hold patterns, and its form. They do what the API does, through the same service.

use app::staff::pages::REASON;
use app::staff::pages::unusual::unusual_page;
use domain::api::systems::ReasonRequest;
use uuid::Uuid;

use super::super::SignedInPageResult;
use super::visit::{SentForm, StaffVisit, VisitOf};
use admission::fairness;
use http::Code;

pub(super) async fn show_page(visit: StaffVisit) -> SignedInPageResult {
    let flags = fairness::list(&visit.state, &visit.desk.theatre).await?;
    Ok(visit.show(|desk| unusual_page(desk, flags)))
}

pub(super) async fn dismiss(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let request = ReasonRequest { reason: form.text(REASON) };
    let (visit, (_, flag)) = visit.split();
    let done = async {
        let intent = visit.intent(&form, &request)?;
        fairness::dismiss(&visit.state, &visit.action(&intent, &request.reason), flag).await
    };
    match done.await {
        Ok(_) => Ok(visit.redirect_to("unusual")),
        // The general messages about bookings do not fit this page.
        Err(problem) if problem.code() == Code::Malformed => {
            show_page(visit.refuse_in_words(&problem, "unusual.refused")?).await
        }
        Err(problem) => show_page(visit.refuse(&problem)?).await,
    }
}
