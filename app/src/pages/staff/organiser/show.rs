//! One show: how it is sold, what it costs, and that it will not take place.

use domain::api_moving::MoveState;
use domain::api_organiser::{CancellationView, OrganisedShow, ScreenView};
use domain::money::Currency;
use domain::seats::FLASH_HOLD_MS;
use domain::time::SECOND_MS;
use leptos::prelude::*;

use super::{
    Desk, Tab, Trouble, choice, decimal, field, head, hidden, money_words, moving, page, reason, sales_choices,
    sales_words, tick, when,
};
use crate::say;
use crate::shell::{Head, Page};

/// The page.
#[derive(Clone, Debug)]
pub struct ShowPage {
    /// Who, where.
    pub desk: Desk,
    /// The show.
    pub show: OrganisedShow,
    /// The screens of its theatre.
    pub screens: Vec<ScreenView>,
    /// Currency of its prices.
    pub currency: Currency,
    /// Whether it has begun.
    pub is_over: bool,
    /// Idempotency key of the next act.
    pub key: String,
    /// Whether something was just done.
    pub done: bool,
    /// What stood in the way.
    pub trouble: Option<Trouble>,
}

impl Page for ShowPage {
    fn head(&self) -> Head {
        head(format!("{}, {}", self.show.title, when(&self.show.starts_local)))
    }

    fn view(self) -> AnyView {
        let Self { desk, show, screens, currency, is_over, key, done, trouble } = self;
        let title = show.title.clone();
        let base = format!("/staff/{}/shows/{}", desk.theatre, show.id);
        let facts = format!("{} · {} · {}", show.screen_name, show.language, show.format);
        let prices = show.prices.iter().map(|(category, minor)| {
            view! { <li><bdi>{category.clone()}</bdi>" "<strong>{money_words(*minor, currency)}</strong></li> }
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
        let forms = (is_on && !is_over && !is_moving).then(|| forms(&base, show, &screens, currency, &key));
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

fn progress(undoing: CancellationView) -> impl IntoView {
    let CancellationView { reason, undone, left, refunds_open, finished } = undoing;
    let is_through = finished && refunds_open == 0;
    let words = if is_through { say!("organiser.undone_all") } else { say!("organiser.undoing") };
    view! {
        <section class="card organiser-card" role="status" data-testid="undoing" data-finished=is_through.then_some("true")>
            <h2>{words}</h2>
            <p class="quiet"><bdi>{reason}</bdi></p>
            <progress max=undone + left value=undone aria-label=say!("organiser.undoing")></progress>
            <p>{say!("organiser.undone", undone = undone, left = left)}</p>
            <p>{say!("organiser.refunds_open", count = refunds_open)}</p>
        </section>
    }
}

fn forms(
    base: &str,
    show: OrganisedShow,
    screens: &[ScreenView],
    currency: Currency,
    key: &str,
) -> impl IntoView + use<> {
    let way = moving::way(base, screens, &show.screen);
    let terms = show.terms;
    let per_instrument = terms.per_instrument.map(|most| most.to_string()).unwrap_or_default();
    let prices = show.prices.into_iter().map(|(category, minor)| {
        let name = format!("price:{category}");
        view! {
            <div class="field">
                <label for=name.clone()><bdi>{category}</bdi>" ("{currency.code().to_owned()}")"</label>
                <input id=name.clone() name=name r#type="text" inputmode="decimal" dir="ltr" value=decimal(minor, currency) />
            </div>
        }
    });
    let prices = prices.collect_view();
    view! {
        <div class="organiser-cards">
            <form class="organiser-form card organiser-card" action=format!("{base}/terms") method="post" aria-labelledby="terms">
                <h2 id="terms" class="organiser-wide">{say!("organiser.terms")}</h2>
                {hidden("key", key.to_owned())}
                {hidden("version", show.version.to_string())}
                {choice("sales", say!("organiser.sales"), sales_choices(), terms.sales.as_str())}
                {field("sales_from", "datetime-local", say!("organiser.sales_from"), terms.sales_from.unwrap_or_default(), false)}
                {field("hold_seconds", "number", say!("organiser.hold_seconds"), terms.hold_seconds.to_string(), true)}
                {field("per_person", "number", say!("organiser.per_person"), terms.per_person.to_string(), true)}
                {field("per_instrument", "number", say!("organiser.per_instrument"), per_instrument, false)}
                {tick("flash", say!("organiser.flash", seconds = FLASH_HOLD_MS / SECOND_MS), terms.flash_sale)}
                {tick("email_code", say!("organiser.email_code"), terms.email_code)}
                <fieldset class="organiser-wide">
                    <legend>{say!("organiser.prices")}</legend>
                    <p class="quiet small">{say!("organiser.prices_hint")}</p>
                    <div class="organiser-fields">{prices}</div>
                </fieldset>
                {reason("terms-reason")}
                <button class="button" r#type="submit" data-testid="change-terms">{say!("organiser.change")}</button>
            </form>
            {way}
            <form class="organiser-form card organiser-card organiser-danger" action=format!("{base}/cancel") method="post" aria-labelledby="cancel">
                <h2 id="cancel" class="organiser-wide">{say!("organiser.cancel_title")}</h2>
                <p class="organiser-wide">{say!("organiser.cancel_lead", sold = show.sold)}</p>
                {hidden("key", key.to_owned())}
                {reason("cancel-reason")}
                <label class="organiser-tick organiser-wide" for="sure">
                    <input id="sure" name="sure" r#type="checkbox" value="true" required />
                    <span>{say!("organiser.cancel_sure")}</span>
                </label>
                <button class="button button-danger" r#type="submit" data-testid="cancel-show">{say!("organiser.cancel")}</button>
            </form>
        </div>
    }
}
