//! A booking at the box office: its data, printed tickets, exchange and refund.

use domain::VariantName;
use domain::api::Receipt;
use domain::api::box_office::{CounterBooking, ManagerView};
use domain::api::cancelling::RefundView;
use domain::booking::BookingState;
use domain::money::Money;
use domain::till::{Means, UNDO_MS};
use domain::time::MINUTE_MS;
use language::{Arg, StaffError, current, money, say};
use leptos::prelude::*;

use super::super::fields::{Field, error_attributes, hidden};
use super::super::{Desk, Form, Section, StaffPage, staff_error_view};
use crate::markup::{IntoMarkup, Markup};
use crate::pages::accounts::{state_words, username};
use crate::pages::receipt::{PRICE_PARTS, receipt_card};
use crate::pages::ticket::{SeatTicket, ShowFacts};
use crate::shell::{Head, Page};
use crate::staff::islands::box_office::{means_words, newest_refund_in_words, seats_in_words};
use crate::staff::islands::error_text;

const WHY_REFUND: Field = Field::reason("refund-reason", "box_office.reason");
/// The name of the box for all tickets in the refund form. A form without a choice sends it as well.
pub const ALL_TICKETS: &str = "all";
/// Id of the error in a refused form. One form at a time is refused.
const FORM_ERROR: &str = "form-error";

/// The page of a booking, and of the one its money was moved to by an exchange or after a late payment. `starts` is in the
/// reader's language; `managers` can approve a refund; a refused form is named by the last part of its address.
pub fn counter_booking_page(
    desk: Desk,
    booking: CounterBooking,
    moved_to: Option<CounterBooking>,
    starts: String,
    managers: Vec<ManagerView>,
    form: Form,
) -> impl Page {
    let reference = booking.reference.clone();
    let content = move |desk: &Desk| {
        let counter = desk.section.href(&desk.theatre);
        let base = format!("{counter}/bookings/{}", booking.id);
        let is_sold = booking.state == BookingState::Confirmed;
        let error = desk.error.as_ref().map(|error| error.message.clone());
        let (above, in_form) = if needs_pin_again(&form, &booking, &managers) { (None, error) } else { (error, None) };
        let in_form = in_form.as_ref();
        view! {
            <p class="crumbs">
                <a href=counter.clone()>{say!("box_office.shows")}</a>
                <a href=format!("{counter}/shows/{}", booking.show)><bdi>{booking.film.clone()}</bdi></a>
                <span>{starts}", "<bdi>{booking.screen.clone()}</bdi></span>
            </p>
            {above.map(|error| staff_error_view(error, "trouble"))}
            {money_back_notice(desk, &booking)}
            {bounced_notice(desk, &booking, moved_to.as_ref())}
            {facts(&booking, moved_to.as_ref(), &counter)}
            <div class="counter-acts">
                {is_sold.then(|| print(&base, &desk.key))}
                {is_sold.then(|| view! {
                    <p class="card counter-form">
                        <a class="button button-quiet" data-testid="exchange"
                            href=format!("{counter}/shows/{}?exchange={}", booking.show, booking.id)>{say!("box_office.exchange")}</a>
                        <a class="button button-quiet" data-testid="exchange-show"
                            href=format!("{base}/exchange")>{say!("box_office.exchange_another")}</a>
                    </p>
                })}
                {booking.undo_until_ms.map(|_| undo(&base, &desk.key))}
                {booking.to_pay_out.map(|sum| pay_out(&base, sum, &booking, &managers, (&form, in_form), &desk.key))}
                {is_sold.then(|| refund(&base, &booking, &managers, (&form, in_form), &desk.key))}
            </div>
        }
        .into_markup()
    };
    StaffPage::new(desk, Head::default(), move || reference.clone(), content)
}

