//! Another card after one that was declined: the seats are still held, and one press pays for them anew.

use domain::api::cancelling::IfLate;
use domain::api::{BookingRequest, PayAtOnce};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::Deserialize;
use uuid::Uuid;

use super::FollowedBooking;
use super::asking::trouble;
use crate::browser::{self, calls, ids};
use crate::payment_retry::buyer_details::Typed;
use crate::say;

/// Where bookings are made.
const BOOKINGS: &str = "/api/v1/bookings";

/// The part of the new booking that leads to its payment page.
#[derive(Deserialize)]
struct Begun {
    id: Uuid,
    pay_url: Option<String>,
}

/// The booking of the kept hold: same seats, same people, same sum.
fn request(booking: &FollowedBooking) -> Option<BookingRequest> {
    let kept = booking.kept_hold.as_ref()?;
    let (buyer, holder) = (booking.buyer.clone(), booking.holder.clone());
    Some(BookingRequest {
        show: booking.show,
        hold: kept.hold,
        holder: (holder != buyer).then_some(holder),
        buyer,
        if_late: IfLate::default(),
        pay: Some(PayAtOnce { total_minor: booking.total.minor, payment_token: None }),
    })
}

/// The button, while a hold is kept; and why it did not work.
pub(super) fn button(booking: RwSignal<FollowedBooking>) -> impl IntoView {
    let (busy, refused) = (RwSignal::new(false), RwSignal::new(None::<String>));
    // One intent, one key: pressing again after no answer repeats the request.
    let key = StoredValue::new(None::<String>);
    let pay = move || {
        let Some(mut request) = booking.with_untracked(request).filter(|_| !busy.get_untracked()) else { return };
        if let Some(typed) = Typed::kept_for(None) {
            request.if_late = typed.if_late;
        }
        busy.set(true);
        refused.set(None);
        let with_key = key.get_value().unwrap_or_else(ids::new_key);
        key.set_value(Some(with_key.clone()));
        spawn_local(async move {
            match calls::change::<Begun>(Method::POST, BOOKINGS, &with_key, &request).await {
                Ok(begun) => browser::go_to(&begun.pay_url.unwrap_or_else(|| format!("/bookings/{}", begun.id))),
                Err(failure) => {
                    if (400..500).contains(&failure.status()) {
                        key.set_value(None);
                    }
                    if matches!(failure.code(), "hold_expired" | "not_found" | "seats_taken") {
                        // The page leads back to the seats instead.
                        booking.update(|booking| booking.kept_hold = None);
                    }
                    busy.set(false);
                    refused.set(Some(trouble(&failure, "status.card_unreachable")));
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
    fn the_new_booking_is_of_the_kept_hold_for_the_same_people_and_sum() {
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
