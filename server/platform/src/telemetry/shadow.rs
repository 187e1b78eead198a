//! Calls to the second lock store, by the outcome of comparing its answers with the first.

use domain::VariantName;
use metrics::{Unit, counter, describe_counter};
use strum::{IntoStaticStr, VariantArray};

/// Calls to the lock store that were also sent to the second store: outcome.
const SHADOW: &str = "rowlock_shadow_calls_total";

/// An outcome of asking the second store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
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

pub(super) fn describe() {
    describe_counter!(
        SHADOW,
        Unit::Count,
        "Calls to the second lock store, by outcome: compared, and of these differed, unordered, unknown_hold; missed, \
         unreachable."
    );
}

pub(super) fn begin_at_zero() {
    for outcome in ShadowOutcome::VARIANTS {
        counter!(SHADOW, "outcome" => outcome.as_str()).increment(0);
    }
}

/// Counts an outcome of asking the second store.
pub fn shadow_call(outcome: ShadowOutcome) {
    counter!(SHADOW, "outcome" => outcome.as_str()).increment(1);
}
