//! A large room as dots on a canvas: which dot has which colour, and which must be painted again.
//!
//! Pure. One byte a seat for what is on the canvas; a change costs the seats that changed, a resync those
//! that really differ. Who paints is `canvas`.

use domain::seats::SeatIndex;
use domain::wire::Dot;

use crate::seat_map::appearance::Look;

/// What a dot is painted as: an index into the colours of the canvas.
pub type Paint = u8;

/// Nothing was painted there yet.
const NOTHING: Paint = u8::MAX;
/// Sold, and not for sale.
pub const GONE: Paint = 0;
/// In somebody's hold.
pub const HELD: Paint = 1;
/// One's own.
pub const MINE: Paint = 2;
/// Free, in a category that is not looked for.
pub const FAINT: Paint = 3;
/// Free, in the category of this number, modulo [`CATEGORY_COLOURS`], above this.
pub const FREE: Paint = 4;
/// Colours for categories; more categories use them again.
pub const CATEGORY_COLOURS: u8 = 8;
/// Colours in all.
pub const COLOURS: usize = FREE as usize + CATEGORY_COLOURS as usize;

/// The seats of a room as dots.
pub struct Dots {
    places: Vec<Dot>,
    painted: Vec<Paint>,
    /// Seats whose paint may have changed since the last painting, each once at most.
    due: Vec<SeatIndex>,
    noted: Vec<bool>,
    /// Categories that are not looked for, a bit each by their number modulo [`CATEGORY_COLOURS`].
    faint: u64,
}

impl Dots {
    /// All of a room, nothing of it painted.
    #[must_use]
    pub fn new(places: Vec<Dot>) -> Self {
        let seats = places.len();
        let mut dots = Self {
            places,
            painted: vec![NOTHING; seats],
            due: Vec::with_capacity(seats),
            noted: vec![false; seats],
            faint: 0,
        };
        dots.note_all();
        dots
    }

    /// Where a seat is.
    #[must_use]
    pub fn place(&self, seat: SeatIndex) -> Option<Dot> {
        self.places.get(seat as usize).copied()
    }

    /// A seat may look different now.
    pub fn note(&mut self, seat: SeatIndex) {
        if let Some(noted) = self.noted.get_mut(seat as usize)
            && !*noted
        {
            *noted = true;
            self.due.push(seat);
        }
    }

    /// Any seat may look different now.
    pub fn note_all(&mut self) {
        (0..).take(self.places.len()).for_each(|seat| self.note(seat));
    }

    /// The canvas is empty again: everything must be painted.
    pub fn forget_painted(&mut self) {
        self.painted.fill(NOTHING);
        self.note_all();
    }

    /// Looks only for some categories: those whose bit is set are painted faintly.
    pub fn set_faint(&mut self, faint: u64) {
        if self.faint != faint {
            self.faint = faint;
            self.note_all();
        }
    }

    /// The seats to paint; they count as painted.
    pub fn take_paints(&mut self, look: impl Fn(SeatIndex) -> Look) -> Vec<(Paint, Dot)> {
        let mut changed = Vec::with_capacity(self.due.len());
        for seat in self.due.drain(..) {
            let place = seat as usize;
            self.noted[place] = false;
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

/// How a seat of this category is painted.
#[must_use]
pub fn paint_of(look: Look, category: u8, faint: u64) -> Paint {
    match look {
        Look::Available if faint >> (category % CATEGORY_COLOURS) & 1 == 1 => FAINT,
        Look::Available => FREE + category % CATEGORY_COLOURS,
        Look::Locked => HELD,
        Look::Booked | Look::Blocked => GONE,
        Look::Mine | Look::Asked => MINE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(seats: i32) -> Dots {
        Dots::new((0..seats).map(|seat| Dot { x: 20 * seat, y: 0, category: (seat % 2) as u8 }).collect())
    }

    fn paints(dots: &mut Dots, look: impl Fn(SeatIndex) -> Look) -> Vec<(Paint, i32)> {
        dots.take_paints(look).into_iter().map(|(paint, dot)| (paint, dot.x / 20)).collect()
    }

    #[test]
    fn everything_is_painted_once_and_then_only_what_changed() {
        let mut dots = room(3);
        assert_eq!(paints(&mut dots, |_| Look::Available), [(FREE, 0), (FREE + 1, 1), (FREE, 2)]);
        assert_eq!(paints(&mut dots, |_| Look::Available), []);
        dots.note(1);
        dots.note(1);
        assert_eq!(paints(&mut dots, |_| Look::Locked), [(HELD, 1)], "once, however often it was said");
    }

    #[test]
    fn a_resync_paints_what_really_differs() {
        let mut dots = room(4);
        paints(&mut dots, |_| Look::Available);
        dots.note_all();
        let look = |seat| if seat == 2 { Look::Booked } else { Look::Available };
        assert_eq!(paints(&mut dots, look), [(GONE, 2)]);
    }

    #[test]
    fn an_empty_canvas_is_painted_whole() {
        let mut dots = room(2);
        paints(&mut dots, |_| Look::Available);
        dots.forget_painted();
        assert_eq!(paints(&mut dots, |_| Look::Available).len(), 2);
    }

    #[test]
    fn categories_that_are_not_looked_for_are_faint_and_what_is_gone_stays_gone() {
        let mut dots = room(3);
        paints(&mut dots, |seat| if seat == 0 { Look::Booked } else { Look::Available });
        dots.set_faint(0b01);
        assert_eq!(paints(&mut dots, |seat| if seat == 0 { Look::Booked } else { Look::Available }), [(FAINT, 2)]);
    }

    #[test]
    fn a_ninth_category_is_faint_with_the_first() {
        assert_eq!((paint_of(Look::Available, 8, 0b01), paint_of(Look::Available, 9, 0b01)), (FAINT, FREE + 1));
    }

    #[test]
    fn a_seat_beyond_the_room_is_nobodys() {
        let mut dots = room(1);
        paints(&mut dots, |_| Look::Available);
        dots.note(7);
        assert_eq!((paints(&mut dots, |_| Look::Booked), dots.place(7)), (vec![], None));
    }
}
