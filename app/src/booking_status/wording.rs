//! The texts of a booking for every state of seats and money, so that no payment is left unexplained, and the next
//! step.

use domain::api::{BookingState, MoneyState, RefundView};
use language::{Arg, clock, say};

use super::FollowedBooking;
use crate::payment_retry;

/// The text of a state: a tone, a mark, and the message keys of title and text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StatusText {
    pub tone: &'static str,
    pub mark: &'static str,
    pub title: &'static str,
    pub text: &'static str,
}

impl StatusText {
    const fn new(tone: &'static str, mark: &'static str, title: &'static str, text: &'static str) -> Self {
        Self { tone, mark, title, text }
    }

    fn of(state: BookingState, money: MoneyState) -> Self {
        use BookingState as S;
        let (tone, mark, title, text) = match (state, money) {
            (S::Created | S::SeatsLocked, _) => ("waiting", "…", "status.not_paid_title", "status.not_paid_text"),
            (S::PaymentPending, _) => ("waiting", "…", "status.waiting_title", "status.waiting_text"),
            (S::PaymentSucceeded, _) => ("waiting", "…", "status.issuing_title", "status.issuing_text"),
            (S::Confirmed, _) => ("done", "✓", "status.done_title", "status.done_text"),
            (S::Cancelled | S::Expired, MoneyState::Paid) => ("waiting", "…", "status.late_title", "status.late_text"),
            (S::Cancelled | S::Expired, MoneyState::Moved) => ("done", "✓", "status.moved_title", "status.moved_text"),
            (S::Cancelled | S::Expired, MoneyState::Refunding) => {
                ("sorry", "×", "status.refunding_title", "status.refunding_text")
            }
            (S::Cancelled | S::Expired, MoneyState::Refunded) => {
                ("sorry", "×", "status.refunded_title", "status.refunded_text")
            }
            (S::Cancelled, MoneyState::Failed) => ("sorry", "×", "status.failed_title", "status.failed_text"),
            (S::Cancelled, _) => ("sorry", "×", "status.cancelled_title", "status.cancelled_text"),
            // The buyer should not book again before the payment's outcome is known.
            (S::Expired, MoneyState::Pending) => ("waiting", "…", "status.expired_title", "status.unsettled_text"),
            (S::Expired, _) => ("sorry", "×", "status.expired_title", "status.expired_text"),
        };
        Self::new(tone, mark, title, text)
    }
}

/// The text of a booking. A payment stopped by a cancellation did not fail.
pub(super) fn words(booking: &FollowedBooking) -> StatusText {
    match (booking.state, booking.money) {
        // A bounced refund comes first, regardless of the payment state.
        (state, _)
            if state.is_final() && booking.refunds.iter().any(|refund| refund.number == 0 && refund.came_back) =>
        {
            StatusText::new("waiting", "…", "status.came_back_title", "status.came_back_text")
        }
        (BookingState::Cancelled, MoneyState::Failed) if is_cancelled(booking) => {
            StatusText::of(booking.state, MoneyState::None)
        }
        (BookingState::Cancelled, MoneyState::Failed) if booking.kept_hold.is_some() => {
            let is_declined = why_it_failed(booking) == Some("declined");
            let title = if is_declined { "status.declined_title" } else { "status.failed_title" };
            StatusText::new("waiting", "…", title, "status.declined_kept_text")
        }
        (BookingState::Cancelled, MoneyState::Failed) => match why_it_failed(booking) {
            Some("declined") => StatusText::new("sorry", "×", "status.declined_title", "status.declined_text"),
            Some("stopped") => StatusText::new("sorry", "×", "status.stopped_title", "status.stopped_text"),
            _ => StatusText::of(booking.state, booking.money),
        },
        (BookingState::PaymentPending, _) if booking.is_submitted => {
            StatusText::new("waiting", "…", "status.submitted_title", "status.waiting_text")
        }
        // Back from the gateway without a payment: first of all, the seats are still held.
        (BookingState::PaymentPending, _) if until_ms(booking).is_some() => {
            StatusText::new("waiting", "…", "status.held_title", "status.held_text")
        }
        (BookingState::Confirmed, _) if is_for_a_friend(booking) => {
            StatusText::new("done", "✓", "status.done_for_friend_title", "status.done_for_friend_text")
        }
        (state, money) => StatusText::of(state, money),
    }
}

