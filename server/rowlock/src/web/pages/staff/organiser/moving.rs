//! A show on another screen: a show_page at what it would mean, and the move.

use app::staff::pages::organiser::MovePage;
use app::staff::pages::{Form, REASON};
use domain::api::moving::{MoveQuery, MoveRequest};
use uuid::Uuid;

use super::super::super::SignedInPageResult;
use super::super::visit::{PageQuery, SentForm, ShowPath, StaffVisit};
use backoffice::organiser;

pub(in super::super) async fn show_page(
    visit: StaffVisit<ShowPath>,
    PageQuery(MoveQuery { screen }): PageQuery<MoveQuery>,
) -> SignedInPageResult {
    let (visit, ShowPath { show }) = visit.split();
    page(visit, show, &screen, Form::default()).await
}

/// The plan of the move; or the reason why it is impossible, if there is no other problem.
async fn page(mut visit: StaffVisit, show: Uuid, screen: &str, form: Form) -> SignedInPageResult {
    let known = organiser::show(&visit.state, &visit.desk.theatre, show).await?;
    let preview = match organiser::preview_move(&visit.state, &visit.desk.theatre, show, screen).await {
        Ok(preview) => Some(preview),
        Err(problem) => {
            let refused_before = visit.desk.trouble.is_some();
            visit = if refused_before { visit.solvable(&problem)? } else { visit.refuse(&problem)? };
            None
        }
    };
    Ok(visit.show(|desk| MovePage { desk, show: known, preview, form }))
}

pub(in super::super) async fn start(visit: StaffVisit<ShowPath>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, ShowPath { show }) = visit.split();
    let request = MoveRequest { screen: form.text("screen"), reason: form.text(REASON) };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        organiser::move_show(&visit.state, &visit.action(&intent, &request.reason), show, &request).await
    };
    match done.await {
        Ok(_) => Ok(visit.see(&format!("shows/{show}"))),
        Err(problem) => page(visit.refuse(&problem)?, show, &request.screen, form.with_checked_reason()).await,
    }
}
