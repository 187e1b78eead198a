//! Pays with another card after a declined one: the seats are still held, and one press creates a new booking.

use domain::api::cancelling::LatePaymentHandling;
use domain::api::{BookingRequest, CheckoutPayment};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::Deserialize;
use uuid::Uuid;

use super::FollowedBooking;
use super::booking_action::error_in_words;
use crate::browser::{self, calls, ids};
use crate::payment_retry::buyer_details::BuyerDetails;
use crate::say;

/// Path of the bookings.
const BOOKINGS: &str = "/api/v1/bookings";

/// The part of the new booking needed to open its payment page.
#[derive(Deserialize)]
struct StartedPayment {
    id: Uuid,
    pay_url: Option<String>,
}

/// The request for the kept hold: same seats, people and total.
fn request(booking: &FollowedBooking) -> Option<BookingRequest> {
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
pub(super) fn button(booking: RwSignal<FollowedBooking>) -> impl IntoView {
    let (busy, refused) = (RwSignal::new(false), RwSignal::new(None::<String>));
    // One intent, one key: a press after no answer repeats the request.
    let key = StoredValue::new(None::<String>);
    let pay = move || {
        let Some(mut request) = booking.with_untracked(request).filter(|_| !busy.get_untracked()) else { return };
        if let Some(details) = BuyerDetails::load_for(None) {
            request.if_late = details.if_late;
        }
        busy.set(true);
        refused.set(None);
        let with_key = key.get_value().unwrap_or_else(ids::new_key);
        key.set_value(Some(with_key.clone()));
        spawn_local(async move {
            match calls::change::<StartedPayment>(Method::POST, BOOKINGS, &with_key, &request).await {
                Ok(started) => browser::go_to(&started.pay_url.unwrap_or_else(|| format!("/bookings/{}", started.id))),
                Err(failure) => {
                    if (400..500).contains(&failure.status()) {
                        key.set_value(None);
                    }
                    if matches!(failure.code(), "hold_expired" | "not_found" | "seats_taken") {
                        // The page then links back to the seats.
                        booking.update(|booking| booking.kept_hold = None);
                    }
                    busy.set(false);
                    refused.set(Some(error_in_words(&failure, "status.card_unreachable")));
                }
            }
        });
    };
    let is_kept = Memo::new(move |_| booking.with(|booking| booking.kept_hold.is_some()));
    view! {
        {move || is_kept.get().then(|| view! {
            <p class="booking-next">
                <button type="button" class="button" data-testid="another-card" aria-disabled=move || busy.get().to_string() on:click=move |_| pay()>
                    {say!("status.next_another_card")}
                </button>
            </p>
        })}
        <div role="alert" class="details-trouble">{move || refused.get().map(|words| view! { <p>{words}</p> })}</div>
    }
}

#[cfg(test)]
mod tests {
    use domain::api::{BookingState, KeptHold, MoneyState, Person};

    use super::super::tests::followed;
    use super::*;

    #[test]
    fn the_new_booking_has_the_kept_hold_people_and_total() {
        let mut booking = followed(BookingState::Cancelled, MoneyState::Failed);
        assert_eq!(request(&booking), None, "nothing is held");
        let hold = Uuid::from_u128(7);
        booking.kept_hold = Some(KeptHold { hold, until_ms: 1, until_theatre: "2026-11-21T19:42:07".to_owned() });
        let asked = request(&booking).expect("something is held");
        assert_eq!((asked.hold, asked.show, &asked.buyer), (hold, booking.show, &booking.buyer));
        assert_eq!(asked.holder, None);
        assert_eq!(asked.pay.map(|pay| pay.total_minor), Some(booking.total.minor));
        booking.holder = Person { name: "Luís".to_owned(), email: "luis@example.org".to_owned() };
        assert_eq!(request(&booking).and_then(|asked| asked.holder), Some(booking.holder));
    }
}
