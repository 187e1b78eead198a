//! Screens, their rooms, and the seats that the house keeps in every show planned there.

use app::staff::islands::house_seats::HouseRow;
use app::staff::pages::Form;
use app::staff::pages::organiser::{self as pages, DrawnRoom, FORGET, KEEP, NEW_SCREEN, PUBLISH, Preview};
use axum::extract::{FromRequest, Request};
use domain::api::organiser::{LayoutView, PublishRequest, ScreenRequest, ScreenView};
use domain::layout::editing::MAX_EDITED_SEATS;
use domain::layout::{FocusChoice, FocusKind, FocusSide, Layout};
use domain::pricing::PriceList;
use domain::seats::SeatIndex;
use serde::Deserialize;
use uuid::Uuid;

use super::super::{PageError, PageQuery, SignedInPageError, SignedInPageResult};
use super::prices::currency_of;
use super::visit::{SentForm, StaffVisit, VisitOf, malformed};
use crate::AppState;
use backoffice::organiser::{self, LayoutDetails};
use http::idempotency::Answer;
use http::{Code, Problem};

/// Longest pasted plan that the page of a refused form repeats, bytes: the page waits in memory for a slow browser.
const MAX_SHOWN_AGAIN_BYTES: usize = 256 * 1024;

pub(super) async fn screens(visit: StaffVisit) -> SignedInPageResult {
    screens_page(visit, Form::default()).await
}

async fn screens_page(visit: StaffVisit, form: Form) -> SignedInPageResult {
    let screens = organiser::screens(&visit.state, &visit.desk.theatre).await?;
    Ok(visit.show(|desk| pages::screens_page(desk, screens, form)))
}

pub(super) async fn import(visit: StaffVisit, request: Request) -> SignedInPageResult {
    let received = organiser::read_upload(SentForm::from_request(request, &visit.state)).await;
    let (received, _slot) = match received {
        Ok(received) => received,
        Err(problem) => return screens_page(visit.refuse(&problem)?, Form::default()).await,
    };
    let SentForm(mut form) = received?;
    match imported(&visit, &form).await {
        Ok(layout) => Ok(visit.redirect_to(&format!("layouts/{layout}"))),
        Err(problem) => {
            if form.get("pasted").len() > MAX_SHOWN_AGAIN_BYTES {
                form.set("pasted", "");
            }
            screens_page(visit.refuse(&problem)?, form).await
        }
    }
}

async fn imported(visit: &StaffVisit, form: &Form) -> Result<Uuid, Problem> {
    let plan = if form.get("file").is_empty() { form.text("pasted") } else { form.text("file") };
    let file = organiser::File::Form { name: form.text("name"), may_relabel: form.is_ticked("mend"), plan };
    let (file, digest) = file.digested().await?;
    let intent = visit.intent(form, &digest)?;
    let answer = organiser::import(&visit.state, &visit.action(&intent, organiser::IMPORT_REASON), file).await?;
    stored_id(&answer)
}

fn stored_id(answer: &Answer) -> Result<Uuid, Problem> {
    let view: LayoutView = serde_json::from_slice(answer.body()).map_err(|cause| Problem::internal(&cause))?;
    Ok(view.id)
}

/// Stores the room with the focus that a person chose on its drawing, and shows that room.
pub(super) async fn set_focus(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, layout)) = visit.split();
    let done = async {
        let unknown = || malformed("Send the form as it is.");
        let kind: FocusKind = form.get("kind").parse().map_err(|_| unknown())?;
        let shown: FocusSide = form.get("side").parse().map_err(|_| unknown())?;
        // The drawing has the known side at the top.
        let known = organiser::room(&visit.state, &visit.desk.theatre, layout).await?.view.focus.unwrap_or_default();
        let focus = FocusChoice { kind, side: known.side.behind(shown) };
        let intent = visit.intent(&form, &focus)?;
        let action = visit.action(&intent, organiser::FOCUS_REASON);
        stored_id(&organiser::set_focus(&visit.state, &action, layout, focus).await?)
    };
    match done.await {
        Ok(turned) => Ok(visit.redirect_to(&format!("layouts/{turned}"))),
        Err(problem) => room_page(visit.refuse(&problem)?, layout, form).await,
    }
}

