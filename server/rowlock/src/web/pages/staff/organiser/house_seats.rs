//! The seats of a screen that the house keeps in every show planned there.

use app::staff::islands::house_seats::HouseRow;
use app::staff::pages::Form;
use app::staff::pages::organiser::{FORGET, HouseSeatsPage, KEEP, Preview, standing_request};
use domain::layout::Layout;
use domain::seats::SeatIndex;
use serde::Deserialize;

use super::super::super::{SignedInPageError, SignedInPageResult};
use super::super::visit::{SentForm, StaffVisit, malformed};
use super::rooms::preview_of;
use backoffice::organiser::{self, LayoutDetails};
use http::{Code, page_locale};

#[derive(Deserialize)]
pub(in super::super) struct ScreenPath {
    screen: String,
}

pub(in super::super) async fn show_page(visit: StaffVisit<ScreenPath>) -> SignedInPageResult {
    let (visit, ScreenPath { screen }) = visit.split();
    page(visit, &screen, Form::default(), Vec::new()).await
}

async fn page(visit: StaffVisit, screen: &str, mut form: Form, unknown: Vec<String>) -> SignedInPageResult {
    let (state, theatre) = (&visit.state, &visit.desk.theatre);
    let standing = organiser::standing_seats(state, theatre, screen).await?;
    let LayoutDetails { layout, .. } = organiser::room(state, theatre, standing.layout).await?;
    let Preview { plan, .. } = preview_of(state, theatre, standing.layout, &layout).await?;
    let rows = plan.sections.into_iter().filter(|_| !plan.overview).flat_map(|section| {
        let name = [section.name.as_str(), section.part.as_str()].join(" ").trim().to_owned();
        section.rows.into_iter().map(move |row| (name.clone(), row))
    });
    let rows =
        rows.map(|(section, view)| HouseRow { section, labels: labels(&layout, view.first, view.numbers.len()), view });
    let rows: Vec<HouseRow> = rows.collect();
    if rows.is_empty() {
        write_down(&mut form);
    }
    Ok(visit.show(|desk| HouseSeatsPage { desk, standing, rows, form, unknown }))
}

/// For a room that is too large for boxes: the ticked seats as text. The screen has got such a room meanwhile.
fn write_down(form: &mut Form) {
    let names = form.filled("names");
    let names: Vec<String> = names.into_iter().chain(form.all("seat").map(str::to_owned)).collect();
    form.set("names", names.join(", "));
}

fn labels(room: &Layout, first: SeatIndex, count: usize) -> Vec<String> {
    (first..).take(count).map(|seat| room.label(seat).unwrap_or_default()).collect()
}

pub(in super::super) async fn keep(visit: StaffVisit<ScreenPath>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, ScreenPath { screen }) = visit.split();
    let request = match standing_request(&form) {
        Ok(request) => request,
        Err(detail) => return page(visit.refuse(&malformed(detail))?, &screen, Form::default(), Vec::new()).await,
    };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        organiser::keep_standing_seats(&visit.state, &visit.action(&intent, &request.reason), &screen, &request).await
    };
    let Err(problem) = done.await else {
        return Ok(visit.see(&format!("screens/{screen}/house-seats?done=true")));
    };
    let form = form.with_checked_reason();
    let form = if form.is_ticked("forgets") { form.named(FORGET) } else { form.named(KEEP) };
    let mut unknown = Vec::new();
    if form.is(KEEP) && matches!(problem.code(), Code::UnknownSeat | Code::WrongState) {
        unknown = unknown_by_now(&visit, &screen, &request.seats).await?;
    }
    let visit = match problem.code() {
        _ if form.is_refused() => visit.refuse_fields(),
        Code::WrongState => {
            visit.refuse_in_words(&problem, app::say!(in page_locale::language(), "house.other_room"))?
        }
        _ => visit.refuse(&problem)?,
    };
    page(visit, &screen, form, unknown).await
}

/// Those of the seats that the screen's current room does not have: it may have got another room since they were chosen.
async fn unknown_by_now(visit: &StaffVisit, screen: &str, seats: &[String]) -> Result<Vec<String>, SignedInPageError> {
    let (state, theatre) = (&visit.state, &visit.desk.theatre);
    let standing = organiser::standing_seats(state, theatre, screen).await?;
    Ok(organiser::unknown_seats(state, theatre, standing.layout, seats).await?)
}