/// Returns true if a refused form with a PIN is on the page: its error is shown beside the PIN, which has to be typed
/// again. The error of another field is beside that field.
fn needs_pin_again(form: &Form, booking: &CounterBooking, managers: &[ManagerView]) -> bool {
    let is_refund = form.is("refund") && booking.state == BookingState::Confirmed;
    let is_pay_out = form.is("pay-out") && booking.to_pay_out.is_some() && booking.pay_out_needs_pin;
    (is_refund || is_pay_out) && !managers.is_empty() && !form.is_refused()
}

/// Its refunds, and those of the booking its money was moved to.
fn refunds<'a>(
    booking: &'a CounterBooking,
    moved_to: Option<&'a CounterBooking>,
) -> impl Iterator<Item = &'a RefundView> {
    booking.refunds.iter().chain(moved_to.into_iter().flat_map(|next| &next.refunds))
}

/// After a refund or an undo: how the money reaches the customer.
fn money_back_notice(desk: &Desk, booking: &CounterBooking) -> Option<impl IntoView + use<>> {
    let words = newest_refund_in_words(booking).filter(|_| desk.done)?;
    Some(view! { <p class="account-notice" role="status" data-testid="money-back">{words}</p> })
}

/// A notice about bounced refunds, and who decides about them. `None` if there are none.
fn bounced_notice(
    desk: &Desk,
    booking: &CounterBooking,
    moved_to: Option<&CounterBooking>,
) -> Option<impl IntoView + use<>> {
    let bounced: Vec<String> = refunds(booking, moved_to)
        .filter(|refund| refund.came_back)
        .map(|refund| say!("box_office.came_back_notice", amount = refund.amount))
        .collect();
    if bounced.is_empty() {
        return None;
    }
    let room = Section::Parked;
    let next = if Section::of(&desk.roles).any(|section| section == room) {
        let href = room.href(&desk.theatre);
        view! { <a class="button button-quiet" href=href data-testid="to-parked">{say!("box_office.came_back_decide")}</a> }
            .into_markup()
    } else {
        say!("box_office.came_back_manager", page = Arg::Ours(&say!("parked.title"))).into_markup()
    };
    let bounced = bounced.into_iter().map(|words| view! { <p>{words}</p> }).collect_view();
    Some(view! { <div class="account-trouble" role="status" data-testid="came-back">{bounced}<p>{next}</p></div> })
}

/// The booking's data. The refund of an exchange belongs to the new booking.
fn facts(booking: &CounterBooking, moved_to: Option<&CounterBooking>, counter: &str) -> impl IntoView + use<> {
    let has_bounced = booking.refunds.iter().any(|refund| refund.number == 0 && refund.came_back);
    let state = state_words(booking.state, booking.money, has_bounced.then(|| say!("box_office.came_back")));
    let paid = booking.means.map_or_else(|| say!("box_office.online"), means_words);
    let name = (!booking.name.is_empty()).then(|| {
        view! { <div><dt>{say!("box_office.name")}</dt><dd><bdi>{booking.name.clone()}</bdi></dd></div> }
    });
    let moved_link = moved_to.map(|next| {
        let href = format!("{counter}/bookings/{}", next.id);
        view! { " · "<a href=href data-testid="moved-to">{next.reference.clone()}</a> }
    });
    let refund_line = refunds(booking, moved_to).map(refund_line).collect_view();
    let parts = booking.breakdown.into_iter().flat_map(|breakdown| breakdown.parts(PRICE_PARTS));
    let parts = parts.map(|(part, amount)| {
        view! { <div data-testid="price-part"><dt>{say!(part)}</dt><dd>{money(amount, current())}</dd></div> }
    });
    let parts = parts.collect_view();
    view! {
        <dl class="card counter-sums" data-testid="booking" data-state=booking.state.as_str() data-money=booking.money.as_str()>
            <div><dt>{say!("box_office.seats")}</dt><dd>{seats_in_words(booking)}</dd></div>
            {name}
            <div><dt>{say!("box_office.stands")}</dt><dd>{state}{moved_link}</dd></div>
            <div><dt>{say!("box_office.paid")}</dt><dd>{paid}</dd></div>
            {parts}
            <div><dt>{say!("booking.total")}</dt><dd>{money(booking.total, current())}</dd></div>
            {refund_line}
        </dl>
    }
}

