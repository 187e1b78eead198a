//! The rehearsal of a show's on-sale: the form that starts it, its live figures, and its verdict.

use app::staff::pages::Form;
use app::staff::pages::organiser::{RehearsalPage, ShownRehearsal, rehearsal_request};
use uuid::Uuid;

use super::super::SignedInPageResult;
use super::visit::{SentForm, StaffVisit, VisitOf};
use admission::waiting_room;
use backoffice::rehearsals;
use http::Code;

pub(super) async fn show_page(visit: VisitOf<Uuid>) -> SignedInPageResult {
    let (visit, (_, show)) = visit.split();
    page(visit, show, Form::default()).await
}

async fn page(visit: StaffVisit, show: Uuid, form: Form) -> SignedInPageResult {
    let show = waiting_room::show_at(&visit.state, &visit.desk.theatre, show).await?;
    let rehearsal = rehearsals::of_show(&visit.state, show.id).await?;
    let rehearsal = rehearsal.map(|rehearsal| ShownRehearsal {
        figures: rehearsal.figures,
        end: rehearsal.end,
        room: show.layout.clone(),
        map: rehearsal.map,
    });
    Ok(visit.show(|desk| RehearsalPage {
        desk,
        show: show.id,
        title: show.film.clone(),
        starts_local: show.local_iso(show.starts_at),
        rehearsal,
        form,
    }))
}

pub(super) async fn start(visit: VisitOf<Uuid>, SentForm(mut form): SentForm) -> SignedInPageResult {
    let (visit, (_, show)) = visit.split();
    let Some(request) = rehearsal_request(&mut form) else { return page(visit.refuse_fields(), show, form).await };
    let started = async {
        let intent = visit.intent(&form, &request)?;
        rehearsals::start(&visit.state, &visit.action(&intent, &request.reason), show, &request).await
    };
    match started.await {
        Ok(()) => Ok(visit.redirect_to(&format!("shows/{show}/rehearsal"))),
        Err(problem) if problem.code() == Code::WrongState => {
            page(visit.refuse_in_words(&problem, "rehearsal.impossible")?, show, form).await
        }
        Err(problem) => page(visit.refuse(&problem)?, show, form).await,
    }
}

pub(super) async fn stop(visit: VisitOf<Uuid>) -> SignedInPageResult {
    let (visit, (_, show)) = visit.split();
    rehearsals::request_stop(&visit.state, &visit.staff, &visit.desk.theatre, show).await?;
    Ok(visit.redirect_to(&format!("shows/{show}/rehearsal")))
}

pub(super) async fn delete(visit: VisitOf<Uuid>) -> SignedInPageResult {
    let (visit, (_, show)) = visit.split();
    rehearsals::delete(&visit.state, &visit.staff, &visit.desk.theatre, show).await?;
    Ok(visit.redirect_to(&format!("shows/{show}/rehearsal?done=true")))
}
