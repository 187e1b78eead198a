//! The page of one show: its terms of sale, its cancellation, and its move to another screen.

use app::staff::pages::organiser::{
    CANCEL, DEFECTS, PRICE, PriceLine, ShowPage, TERMS, WithdrawnSeats, defects_request, move_page, show_form,
    terms_request,
};
use app::staff::pages::{Form, REASON};
use axum::http::{HeaderValue, header};
use domain::api::moving::{MoveQuery, MoveRequest, MoveState};
use domain::api::organiser::{CancelShowRequest, DefectiveSeatsView, OrganisedShow};
use domain::money::Currency;
use language::say;
use serde::Deserialize;
use uuid::Uuid;

use super::super::{PageError, PageQuery, SignedInPageResult};
use super::prices::currency_of;
use super::visit::{SentForm, StaffVisit, VisitOf, malformed};
use crate::AppState;
use backoffice::organiser::{self, PriceInput};
use http::{Problem, page_locale};

/// Reload interval of a show that is being cancelled or moved, seconds.
const RELOAD_S: u32 = 2;
/// Maximum number of listed shows whose room lacks a defective seat.
const MAX_ELSEWHERE: usize = 10;

/// The result of taking defective seats off sale, in the address of the page after it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WithdrawnQuery {
    /// Number of shows; `None` without a result.
    shows: Option<u32>,
    bookings: u32,
    /// Ids of shows, separated by commas.
    elsewhere: String,
}

impl WithdrawnQuery {
    async fn load(self, state: &AppState, theatre: &str) -> Result<Option<WithdrawnSeats>, PageError> {
        let Some(shows) = self.shows else { return Ok(None) };
        let ids = self.elsewhere.split(',').filter_map(|id| id.parse::<Uuid>().ok());
        let ids: Vec<Uuid> = ids.take(MAX_ELSEWHERE).collect();
        let mut elsewhere = Vec::with_capacity(ids.len());
        for id in ids {
            elsewhere.push(organiser::show(state, theatre, id).await?);
        }
        elsewhere.sort_by_key(|show| show.starts_at_ms);
        Ok(Some(WithdrawnSeats { shows, bookings: self.bookings, elsewhere }))
    }
}

/// A show with the data of its page.
struct EditedShow {
    show: OrganisedShow,
    price_input: PriceInput,
    currency: Currency,
    withdrawn: Option<WithdrawnSeats>,
}

impl EditedShow {
    async fn of(state: &AppState, theatre: &str, show: Uuid) -> Result<Self, PageError> {
        let show = organiser::show(state, theatre, show).await?;
        let price_input = organiser::load_price_input(state, theatre).await?;
        let currency = currency_of(&show.currency)?;
        Ok(Self { show, price_input, currency, withdrawn: None })
    }

    /// The page, with the refused form if there is one.
    async fn page(self, visit: StaffVisit, form: Form) -> SignedInPageResult {
        let Self { show, price_input, currency, withdrawn } = self;
        let terms = if form.is(TERMS) { form.clone() } else { show_form(&show, currency) };
        let line = |(category, _): (&str, &str)| PriceLine {
            category: category.to_owned(),
            label: price_input.label_of(category),
            is_in_a_room: true,
        };
        let lines = terms.with_prefix(PRICE).map(line).collect();
        let terms = (terms, lines);
        let is_over = show.starts_at_ms <= visit.state.clock.now().0;
        // Banks may take days to confirm the refunds: the page does not wait for them.
        let is_being_undone = show.cancellation.as_ref().is_some_and(|gone| !gone.finished);
        let is_moving =
            show.moved.as_ref().is_some_and(|moved| matches!(moved.state, MoveState::Closing | MoveState::Carried));
        let screens = organiser::screens(&visit.state, &visit.desk.theatre).await?;
        let prices = show.prices.iter().map(|(category, minor)| (price_input.label_of(category), *minor)).collect();
        // A refused form keeps what was typed.
        let reloads = (is_being_undone || is_moving) && visit.desk.error.is_none();
        let here = format!("/staff/{}/shows/{}", visit.desk.theatre, show.id);
        let mut page =
            visit.show(|desk| ShowPage { desk, show, prices, terms, form, screens, currency, is_over, withdrawn });
        if reloads && let Ok(after) = HeaderValue::try_from(format!("{RELOAD_S}; url={here}")) {
            page.headers_mut().insert(header::REFRESH, after);
        }
        Ok(page)
    }
}

