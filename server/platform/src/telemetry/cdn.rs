//! Purges of CDN tags.

use domain::VariantName;
use metrics::{Unit, counter, describe_counter};
use strum::{IntoStaticStr, VariantArray};

/// Tags sent to the CDN for purging: outcome.
const PURGES: &str = "rowlock_cdn_purges_total";

/// The outcome of purging a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum CdnPurge {
    /// The CDN confirmed the purge.
    Accepted,
    /// It answered something else.
    Refused,
    /// It gave no answer.
    Unreachable,
    /// It is not retried: an operator must look. Counted with the last failure.
    Parked,
}

pub(super) fn describe() {
    describe_counter!(PURGES, Unit::Count, "Tags sent to the CDN for purging, by its answer; parked: not retried.");
}

pub(super) fn begin_at_zero() {
    for outcome in CdnPurge::VARIANTS {
        counter!(PURGES, "outcome" => outcome.as_str()).increment(0);
    }
}

/// Counts tags sent to the CDN.
pub fn cdn_purged(outcome: CdnPurge, tags: usize) {
    counter!(PURGES, "outcome" => outcome.as_str()).increment(tags as u64);
}
