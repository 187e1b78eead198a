//! What a large room is painted on.

use domain::wire::Dot;

use super::dots::Paint;

/// What a large room is painted on. Known by what it does: its code comes after the map.
pub(in crate::seat_map) trait Surface {
    /// Whether it takes dots now; else it has not taken yet what it was told before.
    fn is_ready(&self) -> bool;
    /// Whether it is on the page, as it is laid out now and in the colours in force, for a plan of this size.
    fn is_current(&self, size: (i32, i32)) -> bool;
    /// Becomes so, and is told all dots again; false when another is needed for that.
    fn renew(&mut self, size: (i32, i32)) -> bool;
    /// Paints dots.
    fn show(&mut self, dots: &[(Paint, Dot)]);
}
