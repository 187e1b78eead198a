//! The organiser's page of a waiting room: its state and settings.

use std::sync::Arc;

use app::staff::pages::organiser::{OPENS, PER_SECOND, RoomPart, WaitingRoomPage, WaitingRoomState};
use app::staff::pages::{Form, REASON, Refusal};
use axum::http::{HeaderValue, header};
use domain::api::systems::MAX_REASON_CHARS;
use domain::api::waiting_room::WaitingRoomRequest;
use domain::time::Timestamp;
use domain::waiting_room::MAX_PER_SECOND;
use language::say;
use serde::Deserialize;
use uuid::Uuid;

use super::super::{PageQuery, SignedInPageError, SignedInPageResult};
use super::visit::{SentForm, StaffVisit, VisitOf, malformed, marked};
use admission::waiting_room;
use backoffice::organiser;
use catalogue::Show;
use http::{Code, page_locale};
use platform::clock::rfc3339;
use waiting_room::{Overview, SwitchError};

/// Reload interval of the figures, seconds.
const RELOAD_S: u32 = 5;
/// Length of a local time to the minute, as fields have it.
const MINUTE_CHARS: usize = "2026-12-01T10:00".len();

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FiguresQuery {
    still: bool,
}

pub(super) async fn show_page(visit: VisitOf<Uuid>, PageQuery(query): PageQuery<FiguresQuery>) -> SignedInPageResult {
    WaitingRoomVisit::of(visit).await?.page(RoomPart::Figures { is_still: query.still }).await
}

pub(super) async fn terms(visit: VisitOf<Uuid>) -> SignedInPageResult {
    WaitingRoomVisit::of(visit).await?.page(RoomPart::Terms(None)).await
}

pub(super) async fn end(visit: VisitOf<Uuid>) -> SignedInPageResult {
    WaitingRoomVisit::of(visit).await?.page(RoomPart::End(Form::default())).await
}

fn request_of(form: &Form, show: &Show, room: Option<&Overview>) -> Result<WaitingRoomRequest, SwitchError> {
    let opens_at = opening(show, form.get(OPENS), room.map(|room| room.opens_at))?;
    Ok(WaitingRoomRequest {
        on: true,
        opens_at: opens_at.map(rfc3339),
        per_second: form.get(PER_SECOND).trim().parse().ok(),
        reason: form.text(REASON),
    })
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
    local.truncate(MINUTE_CHARS);
    local
}

pub(super) async fn set(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let WaitingRoomVisit { visit, show } = WaitingRoomVisit::of(visit).await?;
    let done = async {
        let room = waiting_room::overview(&visit.state, show.id).await?;
        let request = request_of(&form, &show, room.as_ref())?;
        let seen = form.get("seen");
        let intent = visit.intent(&form, &(&request, seen))?;
        waiting_room::switch(&visit.state, &show, &visit.staff, &intent, &request, Some(seen)).await
    };
    let done = done.await;
    WaitingRoomVisit { visit, show }.after(done, form, |form| RoomPart::Terms(Some(form))).await
}

pub(super) async fn switch_off(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let WaitingRoomVisit { visit, show } = WaitingRoomVisit::of(visit).await?;
    if !form.is_ticked("sure") {
        let words = say!(in page_locale::language(), "waiting_room.unsure");
        let visit = visit.fail(&malformed("Tick that you are sure."), Some(words));
        return WaitingRoomVisit { visit, show }.page(RoomPart::End(form)).await;
    }
    let request = WaitingRoomRequest { on: false, opens_at: None, per_second: None, reason: form.text(REASON) };
    let done = async {
        let seen = form.get("seen");
        let intent = visit.intent(&form, &(&request, seen))?;
        waiting_room::switch(&visit.state, &show, &visit.staff, &intent, &request, Some(seen)).await
    };
    let done = done.await;
    WaitingRoomVisit { visit, show }.after(done, form, RoomPart::End).await
}

