//! Screens and their rooms.

use app::staff::pages::organiser::{DrawingBoard, DrawnRoom, NEW_SCREEN, PUBLISH, Preview, RoomPage, Screens};
use app::staff::pages::{Form, REASON};
use domain::api::organiser::{LayoutView, PublishRequest, ScreenRequest, ScreenView};
use domain::layout::Layout;
use domain::pricing::PriceList;
use serde::Deserialize;
use uuid::Uuid;

use super::super::super::{PageError, SignedInPageResult};
use super::super::visit::{SentForm, StaffVisit};
use super::currency_of;
use crate::AppState;
use backoffice::organiser::{self, LayoutDetails};
use http::Problem;
use http::idempotency::Answer;

pub(in super::super) async fn screens(visit: StaffVisit) -> SignedInPageResult {
    screens_page(visit, Form::default()).await
}

async fn screens_page(visit: StaffVisit, form: Form) -> SignedInPageResult {
    let screens = organiser::screens(&visit.state, &visit.desk.theatre).await?;
    Ok(visit.show(|desk| Screens { desk, screens, form }))
}

pub(in super::super) async fn import(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    match imported(&visit, &form).await {
        Ok(layout) => Ok(visit.see(&format!("layouts/{layout}"))),
        Err(problem) => screens_page(visit.refuse(&problem)?, form).await,
    }
}

async fn imported(visit: &StaffVisit, form: &Form) -> Result<Uuid, Problem> {
    let plan = if form.get("file").is_empty() { form.text("pasted") } else { form.text("file") };
    let file = organiser::File::Form { name: form.text("name"), may_relabel: form.is_ticked("mend"), plan };
    let (file, digest) = file.digested().await?;
    let intent = visit.intent(form, &digest)?;
    let answer = organiser::import(&visit.state, &visit.action(&intent, organiser::IMPORT_REASON), file).await?;
    let view: LayoutView = serde_json::from_slice(answer.body()).map_err(|cause| Problem::internal(&cause))?;
    Ok(view.id)
}

#[derive(Deserialize)]
pub(in super::super) struct LayoutPath {
    layout: Uuid,
}

pub(in super::super) async fn room(visit: StaffVisit<LayoutPath>) -> SignedInPageResult {
    let (visit, LayoutPath { layout }) = visit.split();
    room_page(visit, layout, Form::default()).await
}

async fn room_page(visit: StaffVisit, id: Uuid, form: Form) -> SignedInPageResult {
    let (state, theatre) = (&visit.state, &visit.desk.theatre);
    let LayoutDetails { layout: room, view: layout, is_own } = organiser::room(state, theatre, id).await?;
    let screens = organiser::screens(state, theatre).await?;
    let preview = preview_of(state, theatre, id, &room).await?;
    let screens = screens.into_iter().filter(|screen| screen.layout != id).collect();
    Ok(visit.show(|desk| RoomPage { desk, layout, preview, screens, is_own, form }))
}

pub(super) async fn preview_of(state: &AppState, theatre: &str, id: Uuid, room: &Layout) -> Result<Preview, PageError> {
    // What it costs is another page's; the drawing wants some price, and in the theatre's currency.
    let ground = organiser::load_price_input(state, theatre).await?;
    let currency = currency_of(&ground.currency)?;
    let by_category = room.categories().iter().map(|category| (category.name.clone(), 0)).collect();
    let plan = room.plan_view(id, &PriceList { currency, by_category }, None).map_err(|_| PageError::Fault)?;
    Ok(Preview { plan, dots: room.dots() })
}

/// An empty drawing board.
pub(in super::super) async fn draw(visit: StaffVisit) -> SignedInPageResult {
    let screens = organiser::screens(&visit.state, &visit.desk.theatre).await?;
    let screens = screens.into_iter().map(|screen| (screen.id, screen.name)).collect();
    Ok(visit.show(|desk| DrawingBoard { desk, room: None, screens }))
}

/// A room on the drawing board; what is saved there is another one.
pub(in super::super) async fn edit(visit: StaffVisit<LayoutPath>) -> SignedInPageResult {
    let (state, theatre, id) = (&visit.state, &visit.desk.theatre, visit.path.layout);
    let LayoutDetails { layout: room, view, .. } = organiser::room(state, theatre, id).await?;
    let mut screens = organiser::screens(state, theatre).await?;
    screens.sort_by_key(|screen| screen.layout != id);
    let screens = screens.into_iter().map(|screen| (screen.id, screen.name)).collect();
    let sold = organiser::sold_seats(state, theatre, id).await?;
    let preview = preview_of(state, theatre, id, &room).await?;
    let room = Some(DrawnRoom { id, name: view.name, preview, sold });
    Ok(visit.show(|desk| DrawingBoard { desk, room, screens }))
}

/// The room that a form gives to a screen.
fn layout_of(form: &Form) -> Result<Uuid, PageError> {
    form.get("layout").parse().map_err(|_| PageError::Unreadable("Send the form as it is.".to_owned()))
}

pub(in super::super) async fn create(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let layout = layout_of(&form)?;
    let request = ScreenRequest { name: form.text("name"), layout, reason: form.text(REASON) };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        organiser::create_screen(&visit.state, &visit.action(&intent, &request.reason), &request).await
    };
    match done.await {
        Ok(_) => Ok(visit.see("screens?done=true")),
        Err(problem) => room_page(visit.refuse(&problem)?, layout, form.named(NEW_SCREEN).with_checked_reason()).await,
    }
}

pub(in super::super) async fn publish(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let (layout, screen) = (layout_of(&form)?, form.get("screen"));
    let request = PublishRequest { layout, reason: form.text(REASON) };
    let done = async {
        let intent = visit.intent(&form, &(screen, &request))?;
        organiser::publish(&visit.state, &visit.action(&intent, &request.reason), screen, &request).await
    };
    match done.await {
        Ok(answer) => Ok(visit.see(&after_publishing(screen, &answer))),
        Err(problem) => room_page(visit.refuse(&problem)?, layout, form.named(PUBLISH).with_checked_reason()).await,
    }
}

/// House seats that the new room has not are named next.
fn after_publishing(screen: &str, answer: &Answer) -> String {
    let view = serde_json::from_slice::<ScreenView>(answer.body());
    match view.map(|view| view.house_seats_gone.is_empty()) {
        Ok(false) => format!("screens/{screen}/house-seats?done=true"),
        _ => "screens?done=true".to_owned(),
    }
}
