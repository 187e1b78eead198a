//! One show: its sales terms and prices, defective seats, a move, and calling it off.

use domain::api::moving::MoveState;
use domain::api::organiser::{CancellationView, DefectiveSeatsRequest, OrganisedShow, ScreenView, TermsRequest};
use domain::money::Currency;
use leptos::prelude::*;

use super::fields::{Field, hidden};
use super::form::{REASON, Refusal, decimal};
use super::prices::{PRICE, price_fields, price_in};
use super::{Desk, Form, PriceLine, Tab, head, money_words, moving, page, sales_words, terms, when};
use crate::say;
use crate::shell::{Head, Page};

const WHY_TERMS: Field = Field::reason("terms-reason", "organiser.reason");
const WHY_DEFECTS: Field = Field::reason("defect-reason", "organiser.reason");
const WHY_CANCEL: Field = Field::reason("cancel-reason", "organiser.reason");
/// Defective seats are taken out of all planned shows of the screen.
const ALL_SHOWS: Field = Field::tick("all_shows", "organiser.defect_all");
/// The name of the form of its sales terms.
pub const TERMS: &str = "terms";
/// The name of the form of defective seats.
pub const DEFECTS: &str = "defects";
/// The name of the form that calls it off.
pub const CANCEL: &str = "cancel";

/// The form of a show's stored terms and prices.
#[must_use]
pub fn show_form(show: &OrganisedShow, currency: Currency) -> Form {
    let prices = show.prices.iter().map(|(category, minor)| (format!("{PRICE}{category}"), decimal(*minor, currency)));
    let version = ("version".to_owned(), show.version.to_string());
    Form::new(terms::values(show.terms.clone()).into_iter().chain(prices).chain([version])).named(TERMS)
}

/// The terms and prices of a sent form; `None` if a field is refused.
///
/// # Errors
/// A field without an error of its own cannot be read.
pub fn terms_request(form: &mut Form, currency: Currency) -> Result<Option<TermsRequest>, String> {
    let categories: Vec<String> = form.with_prefix(PRICE).map(|(category, _)| category.to_owned()).collect();
    let mut prices = Vec::with_capacity(categories.len());
    for category in categories {
        let field = format!("{PRICE}{category}");
        match price_in(form, &field, currency) {
            Some(minor) => prices.push((category, minor)),
            // Every category of a room that is on sale has a price.
            None => form.refuse(field, Refusal::NoAmount(currency)),
        }
    }
    form.check_reason();
    if form.is_refused() {
        return Ok(None);
    }
    Ok(Some(TermsRequest {
        terms: terms::read(form)?,
        prices: Some(prices.into_iter().collect()),
        version: form.whole("version", "The version")?,
        reason: form.text(REASON),
    }))
}

/// The defective seats of a sent form.
#[must_use]
pub fn defects_request(form: &Form) -> DefectiveSeatsRequest {
    let seats = form.get("seats").split([',', ';', '\n']).map(str::trim).filter(|name| !name.is_empty());
    DefectiveSeatsRequest {
        seats: seats.map(str::to_owned).collect(),
        all_shows: form.is_ticked(ALL_SHOWS),
        reason: form.text(REASON),
    }
}

/// The page of a show.
#[derive(Clone, Debug)]
pub struct ShowPage {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The show.
    pub show: OrganisedShow,
    /// Prices in minor units, by category name.
    pub prices: Vec<(String, i64)>,
    /// The form of its terms, and its categories.
    pub terms: (Form, Vec<PriceLine>),
    /// A refused form of the others, or an empty one.
    pub form: Form,
    /// The screens of its theatre.
    pub screens: Vec<ScreenView>,
    /// Currency of its prices.
    pub currency: Currency,
    /// True if it has started.
    pub is_over: bool,
}

impl Page for ShowPage {
    fn head(&self) -> Head {
        head(format!("{}, {}", self.show.title, when(&self.show.starts_local)))
    }

