//! The sections whose free seats are to be counted again.

/// What is to be counted.
#[derive(Default)]
pub struct Counting {
    /// Sections in which something changed since they were counted.
    pub(super) touched: Vec<bool>,
    /// When sections were counted last, on the monotonic clock.
    pub(super) counted_at: f64,
    /// Whether they will be counted in a moment.
    pub(super) is_due: bool,
}