pub(super) async fn room(visit: VisitOf<Uuid>) -> SignedInPageResult {
    let (visit, (_, layout)) = visit.split();
    room_page(visit, layout, Form::default()).await
}

async fn room_page(visit: StaffVisit, id: Uuid, form: Form) -> SignedInPageResult {
    let (state, theatre) = (&visit.state, &visit.desk.theatre);
    let LayoutDetails { layout: room, view: layout, is_own } = organiser::room(state, theatre, id).await?;
    let screens = organiser::screens(state, theatre).await?;
    let preview = preview_of(state, theatre, id, &room).await?;
    let screens = screens.into_iter().filter(|screen| screen.layout != id).collect();
    Ok(visit.show(|desk| pages::room_page(desk, layout, preview, screens, is_own, form)))
}

async fn preview_of(state: &AppState, theatre: &str, id: Uuid, room: &Layout) -> Result<Preview, PageError> {
    // The plan needs a price per category. The drawing shows none, so all are 0, in the theatre's currency.
    let price_input = organiser::load_price_input(state, theatre).await?;
    let currency = currency_of(&price_input.currency)?;
    let by_category = room.categories().iter().map(|category| (category.name.clone(), 0)).collect();
    let plan = room.plan_view(id, &PriceList { currency, by_category }, None).map_err(|_| PageError::Fault)?;
    Ok(Preview { plan, dots: room.dots() })
}

pub(super) async fn draw(visit: StaffVisit) -> SignedInPageResult {
    let screens = organiser::screens(&visit.state, &visit.desk.theatre).await?;
    let screens = screens.into_iter().map(|screen| (screen.id, screen.name)).collect();
    Ok(visit.show(|desk| pages::drawing_board_page(desk, None, screens)))
}

#[derive(Deserialize)]
pub(super) struct SectionQuery {
    section: Option<usize>,
}

/// Opens a room in the layout editor, or a section of a room too large for it. Saving creates another room.
pub(super) async fn edit(
    visit: VisitOf<Uuid>,
    PageQuery(SectionQuery { section }): PageQuery<SectionQuery>,
) -> SignedInPageResult {
    let (state, theatre, id) = (&visit.state, &visit.desk.theatre, visit.path.1);
    let LayoutDetails { layout: room, view, .. } = organiser::room(state, theatre, id).await?;
    let mut screens = organiser::screens(state, theatre).await?;
    screens.sort_by_key(|screen| screen.layout != id);
    let screens = screens.into_iter().map(|screen| (screen.id, screen.name)).collect();
    let mut sold = organiser::sold_seats(state, theatre, id).await?;
    let sections = room.zones();
    let section = section.filter(|_| room.seat_count() as usize > MAX_EDITED_SEATS);
    if let Some(section) = section {
        let (_, seats) = sections.get(section).ok_or(PageError::NotFound)?;
        let first: usize = sections[..section].iter().map(|(_, seats)| seats).sum();
        sold.retain(|seat| (first..first + seats).contains(&(*seat as usize)));
    }
    let preview = preview_of(state, theatre, id, &room).await?;
    let room = Some(DrawnRoom { id, name: view.name, preview, sections, section, sold });
    Ok(visit.show(|desk| pages::drawing_board_page(desk, room, screens)))
}

/// The room that a form gives to a screen.
fn layout_of(form: &Form) -> Result<Uuid, PageError> {
    form.get("layout").parse().map_err(|_| PageError::Unreadable("Send the form as it is.".to_owned()))
}

pub(super) async fn create(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let layout = layout_of(&form)?;
    let request = ScreenRequest { name: form.text("name"), layout, reason: form.reason() };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        organiser::create_screen(&visit.state, &visit.action(&intent, &request.reason), &request).await
    };
    match done.await {
        Ok(_) => Ok(visit.redirect_to("screens?done=true")),
        Err(problem) => room_page(visit.refuse(&problem)?, layout, form.named(NEW_SCREEN)).await,
    }
}

