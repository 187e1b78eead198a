//! The organiser's page of a waiting room: its state and settings.

use app::staff::pages::organiser::{RoomForm, RoomPart, RoomStands, Trouble, WaitingRoomPage};
use app::staff::pages::{Desk, Field, Refusal, Section};
use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use domain::api::systems::MAX_REASON_CHARS;
use domain::api::waiting_room::WaitingRoomRequest;
use domain::time::Timestamp;
use domain::waiting_room::MAX_PER_SECOND;
use serde::Deserialize;
use uuid::Uuid;

use super::super::{StaffPageError, StaffPageResult, StaffResult, desk};
use super::{OrganiserQuery, intent, new_key, passing_or_fault, private, see, trouble, with_status};
use crate::AppState;
use crate::web::pages::{FormResult, PathResult, QueryResult};
use admission::waiting_room;
use backoffice::organiser;
use catalogue::Show;
use http::{Code, page_locale};
use platform::clock::rfc3339;
use waiting_room::{Overview, SwitchError};

/// Reload interval of the figures, seconds.
const LOOK_AGAIN_S: u32 = 5;
/// An instant on the clocks of a theatre to the minute, as fields have it, is so much of one to the second.
const TO_THE_MINUTE: usize = "2026-12-01T10:00".len();

pub(super) async fn show_page(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
    asked: QueryResult<OrganiserQuery>,
) -> StaffPageResult {
    let Path((theatre, show)) = thing?;
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Query(asked) = asked?;
    let show = waiting_room::show_at(&state, &theatre, show).await.map_err(passing_or_fault)?;
    let part = RoomPart::Figures { is_still: asked.still };
    Asking { state: &state, desk, show: &show }.page(part, asked.done, None).await
}

pub(super) async fn terms(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
) -> StaffPageResult {
    let Path((theatre, show)) = thing?;
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let show = waiting_room::show_at(&state, &theatre, show).await.map_err(passing_or_fault)?;
    Asking { state: &state, desk, show: &show }.page(RoomPart::Terms(None), false, None).await
}

pub(super) async fn end(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
) -> StaffPageResult {
    let Path((theatre, show)) = thing?;
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let show = waiting_room::show_at(&state, &theatre, show).await.map_err(passing_or_fault)?;
    Asking { state: &state, desk, show: &show }.page(RoomPart::End { reason: Field::default() }, false, None).await
}

#[derive(Deserialize)]
pub(super) struct TermsForm {
    key: String,
    seen: String,
    /// Not there when it stays.
    #[serde(default)]
    opens: String,
    per_second: String,
    reason: String,
}

impl TermsForm {
    fn request(&self, show: &Show, room: Option<&Overview>) -> Result<WaitingRoomRequest, SwitchError> {
        let opens_at = opening(show, &self.opens, room.map(|room| room.opens_at))?;
        Ok(WaitingRoomRequest {
            on: true,
            opens_at: opens_at.map(rfc3339),
            per_second: self.per_second.trim().parse().ok(),
            reason: self.reason.clone(),
        })
    }

    /// The fields as sent, for the page with the problem.
    fn shown(self) -> RoomForm {
        RoomForm {
            opens: Field::kept(self.opens),
            per_second: Field::kept(self.per_second),
            reason: Field::kept(self.reason),
        }
    }
}

/// The new opening time. A missing field, or one that equals the current time to the minute, changes nothing.
fn opening(show: &Show, written: &str, before: Option<Timestamp>) -> Result<Option<Timestamp>, SwitchError> {
    let written = written.trim();
    let is_as_before = before.is_some_and(|at| written.is_empty() || to_the_minute(show, at) == written);
    if is_as_before || written.is_empty() {
        return Ok(before);
    }
    match organiser::instant(written, &show.time_zone) {
        Ok(at) => Ok(Some(at)),
        Err(problem) if problem.code() == Code::Malformed => Err(SwitchError::Opening),
        Err(problem) => Err(SwitchError::Other(problem)),
    }
}

fn to_the_minute(show: &Show, at: Timestamp) -> String {
    let mut local = show.local_iso(at);
    local.truncate(TO_THE_MINUTE);
    local
}

pub(super) async fn set(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
    form: FormResult<TermsForm>,
) -> StaffPageResult {
    let Path((theatre, show)) = thing?;
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(form) = form?;
    let show = waiting_room::show_at(&state, &theatre, show).await.map_err(passing_or_fault)?;
    let here = format!("/staff/{theatre}/shows/{}/waiting-room", show.id);
    let done = async {
        let room = waiting_room::overview(&state, show.id).await?;
        let request = form.request(&show, room.as_ref())?;
        let intent = intent(&staff, &form.key, &format!("form {here}/terms"), &(&request, &form.seen))?;
        waiting_room::switch(&state, &show, &staff, &intent, &request, Some(&form.seen)).await
    };
    match done.await {
        Ok(_) => Ok(see(&format!("{here}?done=true"))),
        Err(refused) => {
            let mut typed = form.shown();
            let before = mark_refusal(refused, &mut typed)?;
            let part = RoomPart::Terms(Some(typed));
            Asking { state: &state, desk, show: &show }.page(part, false, Some(before)).await
        }
    }
}

#[derive(Deserialize)]
pub(super) struct EndForm {
    key: String,
    seen: String,
    reason: String,
    /// Not there without the tick.
    #[serde(default)]
    sure: bool,
}

