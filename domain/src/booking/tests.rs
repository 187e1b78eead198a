use strum::VariantArray;

use super::*;
use crate::VariantName;
use crate::money::Currency;
use BookingState::{Cancelled, Confirmed, Created, Expired, PaymentPending, PaymentSucceeded, SeatsLocked};
use StepError::{AlreadyDone, Gone, NotDue, TooLate, WrongState};

const NOW: Timestamp = Timestamp(1_000_000_000);
const LATER: Timestamp = NOW.plus_ms(MINUTE_MS);
const EARLIER: Timestamp = NOW.plus_ms(-MINUTE_MS);

fn eur(minor: i64) -> Money {
    Money::new(minor, Currency::parse("EUR").expect("a code"))
}

/// A booking in `state` after the usual course of events, due in a minute.
fn booking_in(state: BookingState) -> Booking {
    let money = match state {
        Created | SeatsLocked => MoneyState::None,
        PaymentPending => MoneyState::Pending,
        PaymentSucceeded | Confirmed => MoneyState::Paid,
        Cancelled => MoneyState::Failed,
        Expired => MoneyState::Pending,
    };
    Booking { state, money, total: eur(4_000), expires_at: LATER }
}

fn events() -> [BookingEvent; 20] {
    [
        BookingEvent::HoldTaken,
        BookingEvent::PaymentSubmitted { until: LATER },
        BookingEvent::PaymentSucceeded { amount: eur(4_000) },
        BookingEvent::PaymentFailed,
        BookingEvent::PaymentVoided,
        BookingEvent::SeatsSold,
        BookingEvent::SeatsLost,
        BookingEvent::CancelledByBuyer { show_starts_at: NOW.plus_ms(BUYER_CANCELS_UNTIL_MS) },
        BookingEvent::CancelledByStaff,
        BookingEvent::TimedOut,
        BookingEvent::RefundSettled,
        BookingEvent::PartCancelledByBuyer {
            number: 1,
            price: eur(1_000),
            show_starts_at: NOW.plus_ms(BUYER_CANCELS_UNTIL_MS),
        },
        BookingEvent::PartCancelledByStaff { number: 1, price: eur(1_000) },
        BookingEvent::PaymentMovedIn { until: LATER },
        BookingEvent::LateMoneyMoved,
        BookingEvent::LateMoneyReturned { amount: eur(4_000) },
        BookingEvent::TakenAtCounter { until: LATER },
        BookingEvent::Exchanged,
        BookingEvent::Relocated,
        BookingEvent::DifferenceReturned { number: 1, amount: eur(1_000) },
    ]
}

/// Effects of a full refund. The seats do not wait for the money.
fn full_refund(minor: i64) -> [Effect; 3] {
    [Effect::ReleaseSeats, Effect::Refund { amount: eur(minor) }, Effect::SendNotice { number: 0 }]
}

