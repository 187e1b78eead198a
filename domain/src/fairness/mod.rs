//! What is fair where many want the same seats: how often one may try, how long one may keep others waiting, and which
//! ways of trying no person has.
//!
//! Three rules, each by itself. How often somebody may try is a bucket that fills by itself, shared by all servers, of
//! which each gives out a lot before it tells ([`Meter`]). Whoever lets holds run out again and again gets less more
//! time for the next ([`extension_ms`]). And what looks unusual ([`Kind`], [`Rhythm`]) is shown to people who may know
//! better: it refuses nobody anything.
//!
//! Not here: who somebody is, where the buckets and counts are kept, and clocks; those are the server's.

mod meter;
mod patience;
mod rhythm;
mod unusual;

pub use meter::{Allowance, Meter, Try};
pub use patience::{HALF_FROM, LAPSES_COUNT_MINUTES, LAPSES_COUNT_MS, NONE_FROM, extension_ms, lapses_at};
pub use rhythm::{INTERVALS, Rhythm};
pub use unusual::{Kind, NEVER_BOUGHT_AFTER_MS, Seen, Subject, UNUSUAL_WINDOW_MS};
