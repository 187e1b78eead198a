//! Fairness rules for shows in high demand: rate limits, shorter extensions, and detection of unusual behaviour.
//!
//! There are three independent rules:
//!
//! - A token bucket limits tries. All servers share it, and each grants a lot before it reports ([`SharedBucketMeter`]).
//! - A visitor whose holds repeatedly expire gets shorter extensions ([`extension_ms`]).
//! - Unusual behaviour ([`UnusualKind`], [`Rhythm`]) is shown to managers. It never causes a refusal.
//!
//! Identities, the storage of buckets and counts, and clocks are the server's business.

mod extension;
mod meter;
mod rhythm;
mod unusual;

pub use extension::{
    EXPIRY_COUNT_WINDOW_MINUTES, EXPIRY_COUNT_WINDOW_MS, HALF_FROM, NONE_FROM, expired_holds_at, extension_ms,
};
pub use meter::{Allowance, SharedBucketMeter, TryDecision};
pub use rhythm::{PAUSES_EXAMINED, Rhythm};
pub use unusual::{NEVER_BOUGHT_AFTER_MS, UNUSUAL_WINDOW_MS, UnusualCounts, UnusualKind, UnusualSubject};
