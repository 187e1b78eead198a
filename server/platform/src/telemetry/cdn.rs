//! What a CDN was told to purge.

use metrics::{Unit, counter, describe_counter};

/// Tags a CDN was told: outcome.
const PURGES: &str = "rowlock_cdn_purges_total";

/// What became of a tag the CDN was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CdnPurge {
    /// It said that it was done.
    Accepted,
    /// It answered something else.
    Refused,
    /// It gave no answer.
    Unreachable,
    /// It is not told again: a person must look. Counted with the last failure.
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
    describe_counter!(PURGES, Unit::Count, "Tags the CDN was told to purge, by what it said; parked: never again.");
}

pub(super) fn begin_at_zero() {
    for outcome in CdnPurge::ALL {
        counter!(PURGES, "outcome" => outcome.label()).increment(0);
    }
}

/// Counts tags the CDN was told.
pub fn cdn_purged(outcome: CdnPurge, tags: usize) {
    counter!(PURGES, "outcome" => outcome.label()).increment(tags as u64);
}
