use super::*;
use crate::money::Currency;
use BookingState::{Cancelled, Confirmed, Created, Expired, PaymentPending, PaymentSucceeded, SeatsLocked};
use Refused::{AlreadyDone, Gone, NotDue, TooLate, WrongState};

const NOW: Timestamp = Timestamp(1_000_000_000);
const LATER: Timestamp = NOW.plus_ms(MINUTE_MS);
const EARLIER: Timestamp = NOW.plus_ms(-MINUTE_MS);

fn eur(minor: i64) -> Money {
    Money::new(minor, Currency::parse("EUR").expect("a code"))
}

/// A booking as it stands in `state` on the straight road, due a minute from now.
fn standing(state: BookingState) -> Booking {
    let money = match state {
        Created | SeatsLocked => MoneyState::None,
        PaymentPending => MoneyState::Pending,
        PaymentSucceeded | Confirmed => MoneyState::Paid,
        Cancelled => MoneyState::Failed,
        Expired => MoneyState::Pending,
    };
    Booking { state, money, total: eur(4_000), expires_at: LATER }
}

fn events() -> [Event; 11] {
    [
        Event::HoldTaken,
        Event::PaymentSubmitted { until: LATER },
        Event::PaymentSucceeded { amount: eur(4_000) },
        Event::PaymentFailed,
        Event::PaymentVoided,
        Event::SeatsSold,
        Event::SeatsLost,
        Event::CancelledByBuyer { show_starts_at: NOW.plus_ms(BUYER_CANCELS_UNTIL_MS) },
        Event::CancelledByStaff,
        Event::TimedOut,
        Event::RefundSettled,
    ]
}

/// Every state against every event: the whole machine on one page.
#[test]
fn every_state_meets_every_event() {
    // Columns in the order of `events()`.
    #[rustfmt::skip]
    let expected: [(BookingState, [Result<BookingState, Refused>; 11]); 7] = [
        (Created,          [Ok(SeatsLocked), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(NotDue), Err(WrongState)]),
        (SeatsLocked,      [Err(AlreadyDone), Ok(PaymentPending), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Err(WrongState), Ok(Cancelled), Ok(Cancelled), Err(NotDue), Err(WrongState)]),
        (PaymentPending,   [Err(AlreadyDone), Err(AlreadyDone), Ok(PaymentSucceeded), Ok(Cancelled), Ok(Cancelled), Err(WrongState), Err(WrongState), Ok(Cancelled), Ok(Cancelled), Err(NotDue), Err(WrongState)]),
        (PaymentSucceeded, [Err(AlreadyDone), Err(AlreadyDone), Err(AlreadyDone), Err(WrongState), Err(WrongState), Ok(Confirmed), Ok(Cancelled), Err(WrongState), Ok(Cancelled), Err(WrongState), Err(WrongState)]),
        (Confirmed,        [Err(AlreadyDone), Err(AlreadyDone), Err(AlreadyDone), Err(WrongState), Err(WrongState), Err(AlreadyDone), Err(WrongState), Ok(Cancelled), Ok(Cancelled), Err(WrongState), Err(WrongState)]),
        (Cancelled,        [Err(Gone), Err(Gone), Ok(Cancelled), Err(AlreadyDone), Err(AlreadyDone), Err(Gone), Err(Gone), Err(Gone), Err(Gone), Err(Gone), Err(WrongState)]),
        (Expired,          [Err(Gone), Err(Gone), Ok(Expired), Ok(Expired), Ok(Expired), Err(Gone), Err(Gone), Err(Gone), Err(Gone), Err(Gone), Err(WrongState)]),
    ];
    for (state, row) in expected {
        for (event, expected) in events().into_iter().zip(row) {
            let got = step(standing(state), event, NOW).map(|(booking, _)| booking.state);
            assert_eq!(got, expected, "{state:?} meets {event:?}");
        }
    }
}