/// Checks the outcome of every event in every state.
#[test]
fn every_event_in_every_state() {
    // Columns in the order of `events()`.
    #[rustfmt::skip]
    let expected: [(BookingState, [Result<BookingState, StepError>; 20]); 7] = [
        (Created,          [Ok(SeatsLocked), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(NotDue), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState)]),
        (SeatsLocked,      [Err(AlreadyDone), Ok(PaymentPending), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Ok(Cancelled), Ok(Cancelled), Err(NotDue), Err(WrongState), Err(WrongState), Err(WrongState), Ok(PaymentPending), Err(WrongState), Err(WrongState), Ok(PaymentPending), Err(WrongState), Err(WrongState), Err(WrongState)]),
        (PaymentPending,   [Err(AlreadyDone), Err(AlreadyDone), Ok(PaymentSucceeded), Ok(Cancelled), Ok(Cancelled), Err(WrongState), Err(WrongState), Ok(Cancelled), Ok(Cancelled), Err(NotDue), Err(WrongState), Err(WrongState), Err(WrongState), Err(AlreadyDone), Err(WrongState), Err(WrongState), Err(AlreadyDone), Err(WrongState), Err(WrongState), Err(WrongState)]),
        (PaymentSucceeded, [Err(AlreadyDone), Err(AlreadyDone), Err(AlreadyDone), Err(WrongState), Err(WrongState), Ok(Confirmed), Ok(Cancelled), Err(WrongState), Ok(Cancelled), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(AlreadyDone), Err(WrongState), Err(WrongState), Err(AlreadyDone), Err(WrongState), Err(WrongState), Err(WrongState)]),
        (Confirmed,        [Err(AlreadyDone), Err(AlreadyDone), Err(AlreadyDone), Err(WrongState), Err(WrongState), Err(AlreadyDone), Err(WrongState), Ok(Cancelled), Ok(Cancelled), Err(WrongState), Err(WrongState), Ok(Confirmed), Ok(Confirmed), Err(AlreadyDone), Err(WrongState), Err(WrongState), Err(AlreadyDone), Ok(Cancelled), Ok(Confirmed), Ok(Confirmed)]),
        (Cancelled,        [Err(Gone), Err(Gone), Ok(Cancelled), Err(AlreadyDone), Err(AlreadyDone), Err(Gone), Err(Gone), Err(Gone), Err(Gone), Err(Gone), Err(WrongState), Err(Gone), Err(Gone), Err(Gone), Err(WrongState), Err(WrongState), Err(Gone), Err(Gone), Err(Gone), Err(Gone)]),
        (Expired,          [Err(Gone), Err(Gone), Ok(Expired), Ok(Expired), Ok(Expired), Err(Gone), Err(Gone), Err(Gone), Err(Gone), Err(Gone), Err(WrongState), Err(Gone), Err(Gone), Err(Gone), Err(WrongState), Err(WrongState), Err(Gone), Err(Gone), Err(Gone), Err(Gone)]),
    ];
    for (state, row) in expected {
        for (event, expected) in events().into_iter().zip(row) {
            let got = step(booking_in(state), event, NOW).map(|(booking, _)| booking.state);
            assert_eq!(got, expected, "{state:?} meets {event:?}");
        }
    }
}

#[test]
fn transition_table_is_as_specified() {
    let allowed: Vec<_> = BookingState::VARIANTS
        .iter()
        .flat_map(|&from| {
            BookingState::VARIANTS.iter().filter(move |&&to| may_move(from, to)).map(move |&to| (from, to))
        })
        .collect();
    assert_eq!(
        allowed,
        [
            (Created, SeatsLocked),
            (Created, Expired),
            (SeatsLocked, PaymentPending),
            (SeatsLocked, Cancelled),
            (SeatsLocked, Expired),
            (PaymentPending, PaymentSucceeded),
            (PaymentPending, Cancelled),
            (PaymentPending, Expired),
            (PaymentSucceeded, Confirmed),
            (PaymentSucceeded, Cancelled),
            (Confirmed, Cancelled),
        ]
    );
}

#[test]
fn usual_course_charges_once_and_sends_a_ticket() {
    let created = booking_in(Created);
    let (locked, none) = step(created, BookingEvent::HoldTaken, NOW).expect("locks");
    assert!(none.is_empty());
    let until = NOW.plus_ms(PAYMENT_EXTENSION_MS);
    let (pending, effects) = step(locked, BookingEvent::PaymentSubmitted { until }, NOW).expect("submits");
    assert_eq!((pending.money, pending.expires_at, effects), (MoneyState::Pending, until, vec![Effect::Charge]));
    let (paid, effects) = step(pending, BookingEvent::PaymentSucceeded { amount: eur(4_000) }, NOW).expect("pays");
    assert_eq!((paid.money, effects), (MoneyState::Paid, vec![]));
    let (sold, effects) = step(paid, BookingEvent::SeatsSold, NOW).expect("sells");
    assert_eq!((sold.state, effects), (Confirmed, vec![Effect::MarkBooked, Effect::SendTicket]));
}

