//! Tests of the wish, the hold and the requests between them.

use super::*;
use domain::api::{PlaceLine, SeatLine};
use domain::money::{Currency, Money};

fn hold(seats: &[SeatIndex]) -> HoldView {
    let price = Money::new(1_250, Currency::parse("EUR").expect("a code"));
    let line =
        |seat: &SeatIndex| SeatLine { seat: *seat, label: format!("A{seat}"), category: "Gold".to_owned(), price };
    HoldView {
        id: Uuid::from_u128(7),
        show: Uuid::from_u128(1),
        seats: seats.iter().map(line).collect(),
        places: vec![],
        total: price,
        breakdown: None,
        expires_at: String::new(),
        expires_at_ms: 0,
        latest_ms: 0,
        paying: false,
        booking: None,
    }
}

fn take(seats: Vec<SeatIndex>) -> HoldIntent {
    HoldIntent::Take { seats, places: None }
}

fn add(add: Vec<SeatIndex>) -> HoldIntent {
    change(add, vec![], vec![], vec![])
}

fn change(
    add: Vec<SeatIndex>,
    remove: Vec<SeatIndex>,
    add_places: Vec<AreaQuantity>,
    remove_places: Vec<AreaQuantity>,
) -> HoldIntent {
    HoldIntent::Change { hold: Uuid::from_u128(7), add, remove, add_places, remove_places }
}

/// A cart with this hold.
fn holding(hold: HoldView) -> Cart {
    let mut cart = Cart::default();
    cart.replace_hold(Some(hold));
    cart
}

pub(crate) fn in_area(area: AreaIndex, quantity: u32) -> AreaQuantity {
    AreaQuantity { area, quantity }
}

/// A hold of these seats and places at 12.50 each.
pub(crate) fn with_places(seats: &[SeatIndex], places: &[AreaQuantity]) -> HoldView {
    let mut hold = hold(seats);
    let line = |places: &AreaQuantity| PlaceLine {
        area: places.area,
        label: "Floor".to_owned(),
        category: "Standing".to_owned(),
        price: hold.total,
        quantity: places.quantity,
    };
    hold.places = places.iter().map(line).collect();
    hold
}

#[test]
fn places_are_added_and_removed_beside_seats() {
    let mut cart = Cart::default();
    cart.change_places(1, true);
    assert_eq!(cart.next_intent(), Some(HoldIntent::Take { seats: vec![], places: Some(in_area(1, 1)) }));
    cart.change_places(1, true);
    cart.change_places(1, true);
    cart.tap(4);
    cart.granted(with_places(&[], &[in_area(1, 1)]));
    assert_eq!(cart.next_intent(), Some(change(vec![4], vec![], vec![in_area(1, 2)], vec![])));
    cart.granted(with_places(&[4], &[in_area(1, 3)]));
    assert!(cart.is_settled());
    assert_eq!(cart.change_places(1, false), TapOutcome::Removed);
    assert_eq!(cart.next_intent(), Some(change(vec![], vec![], vec![], vec![in_area(1, 1)])));
}

#[test]
fn places_count_towards_the_limit_and_stop_at_zero() {
    let mut cart = Cart::default();
    (0..6).for_each(|seat| assert_eq!(cart.tap(seat), TapOutcome::Added));
    (0..4).for_each(|_| assert_eq!(cart.change_places(0, true), TapOutcome::Added));
    assert_eq!(
        (cart.change_places(0, true), cart.tap(9), cart.count()),
        (TapOutcome::LimitReached, TapOutcome::LimitReached, 10)
    );
    (0..9).for_each(|_| assert_eq!(cart.change_places(0, false), TapOutcome::Removed));
    assert_eq!((cart.wanted_in(0), cart.count()), (0, 6));
}

