//! A customer's lock on 1 to 10 seats and places of a show: take, change, release, leave and return.
//!
//! A hold is addressed under its show, because all of its state is in that show's keys
//! (docs/decisions/0002). Elsewhere: the lock store itself (`seat_locks`) and payment (`bookings`).

mod endpoints;
mod latest;
mod service;
mod tally;

pub use endpoints::routes;
pub use latest::Latest;
pub use service::{places_problem, refused, seats_problem, terms, total_with_places, view};
pub use tally::{Tally, flush_forever};
