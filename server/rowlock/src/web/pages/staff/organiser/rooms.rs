//! Screens and their rooms.

use app::staff::pages::organiser::{
    DrawingBoard, DrawnRoom, GiveForm, ImportForm, Preview, RoomPage, Screens, Trouble,
};
use app::staff::pages::{Desk, Field, Section};
use axum::extract::{Form, FromRequest, Path, Query, Request, State};
use axum::http::StatusCode;
use domain::api::organiser::{LayoutView, PublishRequest, ScreenRequest, ScreenView};
use domain::layout::Layout;
use domain::pricing::PriceList;
use serde::Deserialize;
use uuid::Uuid;

use super::super::{StaffPageResult, StaffResult, desk};
use super::{
    OrganiserQuery, PageError, currency_of, intent, new_key, passing_or_fault, private, see, trouble, with_status,
};
use crate::AppState;
use crate::web::pages::{FormResult, PathResult, QueryResult};
use backoffice::organiser::{self, LayoutDetails, OrganiserAction};
use http::Problem;
use http::idempotency::Answer;
use identity::accounts::Staff;

pub(super) async fn screens(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
    asked: QueryResult<OrganiserQuery>,
) -> StaffPageResult {
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Query(asked) = asked?;
    screens_page(&state, desk, ImportForm::default(), asked.done, None).await
}

async fn screens_page(
    state: &AppState,
    desk: Desk,
    form: ImportForm,
    done: bool,
    trouble: Option<Trouble>,
) -> StaffPageResult {
    let screens = organiser::screens(state, &desk.theatre).await.map_err(passing_or_fault)?;
    Ok(private(Screens { desk, screens, form, key: new_key(), done, trouble }))
}

#[derive(Deserialize)]
struct RoomImportForm {
    key: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    file: String,
    #[serde(default)]
    pasted: String,
    #[serde(default)]
    mend: bool,
}

/// The body is large, and read only for those who may send it.
pub(super) async fn import(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
    request: Request,
) -> StaffPageResult {
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(form) = Form::<RoomImportForm>::from_request(request, &state).await?;
    let typed = ImportForm { name: form.name.clone(), pasted: form.pasted.clone(), mend: form.mend };
    match imported(&state, &staff, &theatre, form).await {
        Ok(layout) => Ok(see(&format!("/staff/{theatre}/layouts/{layout}"))),
        Err(problem) => {
            let (status, trouble) = trouble(problem)?;
            Ok(with_status(status, screens_page(&state, desk, typed, false, Some(trouble)).await?))
        }
    }
}

async fn imported(state: &AppState, staff: &Staff, theatre: &str, form: RoomImportForm) -> Result<Uuid, Problem> {
    let text = if form.file.is_empty() { form.pasted } else { form.file };
    let file = organiser::File::Form { name: form.name, may_relabel: form.mend, plan: text };
    let (file, digest) = file.digested().await?;
    let intent = intent(staff, &form.key, &format!("form /staff/{theatre}/layouts"), &digest)?;
    let act = OrganiserAction { staff, theatre, intent: &intent, reason: organiser::IMPORT_REASON };
    let answer = organiser::import(state, &act, file).await?;
    let view: LayoutView = serde_json::from_slice(answer.body()).map_err(|cause| Problem::internal(&cause))?;
    Ok(view.id)
}

pub(super) async fn room(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
) -> StaffPageResult {
    let Path((theatre, layout)) = thing?;
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    room_page(&state, desk, layout, GiveForm::default(), None).await
}

async fn room_page(
    state: &AppState,
    desk: Desk,
    layout: Uuid,
    form: GiveForm,
    trouble: Option<Trouble>,
) -> StaffPageResult {
    let LayoutDetails { layout: room, view, is_own } =
        organiser::room(state, &desk.theatre, layout).await.map_err(passing_or_fault)?;
    let screens = organiser::screens(state, &desk.theatre).await.map_err(passing_or_fault)?;
    let preview = preview_of(state, &desk.theatre, layout, &room).await?;
    let screens = screens.into_iter().filter(|screen| screen.layout != layout).collect();
    Ok(private(RoomPage { desk, layout: view, preview, screens, is_own, form, key: new_key(), trouble }))
}

