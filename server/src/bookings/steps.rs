//! A booking's story for the one who bought: paid, issued, on its way back, back, with times.

use domain::api_cancelling::{RefundView, StepView};
use domain::booking::BookingState;
use domain::money::{Currency, Money};
use domain::time::Timestamp;

use super::refunds::RefundRow;
use super::sql::EventRow;
use crate::catalogue::Show;
use crate::clock::{from_utc, rfc3339};

/// Refunds as their payer sees them.
pub(super) fn refunds_view(refunds: &[RefundRow], currency: Currency) -> Vec<RefundView> {
    let view = |refund: &RefundRow| RefundView {
        number: refund.number.cast_unsigned(),
        amount: Money::new(refund.amount_minor, currency),
        fee: Money::new(refund.fee_minor, currency),
        seats: refund.seats.clone(),
        settled: refund.settled_at.is_some(),
    };
    refunds.iter().map(view).collect()
}

/// What happened, in the order of time.
pub(super) fn steps(show: &Show, events: &[EventRow], refunds: &[RefundRow], currency: Currency) -> Vec<StepView> {
    let mut steps: Vec<(Timestamp, &'static str, String)> = Vec::new();
    for event in events {
        if let Some((step, words)) = of_event(event) {
            steps.push((from_utc(event.at), step, words));
        }
    }
    for refund in refunds.iter().filter(|refund| refund.amount_minor > 0) {
        let amount = Money::new(refund.amount_minor, currency);
        steps.push((from_utc(refund.requested_at), "refunding", format!("{amount} on its way back to you")));
        if let Some(at) = refund.settled_at {
            steps.push((from_utc(at), "refunded", format!("{amount} paid back")));
        }
    }
    // Stable: what happened in the same instant stays in the order it was written.
    steps.sort_by_key(|(at, ..)| *at);
    let view = |(at, step, words): (Timestamp, &str, String)| StepView {
        step: step.to_owned(),
        words,
        at: rfc3339(at),
        at_local: show.local(at),
    };
    steps.into_iter().map(view).collect()
}

/// What an event means to the buyer; nothing, for those that are ours alone.
fn of_event(event: &EventRow) -> Option<(&'static str, String)> {
    let is_over =
        [BookingState::Cancelled, BookingState::Expired].map(BookingState::as_str).contains(&event.to_state.as_str());
    let told = |step, words: &str| Some((step, words.to_owned()));
    match event.event.as_str() {
        "payment_submitted" => told("paying", "Payment begun"),
        "payment_succeeded" if is_over => told("paid_late", "Your payment arrived, too late for this booking"),
        "payment_succeeded" => told("paid", "Paid"),
        "seats_sold" => told("issued", "Tickets issued"),
        "seats_lost" => told("lost", &event.reason),
        "payment_failed" => told("failed", "The payment did not go through"),
        "timed_out" => told("expired", "The time ran out"),
        "cancelled_by_buyer" => told("cancelled", "Cancelled by you"),
        "cancelled_by_staff" => Some(("cancelled", format!("Cancelled by the cinema. {}", event.reason))),
        "part_cancelled_by_buyer" => {
            let seats = event.reason.split_once(':').map_or("", |(seats, _)| seats);
            Some(("part_cancelled", format!("{seats} cancelled by you")))
        }
        "part_cancelled_by_staff" => Some(("part_cancelled", format!("Cancelled by the cinema. {}", event.reason))),
        "late_money_moved" => told("moved", "Your payment was used for a new booking"),
        _ => None,
    }
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
    fn what_matters_to_the_buyer_is_told_and_housekeeping_is_not() {
        assert_eq!(of_event(&event("hold_taken", BookingState::SeatsLocked)), None);
        assert_eq!(of_event(&event("effect_retried", BookingState::Confirmed)), None);
        let (step, words) = of_event(&event("part_cancelled_by_buyer", BookingState::Confirmed)).expect("told");
        assert_eq!((step, words.as_str()), ("part_cancelled", "C7, C8 cancelled by you"));
        let (_, words) = of_event(&event("cancelled_by_staff", BookingState::Cancelled)).expect("told");
        assert!(words.contains("The seat is broken."), "{words}");
        let late = of_event(&event("payment_succeeded", BookingState::Expired)).expect("told");
        assert_eq!(late.0, "paid_late");
    }
}
