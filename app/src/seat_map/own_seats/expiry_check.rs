//! The state of a countdown that has reached zero.

/// A countdown at zero that waits for the server's word.
#[derive(Clone, Copy)]
pub struct Ending {
    /// When it is given up, on the monotonic clock.
    pub(super) until: f64,
    /// Whether a question is on its way.
    pub(super) asked: bool,
}