#[test]
fn counter_payment_takes_the_same_transitions_without_a_charge() {
    let until = NOW.plus_ms(PAYMENT_EXTENSION_MS);
    let (pending, effects) = step(booking_in(SeatsLocked), BookingEvent::TakenAtCounter { until }, NOW).expect("takes");
    assert_eq!((pending.state, pending.money, pending.expires_at), (PaymentPending, MoneyState::Pending, until));
    assert!(effects.is_empty(), "no gateway is charged");
    let late = Booking { expires_at: EARLIER, ..booking_in(SeatsLocked) };
    assert_eq!(step(late, BookingEvent::TakenAtCounter { until }, NOW), Err(TooLate));
    let (paid, _) = step(pending, BookingEvent::PaymentSucceeded { amount: eur(4_000) }, NOW).expect("is paid");
    assert_eq!(step(paid, BookingEvent::SeatsSold, NOW).expect("sells").1, [Effect::MarkBooked, Effect::SendTicket]);
}

#[test]
fn relocation_leaves_the_booking_unchanged() {
    let (moved, effects) = step(booking_in(Confirmed), BookingEvent::Relocated, NOW).expect("is moved");
    assert_eq!((moved, effects), (booking_in(Confirmed), vec![]));
}

#[test]
fn exchange_moves_the_money_without_a_refund() {
    let (moved, effects) = step(booking_in(Confirmed), BookingEvent::Exchanged, NOW).expect("is exchanged");
    assert_eq!((moved.state, moved.money), (Cancelled, MoneyState::Moved));
    assert_eq!(effects, [Effect::ReleaseSeats]);
    assert_eq!(step(moved, BookingEvent::RefundSettled, NOW), Err(WrongState), "no money is left to refund");
    for event in [BookingEvent::Exchanged, BookingEvent::CancelledByStaff] {
        assert_eq!(step(moved, event, NOW), Err(Gone), "{event:?}");
    }
}

#[test]
fn exchange_difference_is_refunded_and_seats_stay_sold() {
    let back = |number, amount| step(booking_in(Confirmed), BookingEvent::DifferenceReturned { number, amount }, NOW);
    let (kept, effects) = back(1, eur(1_500)).expect("is refunded");
    assert_eq!(kept, booking_in(Confirmed), "the total is still the price of its seats");
    assert_eq!(effects, [Effect::RefundPart { number: 1, amount: eur(1_500) }, Effect::SendNotice { number: 1 }]);
    let dollars = Money::new(1, Currency::parse("USD").expect("a code"));
    for (number, amount) in [(0, eur(1)), (1, eur(0)), (1, eur(-1)), (1, dollars)] {
        assert_eq!(back(number, amount), Err(WrongState), "{number} {amount:?}");
    }
}

#[test]
fn late_money_never_revives_a_booking_and_is_used_once() {
    let paid = BookingEvent::PaymentSucceeded { amount: eur(4_000) };
    let back = BookingEvent::LateMoneyReturned { amount: eur(4_000) };
    for state in [Cancelled, Expired] {
        let (late, effects) = step(booking_in(state), paid, NOW).expect("is recorded");
        assert_eq!((late.state, late.money, effects), (state, MoneyState::Paid, vec![Effect::PlaceLate]));
        assert_eq!(step(late, paid, NOW), Err(AlreadyDone));

        let (moved, effects) = step(late, BookingEvent::LateMoneyMoved, NOW).expect("moves to another booking");
        assert_eq!((moved.state, moved.money), (state, MoneyState::Moved));
        assert_eq!(effects, [Effect::SendNotice { number: 0 }]);
        for event in [paid, back, BookingEvent::LateMoneyMoved] {
            assert_eq!(step(moved, event, NOW), Err(AlreadyDone), "{event:?}");
        }
        assert_eq!(step(moved, BookingEvent::RefundSettled, NOW), Err(WrongState), "no money is left to refund");

        let (after, effects) = step(late, back, NOW).expect("is refunded");
        assert_eq!((after.state, after.money), (state, MoneyState::Refunding));
        assert_eq!(effects, [Effect::Refund { amount: eur(4_000) }, Effect::SendNotice { number: 0 }]);
        for event in [paid, back, BookingEvent::LateMoneyMoved] {
            assert_eq!(step(after, event, NOW), Err(AlreadyDone), "{event:?}");
        }
        let (settled, effects) = step(after, BookingEvent::RefundSettled, NOW).expect("settles");
        assert_eq!((settled.state, settled.money, effects), (state, MoneyState::Refunded, vec![]));
        assert_eq!(step(settled, BookingEvent::RefundSettled, NOW), Err(AlreadyDone));
        assert_eq!(step(settled, paid, NOW), Err(AlreadyDone));
    }
}

