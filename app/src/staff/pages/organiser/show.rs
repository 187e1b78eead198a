//! One show: its sales terms and prices, defective seats, calling it off, and a move to another screen with a preview of
//! its effects.

use domain::api::moving::{MoveLine, MovePreview, MoveState, MoveView};
use domain::api::organiser::{CancellationView, DefectiveSeatsRequest, OrganisedShow, ScreenView, TermsRequest};
use domain::money::Currency;
use language::say;
use leptos::prelude::*;

use super::fields::{Field, choice, hidden};
use super::form::{REASON, Refusal, decimal};
use super::prices::{PRICE, price_fields, price_in};
use super::{Desk, Form, PriceLine, Tab, frame, head, money_words, sales_words, tabbed, terms, titled_page, when};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page};

const WHY_DEFECTS: Field = Field::reason("defect-reason", "organiser.reason");
const WHY_CANCEL: Field = Field::reason("cancel-reason", "organiser.reason");
const WHY_MOVE: Field = Field::reason("move-reason", "organiser.reason");
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
/// A field without its own error cannot be read.
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
    if form.is_refused() {
        return Ok(None);
    }
    Ok(Some(TermsRequest {
        terms: terms::read(form)?,
        prices: Some(prices.into_iter().collect()),
        version: form.whole("version", "The version")?,
        reason: form.reason(),
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

/// The result of taking defective seats off sale.
#[derive(Clone, Debug)]
pub struct WithdrawnSeats {
    /// Number of shows in which they were taken off sale.
    pub shows: u32,
    /// Number of bookings that lose such a seat.
    pub bookings: u32,
    /// Shows whose room lacks one of the seats.
    pub elsewhere: Vec<OrganisedShow>,
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
    /// The defective seats that were just taken off sale.
    pub withdrawn: Option<WithdrawnSeats>,
}

impl Page for ShowPage {
    fn head(&self) -> Head {
        head(format!("{}, {}", self.show.title, when(&self.show.starts_local)))
    }

    fn view(self) -> Markup {
        let Self { desk, show, prices, terms, form, screens, currency, is_over, withdrawn } = self;
        let title = show.title.clone();
        let base = format!("/staff/{}/shows/{}", desk.theatre, show.id);
        let facts = format!("{} · {} · {}", show.screen_name, show.language, show.format);
        let prices = prices.into_iter().map(|(category, minor)| {
            view! { <li><bdi>{category}</bdi>" "<strong>{money_words(minor, currency)}</strong></li> }
        });
        let prices = prices.collect_view();
        let is_on = show.cancellation.is_none();
        let state = if is_on { sales_words(show.terms.sales) } else { say!("organiser.called_off") };
        let withdrawn = withdrawn.map(|withdrawn| withdrawn_view(&format!("/staff/{}/shows", desk.theatre), withdrawn));
        let cancellation = show.cancellation.clone().map(progress);
        let is_moving =
            show.moved.as_ref().is_some_and(|moved| matches!(moved.state, MoveState::Closing | MoveState::Carried));
        let moved = show.moved.clone().map(move_progress);
        let (sold, seats, customers) = (show.sold, show.seats, format!("/shows/{}", show.id));
        let when = when(&show.starts_local);
        let move_form = move_form(&base, &screens, &show.screen);
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
                <p><a href=format!("{base}/rehearsal") data-testid="to-rehearsal">{say!("rehearsal.title")}</a></p>
            </div>
            {withdrawn}
            {cancellation}
            {moved}
            {forms}
        };
        frame(&desk, title, tabbed(&desk, Some(Tab::Programme), content.into_markup()))
    }
}

fn withdrawn_view(base: &str, withdrawn: WithdrawnSeats) -> impl IntoView + use<> {
    let WithdrawnSeats { shows, bookings, elsewhere } = withdrawn;
    let elsewhere = (!elsewhere.is_empty()).then(|| {
        let links = elsewhere.into_iter().map(|show| {
            view! { <li><a href=format!("{base}/{}", show.id)><bdi>{show.title}</bdi>" · "{when(&show.starts_local)}</a></li> }
        });
        let links = links.collect_view();
        view! {
            <p>{say!("organiser.defect_elsewhere")}</p>
            <ul class="organiser-films" data-testid="withdrawn-elsewhere">{links}</ul>
        }
    });
    view! {
        <section class="card organiser-card" role="status" data-testid="withdrawn-seats">
            <p>{say!("organiser.defect_done", shows = shows, bookings = bookings)}</p>
            {elsewhere}
        </section>
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
            <button class="button" r#type="submit" data-testid="change-terms">{say!("organiser.change")}</button>
        </form>
    }
}

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
            <label class="organiser-tick organiser-wide" for="defect-sure">
                <input id="defect-sure" name="sure" r#type="checkbox" value="true" required />
                <span>{say!("organiser.defect_sure")}</span>
            </label>
            <button class="button" r#type="submit" data-testid="defective-seats">{say!("organiser.defect")}</button>
        </form>
    }
}

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

/// The page of a move to another screen. Nothing has changed yet; without a preview the move is impossible.
pub fn move_page(desk: Desk, show: OrganisedShow, preview: Option<MovePreview>, form: Form) -> impl Page {
    let content = move |desk: &Desk| {
        let base = format!("/staff/{}/shows/{}", desk.theatre, show.id);
        let facts = format!("{} · {} · {}", show.screen_name, show.language, show.format);
        let preview_section = preview.map(|preview| preview_section(preview, &base, &form, &desk.key));
        view! {
            <div class="organiser-facts">
                <p>
                    <a href=base.clone()><bdi>{show.title.clone()}</bdi>" · "{when(&show.starts_local)}</a>
                    " · "<bdi>{facts}</bdi>
                </p>
            </div>
            {preview_section}
        }
        .into_markup()
    };
    titled_page(desk, Some(Tab::Programme), Head::default(), || say!("organiser.move_title"), content)
}

