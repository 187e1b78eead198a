//! Cancels seats: which ones, the refund, and a confirmation.
//!
//! Places without numbers are only cancelled with the whole booking, together with its last seat.

use domain::api::cancelling::CancelRequest;
use domain::api::{PlaceLine, SeatLine};
use domain::booking::{CANCELLATION_FEE_PERCENT, back_to_buyer};
use domain::money::Money;
use domain::seats::SeatIndex;
use language::{current, money, say};
use leptos::prelude::*;

use super::FollowedBooking;
use super::actions::BookingAction;
use crate::browser;

/// Message for a missing answer.
const UNREACHABLE: &str = "cancel.unreachable";
/// Id of the button that opens the confirmation, which replaces it.
const OPEN: &str = "cancel-open";

/// The buyer's choice. It outlives the panel.
#[derive(Clone, Copy)]
struct CancellationChoice {
    booking: RwSignal<FollowedBooking>,
    /// Seats that stay.
    kept: RwSignal<Vec<SeatIndex>>,
    open: RwSignal<bool>,
    action: BookingAction<CancelRequest>,
}

/// The cancel button while the booking can be cancelled. `open` is true while the confirmation is shown.
pub fn offer(booking: RwSignal<FollowedBooking>, open: RwSignal<bool>) -> impl IntoView {
    let action = BookingAction::new(booking);
    let choice = CancellationChoice { booking, kept: RwSignal::new(Vec::new()), open, action };
    let can_cancel =
        Memo::new(move |_| booking.with(|booking| booking.cancel_until_ms.is_some() && booking.seat_offer.is_none()));
    move || can_cancel.get().then(|| panel(choice))
}

fn panel(choice: CancellationChoice) -> impl IntoView {
    let CancellationChoice { open, action: BookingAction { busy, error, .. }, .. } = choice;
    let show_confirmation = move |_| {
        open.set(true);
        request_animation_frame(|| browser::focus("cancel-panel"));
    };
    let keep = move |_| {
        open.set(false);
        // The pressed button disappeared with the panel.
        request_animation_frame(|| browser::focus(OPEN));
    };
    view! {
        <div class="booking-cancel">
            <button type="button" class="button button-quiet" id=OPEN data-testid="cancel-open" aria-controls="cancel-panel"
                aria-expanded=move || if open.get() { "true" } else { "false" }
                hidden=move || open.get() on:click=show_confirmation>
                {say!("cancel.open")}
            </button>
            <div class="card booking-cancel-panel" id="cancel-panel" tabindex="-1" role="group" aria-label=say!("cancel.label")
                hidden=move || !open.get()>
                {seats(choice)}
                <p data-testid="cancel-sum">{move || cancelled_part(choice).sum_in_words()}</p>
                <div role="alert" class="details-trouble">{move || error.get().map(|words| view! { <p>{words}</p> })}</div>
                <p class="booking-cancel-acts">
                    <button type="button" class="button" data-testid="cancel-confirm"
                        aria-disabled=move || if busy.get() || cancelled_part(choice).is_nothing() { "true" } else { "false" }
                        on:click=move |_| submit(choice)>
                        {move || button_words(choice)}
                    </button>
                    <button type="button" class="button button-quiet" on:click=keep>{say!("cancel.keep")}</button>
                </p>
            </div>
        </div>
    }
}

/// A checkbox per seat. A booking of one seat has none.
fn seats(choice: CancellationChoice) -> impl IntoView {
    let (lines, places) = choice.booking.with_untracked(|booking| (booking.seats.clone(), booking.places.clone()));
    let boxes = move |line: SeatLine| {
        let seat = line.seat;
        let toggle = move |event: leptos::ev::Event| {
            choice.kept.update(|kept| {
                kept.retain(|other| *other != seat);
                if !event_target_checked(&event) {
                    kept.push(seat);
                }
            });
        };
        view! {
            <label class="booking-cancel-seat">
                <input type="checkbox" data-testid="cancel-seat" prop:checked=move || choice.kept.with(|kept| !kept.contains(&seat)) on:change=toggle />
                <span>{line.label}</span>
                <span class="quiet">{money(line.price, current())}</span>
            </label>
        }
    };
    let place_boxes = move |line: PlaceLine| {
        let price = money(line.total(), current());
        view! {
            <label class="booking-cancel-seat">
                <input type="checkbox" data-testid="cancel-places" disabled prop:checked=move || choice.kept.with(Vec::is_empty) />
                <span>{say!("cancel.quantity", quantity = line.quantity, area = &line.label)}</span>
                <span class="quiet">{price}</span>
            </label>
        }
    };
    (lines.len() > 1).then(|| {
        view! {
            <fieldset class="booking-cancel-seats">
                <legend>{say!("cancel.which")}</legend>
                {lines.into_iter().map(boxes).collect_view()}
                {places.into_iter().map(place_boxes).collect_view()}
            </fieldset>
        }
    })
}

/// The seats and places to cancel.
#[derive(Debug, PartialEq)]
struct CancelledPart {
    seats: Vec<SeatLine>,
    places: Vec<PlaceLine>,
    /// True if the whole booking is cancelled.
    is_all: bool,
}