#[test]
fn late_money_of_a_different_amount_is_refunded() {
    let (after, effects) =
        step(booking_in(Expired), BookingEvent::PaymentSucceeded { amount: eur(1) }, NOW).expect("is refunded");
    assert_eq!(after.money, MoneyState::Refunding);
    assert_eq!(effects, [Effect::Refund { amount: eur(1) }, Effect::SendNotice { number: 0 }]);
}

#[test]
fn moved_in_money_is_sold_without_a_charge() {
    let (pending, effects) =
        step(booking_in(SeatsLocked), BookingEvent::PaymentMovedIn { until: LATER }, NOW).expect("moves in");
    assert_eq!((pending.state, pending.money, effects), (PaymentPending, MoneyState::Pending, vec![]));
    let (paid, _) = step(pending, BookingEvent::PaymentSucceeded { amount: eur(4_000) }, NOW).expect("is paid");
    assert_eq!(step(paid, BookingEvent::SeatsSold, NOW).expect("sells").0.state, Confirmed);
}

#[test]
fn partial_refunds_fees_and_kept_price_always_add_up_to_the_charge() {
    let start = NOW.plus_ms(BUYER_CANCELS_UNTIL_MS);
    // Prices of up to four seats, including odd and free ones, cancelled one by one by every mix of buyer and staff.
    for prices in [vec![1_001, 999, 5, 0], vec![1], vec![9, 9, 9], vec![4_000, 1]] {
        let charge: i64 = prices.iter().sum();
        for by_staff in 0..1_u32 << prices.len() {
            let mut booking = Booking { total: eur(charge), ..booking_in(Confirmed) };
            let (mut refunds, mut fees) = (0, 0);
            for (place, price) in prices.iter().enumerate() {
                let (number, price) = (place as u32 + 1, eur(*price));
                let staff = by_staff >> place & 1 == 1;
                let event = match (staff, number as usize == prices.len()) {
                    (true, true) => BookingEvent::CancelledByStaff,
                    (false, true) => BookingEvent::CancelledByBuyer { show_starts_at: start },
                    (true, false) => BookingEvent::PartCancelledByStaff { number, price },
                    (false, false) => BookingEvent::PartCancelledByBuyer { number, price, show_starts_at: start },
                };
                let (after, effects) = step(booking, event, NOW).expect("is cancelled");
                let back = effects.iter().find_map(|effect| match effect {
                    Effect::Refund { amount } | Effect::RefundPart { amount, .. } => Some(amount.minor),
                    _ => None,
                });
                let back = back.expect("there is a refund");
                assert!(back <= price.minor && back >= 0, "{prices:?}: {back} of {price:?}");
                assert_eq!(back == price.minor, staff || price.minor < 10, "the fee is rounded down");
                (refunds, fees) = (refunds + back, fees + price.minor - back);
                booking = after;
                let kept = if booking.state == Confirmed { booking.total.minor } else { 0 };
                assert_eq!(charge, refunds + fees + kept, "{prices:?} after {number}");
            }
            assert_eq!(booking.state, Cancelled);
        }
    }
}

