//! A single show: how it is sold, and that it will not take place.

use app::staff::pages::organiser::{DefectForm, PriceLine, ShowForm, ShowPage, Trouble};
use app::staff::pages::{Desk, Field, Refusal, Section};
use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderValue, header};
use domain::api::moving::MoveState;
use domain::api::organiser::{CancelShowRequest, DefectiveSeatsRequest, OrganisedShow, TermsRequest};
use domain::money::Currency;
use serde::Deserialize;
use uuid::Uuid;

use super::super::{StaffPageResult, StaffResult, desk};
use super::programme::TermsForm;
use super::{
    OrganiserQuery, currency_of, field, intent, marked, new_key, passing_or_fault, price_in, private, see, trouble,
    whole, with_status,
};
use crate::AppState;
use crate::web::pages::{FormResult, PathResult, QueryResult};
use backoffice::organiser::{self, OrganiserAction, PriceInput};
use http::Problem;

/// Reload interval of a show that is being cancelled or moved, seconds.
const LOOK_AGAIN_S: &str = "2";

/// A show with the data of its page.
struct EditedShow {
    show: OrganisedShow,
    ground: PriceInput,
    currency: Currency,
}

impl EditedShow {
    async fn of(state: &AppState, theatre: &str, show: Uuid) -> Result<Self, super::PageError> {
        let show = organiser::show(state, theatre, show).await.map_err(passing_or_fault)?;
        let ground = organiser::load_price_input(state, theatre).await.map_err(passing_or_fault)?;
        let currency = currency_of(&show.currency)?;
        Ok(Self { show, ground, currency })
    }

    /// The forms of the show as it is.
    fn as_kept(&self) -> ShowForm {
        let terms = &self.show.terms;
        let line = |(category, minor): (&String, &i64)| PriceLine {
            category: category.clone(),
            label: self.ground.label_of(category),
            amount: Field::amount(*minor, self.currency),
            is_in_a_room: true,
        };
        ShowForm {
            version: self.show.version.to_string(),
            sales: terms.sales.as_str().to_owned(),
            sales_from: terms.sales_from.clone().unwrap_or_default(),
            hold_seconds: Field::kept(terms.hold_seconds.to_string()),
            per_person: Field::kept(terms.per_person.to_string()),
            per_instrument: Field::kept(terms.per_instrument.map(|most| most.to_string()).unwrap_or_default()),
            flash: terms.flash_sale,
            email_code: terms.email_code,
            prices: self.show.prices.iter().map(line).collect(),
            reason: Field::default(),
            cancel_reason: Field::default(),
            defects: DefectForm::default(),
        }
    }

    /// The form of its terms as it was sent, with what is wrong beside each field; and the prices in it, minor units.
    fn as_sent(&self, sent: &[(String, String)]) -> (ShowForm, Vec<(String, i64)>) {
        let text = |name: &str| field(sent, name).to_owned();
        let (mut lines, mut prices) = (Vec::new(), Vec::new());
        for (name, value) in sent {
            let Some(category) = name.strip_prefix("price:") else { continue };
            let (mut amount, minor) = price_in(value, self.currency);
            if minor.is_none() && !amount.is_refused() {
                // Every category of a room that is on sale has a price.
                amount.refusal = Some(Refusal::NoAmount(self.currency));
            }
            prices.extend(minor.map(|minor| (category.to_owned(), minor)));
            let label = self.ground.label_of(category);
            lines.push(PriceLine { category: category.to_owned(), label, amount, is_in_a_room: true });
        }
        let form = ShowForm {
            version: text("version"),
            sales: text("sales"),
            sales_from: text("sales_from"),
            hold_seconds: Field::kept(text("hold_seconds")),
            per_person: Field::kept(text("per_person")),
            per_instrument: Field::kept(text("per_instrument")),
            flash: !field(sent, "flash").is_empty(),
            email_code: !field(sent, "email_code").is_empty(),
            prices: lines,
            reason: Field::reason(field(sent, "reason")),
            cancel_reason: Field::default(),
            defects: DefectForm::default(),
        };
        (form, prices)
    }

    async fn page(
        self,
        state: &AppState,
        desk: Desk,
        form: ShowForm,
        done: bool,
        trouble: Option<Trouble>,
    ) -> StaffPageResult {
        let Self { show, ground, currency } = self;
        let is_over = show.starts_at_ms <= state.clock.now().0;
        let is_being_undone = show.cancellation.as_ref().is_some_and(|gone| !gone.finished || gone.refunds_open > 0);
        let is_moving =
            show.moved.as_ref().is_some_and(|moved| matches!(moved.state, MoveState::Closing | MoveState::Carried));
        let screens = organiser::screens(state, &desk.theatre).await.map_err(passing_or_fault)?;
        let prices = show.prices.iter().map(|(category, minor)| (ground.label_of(category), *minor)).collect();
        let key = new_key();
        let mut page = private(ShowPage { desk, show, prices, form, screens, currency, is_over, key, done, trouble });
        if is_being_undone || is_moving {
            page.headers_mut().insert(header::REFRESH, HeaderValue::from_static(LOOK_AGAIN_S));
        }
        Ok(page)
    }
}

