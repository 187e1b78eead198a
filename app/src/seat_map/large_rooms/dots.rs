//! The dots of a large room: each dot's colour, and the dots to repaint.
//!
//! Pure. One byte per seat stores what is on the canvas: a change costs the seats that changed, a resync those that
//! differ. `canvas` does the painting.

use domain::seats::SeatIndex;
use domain::wire::Dot;

use crate::seat_map::appearance::{CATEGORY_COLOURS, SeatAppearance, filter_bit};

/// The paint of a dot: an index into the colours of the canvas.
pub type Paint = u8;

/// Not painted yet.
const NOTHING: Paint = u8::MAX;
/// Sold or not for sale.
pub const GONE: Paint = 0;
/// In another visitor's hold.
pub const HELD: Paint = 1;
/// The visitor's own.
pub const MINE: Paint = 2;
/// Free, in a category outside the filter.
pub const FAINT: Paint = 3;
/// Free; plus the number of the category modulo [`CATEGORY_COLOURS`].
pub const FREE: Paint = 4;
pub const COLOURS: usize = FREE as usize + CATEGORY_COLOURS as usize;

/// A canvas for the dots. A trait object, so that its code can load after the map.
pub trait PaintTarget {
    /// Returns true if it takes dots now. A worker is not ready until it has taken the previous ones.
    fn is_ready(&self) -> bool;
    /// Returns true if it is on the page with the current size, theme and plan size.
    fn is_current(&self, size: (i32, i32)) -> bool;
    /// Adapts to the current size and theme; all dots must be painted again. Returns false if a new canvas is needed.
    fn renew(&mut self, size: (i32, i32)) -> bool;
    fn paint(&mut self, dots: &[(Paint, Dot)]);
}

pub struct Dots {
    places: Vec<Dot>,
    painted: Vec<Paint>,
    /// Seats whose paint may have changed, each once at most.
    marked: Vec<SeatIndex>,
    is_marked: Vec<bool>,
    /// Categories outside the filter: see [`filter_bit`].
    faint: u64,
}

impl Dots {
    /// All dots of a room, none painted.
    pub fn new(places: Vec<Dot>) -> Self {
        let seats = places.len();
        let mut dots = Self {
            places,
            painted: vec![NOTHING; seats],
            marked: Vec::with_capacity(seats),
            is_marked: vec![false; seats],
            faint: 0,
        };
        dots.mark_all();
        dots
    }

    pub fn mark(&mut self, seat: SeatIndex) {
        if let Some(is_marked) = self.is_marked.get_mut(seat as usize)
            && !*is_marked
        {
            *is_marked = true;
            self.marked.push(seat);
        }
    }

    pub fn mark_all(&mut self) {
        (0..).take(self.places.len()).for_each(|seat| self.mark(seat));
    }

    /// Marks the whole canvas as empty.
    pub fn reset_painted(&mut self) {
        self.painted.fill(NOTHING);
        self.mark_all();
    }

    /// Sets the categories to paint faintly, one bit each.
    pub fn set_faint(&mut self, faint: u64) {
        if self.faint != faint {
            self.faint = faint;
            self.mark_all();
        }
    }

    /// Takes the dots whose paint changed. They count as painted.
    pub fn take_paints(&mut self, look: impl Fn(SeatIndex) -> SeatAppearance) -> Vec<(Paint, Dot)> {
        let mut changed = Vec::with_capacity(self.marked.len());
        for seat in self.marked.drain(..) {
            let place = seat as usize;
            self.is_marked[place] = false;
            let dot = self.places[place];
            let paint = paint_of(look(seat), dot.category, self.faint);
            if self.painted[place] != paint {
                self.painted[place] = paint;
                changed.push((paint, dot));
            }
        }
        changed
    }
}

pub fn paint_of(look: SeatAppearance, category: u8, faint: u64) -> Paint {
    match look {
        SeatAppearance::Available if faint & filter_bit(category) != 0 => FAINT,
        SeatAppearance::Available => FREE + category % CATEGORY_COLOURS,
        SeatAppearance::Locked => HELD,
        SeatAppearance::Booked | SeatAppearance::Blocked => GONE,
        SeatAppearance::Mine | SeatAppearance::Asked | SeatAppearance::Proposed => MINE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(seats: i32) -> Dots {
        Dots::new((0..seats).map(|seat| Dot { x: 20 * seat, y: 0, category: (seat % 2) as u8 }).collect())
    }

    fn paints(dots: &mut Dots, look: impl Fn(SeatIndex) -> SeatAppearance) -> Vec<(Paint, i32)> {
        dots.take_paints(look).into_iter().map(|(paint, dot)| (paint, dot.x / 20)).collect()
    }

    #[test]
    fn dots_are_painted_once_and_then_only_when_changed() {
        let mut dots = room(3);
        assert_eq!(paints(&mut dots, |_| SeatAppearance::Available), [(FREE, 0), (FREE + 1, 1), (FREE, 2)]);
        assert_eq!(paints(&mut dots, |_| SeatAppearance::Available), []);
        dots.mark(1);
        dots.mark(1);
        assert_eq!(paints(&mut dots, |_| SeatAppearance::Locked), [(HELD, 1)], "once, however often it was marked");
    }

    #[test]
    fn a_resync_paints_only_dots_that_differ() {
        let mut dots = room(4);
        paints(&mut dots, |_| SeatAppearance::Available);
        dots.mark_all();
        let look = |seat| if seat == 2 { SeatAppearance::Booked } else { SeatAppearance::Available };
        assert_eq!(paints(&mut dots, look), [(GONE, 2)]);
    }

    #[test]
    fn a_reset_repaints_every_dot() {
        let mut dots = room(2);
        paints(&mut dots, |_| SeatAppearance::Available);
        dots.reset_painted();
        assert_eq!(paints(&mut dots, |_| SeatAppearance::Available).len(), 2);
    }

    #[test]
    fn free_seats_outside_the_filter_are_faint_and_sold_seats_unchanged() {
        let mut dots = room(3);
        paints(&mut dots, |seat| if seat == 0 { SeatAppearance::Booked } else { SeatAppearance::Available });
        dots.set_faint(0b01);
        assert_eq!(
            paints(&mut dots, |seat| if seat == 0 { SeatAppearance::Booked } else { SeatAppearance::Available }),
            [(FAINT, 2)]
        );
    }

    #[test]
    fn the_ninth_category_shares_the_colour_of_the_first_but_not_its_filter() {
        let free = |category| paint_of(SeatAppearance::Available, category, 0b01);
        assert_eq!([0, 8, 9, 64].map(free), [FAINT, FREE, FREE + 1, FAINT]);
    }

    #[test]
    fn a_seat_index_beyond_the_room_is_ignored() {
        let mut dots = room(1);
        paints(&mut dots, |_| SeatAppearance::Available);
        dots.mark(7);
        assert_eq!((paints(&mut dots, |_| SeatAppearance::Booked), dots.places.get(7).copied()), (vec![], None));
    }
}
