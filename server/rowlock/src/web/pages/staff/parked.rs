//! The page of parked effects, and its forms. They do what the API does, through the same service.

use app::staff::pages::parked::parked_page;
use app::staff::pages::{Form, REASON};
use domain::api::systems::ReasonRequest;

use super::super::{PageError, SignedInPageResult};
use super::visit::{FIELDS_REFUSED, SentForm, StaffVisit};
use super::{local_iso, zone_of};
use http::Code;
use selling::bookings::{self, Decision};

pub(super) async fn show_page(visit: StaffVisit) -> SignedInPageResult {
    page(visit, Form::default()).await
}

async fn page(visit: StaffVisit, refused: Form) -> SignedInPageResult {
    let zone = zone_of(&visit.state, &visit.desk.theatre).await?;
    let mut parked = bookings::parked_at(&visit.state, &visit.desk.theatre).await?;
    parked.iter_mut().for_each(|one| one.since = local_iso(&one.since, zone));
    Ok(visit.show(|desk| parked_page(desk, parked, refused)))
}

pub(super) async fn decide(
    visit: StaffVisit<(String, i64, String)>,
    sent: Result<SentForm, PageError>,
) -> SignedInPageResult {
    let (visit, (_, parked, name)) = visit.split();
    let decision = name.parse::<Decision>().map_err(|_| PageError::NotFound)?;
    let SentForm(form) = sent?;
    let request = ReasonRequest { reason: form.text(REASON) };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        bookings::decide_parked(&visit.state, &visit.action(&intent, &request.reason), parked, decision).await
    };
    let Err(problem) = done.await else { return Ok(visit.redirect_to("parked?done=true")) };
    let form = form.named(format!("{name}-{parked}")).with_checked_reason();
    let visit = match problem.code() {
        _ if form.is_refused() => visit.refuse_in_words(&problem, FIELDS_REFUSED)?,
        Code::NotFound => visit.refuse_in_words(&problem, "parked.gone")?,
        _ => visit.refuse(&problem)?,
    };
    page(visit, form).await
}
