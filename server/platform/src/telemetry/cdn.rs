//! Purges of CDN tags.

use metrics::{Unit, counter, describe_counter};

/// Tags sent to the CDN for purging: outcome.
const PURGES: &str = "rowlock_cdn_purges_total";

/// The outcome of purging a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl CdnPurge {
    const ALL: [Self; 4] = [Self::Accepted, Self::Refused, Self::Unreachable, Self::Parked];

    const fn label(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Parked => "parked",
        }
    }
}

pub(super) fn describe() {
    describe_counter!(PURGES, Unit::Count, "Tags sent to the CDN for purging, by its answer; parked: not retried.");
}

pub(super) fn begin_at_zero() {
    for outcome in CdnPurge::ALL {
        counter!(PURGES, "outcome" => outcome.label()).increment(0);
    }
}

/// Counts tags sent to the CDN.
pub fn cdn_purged(outcome: CdnPurge, tags: usize) {
    counter!(PURGES, "outcome" => outcome.label()).increment(tags as u64);
}
