//! Fairness rules for shows in high demand: rate limits, shorter extensions, and detection of unusual behaviour.
//!
//! There are three independent rules:
//!
//! - A token bucket limits tries. All servers share it, and each grants a lot before it reports ([`Meter`]).
//! - A visitor whose holds repeatedly expire gets shorter extensions ([`extension_ms`]).
//! - Unusual behaviour ([`Kind`], [`Rhythm`]) is shown to managers. It never causes a refusal.
//!
//! Identities, the storage of buckets and counts, and clocks are the server's business.

mod meter;
mod patience;
mod rhythm;
mod unusual;

pub use meter::{Allowance, Meter, Try};
pub use patience::{HALF_FROM, LAPSES_COUNT_MINUTES, LAPSES_COUNT_MS, NONE_FROM, extension_ms, lapses_at};
pub use rhythm::{PAUSES_EXAMINED, Rhythm};
pub use unusual::{Kind, NEVER_BOUGHT_AFTER_MS, Seen, Subject, UNUSUAL_WINDOW_MS};
