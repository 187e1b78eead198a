//! The show moved to another screen, and the buyer may choose: other places, or the money back.

use domain::api_moving::{SeatOffer, SeatOfferAnswer};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::Standing;
use crate::browser::calls::{self, Failure};
use crate::browser::{self, ids};
use crate::language::{Moment, current, problem_in_words};
use crate::say;

/// What the buyer does about it.
#[derive(Clone, Copy)]
struct Choice {
    booking: RwSignal<Standing>,
    busy: RwSignal<bool>,
    trouble: RwSignal<Option<String>>,
    /// One intent, one key: pressing again after no answer does nothing twice.
    attempt: StoredValue<Option<(bool, String)>>,
}

/// The choice, while there is one.
pub fn choice(booking: RwSignal<Standing>) -> impl IntoView {
    let choice =
        Choice { booking, busy: RwSignal::new(false), trouble: RwSignal::new(None), attempt: StoredValue::new(None) };
    let offer = Memo::new(move |_| booking.with(|booking| booking.seat_offer.clone()));
    move || offer.get().map(|offer| panel(choice, offer))
}

fn panel(choice: Choice, offer: SeatOffer) -> impl IntoView {
    let Choice { busy, trouble, .. } = choice;
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
                <button type="button" class="button" data-testid="take-offer" aria-disabled=is_busy on:click=move |_| submit(choice, true)>
                    {say!("move.take")}
                </button>
                <button type="button" class="button button-quiet" data-testid="refuse-offer" aria-disabled=is_busy on:click=move |_| submit(choice, false)>
                    {say!("move.refund")}
                </button>
            </p>
        </section>
    }
}

fn submit(choice: Choice, take: bool) {
    if choice.busy.get_untracked() {
        return;
    }
    let again = choice.attempt.get_value().filter(|(earlier, _)| *earlier == take);
    let (_, key) = again.unwrap_or_else(|| (take, ids::new_key()));
    choice.attempt.set_value(Some((take, key.clone())));
    choice.busy.set(true);
    choice.trouble.set(None);
    let page = choice.booking.with_untracked(|booking| format!("/bookings/{}", booking.id));
    spawn_local(async move {
        let path = format!("/api/v1{page}/seat-offer");
        match calls::change::<Standing>(Method::POST, &path, &key, &SeatOfferAnswer { take }).await {
            // Seats and story are the page's: it is read again.
            Ok(_) => browser::go_to(&page),
            Err(failure) => {
                if (400..500).contains(&failure.status()) {
                    choice.attempt.set_value(None);
                }
                choice.busy.set(false);
                choice.trouble.set(Some(trouble(&failure)));
            }
        }
    });
}

fn trouble(failure: &Failure) -> String {
    match failure {
        Failure::Problem(problem) => problem_in_words(problem),
        Failure::Unreachable => say!("move.unreachable"),
    }
}
