//! The sections to be counted again.

/// The state of the counting.
#[derive(Default)]
pub struct PendingCounts {
    /// Sections with changes since their last count.
    pub(super) touched: Vec<bool>,
    /// Time of the last count, on the monotonic clock.
    pub(super) counted_at: f64,
    /// True if a count is scheduled.
    pub(super) is_due: bool,
}