pub(super) async fn switch_off(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
    form: FormResult<EndForm>,
) -> StaffPageResult {
    let Path((theatre, show)) = thing?;
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(EndForm { key, seen, reason, sure }) = form?;
    let show = waiting_room::show_at(&state, &theatre, show).await.map_err(passing_or_fault)?;
    if !sure {
        let words = app::say!(in page_locale::language(), "waiting_room.unsure");
        let before = (StatusCode::BAD_REQUEST, Trouble { words: words.into(), findings: Vec::new() });
        let part = RoomPart::End { reason: Field::kept(reason) };
        return Asking { state: &state, desk, show: &show }.page(part, false, Some(before)).await;
    }
    let here = format!("/staff/{theatre}/shows/{}/waiting-room", show.id);
    let request = WaitingRoomRequest { on: false, opens_at: None, per_second: None, reason };
    let done = async {
        let intent = intent(&staff, &key, &format!("form {here}/off"), &(&request, &seen))?;
        waiting_room::switch(&state, &show, &staff, &intent, &request, Some(&seen)).await
    };
    match done.await {
        Ok(_) => Ok(see(&format!("{here}?done=true"))),
        Err(refused) => {
            let mut typed = RoomForm { reason: Field::kept(request.reason), ..RoomForm::default() };
            let before = mark_refusal(refused, &mut typed)?;
            let part = RoomPart::End { reason: typed.reason };
            Asking { state: &state, desk, show: &show }.page(part, false, Some(before)).await
        }
    }
}

/// Why a room stays as it is, in the reader's language: beside the field that it is about, above the form where it is
/// about none.
fn mark_refusal(refused: SwitchError, form: &mut RoomForm) -> Result<(StatusCode, Trouble), StaffPageError> {
    let language = page_locale::language();
    let refusal_of = |words: String| Some(Refusal::Message(words));
    match &refused {
        SwitchError::Reason => form.reason.refusal = Some(Refusal::NoReason(MAX_REASON_CHARS)),
        SwitchError::Opening => form.opens.refusal = refusal_of(app::say!(in language, "waiting_room.no_opening")),
        SwitchError::Past => form.opens.refusal = refusal_of(app::say!(in language, "waiting_room.past")),
        SwitchError::TooLate => form.opens.refusal = refusal_of(app::say!(in language, "waiting_room.too_late")),
        SwitchError::Rate => {
            form.per_second.refusal = refusal_of(app::say!(in language, "waiting_room.no_pace", most = MAX_PER_SECOND));
        }
        SwitchError::Opened | SwitchError::Changed | SwitchError::Other(_) => {}
    }
    let is_beside = [&form.opens, &form.per_second, &form.reason].into_iter().any(Field::is_refused);
    let above = match &refused {
        _ if is_beside => Some(app::say!(in language, "field.refused")),
        SwitchError::Opened => Some(app::say!(in language, "waiting_room.opened")),
        SwitchError::Changed => Some(app::say!(in language, "waiting_room.changed")),
        _ => None,
    };
    let (status, general) = trouble(refused.problem())?;
    Ok((status, above.map_or(general, |words| Trouble { words: words.into(), findings: Vec::new() })))
}

/// A permitted caller who asks for the waiting room of a show.
struct Asking<'a> {
    state: &'a AppState,
    desk: Desk,
    show: &'a Show,
}

impl Asking<'_> {
    async fn page(self, part: RoomPart, done: bool, before: Option<(StatusCode, Trouble)>) -> StaffPageResult {
        let Self { state, desk, show } = self;
        let room = waiting_room::overview(state, show.id).await.map_err(passing_or_fault)?;
        let now = state.clock.now();
        // No more admissions. A caller whose change came as booking closed still sees the input.
        let is_closed = catalogue::sales_open(show, now).is_err();
        let part = if is_closed && before.is_none() { RoomPart::Figures { is_still: true } } else { part };
        let again = room.is_some() && matches!(part, RoomPart::Figures { is_still: false });
        let stands = |room: Overview| RoomStands {
            opens_local: show.local_iso(room.opens_at),
            is_settled: room.is_settled,
            is_on_sale: catalogue::on_sale(show, now).is_ok(),
            queue: room.queue,
            inside: room.inside,
            limit: room.limit,
            draw: room.draw,
            seen: room.seen,
        };
        let sold_from = show.sales_from.filter(|from| *from > now);
        let (status, trouble) = before.unzip();
        let here = format!("/staff/{}/shows/{}/waiting-room", desk.theatre, show.id);
        let page = WaitingRoomPage {
            desk,
            show: show.id,
            title: show.film.clone(),
            starts_local: show.local_iso(show.starts_at),
            room: room.map(stands),
            part,
            is_closed,
            suggested: sold_from.map(|from| to_the_minute(show, from)).unwrap_or_default(),
            key: new_key(),
            done,
            trouble,
        };
        let mut page = private(page);
        // The reload shows the figures alone: a confirmation is shown once.
        if again && let Ok(after) = HeaderValue::try_from(format!("{LOOK_AGAIN_S}; url={here}")) {
            page.headers_mut().insert(header::REFRESH, after);
        }
        Ok(with_status(status.unwrap_or(StatusCode::OK), page))
    }
}