pub(super) async fn preview_of(state: &AppState, theatre: &str, id: Uuid, room: &Layout) -> Result<Preview, PageError> {
    // What it costs is another page's; the drawing wants some price, and in the theatre's currency.
    let ground = organiser::load_price_input(state, theatre).await.map_err(passing_or_fault)?;
    let currency = currency_of(&ground.currency)?;
    let by_category = room.categories().iter().map(|category| (category.name.clone(), 0)).collect();
    let plan = room.plan_view(id, &PriceList { currency, by_category }, None).map_err(|_| PageError::Fault)?;
    Ok(Preview { plan, dots: room.dots() })
}

/// An empty drawing board.
pub(super) async fn draw(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
) -> StaffPageResult {
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let screens = organiser::screens(&state, &theatre).await.map_err(passing_or_fault)?;
    let screens = screens.into_iter().map(|screen| (screen.id, screen.name)).collect();
    Ok(private(DrawingBoard { desk, room: None, screens }))
}

/// A room on the drawing board; what is saved there is another one.
pub(super) async fn edit(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
) -> StaffPageResult {
    let Path((theatre, layout)) = thing?;
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let LayoutDetails { layout: room, view, .. } =
        organiser::room(&state, &theatre, layout).await.map_err(passing_or_fault)?;
    let mut screens = organiser::screens(&state, &theatre).await.map_err(passing_or_fault)?;
    screens.sort_by_key(|screen| screen.layout != layout);
    let screens = screens.into_iter().map(|screen| (screen.id, screen.name)).collect();
    let sold = organiser::sold_seats(&state, &theatre, layout).await.map_err(passing_or_fault)?;
    let preview = preview_of(&state, &theatre, layout, &room).await?;
    let room = DrawnRoom { id: layout, name: view.name, preview, sold };
    Ok(private(DrawingBoard { desk, room: Some(room), screens }))
}

#[derive(Deserialize)]
pub(super) struct NewScreenForm {
    key: String,
    layout: Uuid,
    name: String,
    reason: String,
}

pub(super) async fn create(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
    form: FormResult<NewScreenForm>,
) -> StaffPageResult {
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(NewScreenForm { key, layout, name, reason }) = form?;
    let request = ScreenRequest { name, layout, reason };
    let done = async {
        let intent = intent(&staff, &key, &format!("form /staff/{theatre}/screens"), &request)?;
        let act = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
        organiser::create_screen(&state, &act, &request).await
    };
    match done.await {
        Ok(_) => Ok(see(&format!("/staff/{theatre}/screens?done=true"))),
        Err(problem) => {
            let new_reason = Field::reason(request.reason);
            let form = GiveForm { name: request.name, new_reason, ..GiveForm::default() };
            refused(&state, desk, layout, form, problem).await
        }
    }
}

#[derive(Deserialize)]
pub(super) struct PublishForm {
    key: String,
    layout: Uuid,
    screen: String,
    reason: String,
}

pub(super) async fn publish(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
    form: FormResult<PublishForm>,
) -> StaffPageResult {
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(PublishForm { key, layout, screen, reason }) = form?;
    let request = PublishRequest { layout, reason };
    let done = async {
        let intent = intent(&staff, &key, &format!("form /staff/{theatre}/screens/{screen}/layout"), &request)?;
        let act = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
        organiser::publish(&state, &act, &screen, &request).await
    };
    match done.await {
        Ok(answer) => Ok(see(&after_publishing(&theatre, &screen, &answer))),
        Err(problem) => {
            let form = GiveForm { screen, reason: Field::reason(request.reason), ..GiveForm::default() };
            refused(&state, desk, layout, form, problem).await
        }
    }
}

/// House seats that the new room has not are named next.
fn after_publishing(theatre: &str, screen: &str, answer: &Answer) -> String {
    let view = serde_json::from_slice::<ScreenView>(answer.body());
    match view.map(|view| view.house_seats_gone.is_empty()) {
        Ok(false) => format!("/staff/{theatre}/screens/{screen}/house-seats?done=true"),
        _ => format!("/staff/{theatre}/screens?done=true"),
    }
}

async fn refused(state: &AppState, desk: Desk, layout: Uuid, form: GiveForm, problem: Problem) -> StaffPageResult {
    let (status, trouble): (StatusCode, Trouble) = trouble(problem)?;
    Ok(with_status(status, room_page(state, desk, layout, form, Some(trouble)).await?))
}
