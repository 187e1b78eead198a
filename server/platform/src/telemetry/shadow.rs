//! Calls to the second lock store, by the outcome of comparing its answers with the first.

use metrics::{Unit, counter, describe_counter};

/// Calls to the lock store that were also sent to the second store: outcome.
const SHADOW: &str = "rowlock_shadow_calls_total";

/// An outcome of asking the second store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShadowOutcome {
    /// Its answer was compared with the first store's.
    Compared,
    /// It was another answer.
    Differed,
    /// It was another answer to calls that overlapped, so their order is unknown.
    Unordered,
    /// The second did not know a hold of the first.
    UnknownHold,
    /// The call was not sent to the second store.
    Missed,
    /// The second did not answer.
    Unreachable,
}

impl ShadowOutcome {
    const ALL: [Self; 6] =
        [Self::Compared, Self::Differed, Self::Unordered, Self::UnknownHold, Self::Missed, Self::Unreachable];

    const fn label(self) -> &'static str {
        match self {
            Self::Compared => "compared",
            Self::Differed => "differed",
            Self::Unordered => "unordered",
            Self::UnknownHold => "unknown_hold",
            Self::Missed => "missed",
            Self::Unreachable => "unreachable",
        }
    }
}

pub(super) fn describe() {
    describe_counter!(
        SHADOW,
        Unit::Count,
        "Calls to the second lock store, by outcome: compared, and of these differed, unordered, unknown_hold; missed, \
         unreachable."
    );
}

pub(super) fn begin_at_zero() {
    for outcome in ShadowOutcome::ALL {
        counter!(SHADOW, "outcome" => outcome.label()).increment(0);
    }
}

/// Counts an outcome of asking the second store.
pub fn shadow_call(outcome: ShadowOutcome) {
    counter!(SHADOW, "outcome" => outcome.label()).increment(1);
}
