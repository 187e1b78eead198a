//! Other seats after the show moved to another screen: the buyer accepts them or is refunded.

use domain::api::moving::{SeatOffer, SeatOfferAnswer};
use leptos::prelude::*;

use super::FollowedBooking;
use super::booking_action::BookingAction;
use crate::language::{Moment, current};
use crate::say;

/// Message for a missing answer.
const UNREACHABLE: &str = "move.unreachable";

/// The choice, while it is open.
pub fn choice(booking: RwSignal<FollowedBooking>) -> impl IntoView {
    let action = BookingAction::new(booking);
    let offer = Memo::new(move |_| booking.with(|booking| booking.seat_offer.clone()));
    move || offer.get().map(|offer| panel(action, offer))
}

fn panel(action: BookingAction<SeatOfferAnswer>, offer: SeatOffer) -> impl IntoView {
    let BookingAction { busy, trouble, .. } = action;
    let answer = move |take| action.send("seat-offer", SeatOfferAnswer { take }, UNREACHABLE);
    let when = Moment::parse(&offer.until_local).map_or(offer.until_local, |until| until.in_words(current()));
    let is_busy = move || if busy.get() { "true" } else { "false" };
    let places = offer.after.into_iter().map(|place| view! { <li><strong>{place}</strong></li> }).collect_view();
    view! {
        <section class="card booking-offer" aria-labelledby="seat-offer" data-testid="seat-offer">
            <h2 id="seat-offer">{say!("move.title", screen = &offer.to)}</h2>
            <p class="quiet"><bdi>{offer.reason}</bdi></p>
            <p>{say!("move.lead", from = &offer.from, before = &offer.before.join(", "))}</p>
            <ul class="booking-offer-places" data-testid="offered-places">{places}</ul>
            <p>{say!("move.until", when = &when)}</p>
            <div role="alert" class="details-trouble">{move || trouble.get().map(|words| view! { <p>{words}</p> })}</div>
            <p class="booking-cancel-acts">
                <button type="button" class="button" data-testid="take-offer" aria-disabled=is_busy on:click=move |_| answer(true)>
                    {say!("move.take")}
                </button>
                <button type="button" class="button button-quiet" data-testid="refuse-offer" aria-disabled=is_busy on:click=move |_| answer(false)>
                    {say!("move.refund")}
                </button>
            </p>
        </section>
    }
}
