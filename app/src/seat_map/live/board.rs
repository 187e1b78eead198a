//! Every seat's state, and what is painted of it.
//!
//! One byte per seat for the whole room; a signal only for seats that are on screen, by index, so that
//! a change repaints one seat and a resync repaints what really differs. A large room is painted as dots
//! besides. Nothing here knows requests.

use domain::seats::{SeatIndex, SeatState};
use domain::wire::{Change, Dot};

use crate::seat_map::appearance::Look;
use crate::seat_map::large_rooms::dots::{Dots, Paint};
use crate::seat_map::own_seats::cart::Cart;
use crate::seat_map::signals::told::Told;

/// The states of a room.
#[derive(Default)]
pub struct Board {
    states: Vec<SeatState>,
    painted: Vec<Option<Told<Look>>>,
    /// Seats this visitor gave back and the live map still shows as locked: by us, not by another.
    given_back: Vec<SeatIndex>,
    /// What a refusal said of seats, until the live map says so too. Never part of the map itself: it
    /// has no place in the order of its versions.
    refused: Vec<(SeatIndex, SeatState)>,
    /// A large room in small, once it is known where its seats are.
    dots: Option<Dots>,
}

impl Board {
    /// A room of `seats`, nothing known of them yet: not to be shown before the first map.
    #[must_use]
    pub fn new(seats: u32) -> Self {
        let seats = seats as usize;
        Self { states: vec![SeatState::Available; seats], painted: vec![None; seats], ..Self::default() }
    }

    /// The signal of a seat on screen; made when first asked for.
    pub fn signal(&mut self, seat: SeatIndex, cart: &Cart) -> Option<Told<Look>> {
        let look = self.look(seat, cart);
        let slot = self.painted.get_mut(seat as usize)?;
        Some(*slot.get_or_insert_with(|| Told::new(look)))
    }

    /// What the live map says of a seat.
    #[must_use]
    pub fn state(&self, seat: SeatIndex) -> SeatState {
        self.states.get(seat as usize).copied().unwrap_or_default()
    }

    /// What the seat looks like to the owner of this cart.
    #[must_use]
    pub fn look(&self, seat: SeatIndex, cart: &Cart) -> Look {
        let refused = self.refused.iter().find(|(refused, _)| *refused == seat);
        let state = refused.map_or_else(|| self.state(seat), |(_, state)| *state);
        let being_given_back = cart.holds(seat) || self.given_back.contains(&seat);
        match (cart.wants(seat), cart.holds(seat)) {
            (true, true) => Look::Mine,
            (true, false) => Look::Asked,
            (false, _) if being_given_back && state == SeatState::Locked => Look::Available,
            (false, _) => state.into(),
        }
    }

    /// The room in small, if that is known.
    pub fn dots(&mut self) -> Option<&mut Dots> {
        self.dots.as_mut()
    }

    /// Learns where the seats of a large room are.
    pub fn set_dots(&mut self, dots: Dots) {
        self.dots = Some(dots);
    }

    /// The dots that look different since this was asked last.
    pub fn dots_to_paint(&mut self, cart: &Cart) -> Vec<(Paint, Dot)> {
        // Taken out meanwhile: how a seat looks is asked of the board.
        let Some(mut dots) = self.dots.take() else { return Vec::new() };
        let due = dots.take_paints(|seat| self.look(seat, cart));
        self.dots = Some(dots);
        due
    }

    /// Takes the whole map; false when it is not one of this room.
    pub fn replace(&mut self, map: &[SeatState], cart: &Cart) -> bool {
        let fits = map.len() == self.states.len();
        if fits {
            self.states.copy_from_slice(map);
            self.given_back.clear();
            self.refused.clear();
            self.repaint_all(cart);
        }
        fits
    }

    /// Takes changes.
    pub fn apply(&mut self, changes: &[Change], cart: &Cart) {
        for change in changes {
            if let Some(state) = self.states.get_mut(change.seat as usize) {
                *state = change.state;
                self.given_back.retain(|seat| *seat != change.seat);
                self.refused.retain(|(seat, _)| *seat != change.seat);
                self.repaint(change.seat, cart);
            }
        }
    }

    /// Remembers that these seats were given back, until the live map says so too.
    pub fn note_given_back(&mut self, seats: &[SeatIndex]) {
        self.given_back.extend_from_slice(seats);
    }

    /// Remembers how seats stand that were refused, until the live map has news of them.
    pub fn note_refused(&mut self, seats: &[(SeatIndex, SeatState)], cart: &Cart) {
        self.refused.retain(|(before, _)| seats.iter().all(|(seat, _)| seat != before));
        self.refused.extend_from_slice(seats);
        seats.iter().for_each(|(seat, _)| self.repaint(*seat, cart));
    }