#[test]
fn partial_cancellation_is_in_time_and_within_the_total() {
    let start = NOW.plus_ms(BUYER_CANCELS_UNTIL_MS);
    let part = |price, show_starts_at| BookingEvent::PartCancelledByBuyer { number: 2, price, show_starts_at };
    let (after, effects) = step(booking_in(Confirmed), part(eur(1_005), start), NOW).expect("in time");
    assert_eq!((after.state, after.money, after.total), (Confirmed, MoneyState::Paid, eur(2_995)));
    assert_eq!(
        effects,
        [
            Effect::ReleasePart { number: 2 },
            Effect::RefundPart { number: 2, amount: eur(905) },
            Effect::SendNotice { number: 2 }
        ]
    );
    assert_eq!(step(booking_in(Confirmed), part(eur(1_005), start.plus_ms(-1)), NOW), Err(TooLate));
    for wrong in [eur(4_001), eur(-1), Money::new(1, Currency::parse("USD").expect("a code"))] {
        assert_eq!(step(booking_in(Confirmed), part(wrong, start), NOW), Err(WrongState), "{wrong:?}");
    }
    let unnumbered = BookingEvent::PartCancelledByStaff { number: 0, price: eur(1_000) };
    assert_eq!(step(booking_in(Confirmed), unnumbered, NOW), Err(WrongState), "0 is the whole booking's");
}

#[test]
fn payment_of_a_different_amount_is_refunded() {
    let (after, effects) =
        step(booking_in(PaymentPending), BookingEvent::PaymentSucceeded { amount: eur(1) }, NOW).expect("is refunded");
    assert_eq!((after.state, after.money), (Cancelled, MoneyState::Refunding));
    assert_eq!(effects, full_refund(1));
}

#[test]
fn expired_hold_cannot_be_charged() {
    let late = Booking { expires_at: EARLIER, ..booking_in(SeatsLocked) };
    assert_eq!(step(late, BookingEvent::PaymentSubmitted { until: LATER }, NOW), Err(TooLate));
}

#[test]
fn timeout_frees_seats_only_after_the_payment_is_voided() {
    let due = |state| Booking { expires_at: NOW, ..booking_in(state) };
    let out = |state| step(due(state), BookingEvent::TimedOut, NOW).map(|(booking, effects)| (booking.state, effects));
    assert_eq!(out(Created), Ok((Expired, vec![])));
    assert_eq!(out(SeatsLocked), Ok((Expired, vec![Effect::ReleaseSeats])));
    assert_eq!(out(PaymentPending), Ok((Expired, vec![Effect::VoidPayment, Effect::ReleaseSeats])));
    assert_eq!(out(PaymentSucceeded), Err(WrongState));
    assert_eq!(out(Confirmed), Err(WrongState));
}

#[test]
fn buyer_cancels_until_two_hours_before_less_fee_and_staff_anytime_in_full() {
    let sold = Booking { total: eur(4_005), ..booking_in(Confirmed) };
    let start = NOW.plus_ms(BUYER_CANCELS_UNTIL_MS);
    let (_, effects) = step(sold, BookingEvent::CancelledByBuyer { show_starts_at: start }, NOW).expect("in time");
    assert_eq!(effects, full_refund(3_605));
    let late = BookingEvent::CancelledByBuyer { show_starts_at: start.plus_ms(-1) };
    assert_eq!(step(sold, late, NOW), Err(TooLate));
    let (_, effects) = step(sold, BookingEvent::CancelledByStaff, NOW).expect("staff may");
    assert_eq!(effects, full_refund(4_005));
}

#[test]
fn fee_is_rounded_down_to_what_a_gateway_can_pay_back() {
    for (code, price, back) in [("EUR", 999, 900), ("JPY", 1_999, 1_800), ("KWD", 2_750, 2_480), ("KWD", 90, 90)] {
        let currency = Currency::parse(code).expect("a code");
        assert_eq!(back_to_buyer(Money::new(price, currency)).minor, back, "{code} {price}");
    }
}

#[test]
fn lost_seats_are_refunded_in_full() {
    let (after, effects) = step(booking_in(PaymentSucceeded), BookingEvent::SeatsLost, NOW).expect("is refunded");
    assert_eq!((after.state, after.money), (Cancelled, MoneyState::Refunding));
    assert_eq!(effects, full_refund(4_000));
}

#[test]
fn state_names_parse_back_and_equal_their_json() {
    for &state in BookingState::VARIANTS {
        assert_eq!(state.as_str().parse(), Ok(state));
        assert_eq!(serde_json::to_value(state).expect("is JSON"), state.as_str());
    }
    assert_eq!("confirmed".parse::<BookingState>().ok(), None);
}
