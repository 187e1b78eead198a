//! The panel beside the map: held seats, total, cash or card, the last sale, who has a seat that could not be taken, and
//! seats held for callers.

use domain::api::box_office::{CallerHoldView, CounterBooking, SeatHolder};
use domain::seats::SeatIndex;
use domain::till::Means;
use language::{Arg, current, money, say};
use leptos::either::EitherOf4;
use leptos::prelude::*;

use super::payment::payment_form;
use super::selling::{CALLER_MINUTES, CounterSaleState, HOUSE_REASON_FIELD, NAME_FIELD, REASON_FIELD, retry_panel};
use super::{exchange, seats_in_words};
use crate::browser::ids;
use crate::checkout::{self, count_in_words, included, lines, place_lines, total_of};
use crate::seat_map::own_seats::cart::Cart;
use crate::staff::islands::error_text;
use crate::two_press_button::two_press_button;

/// Id of the error of the last action, which describes the PIN of an exchange and an empty field.
pub(super) const COUNTER_ERROR: &str = "counter-trouble";

/// The panel of a show on sale.
pub(super) fn panel(selling: CounterSaleState) -> impl IntoView {
    let session = selling.session;
    let is_empty = Memo::new(move |_| session.cart.with(Cart::is_empty));
    let total = move || total_of(session).map(|total| money(total, current())).unwrap_or_default();
    view! {
        <aside class="counter-panel card" data-testid="counter-panel" aria-label=say!("box_office.counter")>
            {move || selling.sold.get().map(|sold| last_sale(selling, sold))}
            {move || undone_sale(selling)}
            {move || holder_view(selling)}
            {lookup_error(selling)}
            {move || exchange::exchanged_booking(selling)}
            <div class="cart-head">
                <h2>{say!("cart.title")}</h2>
                {checkout::countdown(session)}
            </div>
            <p class="quiet" hidden=move || !is_empty.get()>{say!("box_office.choose")}</p>
            <ul class="cart-seats">{move || lines(session)}{move || place_lines(session)}</ul>
            <p class="counter-sum" hidden=move || is_empty.get()>
                <span>{move || count_in_words(session.cart.with(|cart| (cart.want().len(), cart.count())))}</span>
                <strong data-testid="counter-total">{total}</strong>
            </p>
            {move || included(session).map(|words| view! { <p class="quiet small" data-testid="counter-includes">{words}</p> })}
            <p class="account-trouble" role="alert" id=COUNTER_ERROR data-testid=COUNTER_ERROR
                hidden=move || selling.error.with(Option::is_none)>{move || selling.error.get().map(error_text)}</p>
            {move || match (selling.unanswered.get(), selling.payment.get(), selling.exchange.get()) {
                (Some(asked), ..) => EitherOf4::A(retry_panel(selling, asked)),
                (None, Some(payment), _) => EitherOf4::B(payment_form(selling, payment)),
                (None, None, Some(booking)) => EitherOf4::C(exchange::exchange_form(selling, booking)),
                (None, None, None) => EitherOf4::D(view! {
                    <div class="counter-pay">
                        {pay(selling, Means::Cash, say!("box_office.cash"), "sell-cash")}
                        {pay(selling, Means::Card, say!("box_office.card"), "sell-card")}
                    </div>
                }),
            }}
            {more(selling)}
            {callers(selling)}
        </aside>
    }
}

/// The panel of a show no longer on sale: who has a seat.
pub(super) fn lookup_panel(selling: CounterSaleState) -> impl IntoView {
    view! {
        <aside class="counter-panel card" data-testid="counter-panel" aria-label=say!("box_office.counter")>
            <p class="quiet">{say!("box_office.tap_for_whose")}</p>
            {move || holder_view(selling)}
            {lookup_error(selling)}
        </aside>
    }
}

/// Not disabled, so that the focus stays. It does nothing until something can be sold.
fn pay(selling: CounterSaleState, means: Means, words: String, test: &'static str) -> impl IntoView {
    let is_idle = move || if selling.ready().is_some() { "false" } else { "true" };
    view! {
        <button type="button" class="button" id=test data-testid=test aria-disabled=is_idle
            on:click=move |_| selling.ask_for_payment(means, None)>{words}</button>
    }
}

