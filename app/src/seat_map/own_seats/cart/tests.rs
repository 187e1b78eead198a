//! The wish, the hold and the requests between them.

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
        expires_at: String::new(),
        expires_at_ms: 0,
        latest_ms: 0,
        paying: false,
        booking: None,
    }
}

fn take(seats: Vec<SeatIndex>) -> Intent {
    Intent::Take { seats, places: None }
}

fn add(add: Vec<SeatIndex>) -> Intent {
    Intent::Change { hold: Uuid::from_u128(7), add, remove: vec![], add_places: vec![], remove_places: vec![] }
}

fn in_area(area: AreaIndex, quantity: u32) -> AreaQuantity {
    AreaQuantity { area, quantity }
}

fn with_places(seats: &[SeatIndex], places: &[AreaQuantity]) -> HoldView {
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
fn places_are_taken_and_let_go_one_by_one_beside_seats() {
    let mut cart = Cart::default();
    cart.step(1, true);
    assert_eq!(cart.next_intent(), Some(Intent::Take { seats: vec![], places: Some(in_area(1, 1)) }));
    cart.step(1, true);
    cart.step(1, true);
    cart.tap(4);
    cart.granted(with_places(&[], &[in_area(1, 1)]));
    let (add, add_places) = (vec![4], vec![in_area(1, 2)]);
    let change = Intent::Change { hold: Uuid::from_u128(7), add, remove: vec![], add_places, remove_places: vec![] };
    assert_eq!(cart.next_intent(), Some(change));
    cart.granted(with_places(&[4], &[in_area(1, 3)]));
    assert!(cart.is_settled());
    assert_eq!(cart.step(1, false), Tapped::LetGo);
    let remove_places = vec![in_area(1, 1)];
    let change =
        Intent::Change { hold: Uuid::from_u128(7), add: vec![], remove: vec![], add_places: vec![], remove_places };
    assert_eq!(cart.next_intent(), Some(change));
}

#[test]
fn places_count_towards_the_ten_and_nobody_wants_fewer_than_none() {
    let mut cart = Cart::default();
    (0..6).for_each(|seat| assert_eq!(cart.tap(seat), Tapped::Wanted));
    (0..4).for_each(|_| assert_eq!(cart.step(0, true), Tapped::Wanted));
    assert_eq!((cart.step(0, true), cart.tap(9), cart.count()), (Tapped::Full, Tapped::Full, 10));
    (0..9).for_each(|_| assert_eq!(cart.step(0, false), Tapped::LetGo));
    assert_eq!((cart.wanted_in(0), cart.count()), (0, 6));
}

#[test]
fn an_area_that_is_full_leaves_what_it_has_and_what_is_held() {
    let mut cart = Cart::default();
    cart.learn(Some(with_places(&[1], &[in_area(0, 2)])));
    (0..3).for_each(|_| assert_eq!(cart.step(0, true), Tapped::Wanted));
    cart.next_intent().expect("a change");
    cart.refused(&[], &[(0, 1)]);
    assert_eq!((cart.wanted_in(0), cart.want()), (3, [1].as_slice()));
}

#[test]
fn the_first_tap_takes_and_taps_made_meanwhile_travel_together() {
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
fn another_place_is_taken_and_the_first_let_go_in_one_step() {
    let mut cart = Cart::default();
    cart.learn(Some(with_places(&[1, 2], &[in_area(0, 1)])));
    assert_eq!(cart.want_instead(&[9, 2, 9]), Tapped::Wanted);
    let (add, remove, remove_places) = (vec![9], vec![1], vec![in_area(0, 1)]);
    let change = Intent::Change { hold: Uuid::from_u128(7), add, remove, add_places: vec![], remove_places };
    assert_eq!(cart.next_intent(), Some(change));
    cart.granted(HoldView { paying: true, ..hold(&[2, 9]) });
    assert_eq!(cart.want_instead(&[4]), Tapped::Paying);
    assert_eq!(cart.want(), [2, 9]);
}

/// Somebody who holds seats 1 and 2 and has asked for 8 and 9 in their place.
fn asked_for_another_place() -> Cart {
    let mut cart = Cart::default();
    cart.learn(Some(with_places(&[1, 2], &[in_area(0, 1)])));
    cart.want_instead(&[8, 9]);
    cart.next_intent().expect("a change");
    cart
}

#[test]
fn another_place_that_cannot_be_had_whole_costs_nothing_that_is_held() {
    let mut cart = asked_for_another_place();
    assert!(cart.refused(&[9], &[]));
    assert_eq!((cart.want(), cart.wanted_in(0)), ([1, 2].as_slice(), 1));
    assert!(cart.is_settled(), "and nothing is asked for");
    cart.tap(5);
    cart.next_intent().expect("a change");
    assert!(!cart.refused(&[5], &[]), "a seat beside one's own is a seat as any other");
}

#[test]
fn what_was_chosen_while_another_place_was_asked_for_stays_chosen() {
    let mut cart = asked_for_another_place();
    cart.tap(5);
    cart.step(3, true);
    assert!(cart.refused(&[8, 9], &[]));
    assert_eq!((cart.want(), cart.wanted_in(0), cart.wanted_in(3)), ([1, 2, 5].as_slice(), 1, 1));
    // The second place travels with a seat of which somebody else was first: that one is all it costs.
    let mut cart = Cart::default();
    cart.learn(Some(hold(&[1])));
    cart.want_instead(&[8]);
    cart.tap(5);
    cart.next_intent().expect("a change");
    assert!(!cart.refused(&[5], &[]));
    let change = Intent::Change {
        hold: Uuid::from_u128(7),
        add: vec![8],
        remove: vec![1],
        add_places: vec![],
        remove_places: vec![],
    };
    assert_eq!(cart.next_intent(), Some(change));
}

#[test]
fn a_third_place_chosen_before_the_second_was_answered_is_whole_or_nothing_as_well() {
    let mut cart = asked_for_another_place();
    cart.want_instead(&[6, 7]);
    cart.granted(hold(&[8, 9]));
    cart.next_intent().expect("a change");
    assert!(cart.refused(&[6], &[]));
    assert_eq!(cart.want(), [8, 9]);
    // Once they are held they are one's own: what is lost beside them is one seat.
    cart.want_instead(&[6, 7]);
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
fn whoever_holds_nothing_takes_what_is_left_of_a_place() {
    let mut cart = Cart::default();
    cart.want_instead(&[8, 9]);
    cart.next_intent().expect("a hold");
    assert!(!cart.refused(&[9], &[]));
    assert_eq!(cart.next_intent(), Some(take(vec![8])));
}

#[test]
fn letting_the_last_seat_go_drops_the_hold() {
    let mut cart = Cart::default();
    cart.learn(Some(hold(&[4])));
    assert_eq!(cart.tap(4), Tapped::LetGo);
    assert_eq!(cart.next_intent(), Some(Intent::Drop { hold: Uuid::from_u128(7) }));
    cart.dropped();
    assert!(cart.is_settled());
}

#[test]
fn a_refusal_costs_the_named_seat_and_nothing_else() {
    let mut cart = Cart::default();
    cart.learn(Some(hold(&[1, 2])));
    cart.tap(3);
    cart.tap(4);
    cart.next_intent().expect("a change");
    cart.refused(&[3], &[]);
    assert_eq!(cart.want(), [1, 2, 4]);
    assert_eq!(cart.next_intent(), Some(add(vec![4])));
}

#[test]
fn a_refusal_that_names_nothing_is_not_asked_again() {
    let mut cart = Cart::default();
    cart.tap(3);
    cart.next_intent().expect("a hold");
    cart.refused(&[], &[]);
    assert_eq!(cart.next_intent(), None);
    assert!(cart.want().is_empty());
}

#[test]
fn an_eleventh_seat_is_not_asked_for() {
    let mut cart = Cart::default();
    for seat in 0..10 {
        assert_eq!(cart.tap(seat), Tapped::Wanted);
    }
    assert_eq!(cart.tap(10), Tapped::Full);
    assert_eq!(cart.tap(0), Tapped::LetGo, "giving back is always possible");
}

#[test]
fn seats_of_an_expired_hold_can_be_asked_for_again() {
    let mut cart = Cart::default();
    cart.learn(Some(hold(&[1, 2])));
    cart.expired();
    assert!(cart.want().is_empty() && cart.held().is_none());
    cart.ask_again();
    assert_eq!(cart.next_intent(), Some(take(vec![1, 2])));
}

#[test]
fn a_request_overtaken_by_the_end_of_the_hold_is_still_the_only_one() {
    let mut cart = Cart::default();
    cart.learn(Some(hold(&[1])));
    cart.tap(2);
    cart.next_intent().expect("a change");
    let number = cart.number();
    cart.expired();
    cart.ask_again();
    assert_ne!(cart.number(), number, "its answer does not count any more");
    assert!(!cart.is_due(), "one request at a time");
    cart.answered();
    assert_eq!(cart.next_intent(), Some(take(vec![1, 2])));
}

#[test]
fn more_time_is_news_of_the_time_and_of_no_seat() {
    let mut cart = Cart::default();
    cart.learn(Some(hold(&[1])));
    let longer = HoldView { expires_at_ms: 9_000, latest_ms: 20_000, ..hold(&[1]) };
    cart.tap(2);
    cart.next_intent().expect("a change");
    assert!(cart.lasts_longer(&longer), "also while a request is on its way");
    cart.granted(HoldView { expires_at_ms: 9_000, ..hold(&[1, 2]) });
    assert!(cart.lasts_longer(&longer), "an answer that was late");
    assert_eq!((cart.want(), cart.holds(2)), ([1, 2].as_slice(), true), "what was taken meanwhile stays");
    assert_eq!(cart.held().map(|held| (held.expires_at_ms, held.latest_ms)), Some((9_000, 20_000)));
    assert!(!cart.lasts_longer(&HoldView { id: Uuid::from_u128(8), ..longer.clone() }), "another hold");
    cart.granted(HoldView { paying: true, ..hold(&[1, 2]) });
    assert!(!cart.lasts_longer(&longer), "paying has set its own time");
    assert!(!Cart::default().lasts_longer(&longer));
}

#[test]
fn what_was_bought_is_not_lost() {
    let mut cart = Cart::default();
    cart.learn(Some(HoldView { paying: true, ..hold(&[1]) }));
    cart.moved_on();
    assert!(cart.held().is_none() && cart.want().is_empty() && !cart.has_lost());
}

#[test]
fn whoever_begins_to_pay_is_paying_before_anybody_says_so() {
    let (mine, booking) = (Uuid::from_u128(7), Uuid::from_u128(9));
    let mut cart = Cart::default();
    cart.learn(Some(hold(&[1])));
    cart.payment_begun(Uuid::from_u128(8), booking);
    assert!(!cart.is_paying(), "that was another hold");
    cart.payment_begun(mine, booking);
    assert_eq!((cart.is_paying(), cart.held().and_then(|held| held.booking)), (true, Some(booking)));
    assert_eq!(cart.tap(2), Tapped::Paying);
}

#[test]
fn nothing_changes_while_a_payment_is_in_progress() {
    let mut cart = Cart::default();
    cart.learn(Some(HoldView { paying: true, ..hold(&[1]) }));
    assert_eq!(cart.tap(1), Tapped::Paying);
    assert_eq!(cart.tap(2), Tapped::Paying);
}

#[test]
fn a_hold_of_another_tab_is_joined() {
    let mut cart = Cart::default();
    cart.tap(9);
    cart.next_intent().expect("a hold");
    cart.join(hold(&[1]));
    assert_eq!(cart.next_intent(), Some(add(vec![9])));
}

#[test]
fn news_that_crosses_a_request_is_left_to_its_answer() {
    let mut cart = Cart::default();
    cart.tap(9);
    cart.next_intent().expect("a hold");
    assert!(!cart.learn(None));
    assert!(cart.wants(9));
}