/// A message about a booking, with all values it may use.
pub(super) fn booking_message(key: &str, booking: &FollowedBooking) -> String {
    say!(key, name = &booking.holder.name, email = &booking.holder.email)
}

/// Returns true if the buyer or the cinema cancelled it.
fn is_cancelled(booking: &FollowedBooking) -> bool {
    booking.steps.iter().any(|step| step.step == "cancelled")
}

/// The recorded reason why no payment succeeded.
fn why_it_failed(booking: &FollowedBooking) -> Option<&str> {
    booking.steps.iter().rev().find(|step| step.step == "failed")?.why.as_deref()
}

/// Returns true if the tickets were mailed to another address than the buyer's.
fn is_for_a_friend(booking: &FollowedBooking) -> bool {
    !booking.holder.email.eq_ignore_ascii_case(&booking.buyer.email)
}

/// The instant until which it must be paid, or its seats are kept for another card; milliseconds since 1970.
pub(super) fn until_ms(booking: &FollowedBooking) -> Option<i64> {
    let can_be_paid = booking.pay_url.is_some() && booking.expires_at_theatre.is_some() && !booking.is_submitted;
    let kept = booking.kept_hold.as_ref().map(|kept| kept.until_ms);
    can_be_paid.then_some(booking.expires_at_ms).or(kept)
}

/// The countdown.
pub(super) fn time_left(seconds: i64) -> String {
    say!("status.time_left", time = Arg::Ours(&clock(seconds / 60, seconds % 60)))
}

pub(super) fn money_in_words(booking: &FollowedBooking) -> String {
    let total = booking.total;
    // The final refund. Earlier partial refunds have lines of their own.
    let whole = booking.refunds.iter().find(|refund| refund.number == 0);
    match (booking.money, whole) {
        (_, Some(refund)) if refund.came_back => say!("status.money_came_back", amount = refund.amount),
        (MoneyState::None, _) => say!("status.money_none", total = total),
        (MoneyState::Pending, _) => say!("status.money_pending", total = total),
        (MoneyState::Paid, _) => say!("status.money_paid", total = total),
        (MoneyState::Failed, _) => say!("status.money_failed"),
        (MoneyState::Refunding, Some(refund)) => say!("status.money_refunding", amount = refund.amount),
        (MoneyState::Refunding, None) => say!("status.money_refunding_all"),
        (MoneyState::Refunded, Some(refund)) if refund.fee.minor > 0 => {
            say!("status.money_refunded_less_fee", amount = refund.amount, fee = refund.fee)
        }
        (MoneyState::Refunded, Some(refund)) => say!("status.money_refunded", amount = refund.amount),
        (MoneyState::Refunded, None) => say!("status.money_refunded_all"),
        (MoneyState::Moved, _) => say!("status.money_moved", total = total),
    }
}

/// A line per partial refund that had a fee or bounced.
pub(super) fn parts_in_words(booking: &FollowedBooking) -> Vec<String> {
    let parts = booking.refunds.iter().filter(|refund| refund.number > 0 && (refund.fee.minor > 0 || refund.came_back));
    let words = |part: &RefundView| {
        if part.came_back {
            return say!("status.part_came_back", amount = part.amount);
        }
        say!("status.part_back", seats = &part.seats.join(", "), amount = part.amount, fee = part.fee)
    };
    parts.map(words).collect()
}