/// Rarely used actions: name, e-mail, free tickets, house seats, caller holds.
fn more(selling: CounterSaleState) -> impl IntoView {
    let is_idle = move || if selling.ready().is_some() { "false" } else { "true" };
    let field = |id: &'static str, kind: &'static str, label: String, most: &'static str, text: RwSignal<String>| {
        view! {
            <div class="field">
                <label for=id>{label}</label>
                <input id=id type=kind autocomplete="off" maxlength=most
                    aria-invalid=move || selling.is_missing(id, text).then_some("true")
                    aria-describedby=move || selling.is_missing(id, text).then_some(COUNTER_ERROR)
                    prop:value=move || text.get() on:input=move |event| text.set(event_target_value(&event)) />
            </div>
        }
    };
    view! {
        <details class="counter-more">
            <summary>{say!("box_office.more")}</summary>
            {field(NAME_FIELD, "text", say!("box_office.name"), "120", selling.name)}
            {field("counter-email", "email", say!("box_office.email"), "254", selling.email)}
            {field(REASON_FIELD, "text", say!("box_office.reason"), "300", selling.reason)}
            <div class="counter-pay">
                <button type="button" class="button button-quiet" data-testid="sell-free" aria-disabled=is_idle
                    on:click=move |_| selling.sell(Means::Free, None)>{say!("box_office.free")}</button>
                <button type="button" class="button button-quiet" data-testid="keep-seats" aria-disabled=is_idle
                    on:click=move |_| selling.keep_for_house()>{say!("box_office.keep")}</button>
                <button type="button" class="button button-quiet" data-testid="hold-for-caller" aria-disabled=is_idle
                    on:click=move |_| selling.hold_for_caller()>{say!("box_office.hold_for_caller", minutes = CALLER_MINUTES)}</button>
            </div>
        </details>
    }
}

fn last_sale(selling: CounterSaleState, sold: CounterBooking) -> impl IntoView {
    let theatre = selling.theatre.get_value();
    let page = format!("/staff/{theatre}/box-office/bookings/{}", sold.id);
    let print = format!("{page}/tickets");
    let booking = sold.id;
    let what = seats_in_words(&sold);
    let undo = move || selling.undo(booking);
    view! {
        <div class="counter-sold" data-testid="sold" data-booking=booking.to_string()>
            <p role="status">
                <strong>{say!("box_office.sold", reference = &sold.reference)}</strong>
                <span>{what}" · "{money(sold.total, current())}</span>
                {selling.due.get().map(|due| view! { <span data-testid="changed-hands">{due}</span> })}
            </p>
            <div class="counter-pay">
                <form action=print method="post" target="_blank">
                    <input type="hidden" name="key" value=ids::new_key() />
                    <button type="submit" class="button button-quiet" data-testid="print">{say!("box_office.print")}</button>
                </form>
                {sold.undo_until_ms.map(|_| two_press_button("undo", "button button-quiet", "box_office.undo", "box_office.undo_sure", undo))}
                <a class="button button-quiet" data-testid="to-sold" href=page>{say!("box_office.to_booking")}</a>
            </div>
        </div>
    }
}

/// The money to give back after the last sale was undone.
fn undone_sale(selling: CounterSaleState) -> Option<impl IntoView + use<>> {
    let due = selling.due.get().filter(|_| selling.sold.with(Option::is_none))?;
    Some(view! {
        <div class="counter-sold" data-testid="undone">
            <p role="status">
                <strong>{say!("box_office.undone")}</strong>
                <span data-testid="changed-hands">{due}</span>
            </p>
        </div>
    })
}

/// The holder of the seat, with possible actions.
fn holder_view(selling: CounterSaleState) -> Option<impl IntoView + use<>> {
    let (seat, holder) = selling.holder.get()?;
    let name = selling.session.seat_name(seat);
    let words = holder_words(&name, &holder);
    let booking = match &holder {
        SeatHolder::Booking { booking, .. } => {
            Some(format!("/staff/{}/box-office/bookings/{booking}", selling.theatre.get_value()))
        }
        _ => None,
    };
    // Nothing is put back on sale after the end of sales.
    let is_kept = matches!(holder, SeatHolder::House { .. }) && !selling.session.is_read_only;
    Some(view! {
        <div class="counter-whose" data-testid="whose">
            <p role="status">{words}</p>
            {booking.map(|href| view! { <a class="button button-quiet" data-testid="to-holder" href=href>{say!("box_office.to_booking")}</a> })}
            {is_kept.then(|| house_seat_acts(selling, seat))}
        </div>
    })
}

fn lookup_error(selling: CounterSaleState) -> impl IntoView {
    view! {
        <p class="account-trouble" role="alert" data-testid="whose-trouble"
            hidden=move || selling.lookup_error.with(Option::is_none)>{move || selling.lookup_error.get().map(error_text)}</p>
    }
}

