//! The interface of the canvases of a large room.

use domain::wire::Dot;

use super::dots::Paint;

/// A canvas for a large room. A trait object, so that its code can load after the map.
pub(in crate::seat_map) trait PaintTarget {
    /// Returns true if it takes dots now. A worker is not ready until it has taken the previous ones.
    fn is_ready(&self) -> bool;
    /// Returns true if it is on the page with the current size, theme and plan size.
    fn is_current(&self, size: (i32, i32)) -> bool;
    /// Adapts to the current size and theme; all dots must be painted again. Returns false if a new canvas is needed.
    fn renew(&mut self, size: (i32, i32)) -> bool;
    /// Paints dots.
    fn paint(&mut self, dots: &[(Paint, Dot)]);
}