pub(super) async fn show_page(visit: VisitOf<Uuid>, PageQuery(query): PageQuery<WithdrawnQuery>) -> SignedInPageResult {
    let (visit, (_, show)) = visit.split();
    let mut shown = EditedShow::of(&visit.state, &visit.desk.theatre, show).await?;
    // A reload does not show the result again.
    if visit.desk.done {
        shown.withdrawn = query.load(&visit.state, &visit.desk.theatre).await?;
    }
    shown.page(visit, Form::default()).await
}

pub(super) async fn terms(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, show)) = visit.split();
    let seen = EditedShow::of(&visit.state, &visit.desk.theatre, show).await?;
    let mut form = form.named(TERMS);
    let done = match terms_request(&mut form, seen.currency).transpose() {
        None => return seen.page(visit.refuse_fields(), form).await,
        Some(request) => {
            async {
                let request = request.map_err(malformed)?;
                let intent = visit.intent(&form, &request)?;
                organiser::change_terms(&visit.state, &visit.action(&intent, &request.reason), show, &request).await
            }
        }
    };
    match done.await {
        Ok(_) => Ok(visit.redirect_to(&format!("shows/{show}?done=true"))),
        Err(problem) => seen.page(visit.refuse(&problem)?, form).await,
    }
}

async fn refused(visit: StaffVisit, show: Uuid, form: Form) -> SignedInPageResult {
    let seen = EditedShow::of(&visit.state, &visit.desk.theatre, show).await?;
    seen.page(visit, form.with_checked_reason()).await
}

pub(super) async fn cancel(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, show)) = visit.split();
    let request = CancelShowRequest { reason: form.text(REASON) };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        organiser::call_off(&visit.state, &visit.action(&intent, &request.reason), show, &request).await
    };
    match done.await {
        Ok(_) => Ok(visit.redirect_to(&format!("shows/{show}"))),
        Err(problem) => refused(visit.refuse(&problem)?, show, form.named(CANCEL)).await,
    }
}

pub(super) async fn defective_seats(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, show)) = visit.split();
    if !form.is_ticked("sure") {
        let words = say!(in page_locale::language(), "organiser.defect_unsure");
        let visit = visit.fail(&malformed("Tick that you are sure."), Some(words));
        return refused(visit, show, form.named(DEFECTS)).await;
    }
    let request = defects_request(&form);
    let done = async {
        let intent = visit.intent(&form, &request)?;
        organiser::withdraw_seats(&visit.state, &visit.action(&intent, &request.reason), show, &request).await
    };
    match done.await {
        Ok(answer) => {
            let view: DefectiveSeatsView =
                serde_json::from_slice(answer.body()).map_err(|cause| Problem::internal(&cause))?;
            let elsewhere: Vec<String> = view.elsewhere.iter().map(Uuid::to_string).collect();
            let result = format!("shows={}&bookings={}&elsewhere={}", view.shows, view.bookings, elsewhere.join(","));
            Ok(visit.redirect_to(&format!("shows/{show}?done=true&{result}")))
        }
        Err(problem) => refused(visit.refuse(&problem)?, show, form.named(DEFECTS)).await,
    }
}

pub(super) async fn preview_move(
    visit: VisitOf<Uuid>,
    PageQuery(MoveQuery { screen }): PageQuery<MoveQuery>,
) -> SignedInPageResult {
    let (visit, (_, show)) = visit.split();
    preview_page(visit, show, &screen, Form::default()).await
}

/// The plan of the move; or the reason why it is impossible, if there is no other problem.
async fn preview_page(mut visit: StaffVisit, show: Uuid, screen: &str, form: Form) -> SignedInPageResult {
    let known = organiser::show(&visit.state, &visit.desk.theatre, show).await?;
    let preview = match organiser::preview_move(&visit.state, &visit.desk.theatre, show, screen).await {
        Ok(preview) => Some(preview),
        Err(problem) => {
            let refused_before = visit.desk.error.is_some();
            visit = if refused_before { visit.solvable(&problem)? } else { visit.refuse(&problem)? };
            None
        }
    };
    Ok(visit.show(|desk| move_page(desk, known, preview, form)))
}

pub(super) async fn start_move(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, show)) = visit.split();
    // A refused move shows the new preview, with its version and layout.
    let request = MoveRequest {
        screen: form.text("screen"),
        start: None,
        version: form.get("version").parse().ok(),
        layout: form.get("layout").parse().ok(),
        reason: form.text(REASON),
    };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        organiser::move_show(&visit.state, &visit.action(&intent, &request.reason), show, &request).await
    };
    match done.await {
        Ok(_) => Ok(visit.redirect_to(&format!("shows/{show}"))),
        Err(problem) => preview_page(visit.refuse(&problem)?, show, &request.screen, form.with_checked_reason()).await,
    }
}