fn holder_words(seat: &str, holder: &SeatHolder) -> String {
    match holder {
        SeatHolder::Booking { reference, name, .. } if name.is_empty() => {
            say!("box_office.whose_sold", seat = Arg::Ours(seat), reference = reference)
        }
        SeatHolder::Booking { reference, name, .. } => {
            say!("box_office.whose_bought", seat = Arg::Ours(seat), name = name, reference = reference)
        }
        SeatHolder::House { reason, .. } if reason.is_empty() => {
            say!("box_office.whose_house", seat = Arg::Ours(seat))
        }
        SeatHolder::House { reason, name } => {
            say!("box_office.whose_house_why", seat = Arg::Ours(seat), reason = reason, name = name)
        }
        SeatHolder::Caller { name } => say!("box_office.whose_caller", seat = Arg::Ours(seat), name = name),
        SeatHolder::Hold { name } if name.is_empty() => say!("box_office.whose_held", seat = Arg::Ours(seat)),
        SeatHolder::Hold { name } => say!("box_office.whose_held_by", seat = Arg::Ours(seat), name = name),
        SeatHolder::Free => say!("box_office.whose_nobody", seat = Arg::Ours(seat)),
    }
}

/// Actions for a house seat: give it to its guest, or put it back on sale.
fn house_seat_acts(selling: CounterSaleState, seat: SeatIndex) -> impl IntoView {
    view! {
        <div class="counter-put-back">
            <div class="field">
                <label for=HOUSE_REASON_FIELD>{say!("box_office.reason")}</label>
                <input id=HOUSE_REASON_FIELD type="text" autocomplete="off" maxlength="300"
                    aria-invalid=move || selling.is_missing(HOUSE_REASON_FIELD, selling.reason).then_some("true")
                    aria-describedby=move || selling.is_missing(HOUSE_REASON_FIELD, selling.reason).then_some(COUNTER_ERROR)
                    prop:value=move || selling.reason.get()
                    on:input=move |event| selling.reason.set(event_target_value(&event)) />
            </div>
            <p class="quiet" id="take-for-guest-then">{say!("box_office.take_for_guest_then")}</p>
            <div class="counter-pay">
                <button type="button" class="button" data-testid="take-for-guest" aria-describedby="take-for-guest-then"
                    aria-disabled=move || selling.disabled_while_busy()
                    on:click=move |_| selling.take_for_guest(seat)>{say!("box_office.take_for_guest")}</button>
                <button type="button" class="button button-quiet" data-testid="put-back"
                    aria-disabled=move || selling.disabled_while_busy()
                    on:click=move |_| selling.put_back(seat)>{say!("box_office.put_back")}</button>
            </div>
        </div>
    }
}

/// The list of caller holds; hidden while empty. A line keeps its element, and the focus in it, until its words change.
fn callers(selling: CounterSaleState) -> impl IntoView {
    let is_empty = move || selling.callers.with(Vec::is_empty);
    view! {
        <section class="counter-callers" hidden=is_empty aria-labelledby="counter-callers">
            <h2 id="counter-callers">{say!("box_office.callers")}</h2>
            <ul data-testid="callers">
                <For each=move || selling.callers.get() key=|caller| (caller.hold, caller_words(caller)) let:caller>
                    {caller_line(selling, caller)}
                </For>
            </ul>
        </section>
    }
}

/// A caller hold in words: name, seats, total and expiry.
fn caller_words(caller: &CallerHoldView) -> String {
    let CallerHoldView { name, seats, total, until, .. } = caller;
    let seats = seats.iter().map(|line| line.label.as_str()).collect::<Vec<_>>().join(", ");
    say!("box_office.caller_line", name = name, seats = Arg::Ours(&seats), total = *total, time = Arg::Ours(until))
}

fn caller_line(selling: CounterSaleState, caller: CallerHoldView) -> impl IntoView {
    let words = caller_words(&caller);
    let hold = caller.hold;
    let release = move || selling.release_caller_hold(hold);
    let (cash, card) = (caller.clone(), caller);
    view! {
        <li data-testid="caller">
            <p>{words}</p>
            <div class="counter-pay">
                <button type="button" class="button button-quiet" data-testid="caller-cash"
                    on:click=move |_| selling.ask_for_payment(Means::Cash, Some(cash.clone()))>{say!("box_office.cash")}</button>
                <button type="button" class="button button-quiet" data-testid="caller-card"
                    on:click=move |_| selling.ask_for_payment(Means::Card, Some(card.clone()))>{say!("box_office.card")}</button>
                {two_press_button("caller-let-go", "button button-quiet", "box_office.caller_let_go", "box_office.caller_let_go_sure", release)}
            </div>
        </li>
    }
}
