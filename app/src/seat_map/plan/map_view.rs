//! The magnification of the map and its visible part, as values between the page and `plane`, which loads after the seats.

use super::zoom::WindowPoint;
use crate::browser::clock;
use crate::seat_map::signals::{PageCell, PageSignal};

/// The map is moving until it has been still for this long, milliseconds. Several frames of a slow phone.
const STILL_AFTER_MS: f64 = 150.0;
/// Longest time that a changed seat waits until the map is still, milliseconds. On a slow phone one painting takes two
/// to three frames.
const MOVING_PAINT_MS: f64 = 1_000.0;

/// A change of the magnification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ZoomRequest {
    /// Multiplies it, around the middle of the view.
    By(f64),
    /// Shows the whole room or section.
    Whole,
    /// Makes seats large enough for a finger, around a point.
    ForFingers(WindowPoint),
}

/// The visible part of the map, for the page.
#[derive(Clone, Copy)]
pub struct MapView {
    /// Magnification; 1 is the whole room.
    pub zoom: PageSignal<f64>,
    /// True if the largest magnification is reached.
    pub largest: PageSignal<bool>,
    /// The part in view, in percent of the map: left, top, width, height. `None` if all of it is.
    pub part: PageSignal<Option<[f64; 4]>>,
    /// A change of the magnification that the page requests, until `plane` has made it.
    pub wanted: PageSignal<Option<ZoomRequest>>,
    /// Time of its last movement, on the monotonic clock.
    moved_at: PageCell<f64>,
}

impl Default for MapView {
    fn default() -> Self {
        Self {
            zoom: PageSignal::new(1.0),
            largest: PageSignal::default(),
            part: PageSignal::default(),
            wanted: PageSignal::default(),
            moved_at: PageCell::default(),
        }
    }
}

impl MapView {
    /// Shows the whole room again.
    pub fn reset(self) {
        self.zoom.set(1.0);
        self.largest.set(false);
        self.part.set(None);
        self.wanted.set(None);
    }

    /// Records that the map moves.
    pub fn record_move(self) {
        self.moved_at.set_value(clock::monotonic_ms());
    }

    /// Returns true while seats that changed at `since` are not painted, because the map moves: one changed seat repaints
    /// the whole drawing. Times are on the monotonic clock.
    pub fn delays_paint(self, since: f64, now: f64) -> bool {
        now - self.moved_at.get_value() < STILL_AFTER_MS && now - since < MOVING_PAINT_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_seat_waits_until_the_map_is_still_or_the_limit_is_reached() {
        let view = MapView::default();
        view.moved_at.set_value(9_000.0);
        assert!(view.delays_paint(8_990.0, 9_000.0));
        assert!(view.delays_paint(8_990.0, 9_000.0 + STILL_AFTER_MS - 1.0));
        assert!(!view.delays_paint(8_990.0, 9_000.0 + STILL_AFTER_MS), "the map is still");
        assert!(!view.delays_paint(9_000.0 - MOVING_PAINT_MS, 9_000.0), "the change has waited long enough");
    }
}
