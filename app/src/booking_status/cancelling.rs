//! Giving seats back: which ones, what comes back, and a second look before it is done.
//!
//! Places without numbers are given back with the whole booking only: they go with the last of its seats.

use domain::api::cancelling::CancelRequest;
use domain::api::{PlaceLine, SeatLine};
use domain::booking::{CANCELLATION_FEE_PERCENT, back_to_buyer};
use domain::money::Money;
use domain::seats::SeatIndex;
use leptos::prelude::*;

use super::FollowedBooking;
use super::asking::Asking;
use crate::browser;
use crate::language::{current, money};
use crate::say;

/// What is said where no answer comes.
const UNREACHABLE: &str = "cancel.unreachable";
/// The button that asks for the second look, which it gives way to.
const OPEN: &str = "cancel-open";

/// What the buyer does about it: outlives the panel.
#[derive(Clone, Copy)]
struct Choice {
    booking: RwSignal<FollowedBooking>,
    /// Seats that stay.
    kept: RwSignal<Vec<SeatIndex>>,
    open: RwSignal<bool>,
    asking: Asking<CancelRequest>,
}

/// The offer to cancel, while there is one; `open` while somebody looks at what would come back.
pub fn offer(booking: RwSignal<FollowedBooking>, open: RwSignal<bool>) -> impl IntoView {
    let asking = Asking::new(booking);
    let choice = Choice { booking, kept: RwSignal::new(Vec::new()), open, asking };
    let can_cancel =
        Memo::new(move |_| booking.with(|booking| booking.cancel_until_ms.is_some() && booking.seat_offer.is_none()));
    move || can_cancel.get().then(|| panel(choice))
}

fn panel(choice: Choice) -> impl IntoView {
    let Choice { open, asking: Asking { busy, trouble, .. }, .. } = choice;
    let look_again = move |_| {
        open.set(true);
        request_animation_frame(|| browser::focus("cancel-panel"));
    };
    let keep = move |_| {
        open.set(false);
        // What was pressed is hidden with the panel.
        request_animation_frame(|| browser::focus(OPEN));
    };
    view! {
        <div class="booking-cancel">
            <button type="button" class="button button-quiet" id=OPEN data-testid="cancel-open" aria-controls="cancel-panel"
                aria-expanded=move || if open.get() { "true" } else { "false" }
                hidden=move || open.get() on:click=look_again>
                {say!("cancel.open")}
            </button>
            <div class="card booking-cancel-panel" id="cancel-panel" tabindex="-1" role="group" aria-label=say!("cancel.label")
                hidden=move || !open.get()>
                {seats(choice)}
                <p data-testid="cancel-sum">{move || gone(choice).sum_in_words()}</p>
                <div role="alert" class="details-trouble">{move || trouble.get().map(|words| view! { <p>{words}</p> })}</div>
                <p class="booking-cancel-acts">
                    <button type="button" class="button" data-testid="cancel-confirm"
                        aria-disabled=move || if busy.get() || gone(choice).is_nothing() { "true" } else { "false" }
                        on:click=move |_| submit(choice)>
                        {move || button_words(choice)}
                    </button>
                    <button type="button" class="button button-quiet" on:click=keep>{say!("cancel.keep")}</button>
                </p>
            </div>
        </div>
    }
}

/// One box a seat; a booking of one seat needs none.
fn seats(choice: Choice) -> impl IntoView {
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

/// What is to be given back.
#[derive(Debug, PartialEq)]
struct Gone {
    seats: Vec<SeatLine>,
    places: Vec<PlaceLine>,
    /// Whether nothing stays.
    is_all: bool,
}

impl Gone {
    /// All of a booking but these seats.
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

    /// What comes back, and the fee that is kept.
    fn share(&self) -> Option<(Money, Money)> {
        let prices = self.seats.iter().map(|line| line.price).chain(self.places.iter().map(PlaceLine::total));
        let price = prices.map(Some).reduce(|sum, price| sum?.checked_add(price?)).flatten()?;
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
        CancelRequest { seats: (!self.is_all).then(|| self.seats.iter().map(|line| line.seat).collect()) }
    }
}

fn gone(choice: Choice) -> Gone {
    choice.booking.with(|booking| choice.kept.with(|kept| Gone::of(booking, kept)))
}

fn button_words(choice: Choice) -> String {
    if choice.asking.busy.get() { say!("common.one_moment") } else { gone(choice).button_words() }
}

fn submit(choice: Choice) {
    let gone = untrack(|| gone(choice));
    if !gone.is_nothing() {
        choice.asking.send("cancel", gone.request(), UNREACHABLE);
    }
}

#[cfg(test)]
mod tests {
    use domain::api::{BookingState, MoneyState};
    use domain::money::Currency;

    use super::super::asking::trouble;
    use super::super::tests::followed;
    use super::*;
    use crate::browser::calls::Failure;

    fn euro(minor: i64) -> Money {
        Money::new(minor, Currency::parse("EUR").expect("a code"))
    }

    /// A booking of these seats, and of so many places on the floor at 10.00 each.
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
    fn what_comes_back_and_the_fee_are_the_price() {
        let booking = booked(&[(7, 1_250), (8, 1_255)], 0);
        let share = |kept: &[SeatIndex]| Gone::of(&booking, kept).share().map(|(back, fee)| (back.minor, fee.minor));
        assert_eq!(share(&[]), Some((2_255, 250)));
        assert_eq!(share(&[7]), Some((1_130, 125)));
        assert_eq!(share(&[7, 8]), None);
    }

    #[test]
    fn places_without_numbers_can_be_given_back_with_nothing_else() {
        let gone = Gone::of(&booked(&[], 3), &[]);
        assert!(!gone.is_nothing());
        assert_eq!(gone.share(), Some((euro(2_700), euro(300))));
        assert_eq!(gone.request(), CancelRequest { seats: None });
        assert_eq!(gone.button_words(), "Cancel all places");
        assert_eq!(Gone::of(&booked(&[], 1), &[]).button_words(), "Cancel the place");
    }

    #[test]
    fn places_without_numbers_go_with_the_last_of_the_seats_and_stay_with_one() {
        let booking = booked(&[(7, 1_000), (8, 1_000)], 2);
        let all = Gone::of(&booking, &[]);
        assert_eq!(all.share(), Some((euro(3_600), euro(400))));
        assert_eq!((all.button_words().as_str(), all.request().seats), ("Cancel all places", None));
        let one = Gone::of(&booking, &[8]);
        assert_eq!(one.share(), Some((euro(900), euro(100))));
        assert_eq!((one.button_words().as_str(), one.request().seats), ("Cancel 1 seat", Some(vec![7])));
        assert!(Gone::of(&booking, &[7, 8]).is_nothing(), "not the places alone");
    }

    #[test]
    fn no_answer_invites_to_press_again_without_fear() {
        assert!(trouble(&Failure::Unreachable, UNREACHABLE).contains("nothing is cancelled twice"));
    }
}
