//! One show: its sales terms and prices, defective seats, a move, and calling it off.

use domain::api::moving::MoveState;
use domain::api::organiser::{CancellationView, OrganisedShow, ScreenView};
use domain::money::Currency;
use domain::seats::FLASH_HOLD_MS;
use domain::time::SECOND_MS;
use leptos::prelude::*;

use super::super::Field;
use super::super::fields::{number_field, reason_field};
use super::prices::price_fields;
use super::{
    Desk, PriceLine, Tab, Trouble, choice, field, head, hidden, money_words, moving, page, sales_choices, sales_words,
    tick, when,
};
use crate::say;
use crate::shell::{Head, Page};

/// The values of its forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowForm {
    /// Version of the terms being changed.
    pub version: String,
    /// Sales state, as the API spells it.
    pub sales: String,
    /// Start of sales, local.
    pub sales_from: String,
    /// Duration of a hold, seconds.
    pub hold_seconds: Field,
    /// Seats per person.
    pub per_person: Field,
    /// Seats per card; empty for no limit.
    pub per_instrument: Field,
    /// True if it is an on-sale day with a rush.
    pub flash: bool,
    /// True if guests must confirm their address by a code.
    pub email_code: bool,
    /// Price of each category.
    pub prices: Vec<PriceLine>,
    /// The typed reason for the change.
    pub reason: Field,
    /// The typed reason for calling it off.
    pub cancel_reason: Field,
    /// The form of defective seats.
    pub defects: DefectForm,
}

/// The values of the form of defective seats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefectForm {
    /// The typed seat names.
    pub seats: String,
    /// True if for all planned shows of the screen.
    pub all_shows: bool,
    /// The typed reason.
    pub reason: Field,
}

impl ShowForm {
    /// Returns true if a field has an error.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        let others = [&self.hold_seconds, &self.per_person, &self.per_instrument, &self.reason, &self.cancel_reason];
        others.into_iter().chain(self.prices.iter().map(|line| &line.amount)).any(Field::is_refused)
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
    /// The values of the forms.
    pub form: ShowForm,
    /// The screens of its theatre.
    pub screens: Vec<ScreenView>,
    /// Currency of its prices.
    pub currency: Currency,
    /// True if it has started.
    pub is_over: bool,
    /// Idempotency key of the next action.
    pub key: String,
    /// True if a change was just made.
    pub done: bool,
    /// The error of the last attempt.
    pub trouble: Option<Trouble>,
}

impl Page for ShowPage {
    fn head(&self) -> Head {
        head(format!("{}, {}", self.show.title, when(&self.show.starts_local)))
    }

    fn view(self) -> AnyView {
        let Self { desk, show, prices, form, screens, currency, is_over, key, done, trouble } = self;
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
            let cancel = call_off_form(&base, show.sold, form.cancel_reason.clone(), &key);
            let defects = defects_form(&base, form.defects.clone(), &key);
            view! { <div class="organiser-cards">{terms_form(&base, form, currency, &key)}{move_form}{defects}{cancel}</div> }
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
        page(&desk, Tab::Programme, title, done, trouble, content.into_any())
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
fn terms_form(base: &str, form: ShowForm, currency: Currency, key: &str) -> impl IntoView + use<> {
    let ShowForm { version, sales, sales_from, hold_seconds, per_person, per_instrument, .. } = form;
    view! {
        <form class="organiser-form card organiser-card" action=format!("{base}/terms") method="post" aria-labelledby="terms">
            <h2 id="terms" class="organiser-wide">{say!("organiser.terms")}</h2>
            {hidden("key", key.to_owned())}
            {hidden("version", version)}
            {choice("sales", say!("organiser.sales"), sales_choices(), &sales)}
            {field("sales_from", "datetime-local", say!("organiser.sales_from"), sales_from, false)}
            {number_field("hold_seconds", say!("organiser.hold_seconds"), hold_seconds, true)}
            {number_field("per_person", say!("organiser.per_person"), per_person, true)}
            {number_field("per_instrument", say!("organiser.per_instrument"), per_instrument, false)}
            {tick("flash", say!("organiser.flash", seconds = FLASH_HOLD_MS / SECOND_MS), form.flash)}
            {tick("email_code", say!("organiser.email_code"), form.email_code)}
            <fieldset class="organiser-wide">
                <legend>{say!("organiser.prices")}</legend>
                <p class="quiet small">{say!("organiser.prices_hint")}</p>
                <div class="organiser-fields">{price_fields(form.prices, currency)}</div>
            </fieldset>
            {reason_field("terms-reason", say!("organiser.reason"), form.reason, true)}
            <button class="button" r#type="submit" data-testid="change-terms">{say!("organiser.change")}</button>
        </form>
    }
}

/// The form of defective seats.
fn defects_form(base: &str, form: DefectForm, key: &str) -> impl IntoView + use<> {
    let DefectForm { seats, all_shows, reason } = form;
    view! {
        <form class="organiser-form card organiser-card" action=format!("{base}/defective-seats") method="post" aria-labelledby="defects">
            <h2 id="defects" class="organiser-wide">{say!("organiser.defect_title")}</h2>
            <p class="organiser-wide">{say!("organiser.defect_lead")}</p>
            {hidden("key", key.to_owned())}
            <div class="field organiser-wide">
                <label for="defect-seats">{say!("organiser.defect_seats")}</label>
                <input id="defect-seats" name="seats" r#type="text" autocomplete="off" spellcheck="false" dir="ltr" required value=seats />
            </div>
            {tick("all_shows", say!("organiser.defect_all"), all_shows)}
            {reason_field("defect-reason", say!("organiser.reason"), reason, true)}
            <button class="button" r#type="submit" data-testid="defective-seats">{say!("organiser.defect")}</button>
        </form>
    }
}

/// The form that calls it off.
fn call_off_form(base: &str, sold: u32, reason: Field, key: &str) -> impl IntoView + use<> {
    view! {
        <form class="organiser-form card organiser-card organiser-danger" action=format!("{base}/cancel") method="post" aria-labelledby="cancel">
            <h2 id="cancel" class="organiser-wide">{say!("organiser.cancel_title")}</h2>
            <p class="organiser-wide">{say!("organiser.cancel_lead", sold = sold)}</p>
            {hidden("key", key.to_owned())}
            {reason_field("cancel-reason", say!("organiser.reason"), reason, true)}
            <label class="organiser-tick organiser-wide" for="sure">
                <input id="sure" name="sure" r#type="checkbox" value="true" required />
                <span>{say!("organiser.cancel_sure")}</span>
            </label>
            <button class="button button-danger" r#type="submit" data-testid="cancel-show">{say!("organiser.cancel")}</button>
        </form>
    }
}