pub(super) async fn publish(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let (layout, screen) = (layout_of(&form)?, form.get("screen"));
    let request = PublishRequest { layout, reason: form.reason() };
    let done = async {
        let intent = visit.intent(&form, &(screen, &request))?;
        organiser::publish(&visit.state, &visit.action(&intent, &request.reason), screen, &request).await
    };
    match done.await {
        Ok(answer) => Ok(visit.redirect_to(&path_after_publishing(screen, &answer))),
        Err(problem) => room_page(visit.refuse(&problem)?, layout, form.named(PUBLISH)).await,
    }
}

/// Returns the next page: the house seats, if the new room lacks some of them, else the screens.
fn path_after_publishing(screen: &str, answer: &Answer) -> String {
    let view = serde_json::from_slice::<ScreenView>(answer.body());
    match view.map(|view| view.house_seats_gone.is_empty()) {
        Ok(false) => format!("screens/{screen}/house-seats?done=true"),
        _ => "screens?done=true".to_owned(),
    }
}

pub(super) async fn house_seats(visit: VisitOf<String>) -> SignedInPageResult {
    let (visit, (_, screen)) = visit.split();
    house_seats_page(visit, &screen, Form::default(), Vec::new()).await
}

async fn house_seats_page(visit: StaffVisit, screen: &str, mut form: Form, unknown: Vec<String>) -> SignedInPageResult {
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
        write_ticked_seats_as_text(&mut form);
    }
    Ok(visit.show(|desk| pages::house_seats_page(desk, standing, rows, form, unknown)))
}

/// Moves the ticked seats to the text field, for a screen that has got a room too large for checkboxes meanwhile.
fn write_ticked_seats_as_text(form: &mut Form) {
    let names = form.filled("names");
    let names: Vec<String> = names.into_iter().chain(form.all("seat").map(str::to_owned)).collect();
    form.set("names", names.join(", "));
}

fn labels(room: &Layout, first: SeatIndex, count: usize) -> Vec<String> {
    (first..).take(count).map(|seat| room.label(seat).unwrap_or_default()).collect()
}

pub(super) async fn keep_seats(visit: VisitOf<String>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, screen)) = visit.split();
    let request = match pages::standing_request(&form) {
        Ok(request) => request,
        Err(detail) => {
            return house_seats_page(visit.refuse(&malformed(detail))?, &screen, Form::default(), Vec::new()).await;
        }
    };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        organiser::keep_standing_seats(&visit.state, &visit.action(&intent, &request.reason), &screen, &request).await
    };
    let Err(problem) = done.await else {
        return Ok(visit.redirect_to(&format!("screens/{screen}/house-seats?done=true")));
    };
    let form = form.with_checked_reason();
    let form = if form.is_ticked("forgets") { form.named(FORGET) } else { form.named(KEEP) };
    let mut unknown = Vec::new();
    if form.is(KEEP) && matches!(problem.code(), Code::UnknownSeat | Code::WrongState) {
        unknown = find_unknown_seats(&visit, &screen, &request.seats).await?;
    }
    let visit = match problem.code() {
        _ if form.is_refused() => visit.refuse_fields(),
        Code::WrongState => visit.refuse_in_words(&problem, "house.other_room")?,
        _ => visit.refuse(&problem)?,
    };
    house_seats_page(visit, &screen, form, unknown).await
}

/// Returns the seats that the screen's current room lacks: it may have got another room since they were chosen.
async fn find_unknown_seats(
    visit: &StaffVisit,
    screen: &str,
    seats: &[String],
) -> Result<Vec<String>, SignedInPageError> {
    let (state, theatre) = (&visit.state, &visit.desk.theatre);
    let standing = organiser::standing_seats(state, theatre, screen).await?;
    Ok(organiser::unknown_seats(state, theatre, standing.layout, seats).await?)
}
