//! A customer's lock on 1 to 10 seats and places of a show: take, change, release, leave and return.
//!
//! A hold is addressed under its show, because all of its state is in that show's keys
//! (docs/decisions/0002). Elsewhere: the lock store itself (`seat_locks`) and payment (`bookings`).

mod endpoints;
mod hold_cache;
mod hold_counter;
mod service;

pub use endpoints::routes;
pub use hold_cache::HoldCache;
pub use hold_counter::{HoldCounter, flush_forever};
pub use service::{places_problem, refusal_problem, seats_problem, terms, total_with_places, view};