impl CancelledPart {
    /// The whole booking except these seats.
    fn of(booking: &FollowedBooking, kept: &[SeatIndex]) -> Self {
        let is_all = kept.is_empty();
        Self {
            seats: booking.seats.iter().filter(|line| !kept.contains(&line.seat)).cloned().collect(),
            places: if is_all { booking.places.clone() } else { Vec::new() },
            is_all,
        }
    }

    fn is_nothing(&self) -> bool {
        self.seats.is_empty() && self.places.is_empty()
    }

    /// The refund, and the fee that is kept.
    fn share(&self) -> Option<(Money, Money)> {
        let prices = self.seats.iter().map(|line| line.price).chain(self.places.iter().map(PlaceLine::total));
        let price = Money::total(prices)?;
        let back = back_to_buyer(price);
        Some((back, Money::new(price.minor - back.minor, price.currency)))
    }

    fn sum_in_words(&self) -> String {
        match self.share() {
            Some((back, fee)) => say!("cancel.sum", back = back, fee = fee, percent = CANCELLATION_FEE_PERCENT),
            None => say!("cancel.none"),
        }
    }

    fn button_words(&self) -> String {
        let (seats, places) = (self.seats.len(), self.places.iter().fold(0, |sum, line| sum + line.quantity as usize));
        match (self.is_all, places) {
            (true, 0) => say!("cancel.all", seats = seats),
            (true, places) => say!("cancel.all_places", places = seats + places),
            (false, _) => say!("cancel.some", seats = seats),
        }
    }

    fn request(&self) -> CancelRequest {
        let chosen = || self.seats.iter().map(|line| (line.seat, line.label.clone())).unzip();
        let (seats, labels) = (!self.is_all).then(chosen).unzip();
        CancelRequest { seats, labels }
    }
}

fn cancelled_part(choice: CancellationChoice) -> CancelledPart {
    choice.booking.with(|booking| choice.kept.with(|kept| CancelledPart::of(booking, kept)))
}

fn button_words(choice: CancellationChoice) -> String {
    if choice.action.busy.get() { say!("common.one_moment") } else { cancelled_part(choice).button_words() }
}

fn submit(choice: CancellationChoice) {
    let cancelled_part = untrack(|| cancelled_part(choice));
    if !cancelled_part.is_nothing() {
        choice.action.send("cancel", cancelled_part.request(), UNREACHABLE);
    }
}

#[cfg(test)]
mod tests {
    use domain::api::{BookingState, MoneyState};
    use domain::money::Currency;

    use super::super::tests::followed;
    use super::*;
    use crate::browser::calls::Failure;

    fn euro(minor: i64) -> Money {
        Money::new(minor, Currency::parse("EUR").expect("a code"))
    }

    /// A booking of these seats, and of this many places on the floor at 10.00 each.
    fn booked(seats: &[(SeatIndex, i64)], floor: u32) -> FollowedBooking {
        let seat = |(seat, minor): &(SeatIndex, i64)| SeatLine {
            seat: *seat,
            label: format!("C{seat}"),
            category: "Gold".to_owned(),
            price: euro(*minor),
        };
        let places = PlaceLine {
            area: 0,
            label: "Floor".to_owned(),
            category: "Floor".to_owned(),
            price: euro(1_000),
            quantity: floor,
        };
        FollowedBooking {
            seats: seats.iter().map(seat).collect(),
            places: if floor > 0 { vec![places] } else { vec![] },
            ..followed(BookingState::Confirmed, MoneyState::Paid)
        }
    }

    #[test]
    fn refund_and_fee_add_up_to_the_price() {
        let booking = booked(&[(7, 1_250), (8, 1_255)], 0);
        let share =
            |kept: &[SeatIndex]| CancelledPart::of(&booking, kept).share().map(|(back, fee)| (back.minor, fee.minor));
        assert_eq!(share(&[]), Some((2_255, 250)));
        assert_eq!(share(&[7]), Some((1_130, 125)));
        assert_eq!(share(&[7, 8]), None);
    }

    #[test]
    fn a_booking_of_places_alone_can_be_cancelled() {
        let cancelled_part = CancelledPart::of(&booked(&[], 3), &[]);
        assert!(!cancelled_part.is_nothing());
        assert_eq!(cancelled_part.share(), Some((euro(2_700), euro(300))));
        assert_eq!(cancelled_part.request(), CancelRequest { seats: None, labels: None });
        assert_eq!(cancelled_part.button_words(), "Cancel all places");
        assert_eq!(CancelledPart::of(&booked(&[], 1), &[]).button_words(), "Cancel the place");
    }

    #[test]
    fn places_are_cancelled_only_with_the_last_seat() {
        let booking = booked(&[(7, 1_000), (8, 1_000)], 2);
        let all = CancelledPart::of(&booking, &[]);
        assert_eq!(all.share(), Some((euro(3_600), euro(400))));
        assert_eq!((all.button_words().as_str(), all.request().seats), ("Cancel all places", None));
        let one = CancelledPart::of(&booking, &[8]);
        assert_eq!(one.share(), Some((euro(900), euro(100))));
        assert_eq!((one.button_words().as_str(), one.request().seats), ("Cancel 1 seat", Some(vec![7])));
        assert!(CancelledPart::of(&booking, &[7, 8]).is_nothing(), "places alone cannot be cancelled");
    }

    #[test]
    fn a_missing_answer_explains_that_a_retry_is_safe() {
        assert!(Failure::Unreachable.in_words(UNREACHABLE).contains("nothing is cancelled twice"));
    }
}