/// Shows in the reader's language why a change was refused: beside the field at fault, or above the form if no field is.
fn mark_refusal(
    visit: StaffVisit,
    mut form: Form,
    refused: SwitchError,
) -> Result<(StaffVisit, Form), SignedInPageError> {
    let language = page_locale::language();
    let beside = match &refused {
        SwitchError::Reason => Some((REASON, Refusal::NoReason(MAX_REASON_CHARS))),
        SwitchError::Opening => Some((OPENS, Refusal::Message(say!(in language, "waiting_room.no_opening")))),
        SwitchError::Past => Some((OPENS, Refusal::Message(say!(in language, "waiting_room.past")))),
        SwitchError::TooLate => Some((OPENS, Refusal::Message(say!(in language, "waiting_room.too_late")))),
        SwitchError::Rate => {
            let words = say!(in language, "waiting_room.no_pace", most = MAX_PER_SECOND);
            Some((PER_SECOND, Refusal::Message(words)))
        }
        SwitchError::Opened | SwitchError::Changed | SwitchError::Other(_) => None,
    };
    let above = match &refused {
        _ if beside.is_some() => Some(marked()),
        SwitchError::Opened => Some(say!(in language, "waiting_room.opened")),
        SwitchError::Changed => Some(say!(in language, "waiting_room.changed")),
        _ => None,
    };
    if let Some((field, refusal)) = beside {
        form.refuse(field, refusal);
    }
    let problem = refused.problem();
    Ok((visit.solvable(&problem)?.fail(&problem, above), form))
}

struct WaitingRoomVisit {
    visit: StaffVisit,
    show: Arc<Show>,
}

impl WaitingRoomVisit {
    async fn of(visit: VisitOf<Uuid>) -> Result<Self, SignedInPageError> {
        let (visit, (_, show)) = visit.split();
        let show = waiting_room::show_at(&visit.state, &visit.desk.theatre, show).await?;
        Ok(Self { visit, show })
    }

    /// Redirects after a change, or shows the refused form again.
    async fn after<T>(
        self,
        done: Result<T, SwitchError>,
        form: Form,
        part: fn(Form) -> RoomPart,
    ) -> SignedInPageResult {
        let Self { visit, show } = self;
        let Err(refused) = done else {
            return Ok(visit.redirect_to(&format!("shows/{}/waiting-room?done=true", show.id)));
        };
        let (visit, form) = mark_refusal(visit, form, refused)?;
        Self { visit, show }.page(part(form)).await
    }

    async fn page(self, part: RoomPart) -> SignedInPageResult {
        let Self { visit, show } = self;
        let room = waiting_room::overview(&visit.state, show.id).await?;
        let now = visit.state.clock.now();
        // Once booking has closed, only a caller whose change was just refused still sees the form.
        let is_closed = catalogue::sales_open(&show, now).is_err();
        let has_tried = visit.desk.error.is_some();
        let part = if is_closed && !has_tried { RoomPart::Figures { is_still: true } } else { part };
        let again = room.is_some() && matches!(part, RoomPart::Figures { is_still: false });
        let room_state = |room: Overview| WaitingRoomState {
            opens_local: show.local_iso(room.opens_at),
            is_settled: room.is_settled,
            is_on_sale: catalogue::on_sale(&show, now).is_ok(),
            queue: room.queue,
            inside: room.inside,
            limit: room.limit,
            draw: room.draw,
            seen: room.seen,
        };
        let sold_from = show.sales_from.filter(|from| *from > now);
        let here = format!("/staff/{}/shows/{}/waiting-room", visit.desk.theatre, show.id);
        let mut page = visit.show(|desk| WaitingRoomPage {
            desk,
            show: show.id,
            title: show.film.clone(),
            starts_local: show.local_iso(show.starts_at),
            room: room.map(room_state),
            part,
            is_closed,
            suggested: sold_from.map(|from| to_the_minute(&show, from)).unwrap_or_default(),
        });
        // The reload shows the figures alone: a confirmation is shown once.
        if again && let Ok(after) = HeaderValue::try_from(format!("{RELOAD_S}; url={here}")) {
            page.headers_mut().insert(header::REFRESH, after);
        }
        Ok(page)
    }
}
