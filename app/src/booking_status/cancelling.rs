//! Giving seats back: which ones, what comes back, and a second look before it is done.

use domain::api::SeatLine;
use domain::api::cancelling::CancelRequest;
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
    view! {
        <div class="booking-cancel">
            <button type="button" class="button button-quiet" data-testid="cancel-open" aria-controls="cancel-panel"
                aria-expanded=move || if open.get() { "true" } else { "false" }
                hidden=move || open.get() on:click=look_again>
                {say!("cancel.open")}
            </button>
            <div class="card booking-cancel-panel" id="cancel-panel" tabindex="-1" role="group" aria-label=say!("cancel.label")
                hidden=move || !open.get()>
                {seats(choice)}
                <p data-testid="cancel-sum">{move || sum_in_words(choice)}</p>
                <div role="alert" class="details-trouble">{move || trouble.get().map(|words| view! { <p>{words}</p> })}</div>
                <p class="booking-cancel-acts">
                    <button type="button" class="button" data-testid="cancel-confirm"
                        aria-disabled=move || if busy.get() || gone(choice).is_empty() { "true" } else { "false" }
                        on:click=move |_| submit(choice)>
                        {move || button_words(choice)}
                    </button>
                    <button type="button" class="button button-quiet" on:click=move |_| open.set(false)>{say!("cancel.keep")}</button>
                </p>
            </div>
        </div>
    }
}

/// One box a seat; a booking of one seat needs none.
fn seats(choice: Choice) -> impl IntoView {
    let lines = choice.booking.with_untracked(|booking| booking.seats.clone());
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
    (lines.len() > 1).then(|| {
        view! {
            <fieldset class="booking-cancel-seats">
                <legend>{say!("cancel.which")}</legend>
                {lines.into_iter().map(boxes).collect_view()}
            </fieldset>
        }
    })
}

/// The seats to be given back.
fn gone(choice: Choice) -> Vec<SeatLine> {
    choice.booking.with(|booking| {
        choice.kept.with(|kept| booking.seats.iter().filter(|line| !kept.contains(&line.seat)).cloned().collect())
    })
}

/// What comes back for these seats, and the fee that is kept.
fn share(lines: &[SeatLine]) -> Option<(Money, Money)> {
    let price = lines.iter().map(|line| Some(line.price)).reduce(|sum, price| sum?.checked_add(price?)).flatten()?;
    let back = back_to_buyer(price);
    Some((back, Money::new(price.minor - back.minor, price.currency)))
}

fn sum_in_words(choice: Choice) -> String {
    match share(&gone(choice)) {
        Some((back, fee)) => say!("cancel.sum", back = back, fee = fee, percent = CANCELLATION_FEE_PERCENT),
        None => say!("cancel.none"),
    }
}

fn button_words(choice: Choice) -> String {
    if choice.asking.busy.get() {
        return say!("common.one_moment");
    }
    match (gone(choice).len(), choice.kept.with(Vec::len)) {
        (count, 0) => say!("cancel.all", seats = count),
        (count, _) => say!("cancel.some", seats = count),
    }
}

fn submit(choice: Choice) {
    let gone: Vec<SeatIndex> = gone(choice).iter().map(|line| line.seat).collect();
    if gone.is_empty() {
        return;
    }
    let request = CancelRequest { seats: choice.kept.with_untracked(|kept| !kept.is_empty()).then_some(gone) };
    choice.asking.send("cancel", request, UNREACHABLE);
}

#[cfg(test)]
mod tests {
    use super::super::asking::trouble;
    use super::*;
    use crate::browser::calls::Failure;
    use domain::money::Currency;

    #[test]
    fn what_comes_back_and_the_fee_are_the_price() {
        let line = |minor| SeatLine {
            seat: 1,
            label: "C7".to_owned(),
            category: "Gold".to_owned(),
            price: Money::new(minor, Currency::parse("EUR").expect("a code")),
        };
        let (back, fee) = share(&[line(1_250), line(1_255)]).expect("there are seats");
        assert_eq!((back.minor, fee.minor), (2_255, 250));
        assert_eq!(share(&[]), None);
    }

    #[test]
    fn no_answer_invites_to_press_again_without_fear() {
        assert!(trouble(&Failure::Unreachable, UNREACHABLE).contains("nothing is cancelled twice"));
    }
}
