//! The state of an expiry that the server has not confirmed.

/// A countdown at zero that waits for the server's answer.
#[derive(Clone, Copy)]
pub struct ExpiryCheck {
    /// Time at which the hold is given up without an answer, on the monotonic clock.
    pub(super) deadline: f64,
    /// True if a request is in flight.
    pub(super) is_requested: bool,
}