    fn view(self) -> AnyView {
        let Self { desk, show, prices, terms, form, screens, currency, is_over } = self;
        let title = show.title.clone();
        let base = format!("/staff/{}/shows/{}", desk.theatre, show.id);
        let facts = format!("{} · {} · {}", show.screen_name, show.language, show.format);
        let prices = prices.into_iter().map(|(category, minor)| {
            view! { <li><bdi>{category}</bdi>" "<strong>{money_words(minor, currency)}</strong></li> }
        });
        let prices = prices.collect_view();
        let is_on = show.cancellation.is_none();
        let state = if is_on { sales_words(show.terms.sales) } else { say!("organiser.called_off") };
        let cancellation = show.cancellation.clone().map(progress);
        let is_moving =
            show.moved.as_ref().is_some_and(|moved| matches!(moved.state, MoveState::Closing | MoveState::Carried));
        let moved = show.moved.clone().map(moving::progress);
        let (sold, seats, customers) = (show.sold, show.seats, format!("/shows/{}", show.id));
        let when = when(&show.starts_local);
        let move_form = moving::move_form(&base, &screens, &show.screen);
        let forms = (is_on && !is_over && !is_moving).then(|| {
            let cancel = call_off_form(&base, show.sold, &form.only(CANCEL), &desk.key);
            let defects = defects_form(&base, &form.only(DEFECTS), &desk.key);
            view! { <div class="organiser-cards">{terms_form(&base, terms, currency, &desk.key)}{move_form}{defects}{cancel}</div> }
        });
        let content = view! {
            <div class="organiser-facts">
                <p><strong>{when}</strong>" · "<bdi>{facts}</bdi></p>
                <p><span class="organiser-state" data-testid="show-state">{state}</span>" · "{say!("organiser.sold", sold = sold, seats = seats)}</p>
                <ul class="organiser-prices">{prices}</ul>
                <p><a href=customers>{say!("organiser.as_customers")}</a></p>
                <p><a href=format!("{base}/waiting-room") data-testid="to-waiting-room">{say!("waiting_room.title")}</a></p>
            </div>
            {cancellation}
            {moved}
            {forms}
        };
        page(&desk, Tab::Programme, title, content.into_any())
    }
}

fn progress(cancellation: CancellationView) -> impl IntoView {
    let CancellationView { reason, undone, left, refunds_open, refunds_at_counter, finished } = cancellation;
    let at_counter = (refunds_at_counter > 0).then(|| say!("organiser.refunds_at_counter", count = refunds_at_counter));
    let is_complete = finished && refunds_open == 0;
    let words = if is_complete { say!("organiser.undone_all") } else { say!("organiser.undoing") };
    view! {
        <section class="card organiser-card" role="status" data-testid="undoing" data-finished=is_complete.then_some("true")>
            <h2>{words}</h2>
            <p class="quiet"><bdi>{reason}</bdi></p>
            <progress max=undone + left value=undone aria-label=say!("organiser.undoing")></progress>
            <p>{say!("organiser.undone", undone = undone, left = left)}</p>
            <p>{say!("organiser.refunds_open", count = refunds_open)}</p>
            {at_counter.map(|words| view! { <p data-testid="refunds-at-counter">{words}</p> })}
        </section>
    }
}

/// The form of its sales terms.
fn terms_form(
    base: &str,
    (form, lines): (Form, Vec<PriceLine>),
    currency: Currency,
    key: &str,
) -> impl IntoView + use<> {
    view! {
        <form class="organiser-form card organiser-card" action=format!("{base}/terms") method="post" aria-labelledby="terms">
            <h2 id="terms" class="organiser-wide">{say!("organiser.terms")}</h2>
            {hidden("key", key)}
            {hidden("version", form.get("version"))}
            {terms::view(&form, true)}
            <fieldset class="organiser-wide">
                <legend>{say!("organiser.prices")}</legend>
                <p class="quiet small">{say!("organiser.prices_hint")}</p>
                <div class="organiser-fields">{price_fields(&form, lines, currency)}</div>
            </fieldset>
            {WHY_TERMS.view(&form)}
            <button class="button" r#type="submit" data-testid="change-terms">{say!("organiser.change")}</button>
        </form>
    }
}

/// The form of defective seats.
fn defects_form(base: &str, form: &Form, key: &str) -> impl IntoView + use<> {
    view! {
        <form class="organiser-form card organiser-card" action=format!("{base}/defective-seats") method="post" aria-labelledby="defects">
            <h2 id="defects" class="organiser-wide">{say!("organiser.defect_title")}</h2>
            <p class="organiser-wide">{say!("organiser.defect_lead")}</p>
            {hidden("key", key)}
            <div class="field organiser-wide">
                <label for="defect-seats">{say!("organiser.defect_seats")}</label>
                <input id="defect-seats" name="seats" r#type="text" autocomplete="off" spellcheck="false" dir="ltr" required value=form.text("seats") />
            </div>
            {ALL_SHOWS.view(form)}
            {WHY_DEFECTS.view(form)}
            <button class="button" r#type="submit" data-testid="defective-seats">{say!("organiser.defect")}</button>
        </form>
    }
}

/// The form that calls it off.
fn call_off_form(base: &str, sold: u32, form: &Form, key: &str) -> impl IntoView + use<> {
    view! {
        <form class="organiser-form card organiser-card organiser-danger" action=format!("{base}/cancel") method="post" aria-labelledby="cancel">
            <h2 id="cancel" class="organiser-wide">{say!("organiser.cancel_title")}</h2>
            <p class="organiser-wide">{say!("organiser.cancel_lead", sold = sold)}</p>
            {hidden("key", key)}
            {WHY_CANCEL.view(form)}
            <label class="organiser-tick organiser-wide" for="sure">
                <input id="sure" name="sure" r#type="checkbox" value="true" required />
                <span>{say!("organiser.cancel_sure")}</span>
            </label>
            <button class="button button-danger" r#type="submit" data-testid="cancel-show">{say!("organiser.cancel")}</button>
        </form>
    }
}
