//! Every seat's state and appearance.
//!
//! One byte per seat for the whole room, and a signal, by index, only for seats on screen. Changes are stored at once;
//! seats on screen that differ are repainted together. A large room is also painted as dots. Knows no requests.

use domain::seats::{SeatIndex, SeatState};
use domain::wire::{Dot, SeatChange};

use crate::seat_map::appearance::SeatAppearance;
use crate::seat_map::large_rooms::dots::{Dots, Paint};
use crate::seat_map::own_seats::cart::Cart;
use crate::seat_map::signals::PageSignal;

/// The seat states of a room, and local corrections that the live map has not confirmed yet.
#[derive(Default)]
pub struct Board {
    states: Vec<SeatState>,
    painted: Vec<Option<PageSignal<SeatAppearance>>>,
    /// Seats this visitor released while the live map still shows them as locked.
    released: Vec<SeatIndex>,
    /// Seat states from refusals, until the live map reports those seats. They are never part of the map itself,
    /// because they have no version in its order.
    refused: Vec<(SeatIndex, SeatState)>,
    /// The dots of a large room, once the seat positions are loaded.
    pub dots: Option<Dots>,
}

impl Board {
    /// A room of `seats` seats, all unknown. Not to be shown before the first snapshot.
    pub fn new(seats: u32) -> Self {
        let seats = seats as usize;
        Self { states: vec![SeatState::Available; seats], painted: vec![None; seats], ..Self::default() }
    }

    /// The signal of a seat on screen, created on first use.
    pub fn signal(&mut self, seat: SeatIndex, cart: &Cart) -> Option<PageSignal<SeatAppearance>> {
        let look = self.look(seat, cart);
        let slot = self.painted.get_mut(seat as usize)?;
        Some(*slot.get_or_insert_with(|| PageSignal::new(look)))
    }

    pub fn state(&self, seat: SeatIndex) -> SeatState {
        self.states.get(seat as usize).copied().unwrap_or_default()
    }

    /// A seat's appearance to the owner of this cart.
    pub fn look(&self, seat: SeatIndex, cart: &Cart) -> SeatAppearance {
        let refused = self.refused.iter().find(|(refused, _)| *refused == seat);
        let state = refused.map_or_else(|| self.state(seat), |(_, state)| *state);
        let is_released = cart.holds(seat) || self.released.contains(&seat);
        match (cart.wants(seat), cart.holds(seat)) {
            (true, true) => SeatAppearance::Mine,
            (true, false) => SeatAppearance::Asked,
            (false, _) if is_released && state == SeatState::Locked => SeatAppearance::Available,
            (false, _) if state == SeatState::Available && cart.proposed().contains(&seat) => SeatAppearance::Proposed,
            (false, _) => state.into(),
        }
    }

    /// The dots whose paint changed since the last call.
    pub fn dots_to_paint(&mut self, cart: &Cart) -> Vec<(Paint, Dot)> {
        // Taken out during the call, because the appearance of a seat needs the whole board.
        let Some(mut dots) = self.dots.take() else { return Vec::new() };
        let due = dots.take_paints(|seat| self.look(seat, cart));
        self.dots = Some(dots);
        due
    }

    /// Replaces all states. Returns false for a map of another size.
    pub fn replace(&mut self, map: &[SeatState], cart: &Cart) -> bool {
        let fits = map.len() == self.states.len();
        if fits {
            self.states.copy_from_slice(map);
            self.released.clear();
            self.refused.clear();
            self.repaint_all(cart);
        }
        fits
    }

    /// Applies changes. Returns true if any of these seats is on screen: it shows its change after
    /// [`Self::update_signals`].
    pub fn apply(&mut self, changes: &[SeatChange]) -> bool {
        let mut is_on_screen = false;
        for change in changes {
            if let Some(state) = self.states.get_mut(change.seat as usize) {
                *state = change.state;
                is_on_screen |= self.painted.get(change.seat as usize).is_some_and(Option::is_some);
                self.released.retain(|seat| *seat != change.seat);
                self.refused.retain(|(seat, _)| *seat != change.seat);
                self.mark_dot(change.seat);
            }
        }
        is_on_screen
    }

    /// Remembers released seats until the live map confirms them.
    pub fn record_released(&mut self, seats: &[SeatIndex]) {
        self.released.extend_from_slice(seats);
    }

    /// Remembers the states of refused seats until the live map reports them.
    pub fn record_refused(&mut self, seats: &[(SeatIndex, SeatState)], cart: &Cart) {
        self.refused.retain(|(before, _)| seats.iter().all(|(seat, _)| seat != before));
        self.refused.extend_from_slice(seats);
        seats.iter().for_each(|(seat, _)| self.repaint(*seat, cart));
    }

    /// Drops the local corrections of these seats.
    pub fn drop_corrections(&mut self, seats: &[SeatIndex], cart: &Cart) {
        self.released.retain(|seat| !seats.contains(seat));
        self.refused.retain(|(seat, _)| !seats.contains(seat));
        seats.iter().for_each(|seat| self.repaint(*seat, cart));
    }

    /// Repaints a seat if its appearance changed.
    pub fn repaint(&mut self, seat: SeatIndex, cart: &Cart) {
        self.mark_dot(seat);
        self.update_signal(seat, cart);
    }

    fn mark_dot(&mut self, seat: SeatIndex) {
        if let Some(dots) = &mut self.dots {
            dots.mark(seat);
        }
    }

    /// Repaints every seat that changed.
    fn repaint_all(&mut self, cart: &Cart) {
        if let Some(dots) = &mut self.dots {
            dots.mark_all();
        }
        self.update_signals(cart);
    }

