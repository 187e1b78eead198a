//! The magnification of the map and its visible part, as values between the page and `plane`, which loads after the seats.

use super::zoom::WindowPoint;
use crate::seat_map::signals::PageSignal;

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
}

impl Default for MapView {
    fn default() -> Self {
        Self {
            zoom: PageSignal::new(1.0),
            largest: PageSignal::default(),
            part: PageSignal::default(),
            wanted: PageSignal::default(),
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
}