/// The next step: its address, message key and test id.
pub(super) fn next_step(booking: &FollowedBooking) -> Option<(String, &'static str, &'static str)> {
    let show = payment_retry::seats_address(booking.show, &[], &[]);
    if let Some(other) = booking.moved_to {
        return Some((format!("/bookings/{other}"), "status.next_moved", "moved-to"));
    }
    Some(match (booking.state, &booking.ticket_url, &booking.pay_url) {
        (BookingState::Confirmed, Some(ticket), _) => (ticket.clone(), "status.next_tickets", "ticket-link"),
        // After a card was given, no other is asked for while the bank's answer is pending.
        (BookingState::PaymentPending, _, Some(_)) if booking.is_submitted => return None,
        (BookingState::Created | BookingState::SeatsLocked | BookingState::PaymentPending, _, Some(pay)) => {
            (pay.clone(), "status.next_pay", "pay-link")
        }
        (BookingState::Created | BookingState::SeatsLocked, _, None) => {
            (show, "status.next_back_to_pay", "back-to-show")
        }
        (state, ..) if state.is_final() && booking.kept_hold.is_some() => (show, "status.next_back", "back-to-show"),
        (state, ..) if state.is_final() && can_rebook(booking) => (
            payment_retry::seats_address(booking.show, &booking.seats, &booking.places),
            "status.next_again",
            "again-link",
        ),
        (state, ..) if state.is_final() => (show, "status.next_back", "back-to-show"),
        _ => return None,
    })
}

/// Returns true if no payment succeeded and the seats were not cancelled.
fn can_rebook(booking: &FollowedBooking) -> bool {
    let is_unpaid = matches!(booking.money, MoneyState::None | MoneyState::Failed);
    is_unpaid && !(booking.seats.is_empty() && booking.places.is_empty()) && !is_cancelled(booking)
}

/// Returns true if something else on the page comes before the next step: an open offer, another card, or a
/// cancellation. Only one button is the main one.
pub(super) fn has_priority_action(booking: &FollowedBooking, is_cancelling: bool) -> bool {
    booking.seat_offer.is_some() || booking.kept_hold.is_some() || (is_cancelling && booking.cancel_until_ms.is_some())
}

#[cfg(test)]
mod tests {
    use domain::api::cancelling::StepView;
    use domain::api::moving::SeatOffer;
    use domain::api::{Person, SeatLine};
    use strum::VariantArray;

    use super::super::tests::{followed, step};
    use super::*;
    use language::{Language, with_language};

    fn title(booking: &FollowedBooking) -> String {
        booking_message(words(booking).title, booking)
    }

    /// A booking of C7 and C8 whose payment failed for this reason.
    fn failed(why: Option<&str>) -> FollowedBooking {
        let line = |seat, label: &str| SeatLine {
            seat,
            label: label.to_owned(),
            category: "Gold".to_owned(),
            price: followed(BookingState::Cancelled, MoneyState::Failed).total,
        };
        FollowedBooking {
            seats: vec![line(31, "C7"), line(30, "C8")],
            steps: vec![step("paying"), StepView { why: why.map(str::to_owned), ..step("failed") }],
            ..followed(BookingState::Cancelled, MoneyState::Failed)
        }
    }

    #[test]
    fn a_payment_without_seats_promises_a_refund() {
        for state in [BookingState::Cancelled, BookingState::Expired] {
            for money in [MoneyState::Paid, MoneyState::Refunding, MoneyState::Refunded, MoneyState::Moved] {
                assert!(say!(StatusText::of(state, money).text).contains("money"), "{state:?} {money:?}");
            }
        }
        assert!(say!(StatusText::of(BookingState::Expired, MoneyState::Pending).text).contains("money"));
    }