    /// Repaints the seats on screen whose appearance changed.
    pub fn update_signals(&self, cart: &Cart) {
        (0..)
            .zip(&self.painted)
            .filter(|(_, slot)| slot.is_some())
            .for_each(|(seat, _)| self.update_signal(seat, cart));
    }

    fn update_signal(&self, seat: SeatIndex, cart: &Cart) {
        if let Some(Some(signal)) = self.painted.get(seat as usize) {
            let look = self.look(seat, cart);
            if signal.get_untracked() != look {
                signal.set(look);
            }
        }
    }

    pub fn free_among(&self, first: SeatIndex, count: u32) -> u32 {
        let seats = self.states.iter().skip(first as usize).take(count as usize);
        u32::try_from(seats.filter(|state| **state == SeatState::Available).count()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat_map::large_rooms::dots::{GONE, MINE};

    #[test]
    fn a_tapped_seat_is_painted_as_own_before_the_answer() {
        let (board, mut cart) = (Board::new(3), Cart::default());
        cart.tap(1);
        assert_eq!(board.look(1, &cart), SeatAppearance::Asked);
        assert_eq!(board.look(1, &cart).state(), "mine");
    }

    #[test]
    fn a_proposed_seat_is_painted_as_proposed_while_it_is_free() {
        let (mut board, mut cart) = (Board::new(3), Cart::default());
        cart.propose(vec![1, 2]);
        board.apply(&[SeatChange { seat: 2, state: SeatState::Locked }]);
        assert_eq!((board.look(1, &cart), board.look(2, &cart)), (SeatAppearance::Proposed, SeatAppearance::Locked));
        cart.tap(0);
        assert_eq!(board.look(1, &cart), SeatAppearance::Available, "a tap ends the proposal");
    }

    #[test]
    fn a_released_seat_is_painted_as_free_until_the_map_reports_it() {
        let (mut board, cart) = (Board::new(3), Cart::default());
        board.apply(&[SeatChange { seat: 1, state: SeatState::Locked }]);
        assert_eq!(board.look(1, &cart), SeatAppearance::Locked);
        board.record_released(&[1]);
        assert_eq!(board.look(1, &cart), SeatAppearance::Available);
        board.apply(&[SeatChange { seat: 1, state: SeatState::Booked }]);
        assert_eq!(board.look(1, &cart), SeatAppearance::Booked, "a change of the seat ends the correction");
    }

    #[test]
    fn a_refusal_changes_the_appearance_but_not_the_map() {
        let (mut board, cart) = (Board::new(3), Cart::default());
        board.record_refused(&[(1, SeatState::Locked), (2, SeatState::Locked)], &cart);
        assert_eq!((board.look(1, &cart), board.state(1)), (SeatAppearance::Locked, SeatState::Available));
        assert_eq!(board.free_among(0, 3), 3, "free seats are counted by the map alone");
        board.apply(&[SeatChange { seat: 1, state: SeatState::Available }]);
        assert_eq!((board.look(1, &cart), board.look(2, &cart)), (SeatAppearance::Available, SeatAppearance::Locked));
        board.drop_corrections(&[2], &cart);
        assert_eq!(board.look(2, &cart), SeatAppearance::Available);
    }

    #[test]
    fn a_map_of_another_size_is_ignored() {
        let (mut board, cart) = (Board::new(3), Cart::default());
        board.replace(&[SeatState::Booked; 2], &cart);
        assert_eq!(board.look(0, &cart), SeatAppearance::Available);
        board.replace(&[SeatState::Booked; 3], &cart);
        assert_eq!(board.free_among(0, 3), 0);
    }

    #[test]
    fn changes_are_stored_at_once_and_painted_together() {
        let (mut board, mut cart) = (Board::new(3), Cart::default());
        let signals = [0, 1, 2].map(|seat| board.signal(seat, &cart).expect("a seat of the room"));
        let shown = || signals.map(PageSignal::get_untracked);
        assert!(board.apply(&[0, 1].map(|seat| SeatChange { seat, state: SeatState::Locked })));
        assert!(board.apply(&[SeatChange { seat: 1, state: SeatState::Booked }]));
        assert!(!Board::new(3).apply(&[SeatChange { seat: 1, state: SeatState::Booked }]), "no seat is on screen");
        assert_eq!([0, 1].map(|seat| board.state(seat)), [SeatState::Locked, SeatState::Booked]);
        cart.tap(2);
        board.repaint(2, &cart);
        assert_eq!(shown(), [SeatAppearance::Available, SeatAppearance::Available, SeatAppearance::Asked]);
        board.update_signals(&cart);
        assert_eq!(shown(), [SeatAppearance::Locked, SeatAppearance::Booked, SeatAppearance::Asked]);
    }

    #[test]
    fn dots_follow_the_seats_appearance() {
        let (mut board, mut cart) = (Board::new(3), Cart::default());
        assert!(board.dots_to_paint(&cart).is_empty(), "no seat positions are loaded");
        board.dots = Some(Dots::new((0..3).map(|seat| Dot { x: seat, y: 0, category: 0 }).collect()));
        assert_eq!(board.dots_to_paint(&cart).len(), 3);
        cart.tap(1);
        board.repaint(1, &cart);
        board.apply(&[SeatChange { seat: 2, state: SeatState::Booked }]);
        let painted: Vec<_> = board.dots_to_paint(&cart).into_iter().map(|(paint, dot)| (paint, dot.x)).collect();
        assert_eq!(painted, [(MINE, 1), (GONE, 2)]);
    }
}
