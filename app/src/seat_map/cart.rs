//! What the visitor wants, what the server granted, and which request comes next.
//!
//! Taps change the wish at once; one request at a time brings the hold after it, so that fast taps
//! coalesce and nothing arrives out of order. Pure: no network, no clock, no DOM.

use domain::api::HoldView;
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex};
use uuid::Uuid;

/// A change of the hold, to be asked of the server. One intent, one idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Start a hold.
    Take {
        /// Its seats.
        seats: Vec<SeatIndex>,
    },
    /// Add and let go, in one step.
    Change {
        /// The hold.
        hold: Uuid,
        /// Seats to take as well.
        add: Vec<SeatIndex>,
        /// Seats to let go.
        remove: Vec<SeatIndex>,
    },
    /// Give everything back.
    Drop {
        /// The hold.
        hold: Uuid,
    },
}

/// What a tap did to the wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tapped {
    /// The seat is wanted now.
    Wanted,
    /// The seat is not wanted any more.
    LetGo,
    /// Ten seats are the limit.
    Full,
    /// A payment is in progress: nothing changes until it ended.
    Paying,
}

/// The wish and the hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cart {
    held: Option<HoldView>,
    /// Sorted, each seat once.
    want: Vec<SeatIndex>,
    in_flight: Option<Intent>,
    /// Counts the requests, and what overtook one: an answer counts only under the current number.
    number: u64,
    /// Seats of a hold that ended by itself, for "try to get them back".
    lost: Vec<SeatIndex>,
}

impl Cart {
    /// The hold the server granted last.
    #[must_use]
    pub fn held(&self) -> Option<&HoldView> {
        self.held.as_ref()
    }

    /// The seats wanted, in order.
    #[must_use]
    pub fn want(&self) -> &[SeatIndex] {
        &self.want
    }

    /// Seats of a hold that ended by itself.
    #[must_use]
    pub fn lost(&self) -> &[SeatIndex] {
        &self.lost
    }

    /// Whether the visitor wants this seat.
    #[must_use]
    pub fn wants(&self, seat: SeatIndex) -> bool {
        self.want.binary_search(&seat).is_ok()
    }

    /// Whether the server has granted this seat.
    #[must_use]
    pub fn holds(&self, seat: SeatIndex) -> bool {
        self.held.as_ref().is_some_and(|held| held.seats.iter().any(|line| line.seat == seat))
    }