pub(super) async fn show_page(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
    asked: QueryResult<OrganiserQuery>,
) -> StaffPageResult {
    let Path((theatre, show)) = thing?;
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Query(asked) = asked?;
    let seen = EditedShow::of(&state, &theatre, show).await?;
    let form = seen.as_kept();
    seen.page(&state, desk, form, asked.done, None).await
}

pub(super) async fn terms(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
    form: FormResult<Vec<(String, String)>>,
) -> StaffPageResult {
    let Path((theatre, show)) = thing?;
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(sent) = form?;
    let seen = EditedShow::of(&state, &theatre, show).await?;
    let (form, prices) = seen.as_sent(&sent);
    let (status, trouble) = if form.is_refused() {
        marked()
    } else {
        let done = async {
            let request = terms_request(&sent, prices)?;
            let path = format!("form /staff/{theatre}/shows/{show}/terms");
            let intent = intent(&staff, field(&sent, "key"), &path, &request)?;
            let act = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
            organiser::change_terms(&state, &act, show, &request).await
        };
        match done.await {
            Ok(_) => return Ok(see(&format!("/staff/{theatre}/shows/{show}?done=true"))),
            Err(problem) => trouble(problem)?,
        }
    };
    Ok(with_status(status, seen.page(&state, desk, form, false, Some(trouble)).await?))
}

fn terms_request(sent: &[(String, String)], prices: Vec<(String, i64)>) -> Result<TermsRequest, Problem> {
    let text = |name: &str| field(sent, name).to_owned();
    let form = TermsForm {
        sales: text("sales"),
        sales_from: text("sales_from"),
        hold_seconds: text("hold_seconds"),
        per_person: text("per_person"),
        flash: text("flash"),
        email_code: text("email_code"),
        per_instrument: text("per_instrument"),
    };
    Ok(TermsRequest {
        terms: form.read()?,
        prices: Some(prices.into_iter().collect()),
        version: whole(field(sent, "version"), "The version")?,
        reason: text("reason"),
    })
}

#[derive(Deserialize)]
pub(super) struct CancelForm {
    key: String,
    reason: String,
}

pub(super) async fn cancel(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
    form: FormResult<CancelForm>,
) -> StaffPageResult {
    let Path((theatre, show)) = thing?;
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(CancelForm { key, reason }) = form?;
    let request = CancelShowRequest { reason };
    let done = async {
        let intent = intent(&staff, &key, &format!("form /staff/{theatre}/shows/{show}/cancel"), &request)?;
        let act = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
        organiser::call_off(&state, &act, show, &request).await
    };
    match done.await {
        Ok(_) => Ok(see(&format!("/staff/{theatre}/shows/{show}"))),
        Err(problem) => {
            let (status, trouble) = trouble(problem)?;
            let seen = EditedShow::of(&state, &theatre, show).await?;
            let form = ShowForm { cancel_reason: Field::reason(request.reason), ..seen.as_kept() };
            Ok(with_status(status, seen.page(&state, desk, form, false, Some(trouble)).await?))
        }
    }
}

#[derive(Deserialize)]
pub(super) struct DefectsForm {
    key: String,
    seats: String,
    #[serde(default)]
    all_shows: Option<String>,
    reason: String,
}

pub(super) async fn defective_seats(
    State(state): State<AppState>,
    who: StaffResult,
    thing: PathResult<(String, Uuid)>,
    form: FormResult<DefectsForm>,
) -> StaffPageResult {
    let Path((theatre, show)) = thing?;
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(DefectsForm { key, seats, all_shows, reason }) = form?;
    let names = seats.split([',', ';', '\n']).map(str::trim).filter(|name| !name.is_empty());
    let request =
        DefectiveSeatsRequest { seats: names.map(str::to_owned).collect(), all_shows: all_shows.is_some(), reason };
    let done = async {
        let intent = intent(&staff, &key, &format!("form /staff/{theatre}/shows/{show}/defective-seats"), &request)?;
        let act = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
        organiser::withdraw_seats(&state, &act, show, &request).await
    };
    match done.await {
        Ok(_) => Ok(see(&format!("/staff/{theatre}/shows/{show}?done=true"))),
        Err(problem) => {
            let (status, trouble) = trouble(problem)?;
            let seen = EditedShow::of(&state, &theatre, show).await?;
            let DefectiveSeatsRequest { all_shows, reason, .. } = request;
            let defects = DefectForm { seats, all_shows, reason: Field::reason(reason) };
            let form = ShowForm { defects, ..seen.as_kept() };
            Ok(with_status(status, seen.page(&state, desk, form, false, Some(trouble)).await?))
        }
    }
}
