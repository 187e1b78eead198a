//! Requests of the buyer about a booking, idempotent over several presses: another card after a declined one, and other
//! seats after the show moved to another screen.

use domain::api::cancelling::LatePaymentHandling;
use domain::api::moving::{SeatOffer, SeatOfferAnswer};
use domain::api::{BookingRequest, CheckoutPayment};
use language::{Moment, current, say};
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::Serialize;

use super::FollowedBooking;
use crate::browser::{self, calls, ids};
use crate::payment_retry::{self, BOOKINGS, StartedPayment};

/// A request and its state. It outlives the panel with its button.
pub(super) struct BookingAction<W: 'static> {
    booking: RwSignal<FollowedBooking>,
    pub busy: RwSignal<bool>,
    /// The error of the last request.
    pub error: RwSignal<Option<String>>,
    /// The last request and its key: a press after no answer is a retry.
    attempt: StoredValue<Option<(W, String)>>,
}

impl<W: 'static> Clone for BookingAction<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W: 'static> Copy for BookingAction<W> {}

impl<W: Clone + PartialEq + Serialize + Send + Sync + 'static> BookingAction<W> {
    /// No request made yet.
    pub fn new(booking: RwSignal<FollowedBooking>) -> Self {
        Self { booking, busy: RwSignal::new(false), error: RwSignal::new(None), attempt: StoredValue::new(None) }
    }

    /// Sends the request to this address of the booking. `unreachable` is the message for a missing answer.
    pub fn send(self, address: &'static str, request: W, unreachable: &'static str) {
        if self.busy.get_untracked() {
            return;
        }
        let same = self.attempt.get_value().filter(|(earlier, _)| *earlier == request);
        let key = same.map_or_else(ids::new_key, |(_, key)| key);
        self.attempt.set_value(Some((request.clone(), key.clone())));
        self.busy.set(true);
        self.error.set(None);
        let page = self.booking.with_untracked(|booking| format!("/bookings/{}", booking.id));
        spawn_local(async move {
            let path = format!("/api/v1{page}/{address}");
            match calls::change::<FollowedBooking>(&path, &key, &request).await {
                // The page shows seats, total and history, so it is loaded again.
                Ok(_) => browser::go_to(&page),
                Err(failure) => {
                    if (400..500).contains(&failure.status()) {
                        self.attempt.set_value(None);
                    }
                    self.busy.set(false);
                    self.error.set(Some(failure.in_words(unreachable)));
                }
            }
        });
    }
}

/// The request for the kept hold: same seats, people and total.
fn card_request(booking: &FollowedBooking) -> Option<BookingRequest> {
    let kept = booking.kept_hold.as_ref()?;
    let (buyer, holder) = (booking.buyer.clone(), booking.holder.clone());
    Some(BookingRequest {
        show: booking.show,
        hold: kept.hold,
        holder: (holder != buyer).then_some(holder),
        buyer,
        if_late: LatePaymentHandling::default(),
        pay: Some(CheckoutPayment { total_minor: booking.total.minor, payment_token: None }),
    })
}

/// The button while a hold is kept, and the error of the last press.
pub(super) fn another_card(booking: RwSignal<FollowedBooking>) -> impl IntoView {
    let (busy, refused) = (RwSignal::new(false), RwSignal::new(None::<String>));
    // One intent, one key: a press after no answer repeats the request.
    let key = StoredValue::new(None::<String>);
    let pay = move || {
        let Some(mut request) = booking.with_untracked(card_request).filter(|_| !busy.get_untracked()) else { return };
        request.if_late = payment_retry::late_choice();
        busy.set(true);
        refused.set(None);
        let with_key = key.get_value().unwrap_or_else(ids::new_key);
        key.set_value(Some(with_key.clone()));
        spawn_local(async move {
            match calls::change::<StartedPayment>(BOOKINGS, &with_key, &request).await {
                Ok(started) => started.open(),
                Err(failure) => {
                    if (400..500).contains(&failure.status()) {
                        key.set_value(None);
                    }
                    if matches!(failure.code(), "hold_expired" | "not_found" | "seats_taken") {
                        // The page then links back to the seats.
                        booking.update(|booking| booking.kept_hold = None);
                    }
                    busy.set(false);
                    refused.set(Some(failure.in_words("status.card_unreachable")));
                }
            }
        });
    };
    let is_kept = Memo::new(move |_| booking.with(|booking| booking.kept_hold.is_some()));
    view! {
        {move || is_kept.get().then(|| view! {
            <p class="booking-next booking-another-card">
                <button type="button" class="button" data-testid="another-card" aria-disabled=move || busy.get().to_string() on:click=move |_| pay()>
                    {say!("status.next_another_card")}
                </button>
            </p>
        })}
        <div role="alert" class="details-trouble">{move || refused.get().map(|words| view! { <p>{words}</p> })}</div>
    }
}