    /// Whether wish and hold agree and nothing is on its way.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.in_flight.is_none() && self.want == self.held_seats()
    }

    /// Whether a payment is in progress.
    #[must_use]
    pub fn is_paying(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.paying)
    }

    /// A tap on a seat that is free or one's own.
    pub fn tap(&mut self, seat: SeatIndex) -> Tapped {
        if self.is_paying() {
            return Tapped::Paying;
        }
        match self.want.binary_search(&seat) {
            Ok(place) => {
                self.want.remove(place);
                Tapped::LetGo
            }
            Err(_) if self.want.len() >= MAX_SEATS_PER_HOLD => Tapped::Full,
            Err(place) => {
                self.want.insert(place, seat);
                self.lost.clear();
                Tapped::Wanted
            }
        }
    }

    /// Wants these seats and no others.
    pub fn want_instead(&mut self, seats: &[SeatIndex]) -> Tapped {
        if self.is_paying() {
            return Tapped::Paying;
        }
        self.want = seats.to_vec();
        self.want.sort_unstable();
        self.want.dedup();
        self.want.truncate(MAX_SEATS_PER_HOLD);
        self.lost.clear();
        Tapped::Wanted
    }

    /// Whether a request is due.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.in_flight.is_none() && self.intent().is_some()
    }

    /// The next request, when one is due; it counts as on its way from here on.
    pub fn next_intent(&mut self) -> Option<Intent> {
        if self.in_flight.is_some() {
            return None;
        }
        let intent = self.intent()?;
        self.number += 1;
        self.in_flight = Some(intent.clone());
        Some(intent)
    }

    /// What would bring the hold after the wish.
    fn intent(&self) -> Option<Intent> {
        let held = self.held_seats();
        let add: Vec<_> = self.want.iter().copied().filter(|seat| held.binary_search(seat).is_err()).collect();
        let remove: Vec<_> = held.iter().copied().filter(|seat| !self.wants(*seat)).collect();
        match &self.held {
            None if add.is_empty() => None,
            None => Some(Intent::Take { seats: add }),
            Some(_) if add.is_empty() && remove.is_empty() => None,
            Some(held) if self.want.is_empty() => Some(Intent::Drop { hold: held.id }),
            Some(held) => Some(Intent::Change { hold: held.id, add, remove }),
        }
    }

    /// The number of the request sent last, unless something overtook it.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The request on its way was answered; what the answer means is said separately, or not at all
    /// when it was overtaken.
    pub fn answered(&mut self) {
        self.in_flight = None;
    }

    /// The server granted what was asked. Taps made meanwhile stay in the wish.
    pub fn granted(&mut self, hold: HoldView) {
        self.in_flight = None;
        self.held = Some(hold);
    }

    /// The server took everything back as asked.
    pub fn dropped(&mut self) {
        self.in_flight = None;
        self.held = None;
    }

    /// A change left no seat in the hold: it is over, and so is the wish.
    pub fn emptied(&mut self) {
        self.dropped();
        self.want.clear();
    }

    /// The server refused because of these seats. They leave the wish, the others stay in it: the
    /// next intent asks for what is left.
    pub fn refused(&mut self, seats: &[SeatIndex]) {
        let before = self.want.len();
        self.in_flight = None;
        self.want.retain(|seat| !seats.contains(seat));
        if self.want.len() == before {
            // A refusal that names nothing we want would be asked again for ever.
            self.want = self.held_seats();
        }
    }

    /// The request failed for good: what is held stays, what was only wanted is forgotten.
    pub fn failed(&mut self) {
        self.in_flight = None;
        self.want = self.held_seats();
    }

    /// What the server says the hold is. Ignored while a request is on its way, whose answer is newer.
    /// Returns whether anything changed.
    pub fn learn(&mut self, hold: Option<HoldView>) -> bool {
        if self.in_flight.is_some() || self.held == hold {
            return false;
        }
        self.held = hold;
        self.want = self.held_seats();
        if self.held.is_some() {
            self.lost.clear();
        }
        true
    }

    /// There is another hold already (made in another tab): its seats join the wish.
    pub fn join(&mut self, hold: HoldView) {
        self.in_flight = None;
        self.held = Some(hold);
        for seat in self.held_seats() {
            if let Err(place) = self.want.binary_search(&seat)
                && self.want.len() < MAX_SEATS_PER_HOLD
            {
                self.want.insert(place, seat);
            }
        }
    }

    /// The hold ended by itself: its seats are lost, and remembered. A request on its way is overtaken,
    /// yet still the only one until it is answered.
    pub fn expired(&mut self) {
        let lost = std::mem::take(&mut self.want);
        self.moved_on();
        self.lost = lost;
    }

    /// The hold became a booking, or a payment for it came to its end: over, and nothing lost. A request
    /// on its way is overtaken.
    pub fn moved_on(&mut self) {
        *self = Self { in_flight: self.in_flight.take(), number: self.number + 1, ..Self::default() };
    }

    /// Wants the lost seats again.
    pub fn ask_again(&mut self) {
        self.want = std::mem::take(&mut self.lost);
    }

    fn held_seats(&self) -> Vec<SeatIndex> {
        let mut seats: Vec<_> = self.held.iter().flat_map(|held| &held.seats).map(|line| line.seat).collect();
        seats.sort_unstable();
        seats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::SeatLine;
    use domain::money::{Currency, Money};

    fn hold(seats: &[SeatIndex]) -> HoldView {
        let price = Money::new(1_250, Currency::parse("EUR").expect("a code"));
        let line =
            |seat: &SeatIndex| SeatLine { seat: *seat, label: format!("A{seat}"), category: "Gold".to_owned(), price };
        HoldView {
            id: Uuid::from_u128(7),
            show: Uuid::from_u128(1),
            seats: seats.iter().map(line).collect(),
            total: price,
            expires_at: String::new(),
            expires_at_ms: 0,
            latest_ms: 0,
            paying: false,
            booking: None,
        }
    }

    #[test]
    fn the_first_tap_takes_and_taps_made_meanwhile_travel_together() {
        let mut cart = Cart::default();
        cart.tap(4);
        assert_eq!(cart.next_intent(), Some(Intent::Take { seats: vec![4] }));
        cart.tap(9);
        cart.tap(6);
        assert_eq!(cart.next_intent(), None, "one request at a time");
        cart.granted(hold(&[4]));
        assert_eq!(
            cart.next_intent(),
            Some(Intent::Change { hold: Uuid::from_u128(7), add: vec![6, 9], remove: vec![] })
        );
        cart.granted(hold(&[4, 6, 9]));
        assert!(cart.is_settled());
    }

    #[test]
    fn another_place_is_taken_and_the_first_let_go_in_one_step() {
        let mut cart = Cart::default();
        cart.learn(Some(hold(&[1, 2])));
        assert_eq!(cart.want_instead(&[9, 2, 9]), Tapped::Wanted);
        let change = Intent::Change { hold: Uuid::from_u128(7), add: vec![9], remove: vec![1] };
        assert_eq!(cart.next_intent(), Some(change));
        cart.granted(HoldView { paying: true, ..hold(&[2, 9]) });
        assert_eq!(cart.want_instead(&[4]), Tapped::Paying);
        assert_eq!(cart.want(), [2, 9]);
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
        cart.refused(&[3]);
        assert_eq!(cart.want(), [1, 2, 4]);
        assert_eq!(cart.next_intent(), Some(Intent::Change { hold: Uuid::from_u128(7), add: vec![4], remove: vec![] }));
    }

    #[test]
    fn a_refusal_that_names_nothing_is_not_asked_again() {
        let mut cart = Cart::default();
        cart.tap(3);
        cart.next_intent().expect("a hold");
        cart.refused(&[]);
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
        assert_eq!(cart.next_intent(), Some(Intent::Take { seats: vec![1, 2] }));
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
        assert_eq!(cart.next_intent(), Some(Intent::Take { seats: vec![1, 2] }));
    }

    #[test]
    fn what_was_bought_is_not_lost() {
        let mut cart = Cart::default();
        cart.learn(Some(HoldView { paying: true, ..hold(&[1]) }));
        cart.moved_on();
        assert!(cart.held().is_none() && cart.want().is_empty() && cart.lost().is_empty());
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
        assert_eq!(cart.next_intent(), Some(Intent::Change { hold: Uuid::from_u128(7), add: vec![9], remove: vec![] }));
    }

    #[test]
    fn news_that_crosses_a_request_is_left_to_its_answer() {
        let mut cart = Cart::default();
        cart.tap(9);
        cart.next_intent().expect("a hold");
        assert!(!cart.learn(None));
        assert!(cart.wants(9));
    }
}