#[test]
fn the_table_of_moves_is_the_missions() {
    let allowed: Vec<_> = ALL_STATES
        .into_iter()
        .flat_map(|from| ALL_STATES.into_iter().filter(move |to| may_move(from, *to)).map(move |to| (from, to)))
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
fn the_straight_road_charges_once_and_ends_in_a_ticket() {
    let created = standing(Created);
    let (locked, none) = step(created, Event::HoldTaken, NOW).expect("locks");
    assert!(none.is_empty());
    let until = NOW.plus_ms(PAYMENT_EXTENSION_MS);
    let (pending, effects) = step(locked, Event::PaymentSubmitted { until }, NOW).expect("submits");
    assert_eq!((pending.money, pending.expires_at, effects), (MoneyState::Pending, until, vec![Effect::Charge]));
    let (paid, effects) = step(pending, Event::PaymentSucceeded { amount: eur(4_000) }, NOW).expect("pays");
    assert_eq!((paid.money, effects), (MoneyState::Paid, vec![]));
    let (sold, effects) = step(paid, Event::SeatsSold, NOW).expect("sells");
    assert_eq!((sold.state, effects), (Confirmed, vec![Effect::MarkBooked, Effect::SendTicket]));
}

#[test]
fn late_money_goes_back_once_and_never_revives_a_booking() {
    for state in [Cancelled, Expired] {
        let paid = Event::PaymentSucceeded { amount: eur(4_000) };
        let (after, effects) = step(standing(state), paid, NOW).expect("is taken note of");
        assert_eq!((after.state, after.money), (state, MoneyState::Refunding));
        assert_eq!(effects, [Effect::Refund { amount: eur(4_000) }]);
        assert_eq!(step(after, paid, NOW), Err(AlreadyDone));
        let (settled, effects) = step(after, Event::RefundSettled, NOW).expect("settles");
        assert_eq!((settled.state, settled.money, effects), (state, MoneyState::Refunded, vec![]));
        assert_eq!(step(settled, Event::RefundSettled, NOW), Err(AlreadyDone));
        assert_eq!(step(settled, paid, NOW), Err(AlreadyDone));
    }
}

#[test]
fn a_wrong_amount_is_not_a_sale() {
    let (after, effects) =
        step(standing(PaymentPending), Event::PaymentSucceeded { amount: eur(1) }, NOW).expect("is refunded");
    assert_eq!((after.state, after.money), (Cancelled, MoneyState::Refunding));
    assert_eq!(effects, [Effect::Refund { amount: eur(1) }, Effect::ReleaseSeats]);
}

#[test]
fn a_hold_that_ran_out_authorises_no_charge() {
    let late = Booking { expires_at: EARLIER, ..standing(SeatsLocked) };
    assert_eq!(step(late, Event::PaymentSubmitted { until: LATER }, NOW), Err(TooLate));
}

#[test]
fn time_out_frees_seats_only_after_the_payment_is_stopped() {
    let due = |state| Booking { expires_at: NOW, ..standing(state) };
    let out = |state| step(due(state), Event::TimedOut, NOW).map(|(booking, effects)| (booking.state, effects));
    assert_eq!(out(Created), Ok((Expired, vec![])));
    assert_eq!(out(SeatsLocked), Ok((Expired, vec![Effect::ReleaseSeats])));
    assert_eq!(out(PaymentPending), Ok((Expired, vec![Effect::VoidPayment, Effect::ReleaseSeats])));
    assert_eq!(out(PaymentSucceeded), Err(WrongState));
    assert_eq!(out(Confirmed), Err(WrongState));
}

#[test]
fn the_buyer_cancels_two_hours_before_less_ten_percent_and_staff_at_any_time_in_full() {
    let sold = Booking { total: eur(4_005), ..standing(Confirmed) };
    let start = NOW.plus_ms(BUYER_CANCELS_UNTIL_MS);
    let (_, effects) = step(sold, Event::CancelledByBuyer { show_starts_at: start }, NOW).expect("in time");
    assert_eq!(effects, [Effect::Refund { amount: eur(3_605) }, Effect::ReleaseSeats]);
    let late = Event::CancelledByBuyer { show_starts_at: start.plus_ms(-1) };
    assert_eq!(step(sold, late, NOW), Err(TooLate));
    let (_, effects) = step(sold, Event::CancelledByStaff, NOW).expect("staff may");
    assert_eq!(effects, [Effect::Refund { amount: eur(4_005) }, Effect::ReleaseSeats]);
}

#[test]
fn lost_seats_cost_a_hold_never_the_money() {
    let (after, effects) = step(standing(PaymentSucceeded), Event::SeatsLost, NOW).expect("is refunded");
    assert_eq!((after.state, after.money), (Cancelled, MoneyState::Refunding));
    assert_eq!(effects, [Effect::Refund { amount: eur(4_000) }, Effect::ReleaseSeats]);
}

#[test]
fn state_names_read_back() {
    for state in ALL_STATES {
        assert_eq!(BookingState::parse(state.as_str()), Some(state));
        assert_eq!(serde_json::to_value(state).expect("is JSON"), state.as_str());
    }
    assert_eq!(BookingState::parse("confirmed"), None);
}