#[test]
fn a_wish_beyond_the_shows_limit_is_refused() {
    let mut cart = holding(hold(&[1, 2]));
    cart.set_limit(3);
    assert!(cart.has_room_for(1) && !cart.has_room_for(2));
    assert_eq!((cart.tap(4), cart.tap(5)), (TapOutcome::Added, TapOutcome::LimitReached));
    assert_eq!(cart.change_places(0, true), TapOutcome::LimitReached);
    cart.set_limit(2);
    assert_eq!(
        (cart.tap(4), cart.want()),
        (TapOutcome::Removed, [1, 2].as_slice()),
        "a lowered limit takes no seat away"
    );
}

#[test]
fn seats_and_places_are_added_up_to_the_first_refusal() {
    let mut cart = holding(hold(&[1]));
    assert_eq!(cart.add(&[1, 2], &[in_area(0, 2)]), TapOutcome::Added);
    assert_eq!((cart.want(), cart.wanted_in(0)), ([1, 2].as_slice(), 2), "a wanted seat is not removed");
    assert_eq!(cart.add(&[3], &[in_area(0, 6)]), TapOutcome::LimitReached);
    assert_eq!((cart.want(), cart.wanted_in(0)), ([1, 2, 3].as_slice(), 7));
    let mut cart = holding(HoldView { paying: true, ..hold(&[1]) });
    assert_eq!(cart.add(&[2], &[]), TapOutcome::PaymentPending);
    assert_eq!(cart.want(), [1]);
}

#[test]
fn a_full_area_limits_the_wish_to_held_and_left_places() {
    let mut cart = holding(with_places(&[1], &[in_area(0, 2)]));
    (0..3).for_each(|_| assert_eq!(cart.change_places(0, true), TapOutcome::Added));
    cart.next_intent().expect("a change");
    cart.refused(&[], &[(0, 1)]);
    assert_eq!((cart.wanted_in(0), cart.want()), (3, [1].as_slice()));
}

#[test]
fn the_first_tap_takes_and_taps_made_meanwhile_are_coalesced() {
    let mut cart = Cart::default();
    cart.tap(4);
    assert_eq!(cart.next_intent(), Some(take(vec![4])));
    cart.tap(9);
    cart.tap(6);
    assert_eq!(cart.next_intent(), None, "one request at a time");
    cart.granted(hold(&[4]));
    assert_eq!(cart.next_intent(), Some(add(vec![6, 9])));
    cart.granted(hold(&[4, 6, 9]));
    assert!(cart.is_settled());
}

#[test]
fn an_exchange_adds_and_removes_in_one_request() {
    let mut cart = holding(with_places(&[1, 2], &[in_area(0, 1)]));
    assert_eq!(cart.exchange_for(&[9, 2, 9]), TapOutcome::Added);
    assert_eq!(cart.next_intent(), Some(change(vec![9], vec![1], vec![], vec![in_area(0, 1)])));
    cart.granted(HoldView { paying: true, ..hold(&[2, 9]) });
    assert_eq!(cart.exchange_for(&[4]), TapOutcome::PaymentPending);
    assert_eq!(cart.want(), [2, 9]);
}

/// A cart that holds seats 1 and 2 and has requested 8 and 9 in exchange.
fn exchange_requested() -> Cart {
    let mut cart = holding(with_places(&[1, 2], &[in_area(0, 1)]));
    cart.exchange_for(&[8, 9]);
    cart.next_intent().expect("a change");
    cart
}

#[test]
fn a_refused_exchange_keeps_the_hold() {
    let mut cart = exchange_requested();
    assert!(cart.refused(&[9], &[]));
    assert_eq!((cart.want(), cart.wanted_in(0)), ([1, 2].as_slice(), 1));
    assert!(cart.is_settled(), "no request is due");
    cart.tap(5);
    cart.next_intent().expect("a change");
    assert!(!cart.refused(&[5], &[]), "a seat beside the hold is an ordinary seat");
}

#[test]
fn seats_chosen_during_an_exchange_stay_in_the_wish() {
    let mut cart = exchange_requested();
    cart.tap(5);
    cart.change_places(3, true);
    assert!(cart.refused(&[8, 9], &[]));
    assert_eq!((cart.want(), cart.wanted_in(0), cart.wanted_in(3)), ([1, 2, 5].as_slice(), 1, 1));
    // A seat requested beside the exchange was refused: only that seat is lost.
    let mut cart = holding(hold(&[1]));
    cart.exchange_for(&[8]);
    cart.tap(5);
    cart.next_intent().expect("a change");
    assert!(!cart.refused(&[5], &[]));
    assert_eq!(cart.next_intent(), Some(change(vec![8], vec![1], vec![], vec![])));
}