/// The choice, while it is open.
pub(super) fn seat_offer(booking: RwSignal<FollowedBooking>) -> impl IntoView {
    let action = BookingAction::new(booking);
    let offer = Memo::new(move |_| booking.with(|booking| booking.seat_offer.clone()));
    move || offer.get().map(|offer| seat_offer_panel(action, offer))
}

fn seat_offer_panel(action: BookingAction<SeatOfferAnswer>, offer: SeatOffer) -> impl IntoView {
    let BookingAction { busy, error, .. } = action;
    let answer = move |take| action.send("seat-offer", SeatOfferAnswer { take }, "move.unreachable");
    let is_busy = move || if busy.get() { "true" } else { "false" };
    let acts = view! {
        <div role="alert" class="details-trouble">{move || error.get().map(|words| view! { <p>{words}</p> })}</div>
        <p class="booking-cancel-acts">
            <button type="button" class="button" data-testid="take-offer" aria-disabled=is_busy on:click=move |_| answer(true)>
                {say!("move.take")}
            </button>
            <button type="button" class="button button-quiet" data-testid="refuse-offer" aria-disabled=is_busy on:click=move |_| answer(false)>
                {say!("move.refund")}
            </button>
        </p>
    };
    seat_offer_card(offer, acts)
}

/// An offer of other seats and its deadline, with the means to answer it.
pub fn seat_offer_card(offer: SeatOffer, acts: impl IntoView) -> impl IntoView {
    let when = Moment::parse(&offer.until_local).map_or(offer.until_local, |until| until.in_words(current()));
    let places = offer.after.into_iter().map(|place| view! { <li><strong>{place}</strong></li> }).collect_view();
    view! {
        <section class="card booking-offer" aria-labelledby="seat-offer" data-testid="seat-offer">
            <h2 id="seat-offer">{say!("move.title", screen = &offer.to)}</h2>
            <p class="quiet"><bdi>{offer.reason}</bdi></p>
            <p>{say!("move.lead", from = &offer.from, before = &offer.before.join(", "))}</p>
            <ul class="booking-offer-places" data-testid="offered-places">{places}</ul>
            <p>{say!("move.until", when = &when)}</p>
            {acts}
        </section>
    }
}

#[cfg(test)]
mod tests {
    use domain::api::{BookingState, KeptHold, MoneyState, Person};
    use uuid::Uuid;

    use super::*;
    use crate::booking_status::tests::followed;

    #[test]
    fn the_new_booking_has_the_kept_hold_people_and_total() {
        let mut booking = followed(BookingState::Cancelled, MoneyState::Failed);
        assert_eq!(card_request(&booking), None, "nothing is held");
        let hold = Uuid::from_u128(7);
        booking.kept_hold = Some(KeptHold { hold, until_ms: 1, until_theatre: "2026-11-21T19:42:07".to_owned() });
        let asked = card_request(&booking).expect("something is held");
        assert_eq!((asked.hold, asked.show, &asked.buyer), (hold, booking.show, &booking.buyer));
        assert_eq!(asked.holder, None);
        assert_eq!(asked.pay.map(|pay| pay.total_minor), Some(booking.total.minor));
        booking.holder = Person { name: "Luís".to_owned(), email: "luis@example.org".to_owned() };
        assert_eq!(card_request(&booking).and_then(|asked| asked.holder), Some(booking.holder));
    }
}
