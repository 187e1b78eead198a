//! API keys of other systems: a theatre's manager creates them, and a program with a key reads the theatre's reports
//! and bookings.
//!
//! A key is 256 bits, shown once and stored as a hash. It belongs to the theatre, not to a person: it stays valid after
//! its creator leaves, until it is revoked. Keys only read; no key can change anything.

mod caller;
mod endpoints;
mod keys;

pub use caller::Caller;
pub use endpoints::routes;
pub use keys::{list, make, revoke};
