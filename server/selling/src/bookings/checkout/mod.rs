//! From a live hold to the call of the gateway: creates the booking, runs the checks before a charge, and
//! counts the limits.

pub(super) mod at_once;
pub(super) mod checks;
pub(super) mod confirm;
pub(super) mod create;
pub(super) mod instruments;
pub(super) mod person_limit;

pub(super) use checks::{DECLINES_WINDOW_MS, MAX_DECLINES_OF_EMAIL, MAX_DECLINES_OF_VISITOR};