    /// Stops believing of these seats anything but what the live map says.
    pub fn forget_guesses(&mut self, seats: &[SeatIndex], cart: &Cart) {
        self.given_back.retain(|seat| !seats.contains(seat));
        self.refused.retain(|(seat, _)| !seats.contains(seat));
        seats.iter().for_each(|seat| self.repaint(*seat, cart));
    }

    /// Paints a seat again if it looks different now.
    pub fn repaint(&mut self, seat: SeatIndex, cart: &Cart) {
        if let Some(dots) = &mut self.dots {
            dots.note(seat);
        }
        self.tell(seat, cart);
    }

    /// Paints what differs.
    fn repaint_all(&mut self, cart: &Cart) {
        if let Some(dots) = &mut self.dots {
            dots.note_all();
        }
        (0..).zip(&self.painted).filter(|(_, slot)| slot.is_some()).for_each(|(seat, _)| self.tell(seat, cart));
    }

    fn tell(&self, seat: SeatIndex, cart: &Cart) {
        if let Some(Some(signal)) = self.painted.get(seat as usize) {
            let look = self.look(seat, cart);
            if signal.get_untracked() != look {
                signal.set(look);
            }
        }
    }

    /// Free seats among `count` from `first` on.
    #[must_use]
    pub fn free_among(&self, first: SeatIndex, count: u32) -> u32 {
        let seats = self.states.iter().skip(first as usize).take(count as usize);
        u32::try_from(seats.filter(|state| **state == SeatState::Available).count()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tapped_seat_is_painted_as_ones_own_at_once() {
        let (board, mut cart) = (Board::new(3), Cart::default());
        cart.tap(1);
        assert_eq!(board.look(1, &cart), Look::Asked);
        assert_eq!(board.look(1, &cart).state(), "mine");
    }

    #[test]
    fn a_seat_given_back_does_not_flash_as_somebody_elses() {
        let (mut board, cart) = (Board::new(3), Cart::default());
        board.apply(&[Change { seat: 1, state: SeatState::Locked }], &cart);
        assert_eq!(board.look(1, &cart), Look::Locked);
        board.note_given_back(&[1]);
        assert_eq!(board.look(1, &cart), Look::Available);
        board.apply(&[Change { seat: 1, state: SeatState::Booked }], &cart);
        assert_eq!(board.look(1, &cart), Look::Booked, "news about the seat ends that");
    }

    #[test]
    fn a_refusal_is_painted_over_the_map_and_never_into_it() {
        let (mut board, cart) = (Board::new(3), Cart::default());
        board.note_refused(&[(1, SeatState::Locked), (2, SeatState::Locked)], &cart);
        assert_eq!((board.look(1, &cart), board.state(1)), (Look::Locked, SeatState::Available));
        assert_eq!(board.free_among(0, 3), 3, "free seats are counted by the map alone");
        board.apply(&[Change { seat: 1, state: SeatState::Available }], &cart);
        assert_eq!((board.look(1, &cart), board.look(2, &cart)), (Look::Available, Look::Locked));
        board.forget_guesses(&[2], &cart);
        assert_eq!(board.look(2, &cart), Look::Available);
    }

    #[test]
    fn a_map_of_another_size_is_not_believed() {
        let (mut board, cart) = (Board::new(3), Cart::default());
        board.replace(&[SeatState::Booked; 2], &cart);
        assert_eq!(board.look(0, &cart), Look::Available);
        board.replace(&[SeatState::Booked; 3], &cart);
        assert_eq!(board.free_among(0, 3), 0);
    }

    #[test]
    fn dots_are_painted_as_the_visitor_sees_the_seats() {
        let (mut board, mut cart) = (Board::new(3), Cart::default());
        assert!(board.dots_to_paint(&cart).is_empty(), "nobody knows where the seats are");
        board.set_dots(Dots::new((0..3).map(|seat| Dot { x: seat, y: 0, category: 0 }).collect()));
        assert_eq!(board.dots_to_paint(&cart).len(), 3);
        cart.tap(1);
        board.repaint(1, &cart);
        board.apply(&[Change { seat: 2, state: SeatState::Booked }], &cart);
        let painted: Vec<_> = board.dots_to_paint(&cart).into_iter().map(|(paint, dot)| (paint, dot.x)).collect();
        assert_eq!(
            painted,
            [(crate::seat_map::large_rooms::dots::MINE, 1), (crate::seat_map::large_rooms::dots::GONE, 2)]
        );
    }
}
