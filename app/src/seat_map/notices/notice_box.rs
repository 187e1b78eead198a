//! The box that shows a notice and its buttons.

use leptos::prelude::*;

use crate::seat_map::own_seats::cart::Cart;
use crate::seat_map::own_seats::{watch, wishes};
use crate::seat_map::page_elements::SEATS;
use crate::seat_map::session::MapSession;
use crate::{browser, say};

/// The notice box. Present without a notice too, so that screen readers announce its changes.
pub(in crate::seat_map) fn notice_view(session: MapSession) -> impl IntoView {
    // Good news is announced politely, trouble at once.
    let text = move |is_good: bool| {
        session.notice.with(|notice| {
            let said = notice.as_ref().filter(|notice| notice.is_good == is_good);
            said.map(|notice| notice.text.clone()).unwrap_or_default()
        })
    };
    let tone = move || session.notice.with(|notice| notice.as_ref().is_some_and(|notice| notice.is_good));
    let watchable = move || session.notice.with(|notice| notice.as_ref().and_then(|notice| notice.watchable));
    let may_ask = move || {
        session.notice.with(|notice| notice.as_ref().is_some_and(|notice| notice.may_ask_again))
            && session.cart.with(Cart::has_lost)
    };
    let booking = move || session.notice.with(|notice| notice.as_ref().and_then(|notice| notice.booking));
    let offer = move || session.notice.with(|notice| notice.as_ref().and_then(|notice| notice.offer.clone()));
    let shown = move || session.notice.with(Option::is_some);
    // The buttons disappear with the notice: without a target the focus would fall to the page's top.
    let close = move |_| {
        browser::focus_first(SEATS);
        session.notice.set(None);
    };
    let ask_again = move |_| {
        browser::focus_first(SEATS);
        wishes::reclaim_lost_seats(session);
    };
    view! {
        <div class="notice" data-shown=move || if shown() { "true" } else { "false" }
            data-tone=move || if tone() { "good" } else { "trouble" }>
            <p role="alert" data-testid="message">{move || text(false)}</p>
            <p role="status" data-testid="news">{move || text(true)}</p>
            {move || offer().map(|offer| {
                let words = offer.words.clone();
                let accept = move |_| {
                    browser::focus_first(SEATS);
                    wishes::accept_offer(session, &offer);
                };
                view! { <button type="button" class="notice-action" data-testid="accept-offer" on:click=accept>{words}</button> }
            })}
            {move || watchable().map(|seat| {
                let watch = move |_| {
                    browser::focus_first(SEATS);
                    watch::watch_seat(session, seat);
                };
                view! { <button type="button" class="notice-action" data-testid="watch-seat" on:click=watch>{say!("map.watch")}</button> }
            })}
            {move || may_ask().then(|| view! {
                <button type="button" class="notice-action" data-testid="ask-again" on:click=ask_again>{say!("map.ask_again")}</button>
            })}
            {move || booking().map(|booking| view! {
                <a class="notice-action" data-testid="notice-booking" href=format!("/bookings/{booking}")>{say!("map.see_booking")}</a>
            })}
            {move || shown().then(|| view! {
                <button type="button" class="notice-close" aria-label=say!("map.close_message") on:click=close>"×"</button>
            })}
        </div>
    }
}