fn refund_line(refund: &RefundView) -> impl IntoView + use<> {
    let words = match (refund.came_back, refund.settled) {
        (true, _) => say!("box_office.came_back"),
        (false, true) => say!("account.state_refunded"),
        (false, false) => say!("account.state_refunding"),
    };
    view! { <div data-testid="went-back"><dt>{words}</dt><dd>{money(refund.amount, current())}</dd></div> }
}

fn print(base: &str, key: &str) -> impl IntoView + use<> {
    view! {
        <form class="card counter-form" action=format!("{base}/tickets") method="post">
            {hidden("key", key)}
            <button class="button" type="submit" data-testid="print">{say!("box_office.print")}</button>
        </form>
    }
}

fn undo(base: &str, key: &str) -> impl IntoView + use<> {
    view! {
        <form class="card counter-form" action=format!("{base}/undo") method="post">
            {hidden("key", key)}
            <p class="quiet small">{say!("box_office.undo_hint", minutes = UNDO_MS / MINUTE_MS)}</p>
            <button class="button button-quiet" type="submit" data-testid="undo">{say!("box_office.undo")}</button>
        </form>
    }
}

/// The form that pays out a waiting refund, with a manager's PIN if the buyer cancelled. If no manager has a PIN yet,
/// the amount and the message about it.
fn pay_out(
    base: &str,
    sum: Money,
    booking: &CounterBooking,
    managers: &[ManagerView],
    (form, error): (&Form, Option<&StaffError>),
    key: &str,
) -> impl IntoView + use<> {
    if booking.pay_out_needs_pin && managers.is_empty() {
        return no_managers(Some(sum));
    }
    let error = error.filter(|_| form.is("pay-out"));
    let form = form.only("pay-out");
    let approval =
        booking.pay_out_needs_pin.then(|| approval_fields(&form, ["pay-out-manager", "pay-out-pin"], managers, error));
    let words = match booking.means {
        Some(Means::Card) => say!("box_office.pay_out"),
        _ => say!("box_office.hand_over", amount = sum),
    };
    view! {
        <form class="card counter-form" action=format!("{base}/pay-out") method="post">
            {hidden("key", key)}
            <p>{say!("box_office.waits", amount = sum)}</p>
            {approval}
            <button class="button" type="submit" data-testid="pay-out">{words}</button>
        </form>
    }
    .into_markup()
}

/// The message that a manager must set a PIN first, with the amount that waits for it.
fn no_managers(waiting: Option<Money>) -> Markup {
    view! {
        <div class="card counter-form">
            {waiting.map(|amount| view! { <p>{say!("box_office.waits", amount = amount)}</p> })}
            <p class="quiet" data-testid="no-managers">{say!("box_office.no_pins")}</p>
        </div>
    }
    .into_markup()
}