#[test]
fn a_second_exchange_before_the_answer_is_all_or_nothing_as_well() {
    let mut cart = exchange_requested();
    cart.exchange_for(&[6, 7]);
    cart.granted(hold(&[8, 9]));
    cart.next_intent().expect("a change");
    assert!(cart.refused(&[6], &[]));
    assert_eq!(cart.want(), [8, 9]);
    // Once held, exchanged seats are ordinary seats: a refusal beside them loses one seat.
    cart.exchange_for(&[6, 7]);
    cart.next_intent().expect("a change");
    cart.granted(hold(&[6, 7]));
    cart.tap(6);
    cart.next_intent().expect("a change");
    cart.granted(hold(&[7]));
    cart.tap(6);
    cart.next_intent().expect("a change");
    assert!(!cart.refused(&[6], &[]));
    assert_eq!(cart.want(), [7]);
}

#[test]
fn an_exchange_without_a_hold_takes_the_seats_that_are_left() {
    let mut cart = Cart::default();
    cart.exchange_for(&[8, 9]);
    cart.next_intent().expect("a hold");
    assert!(!cart.refused(&[9], &[]));
    assert_eq!(cart.next_intent(), Some(take(vec![8])));
}

#[test]
fn releasing_the_last_seat_drops_the_hold() {
    let mut cart = holding(hold(&[4]));
    assert_eq!(cart.tap(4), TapOutcome::Removed);
    assert_eq!(cart.next_intent(), Some(HoldIntent::Drop { hold: Uuid::from_u128(7) }));
    cart.dropped();
    assert!(cart.is_settled());
}

#[test]
fn a_refusal_removes_only_the_named_seat() {
    let mut cart = holding(hold(&[1, 2]));
    cart.tap(3);
    cart.tap(4);
    cart.next_intent().expect("a change");
    cart.refused(&[3], &[]);
    assert_eq!(cart.want(), [1, 2, 4]);
    assert_eq!(cart.next_intent(), Some(add(vec![4])));
}

#[test]
fn a_refusal_without_seats_is_not_retried() {
    let mut cart = Cart::default();
    cart.tap(3);
    cart.next_intent().expect("a hold");
    cart.refused(&[], &[]);
    assert_eq!(cart.next_intent(), None);
    assert!(cart.want().is_empty());
}

#[test]
fn an_eleventh_seat_is_not_requested() {
    let mut cart = Cart::default();
    for seat in 0..10 {
        assert_eq!(cart.tap(seat), TapOutcome::Added);
    }
    assert_eq!(cart.tap(10), TapOutcome::LimitReached);
    assert_eq!(cart.tap(0), TapOutcome::Removed, "releasing is always possible");
}

#[test]
fn seats_of_an_expired_hold_can_be_reclaimed() {
    let mut cart = holding(hold(&[1, 2]));
    cart.expired();
    assert!(cart.want().is_empty() && cart.held().is_none());
    cart.reclaim_lost();
    assert_eq!(cart.next_intent(), Some(take(vec![1, 2])));
}

#[test]
fn a_request_overtaken_by_the_expiry_still_blocks_the_next() {
    let mut cart = holding(hold(&[1]));
    cart.tap(2);
    cart.next_intent().expect("a change");
    let number = cart.number();
    cart.expired();
    cart.reclaim_lost();
    assert_ne!(cart.number(), number, "its answer is ignored");
    assert!(!cart.is_due(), "one request at a time");
    cart.answered();
    assert_eq!(cart.next_intent(), Some(take(vec![1, 2])));
}

