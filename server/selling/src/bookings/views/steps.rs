//! The history of a booking for its buyer: paid, issued, refund pending, refunded, with times.

use domain::VariantName;
use domain::api::cancelling::{RefundView, StepView};
use domain::booking::BookingState;
use domain::money::{Currency, Money};
use domain::time::Timestamp;

use crate::bookings::money::refunds::RefundRow;
use crate::bookings::moves::causes;
use crate::bookings::sql::EventRow;
use catalogue::Show;
use payments::{CANCELLED_BY_PAYER, DECLINED_BY_BANK};
use platform::clock::{from_utc, rfc3339};

pub(crate) fn refunds_view(refunds: &[RefundRow], currency: Currency) -> Vec<RefundView> {
    let view = |refund: &RefundRow| RefundView {
        number: refund.number.cast_unsigned(),
        amount: Money::new(refund.amount_minor, currency),
        fee: Money::new(refund.fee_minor, currency),
        seats: refund.seats.clone(),
        settled: refund.settled_at.is_some(),
        came_back: refund.came_back,
    };
    refunds.iter().map(view).collect()
}

/// Events of a returned part. Each has a refund with the labels of its seats.
const PARTS: [&str; 2] = ["part_cancelled_by_buyer", "part_cancelled_by_staff"];

/// Returns the buyer's steps in the order of time.
pub(crate) fn steps(show: &Show, events: &[EventRow], refunds: &[RefundRow], currency: Currency) -> Vec<StepView> {
    let mut steps: Vec<(Timestamp, StepWords)> = Vec::new();
    // A refund at a gateway that the booking had left failed: the buyer never saw that payment.
    let is_visible = |event: &EventRow| event.event != "refund_failed" || !refunds.is_empty();
    for (event, seats) in events.iter().zip(returned_seats(events, refunds)).filter(|(event, _)| is_visible(event)) {
        if let Some(step) = of_event(event, &seats) {
            steps.push((from_utc(event.at), step));
        }
    }
    for refund in refunds.iter().filter(|refund| refund.amount_minor > 0) {
        let amount = Money::new(refund.amount_minor, currency);
        let refund_step = |step, words: String| StepWords { amount: Some(amount), ..StepWords::new(step, words) };
        let asked = refund_step("refunding", format!("{amount} on its way back to you"));
        steps.push((from_utc(refund.requested_at), asked));
        if let Some(at) = refund.settled_at {
            steps.push((from_utc(at), refund_step("refunded", format!("{amount} paid back"))));
        }
    }
    // A stable sort: events of the same instant stay in the order they were written.
    steps.sort_by_key(|(at, _)| *at);
    let view = |(at, texts): (Timestamp, StepWords)| StepView {
        step: texts.step.to_owned(),
        words: texts.words,
        at: rfc3339(at),
        at_local: show.local(at),
        at_theatre: show.local_iso(at),
        amount: texts.amount,
        seats: texts.seats,
        note: texts.note,
        why: texts.why.map(str::to_owned),
    };
    steps.into_iter().map(view).collect()
}

/// Returns the labels of the seats that each of these events returned; empty where it returned none. Parts and their
/// refunds are written together, so both are in the same order.
fn returned_seats(events: &[EventRow], refunds: &[RefundRow]) -> Vec<String> {
    let mut parts = refunds.iter().filter(|refund| !refund.seats.is_empty());
    let seats = |event: &EventRow| {
        let part = if PARTS.contains(&event.event.as_str()) { parts.next() } else { None };
        part.map(|refund| refund.seats.join(", ")).unwrap_or_default()
    };
    events.iter().map(seats).collect()
}

/// A step without its time: its English text, and the fields that pages need to translate it.
#[derive(Debug, PartialEq)]
struct StepWords {
    step: &'static str,
    words: String,
    amount: Option<Money>,
    seats: Option<String>,
    note: Option<String>,
    why: Option<&'static str>,
}

impl StepWords {
    fn new(step: &'static str, words: impl Into<String>) -> Self {
        Self { step, words: words.into(), amount: None, seats: None, note: None, why: None }
    }

    /// Builds the step of a failed payment from the gateway's reason.
    fn failed(reason: &str) -> Self {
        let with_cause = |why, words: &str| Self { why: Some(why), ..Self::new("failed", words) };
        match causes::parse_gateway_refusal(reason) {
            Some(CANCELLED_BY_PAYER) => with_cause("stopped", "You cancelled the payment"),
            Some(why) if DECLINED_BY_BANK.contains(&why) => with_cause("declined", "Your bank declined the card"),
            _ => Self::new("failed", "The payment did not go through"),
        }
    }

    fn by_the_cinema(step: &'static str, note: &str) -> Self {
        Self { note: Some(note.to_owned()), ..Self::new(step, format!("Cancelled by the cinema. {note}")) }
    }
}