/// The manager who authorises, the PIN, and the error of the refused form. A page may have two such forms, so each has
/// its ids. After an error the PIN has the focus.
fn approval_fields(
    form: &Form,
    [manager_id, pin_id]: [&'static str; 2],
    managers: &[ManagerView],
    error: Option<&StaffError>,
) -> Markup {
    let chosen = form.get("manager");
    let options = managers.iter().map(|manager| {
        let account = manager.account.to_string();
        let is_chosen = account == chosen;
        view! { <option value=account selected=is_chosen>{manager.name.clone()}</option> }
    });
    let options = options.collect_view();
    let (is_refused, described_by) = (error.is_some(), error.map(|_| FORM_ERROR));
    let error = error.cloned().map(|error| {
        view! { <p class="account-trouble" role="alert" id=FORM_ERROR data-testid="trouble">{error_text(error)}</p> }
    });
    view! {
        {username(String::new())}
        <div class="field">
            <label for=manager_id>{say!("box_office.manager")}</label>
            <select id=manager_id name="manager">{options}</select>
        </div>
        <div class="field">
            <label for=pin_id>{say!("box_office.pin")}</label>
            <input id=pin_id name="pin" type="password" inputmode="numeric" autocomplete="off" required maxlength="12"
                autofocus=is_refused aria-describedby=described_by />
        </div>
        {error}
    }
    .into_markup()
}

/// The refund form. With several seats, the clerk chooses between all tickets and single seats.
fn refund(
    base: &str,
    booking: &CounterBooking,
    managers: &[ManagerView],
    (form, error): (&Form, Option<&StaffError>),
    key: &str,
) -> impl IntoView + use<> {
    let error = error.filter(|_| form.is("refund"));
    let form = form.only("refund");
    if managers.is_empty() {
        return no_managers(None);
    }
    let (tickets, words) = if booking.seats.len() > 1 {
        (ticket_choice(booking, &form), say!("box_office.refund_now"))
    } else {
        (hidden(ALL_TICKETS, "true"), say!("box_office.refund_amount", amount = booking.total))
    };
    view! {
        <form class="card counter-form" action=format!("{base}/refund") method="post">
            {hidden("key", key)}
            <h2>{say!("box_office.refund")}</h2>
            {tickets}
            {WHY_REFUND.view(&form)}
            {approval_fields(&form, ["manager", "refund-pin"], managers, error)}
            <button class="button" type="submit" data-testid="refund">{words}</button>
        </form>
    }
    .into_markup()
}

/// The boxes for all tickets and for single seats, with their prices. None is ticked, so that a forgotten choice is
/// refused.
fn ticket_choice(booking: &CounterBooking, form: &Form) -> Markup {
    let boxes = booking.seats.iter().map(|line| {
        let id = format!("seat-{}", line.seat);
        let is_ticked = form.is_ticked(&id);
        view! {
            <label class="counter-choice" for=id.clone()>
                <input id=id.clone() type="checkbox" name=id.clone() value=line.label.clone() checked=is_ticked />
                <span>{line.label.clone()}" · "{money(line.price, current())}</span>
            </label>
        }
    });
    let boxes = boxes.collect_view();
    let is_all = form.is_ticked(ALL_TICKETS);
    let (invalid, described_by, error) = error_attributes(form, ALL_TICKETS, "refund-all");
    let is_refused = error.is_some();
    view! {
        <fieldset class="counter-choices">
            <legend>{say!("box_office.which_tickets")}</legend>
            <label class="counter-choice" for="refund-all">
                <input id="refund-all" type="checkbox" name=ALL_TICKETS value="true" checked=is_all autofocus=is_refused
                    aria-invalid=invalid aria-describedby=described_by />
                <span>{say!("box_office.all_tickets", amount = booking.total)}</span>
            </label>
            {boxes}
            {error}
        </fieldset>
    }
    .into_markup()
}

/// The page of tickets to print, one per seat or place, and the receipt; `booking` is the path of the booking's page.
pub fn print_page(
    desk: Desk,
    reference: String,
    booking: String,
    show: ShowFacts,
    tickets: Vec<SeatTicket>,
    receipt: Option<Receipt>,
) -> impl Page {
    let title = reference.clone();
    let content = move |_: &Desk| {
        let cards = tickets.into_iter().map(|ticket| {
            let show = show.clone();
            view! {
                <article class="paper-ticket" data-testid="paper-ticket">
                    <div class="ticket-qr" inner_html=ticket.qr_svg></div>
                    <div>
                        <p class="paper-seat"><strong>{ticket.label}</strong>" "{ticket.category}</p>
                        {show.view()}
                        <p class="quiet small">{reference.clone()}" · "<span dir="ltr">{ticket.code}</span></p>
                    </div>
                </article>
            }
        });
        view! {
            <p class="crumbs paper-aside"><a href=booking>{say!("box_office.to_booking")}</a></p>
            <p class="quiet paper-aside">{say!("box_office.print_hint")}</p>
            <div class="paper-tickets">{cards.collect_view()}{receipt.map(receipt_card)}</div>
        }
        .into_markup()
    };
    StaffPage::new(desk, Head::default(), move || title.clone(), content)
}