    #[test]
    fn every_state_has_texts_in_every_language() {
        let all_money = [
            MoneyState::None,
            MoneyState::Pending,
            MoneyState::Paid,
            MoneyState::Failed,
            MoneyState::Refunding,
            MoneyState::Refunded,
            MoneyState::Moved,
        ];
        for (language, state) in Language::ALL
            .into_iter()
            .flat_map(|language| BookingState::VARIANTS.iter().map(move |&state| (language, state)))
        {
            for money in all_money {
                // With and without the payment page.
                let plain = followed(state, money);
                let back = FollowedBooking {
                    pay_url: Some("https://gateway.example/pay/1".to_owned()),
                    expires_at_theatre: Some("2026-11-21T19:42:07".to_owned()),
                    ..plain.clone()
                };
                for booking in [plain, back] {
                    let words = words(&booking);
                    let sentences = with_language(language, || {
                        [
                            booking_message(words.title, &booking),
                            booking_message(words.text, &booking),
                            money_in_words(&booking),
                        ]
                    });
                    for said in sentences {
                        let is_said = !said.is_empty() && !said.contains(['{', '}']) && !said.starts_with("status.");
                        assert!(is_said, "{language:?} {state:?} {money:?}: {said}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_failed_payment_is_explained_and_links_to_the_seats() {
        let expired = followed(BookingState::Expired, MoneyState::None);
        assert_eq!(
            [failed(Some("declined")), failed(Some("stopped")), failed(None), expired].map(|booking| title(&booking)),
            [
                "Your bank declined the card",
                "You cancelled the payment",
                "The payment did not go through",
                "The time ran out"
            ]
        );
        for why in [Some("declined"), Some("stopped"), Some("who_knows"), None] {
            let (address, key, name) = next_step(&failed(why)).expect("there is something to do");
            assert_eq!((key, name), ("status.next_again", "again-link"), "{why:?}");
            assert!(address.contains("?again=30-31-n"), "{address}");
        }
    }

    #[test]
    fn a_kept_hold_can_be_paid_with_another_card_until_it_ends() {
        let mut booking = failed(Some("declined"));
        assert_eq!(until_ms(&booking), None);
        booking.kept_hold = Some(domain::api::KeptHold {
            hold: uuid::Uuid::nil(),
            until_ms: 7,
            until_theatre: "2026-11-21T19:42:07".to_owned(),
        });
        assert_eq!(until_ms(&booking), Some(7));
        assert_eq!(title(&booking), "Your bank declined the card");
        for language in Language::ALL {
            let texts = || [booking_message(words(&booking).text, &booking), time_left(125)];
            for text in with_language(language, texts) {
                assert!(!text.contains(['{', '}']) && !text.starts_with("status."), "{language:?}: {text}");
            }
        }
        assert_eq!(time_left(125), "2:05 left to pay");
        let page =
            [title(&booking), booking_message(words(&booking).text, &booking), money_in_words(&booking)].join(" ");
        assert_eq!(page.matches("charged").count(), 1, "once is enough: {page}");
        assert_eq!(next_step(&booking).map(|(_, _, name)| name), Some("back-to-show"));
        assert!(has_priority_action(&booking, false), "another card comes first");
    }

    #[test]
    fn a_cancelled_booking_did_not_fail_and_its_seats_are_not_offered_again() {
        let mut booking = failed(Some("declined"));
        booking.steps.push(step("cancelled"));
        assert_eq!(title(&booking), "Cancelled");
        let (address, _, name) = next_step(&booking).expect("there is something to do");
        assert_eq!((address.contains('?'), name), (false, "back-to-show"));
        let refunded = FollowedBooking { money: MoneyState::Refunded, ..failed(None) };
        assert_eq!(next_step(&refunded).map(|(_, _, name)| name), Some("back-to-show"), "it was paid");
        let money_under_way =
            FollowedBooking { state: BookingState::Expired, money: MoneyState::Pending, ..failed(None) };
        assert_eq!(
            next_step(&money_under_way).map(|(_, _, name)| name),
            Some("back-to-show"),
            "the gateway has not answered"
        );
    }

    #[test]
    fn an_unpaid_return_from_the_gateway_shows_first_that_the_seats_are_held() {
        let mut booking = FollowedBooking {
            pay_url: Some("https://gateway.example/pay/1".to_owned()),
            expires_at_ms: 7,
            expires_at_theatre: Some("2026-11-21T19:42:07".to_owned()),
            ..followed(BookingState::PaymentPending, MoneyState::Pending)
        };
        assert_eq!((title(&booking).as_str(), until_ms(&booking)), ("The seats are still yours", Some(7)));
        assert!(booking_message(words(&booking).text, &booking).contains("with another card"));
        let german = with_language(Language::German, || title(&booking));
        assert_eq!(german, "Die Plätze gehören noch Ihnen");
        assert_eq!(next_step(&booking).map(|(_, _, name)| name), Some("pay-link"));
        booking.is_submitted = true;
        assert_eq!(title(&booking), "Your bank is checking the payment", "a card was given");
        assert_eq!(next_step(&booking), None, "no other card is asked for");
        booking.is_submitted = false;
        booking.pay_url = None;
        assert_eq!(title(&booking), "Waiting for your payment", "there is no page to go back to");
    }

    #[test]
    fn tickets_for_a_friend_name_the_friend() {
        let mut booking = followed(BookingState::Confirmed, MoneyState::Paid);
        assert_eq!(title(&booking), "You’re booked");
        booking.holder = Person { name: "Luís".to_owned(), email: "luis@example.org".to_owned() };
        assert_eq!(title(&booking), "Booked for Luís");
        let text = booking_message(words(&booking).text, &booking);
        assert!(text.contains("Luís") && text.contains("luis@example.org"), "{text}");
        booking.holder.email = "ANNA@example.org".to_owned();
        assert_eq!(title(&booking), "You’re booked", "no mail went anywhere else");
    }

    #[test]
    fn a_bounced_refund_is_reported_as_bounced() {
        let refunded = |number, came_back| {
            let total = followed(BookingState::Cancelled, MoneyState::Refunded).total;
            let fee = domain::money::Money::new(0, total.currency);
            let refund = RefundView { number, amount: total, fee, seats: vec![], settled: true, came_back };
            FollowedBooking { refunds: vec![refund], ..followed(BookingState::Cancelled, MoneyState::Refunded) }
        };
        for language in Language::ALL {
            let said = |booking: &FollowedBooking| {
                with_language(language, || {
                    (
                        title(booking),
                        booking_message(words(booking).text, booking),
                        money_in_words(booking),
                        parts_in_words(booking),
                    )
                })
            };
            let (well, back, part) = (said(&refunded(0, false)), said(&refunded(0, true)), said(&refunded(1, true)));
            assert!(well.0 != back.0 && well.1 != back.1 && well.2 != back.2, "{language:?} {back:?}");
            assert!(well.3.is_empty() && back.3.is_empty(), "{language:?} {well:?} {back:?}");
            assert_eq!((part.0, part.3.len()), (well.0, 1), "{language:?} {:?}", part.3);
        }
        let sold = FollowedBooking { state: BookingState::Confirmed, ..refunded(1, true) };
        assert_eq!(title(&sold), "You’re booked", "a part of it came back, and they have the others");
    }

    #[test]
    fn only_one_button_is_the_main_one() {
        let mut booking = followed(BookingState::Confirmed, MoneyState::Paid);
        assert!(!has_priority_action(&booking, false));
        assert!(!has_priority_action(&booking, true), "there is nothing to give back any more");
        booking.cancel_until_ms = Some(1);
        assert!(has_priority_action(&booking, true) && !has_priority_action(&booking, false));
        booking.seat_offer = Some(SeatOffer {
            from: "Hall 1".to_owned(),
            to: "Hall 2".to_owned(),
            reason: "The projector is broken.".to_owned(),
            before: vec!["C7".to_owned()],
            after: vec!["D4".to_owned()],
            until_ms: 0,
            until_local: "2026-11-21T12:00:00".to_owned(),
        });
        assert!(has_priority_action(&booking, false));
    }
}