/// Returns the buyer's step for an event that returned these seats; `None` for internal events.
fn of_event(event: &EventRow, seats: &str) -> Option<StepWords> {
    let is_over =
        [BookingState::Cancelled, BookingState::Expired].map(|state| state.as_str()).contains(&event.to_state.as_str());
    let plain = |step, words: &str| Some(StepWords::new(step, words));
    match event.event.as_str() {
        "payment_submitted" => plain("paying", "Payment started"),
        "payment_succeeded" if is_over => plain("paid_late", "Your payment arrived, too late for this booking"),
        "payment_succeeded" => plain("paid", "Paid"),
        "seats_sold" => plain("issued", "Tickets issued"),
        "seats_lost" => {
            let is_card = event.reason == causes::CARD_LIMIT.reason;
            Some(StepWords { why: is_card.then_some("card_limit"), ..StepWords::new("lost", &*event.reason) })
        }
        "payment_failed" => Some(StepWords::failed(&event.reason)),
        "timed_out" => plain("expired", "The time ran out"),
        "cancelled_by_buyer" => plain("cancelled", "Cancelled by you"),
        "cancelled_by_staff" => Some(StepWords::by_the_cinema("cancelled", &event.reason)),
        "part_cancelled_by_buyer" => {
            let step = StepWords::new("part_cancelled", format!("{seats} cancelled by you"));
            Some(StepWords { seats: Some(seats.to_owned()), ..step })
        }
        "part_cancelled_by_staff" => Some(StepWords::by_the_cinema("part_cancelled", &event.reason)),
        "relocated" if event.actor == "staff" => {
            let step = StepWords::new("relocated", format!("Moved to another screen. {}", event.reason));
            Some(StepWords { note: Some(event.reason.clone()), ..step })
        }
        "relocated" => plain("other_seats_taken", "You took the other seats"),
        "refund_failed" => plain("came_back", "Your bank returned the refund; we are looking into it"),
        "effect_retried" if is_of_refund(event) => plain("sent_again", "The refund is being sent again"),
        "effect_settled" if is_of_refund(event) => plain("paid_otherwise", "Refunded in another way"),
        "exchanged" => plain("moved", "Exchanged for another booking"),
        "late_money_moved" => plain("moved", "Your payment was used for a new booking"),
        _ => None,
    }
}

fn is_of_refund(event: &EventRow) -> bool {
    event.reason.split_once(':').is_some_and(|(effect, _)| ["refund", "refund_part"].contains(&effect))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, Utc};

    fn event(name: &str, to: BookingState) -> EventRow {
        EventRow {
            number: 1,
            event: name.to_owned(),
            from_state: None,
            to_state: to.as_str().to_owned(),
            actor: "staff".to_owned(),
            reason: "C7, C8: The seat is broken.".to_owned(),
            at: DateTime::<Utc>::UNIX_EPOCH,
        }
    }

    #[test]
    fn buyer_events_have_steps_and_internal_events_have_none() {
        let of_event = |name, to| of_event(&event(name, to), "C7, C8");
        assert_eq!(of_event("hold_taken", BookingState::SeatsLocked), None);
        assert_eq!(of_event("effect_retried", BookingState::Confirmed), None);
        let part = of_event("part_cancelled_by_buyer", BookingState::Confirmed).expect("a step");
        assert_eq!((part.step, part.words.as_str()), ("part_cancelled", "C7, C8 cancelled by you"));
        assert_eq!(part.seats.as_deref(), Some("C7, C8"));
        let cinema = of_event("cancelled_by_staff", BookingState::Cancelled).expect("a step");
        assert!(cinema.words.contains("The seat is broken.") && cinema.note.is_some(), "{cinema:?}");
        assert_eq!(of_event("refund_failed", BookingState::Cancelled).expect("a step").step, "came_back");
        let late = of_event("payment_succeeded", BookingState::Expired).expect("a step");
        assert_eq!(late.step, "paid_late");
    }

    #[test]
    fn decisions_about_refunds_have_steps_and_those_about_the_map_have_none() {
        let step_of = |name: &str, reason: &str| {
            let event = EventRow { reason: reason.to_owned(), ..event(name, BookingState::Cancelled) };
            of_event(&event, "").map(|step| step.step)
        };
        assert_eq!(step_of("effect_retried", "refund: The bank is back."), Some("sent_again"));
        assert_eq!(step_of("effect_settled", "refund_part: Paid back in cash."), Some("paid_otherwise"));
        assert_eq!(step_of("effect_settled", "mark_booked: refund: no."), None);
    }

    #[test]
    fn a_failed_payment_step_names_the_cause_if_known() {
        let step_of = |reason: &str| {
            let event = EventRow { reason: reason.to_owned(), ..event("payment_failed", BookingState::Cancelled) };
            let step = of_event(&event, "").expect("a step");
            (step.step, step.why, step.words)
        };
        for why in ["card_declined", "bank_declined", "expired_card", "incorrect_cvc"] {
            let declined = ("failed", Some("declined"), "Your bank declined the card".to_owned());
            assert_eq!(step_of(&format!("The gateway said no: {why}.")), declined, "as it is stored");
        }
        let stopped = ("failed", Some("stopped"), "You cancelled the payment".to_owned());
        assert_eq!(step_of("The gateway said no: cancelled_by_payer."), stopped, "as it is stored");
        let unknown_cause = ("failed", None, "The payment did not go through".to_owned());
        assert_eq!(step_of(&causes::format_gateway_refusal("amount_invalid")), unknown_cause);
        assert_eq!(step_of(causes::WEBHOOK.reason), unknown_cause);
    }

    #[test]
    fn each_part_has_the_seats_of_its_own_refund() {
        let refund = |number, seats: &[&str]| RefundRow {
            number,
            amount_minor: 100,
            fee_minor: 0,
            requested_at: DateTime::<Utc>::UNIX_EPOCH,
            settled_at: None,
            came_back: false,
            seats: seats.iter().map(|seat| (*seat).to_owned()).collect(),
        };
        let names = ["seats_sold", "part_cancelled_by_buyer", "difference_returned", "part_cancelled_by_staff"];
        let events = names.map(|name| event(name, BookingState::Confirmed));
        let refunds = [refund(1, &["Box: 7"]), refund(2, &[]), refund(3, &["C7", "C8"])];
        assert_eq!(returned_seats(&events, &refunds), ["", "Box: 7", "", "C7, C8"]);
    }
}
