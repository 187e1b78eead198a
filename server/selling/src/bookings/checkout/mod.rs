//! From a live hold to the moment the gateway is asked: the booking is made, what must be true before a charge
//! is checked, the limits are counted.

pub(super) mod at_once;
pub(super) mod checks;
pub(super) mod confirm;
pub(super) mod create;
pub(super) mod instruments;
pub(super) mod keep_longer;
pub(super) mod person_limit;

pub(super) use checks::{DECLINES_WINDOW_MS, MAX_DECLINES_OF_EMAIL, MAX_DECLINES_OF_VISITOR};
