//! Keys of other systems: a theatre's manager makes them, and with one a program reads the theatre's reports and
//! bookings, and nothing else.
//!
//! A key is 256 random bits, shown once and stored as a hash. It belongs to the theatre, not to a person: it lives on
//! when its maker leaves, until it is revoked. It reads; there is no key that changes anything.

mod booking;
mod caller;
mod endpoints;
mod keys;
mod sql;

pub use caller::Caller;
pub use endpoints::routes;
pub use keys::{list, make, revoke};
