//! The pages of a theatre's staff and of its audit log. They do what the API does, through the same service.

use app::staff::pages::Form;
use app::staff::pages::team::{audit_page, grant_request, team_page};
use domain::api::accounts::AuditQuery;

use super::super::{PageError, PageQuery, SignedInPageResult};
use super::visit::{SentForm, StaffVisit};
use super::{local_iso, zone_of};
use http::Code;
use identity::{accounts, audit};

pub(super) async fn show_page(visit: StaffVisit) -> SignedInPageResult {
    page(visit, Form::default()).await
}

async fn page(visit: StaffVisit, form: Form) -> SignedInPageResult {
    let people = accounts::people_at(&visit.state, &visit.desk.theatre).await?;
    Ok(visit.show(|desk| team_page(desk, people, form)))
}

pub(super) async fn change(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let not_ours = || PageError::Unreadable("Send the form as it is.".to_owned());
    let (request, name) = grant_request(&form).ok_or_else(not_ours)?;
    let done = async {
        let intent = visit.intent(&form, &request)?;
        accounts::change_role(&visit.state, &visit.staff, &visit.desk.theatre, &request, &intent).await
    };
    let Err(problem) = done.await else { return Ok(visit.redirect_to("team?done=true")) };
    let visit = match problem.code() {
        // "Not found" does not fit an address without an account.
        Code::NotFound => visit.refuse_in_words(&problem, "team.no_account")?,
        _ => visit.refuse(&problem)?,
    };
    page(visit, form.named(name).with_checked_reason()).await
}

pub(super) async fn acts(
    visit: StaffVisit,
    PageQuery(AuditQuery { before }): PageQuery<AuditQuery>,
) -> SignedInPageResult {
    let zone = zone_of(&visit.state, &visit.desk.theatre).await?;
    let lines = audit::of_theatre(&visit.state.pg, &visit.desk.theatre, before).await?;
    // A page that is full is followed by another, perhaps an empty one.
    let is_full = i64::try_from(lines.len()).is_ok_and(|count| count == audit::PER_PAGE);
    let next = lines.last().filter(|_| is_full).map(|line| line.number);
    let lines = lines.into_iter().map(|line| (line.clone(), local_iso(&line.at, zone))).collect();
    Ok(visit.show(|desk| audit_page(desk, lines, before.is_some(), next)))
}