#[test]
fn an_extension_changes_only_the_expiry() {
    let mut cart = holding(hold(&[1]));
    let longer = HoldView { expires_at_ms: 9_000, latest_ms: 20_000, ..hold(&[1]) };
    cart.tap(2);
    cart.next_intent().expect("a change");
    assert!(cart.extend_time(&longer), "also while a request is in flight");
    cart.granted(HoldView { expires_at_ms: 9_000, ..hold(&[1, 2]) });
    assert!(cart.extend_time(&longer), "an answer that was late");
    assert_eq!((cart.want(), cart.holds(2)), ([1, 2].as_slice(), true), "seats taken meanwhile stay");
    assert_eq!(cart.held().map(|held| (held.expires_at_ms, held.latest_ms)), Some((9_000, 20_000)));
    assert!(!cart.extend_time(&HoldView { id: Uuid::from_u128(8), ..longer.clone() }), "another hold");
    cart.granted(HoldView { paying: true, ..hold(&[1, 2]) });
    assert!(!cart.extend_time(&longer), "the payment set its own time");
    assert!(!Cart::default().extend_time(&longer));
}

#[test]
fn bought_seats_are_not_lost() {
    let mut cart = holding(HoldView { paying: true, ..hold(&[1]) });
    cart.finish();
    assert!(cart.held().is_none() && cart.want().is_empty() && !cart.has_lost());
}

#[test]
fn a_recorded_payment_counts_before_the_server_reports_it() {
    let (mine, booking) = (Uuid::from_u128(7), Uuid::from_u128(9));
    let mut cart = holding(hold(&[1]));
    cart.record_payment(Uuid::from_u128(8), booking);
    assert!(!cart.is_paying(), "that was another hold");
    cart.record_payment(mine, booking);
    assert_eq!((cart.is_paying(), cart.held().and_then(|held| held.booking)), (true, Some(booking)));
    assert_eq!(cart.tap(2), TapOutcome::PaymentPending);
}

#[test]
fn taps_are_refused_during_a_payment() {
    let mut cart = holding(HoldView { paying: true, ..hold(&[1]) });
    assert_eq!(cart.tap(1), TapOutcome::PaymentPending);
    assert_eq!(cart.tap(2), TapOutcome::PaymentPending);
}

#[test]
fn a_hold_of_another_tab_joins_the_wish() {
    let mut cart = Cart::default();
    cart.tap(9);
    cart.next_intent().expect("a hold");
    cart.join(hold(&[1]));
    assert_eq!(cart.next_intent(), Some(add(vec![9])));
}

#[test]
fn a_change_by_another_tab_stays_beside_a_granted_request() {
    let mut cart = holding(hold(&[1]));
    cart.tap(3);
    cart.next_intent().expect("a change");
    cart.granted(hold(&[1, 2, 3]));
    assert!(cart.is_settled(), "the other tab added 2");
    cart.tap(4);
    cart.next_intent().expect("a change");
    cart.tap(1);
    cart.tap(5);
    cart.granted(hold(&[1, 3, 4]));
    assert_eq!(cart.want(), [3, 4, 5], "the other tab released 2, and the visitor chose here meanwhile");
    assert_eq!(cart.next_intent(), Some(change(vec![5], vec![1], vec![], vec![])));
}

#[test]
fn places_that_another_tab_changed_stay_beside_a_granted_request() {
    let mut cart = holding(with_places(&[], &[in_area(0, 2), in_area(1, 2)]));
    cart.change_places(0, true);
    cart.next_intent().expect("a change");
    cart.change_places(1, true);
    cart.granted(with_places(&[], &[in_area(0, 4), in_area(1, 1)]));
    assert_eq!((cart.wanted_in(0), cart.wanted_in(1)), (4, 2), "one more by each tab, and one less by the other");
    cart.next_intent().expect("a change");
    cart.granted(with_places(&[6], &[in_area(0, 4), in_area(1, 2)]));
    assert!(cart.is_settled());
}

#[test]
fn a_read_hold_is_ignored_while_a_request_is_in_flight() {
    let mut cart = Cart::default();
    cart.tap(9);
    cart.next_intent().expect("a hold");
    assert!(!cart.replace_hold(None));
    assert!(cart.wants(9));
}