fn preview_section(preview: MovePreview, base: &str, form: &Form, key: &str) -> impl IntoView + use<> {
    let MovePreview { same, offered, refunded, open, house_seats_lost, more, .. } = preview;
    let is_asked = offered.bookings > 0;
    let until = when(&preview.answer_until);
    let lines = (!preview.lines.is_empty()).then(|| affected_bookings(preview.lines, more));
    view! {
        <section class="card organiser-card" aria-labelledby="move" data-testid="move-preview">
            <h2 id="move">{say!("organiser.move_to", screen = &preview.screen_name)}" "{say!("organiser.seats", count = preview.seats)}</h2>
            <p class="quiet">{say!("organiser.move_nothing")}</p>
            <ul class="organiser-films">
                <li data-testid="move-same">{say!("organiser.move_same", bookings = same.bookings, seats = same.seats)}</li>
                <li data-testid="move-offered">{say!("organiser.move_offered", bookings = offered.bookings, seats = offered.seats)}</li>
                <li data-testid="move-refunded">{say!("organiser.move_refunded", bookings = refunded.bookings, seats = refunded.seats)}</li>
                {(open > 0).then(|| view! { <li>{say!("organiser.move_open", count = open)}</li> })}
                {(house_seats_lost > 0).then(|| view! { <li>{say!("organiser.move_house", count = house_seats_lost)}</li> })}
                {is_asked.then(|| view! { <li>{say!("organiser.move_answer", when = &until)}</li> })}
            </ul>
            {lines}
            <form class="organiser-form" action=format!("{base}/move") method="post">
                {hidden("key", key)}
                {hidden("screen", preview.screen)}
                {hidden("version", preview.version.to_string())}
                {hidden("layout", preview.layout.to_string())}
                {WHY_MOVE.view(form)}
                <label class="organiser-tick organiser-wide" for="move-sure">
                    <input id="move-sure" name="sure" r#type="checkbox" value="true" required />
                    <span>{say!("organiser.move_sure", screen = &preview.screen_name)}</span>
                </label>
                <button class="button" r#type="submit" data-testid="move-show">{say!("organiser.move")}</button>
            </form>
        </section>
    }
}

fn affected_bookings(lines: Vec<MoveLine>, more: u32) -> impl IntoView {
    let rows = lines.into_iter().map(|line| {
        let then = if line.after.is_empty() { say!("organiser.move_money_back") } else { line.after.join(", ") };
        view! {
            <tr>
                <th scope="row">{line.reference}</th>
                <td class="reports-words"><bdi>{line.before.join(", ")}</bdi></td>
                <td class="reports-words"><bdi>{then}</bdi></td>
            </tr>
        }
    });
    let rows = rows.collect_view();
    view! {
        <div class="reports-scroll" role="group" tabindex="0" aria-label=say!("organiser.move_who")>
            <table class="reports-table">
                <caption>{say!("organiser.move_who")}</caption>
                <thead>
                    <tr>
                        <th scope="col">{say!("organiser.move_booking")}</th>
                        <th scope="col" class="reports-words">{say!("organiser.move_now")}</th>
                        <th scope="col" class="reports-words">{say!("organiser.move_then")}</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
            {(more > 0).then(|| view! { <p class="quiet small">{say!("organiser.move_more", count = more)}</p> })}
        </div>
    }
}

fn move_progress(moved: MoveView) -> impl IntoView {
    let MoveView { from, to, reason, state, same, offered, unanswered, refunded, answer_until } = moved;
    let words = match state {
        MoveState::Closing | MoveState::Carried => say!("organiser.moving", from = &from, to = &to),
        MoveState::Done => say!("organiser.moved", from = &from, to = &to),
        MoveState::Dropped => say!("organiser.move_dropped", to = &to),
    };
    let until = answer_until.filter(|_| unanswered > 0).map(|until| when(&until));
    let facts = matches!(state, MoveState::Carried | MoveState::Done).then(|| {
        view! {
            <ul class="organiser-films">
                <li>{say!("organiser.moved_same", count = same)}</li>
                <li data-testid="moved-offered">{say!("organiser.moved_offered", count = offered, unanswered = unanswered)}</li>
                <li>{say!("organiser.moved_refunded", count = refunded)}</li>
                {until.map(|until| view! { <li>{say!("organiser.move_answer", when = &until)}</li> })}
            </ul>
        }
    });
    let is_done = (state == MoveState::Done).then_some("true");
    view! {
        <section class="card organiser-card" role="status" data-testid="moved" data-finished=is_done>
            <h2>{words}</h2>
            <p class="quiet"><bdi>{reason}</bdi></p>
            {facts}
        </section>
    }
}

/// The form that chooses the other screen.
fn move_form(base: &str, screens: &[ScreenView], current: &str) -> Option<impl IntoView + use<>> {
    let others = screens.iter().filter(|screen| screen.id != current);
    let others: Vec<(String, String)> = others.map(|screen| (screen.id.clone(), screen.name.clone())).collect();
    let first = Form::new([("screen", others.first()?.0.clone())]);
    Some(view! {
        <form class="organiser-form card organiser-card" action=format!("{base}/move") method="get" aria-labelledby="move">
            <h2 id="move" class="organiser-wide">{say!("organiser.move_title")}</h2>
            <p class="organiser-wide">{say!("organiser.move_lead")}</p>
            {choice(&first, "screen", say!("organiser.move_screen"), others)}
            <button class="button button-quiet" r#type="submit" data-testid="look-at-move">{say!("organiser.move_look")}</button>
        </form>
    })
}
