//! The panel beside the map: held seats, total, cash or card, and the last sale.

use domain::api::box_office::CounterBooking;
use domain::till::Means;
use leptos::either::EitherOf3;
use leptos::prelude::*;

use super::selling::{CALLER_MINUTES, CounterSaleState};
use super::{callers, exchange, pending, seat};
use crate::browser::ids;
use crate::checkout::{count_in_words, countdown, lines, place_lines, total_of};
use crate::language::{current, money};
use crate::say;
use crate::seat_map::own_seats::cart::Cart;
use crate::staff::islands::in_the_way;

/// The panel of a show on sale.
pub(super) fn panel(selling: CounterSaleState) -> impl IntoView {
    let session = selling.session;
    let is_empty = Memo::new(move |_| session.cart.with(Cart::is_empty));
    let total = move || total_of(session).map(|total| money(total, current())).unwrap_or_default();
    view! {
        <aside class="counter-panel card" data-testid="counter-panel" aria-label=say!("box_office.counter")>
            {move || selling.sold.get().map(|sold| last_sale(selling, sold))}
            {move || seat::holder_view(selling)}
            {seat::lookup_error(selling)}
            {move || exchange::exchanged_booking(selling)}
            <div class="cart-head">
                <h2>{say!("cart.title")}</h2>
                {countdown::countdown(session)}
            </div>
            <p class="quiet" hidden=move || !is_empty.get()>{say!("box_office.choose")}</p>
            <ul class="cart-seats">{move || lines(session)}{move || place_lines(session)}</ul>
            <p class="counter-sum" hidden=move || is_empty.get()>
                <span>{move || count_in_words(session.cart.with(|cart| (cart.want().len(), cart.count())))}</span>
                <strong data-testid="counter-total">{total}</strong>
            </p>
            <p class="account-trouble" role="alert" data-testid="counter-trouble"
                hidden=move || selling.trouble.with(Option::is_none)>{move || selling.trouble.get().map(in_the_way)}</p>
            {move || match (selling.unanswered.get(), selling.exchange.get()) {
                (Some(asked), _) => EitherOf3::A(pending::retry_panel(selling, asked)),
                (None, Some(booking)) => EitherOf3::B(exchange::exchange_form(selling, booking)),
                (None, None) => EitherOf3::C(view! {
                    <div class="counter-pay">
                        {pay(selling, Means::Cash, say!("box_office.cash"), "sell-cash")}
                        {pay(selling, Means::Card, say!("box_office.card"), "sell-card")}
                    </div>
                }),
            }}
            {more(selling)}
            {callers::list(selling)}
        </aside>
    }
}

/// The panel of a show no longer on sale: who has a seat.
pub(super) fn lookup_panel(selling: CounterSaleState) -> impl IntoView {
    view! {
        <aside class="counter-panel card" data-testid="counter-panel" aria-label=say!("box_office.counter")>
            <p class="quiet">{say!("box_office.tap_for_whose")}</p>
            {move || seat::holder_view(selling)}
            {seat::lookup_error(selling)}
        </aside>
    }
}

/// Not disabled, so that the focus stays. It does nothing until something can be sold.
fn pay(selling: CounterSaleState, means: Means, words: String, test: &'static str) -> impl IntoView {
    let is_idle = move || if selling.ready().is_some() { "false" } else { "true" };
    view! {
        <button type="button" class="button" data-testid=test aria-disabled=is_idle
            on:click=move |_| selling.sell(means)>{words}</button>
    }
}

/// Rarely used actions: name, e-mail, free tickets, house seats, caller holds.
fn more(selling: CounterSaleState) -> impl IntoView {
    let is_idle = move || if selling.ready().is_some() { "false" } else { "true" };
    let field = |id: &'static str, kind: &'static str, label: String, most: &'static str, text: RwSignal<String>| {
        view! {
            <div class="field">
                <label for=id>{label}</label>
                <input id=id type=kind autocomplete="off" maxlength=most prop:value=move || text.get()
                    on:input=move |event| text.set(event_target_value(&event)) />
            </div>
        }
    };
    view! {
        <details class="counter-more">
            <summary>{say!("box_office.more")}</summary>
            {field("counter-name", "text", say!("box_office.name"), "120", selling.name)}
            {field("counter-email", "email", say!("box_office.email"), "254", selling.email)}
            {field("counter-reason", "text", say!("box_office.reason"), "300", selling.reason)}
            <div class="counter-pay">
                <button type="button" class="button button-quiet" data-testid="sell-free" aria-disabled=is_idle
                    on:click=move |_| selling.sell(Means::Free)>{say!("box_office.free")}</button>
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
                {sold.undo_until_ms.map(|_| view! {
                    <button type="button" class="button button-quiet" data-testid="undo"
                        on:click=move |_| selling.undo(booking)>{say!("box_office.undo")}</button>
                })}
                <a class="button button-quiet" data-testid="to-sold" href=page>{say!("box_office.to_booking")}</a>
            </div>
        </div>
    }
}
