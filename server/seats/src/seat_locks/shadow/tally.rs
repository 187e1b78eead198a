//! What came of the comparisons, counted by kind, and told to the log: the first of a kind, then the
//! tenth, the hundredth and so on.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::super::StoreError;
use platform::telemetry::{ShadowOutcome, shadow_call};

/// A way in which two stores answered differently: "lock: held there, taken here".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// What was asked.
    pub call: &'static str,
    /// The code of the first store's answer.
    pub first: &'static str,
    /// That of the second's; `otherwise` for the same code with something else in it.
    pub second: &'static str,
}

/// What came of the comparisons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Divergence {
    /// Answers compared.
    pub compared: u64,
    /// Different answers, by kind. A few that fit each other (held and taken, taken and held) come of holds
    /// that ended between the two being asked, or of other replicas; any other kind is a fault.
    pub kinds: BTreeMap<Kind, u64>,
    /// Different answers to calls that overlapped: their order is unknown, so they prove nothing.
    pub unordered: u64,
    /// Holds of the first that the second did not know, from before it was asked along or after calls were
    /// missed. It has them now, unless another hold was in the way.
    pub unknown_holds: u64,
    /// Calls that were not compared: no room in the line, or it is unknown whether the first did them.
    pub missed: u64,
    /// Calls the second did not answer.
    pub unreachable: u64,
}

impl Divergence {
    /// Whether the second answered every call, and as the first did.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self { compared: self.compared, ..Self::default() }
    }
}

/// Counts.
#[derive(Default)]
pub(super) struct Tally(Mutex<Divergence>);

impl Tally {
    pub(super) fn so_far(&self) -> Divergence {
        self.lock().clone()
    }

    pub(super) fn compared(&self) {
        shadow_call(ShadowOutcome::Compared);
        self.lock().compared += 1;
    }

    pub(super) fn differs(&self, show: Uuid, kind: Kind, detail: &dyn std::fmt::Debug) {
        shadow_call(ShadowOutcome::Differed);
        let count = {
            let mut so_far = self.lock();
            let count = so_far.kinds.entry(kind).or_default();
            *count += 1;
            *count
        };
        if is_worth_a_line(count) {
            tracing::warn!(%show, ?kind, count, ?detail, "the two lock stores answered differently");
        }
    }

    pub(super) fn unordered(&self) {
        shadow_call(ShadowOutcome::Unordered);
        self.lock().unordered += 1;
    }

    pub(super) fn unknown_hold(&self) {
        shadow_call(ShadowOutcome::UnknownHold);
        self.lock().unknown_holds += 1;
    }

    pub(super) fn missed(&self) {
        shadow_call(ShadowOutcome::Missed);
        let count = {
            let mut so_far = self.lock();
            so_far.missed += 1;
            so_far.missed
        };
        if is_worth_a_line(count) {
            tracing::warn!(count, "a call was not asked of the second lock store");
        }
    }

    pub(super) fn unreachable(&self, show: Uuid, cause: &StoreError) {
        shadow_call(ShadowOutcome::Unreachable);
        let count = {
            let mut so_far = self.lock();
            so_far.unreachable += 1;
            so_far.unreachable
        };
        if is_worth_a_line(count) {
            tracing::warn!(%show, %cause, count, "the second lock store did not answer");
        }
    }

    // Held for a count only, never across an await.
    fn lock(&self) -> MutexGuard<'_, Divergence> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 1, 10, 100, …
const fn is_worth_a_line(count: u64) -> bool {
    count > 0 && count == 10_u64.pow(count.ilog10())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_hears_of_the_first_and_then_rarely() {
        let told: Vec<u64> = (0..=1_000).filter(|count| is_worth_a_line(*count)).collect();
        assert_eq!(told, [1, 10, 100, 1_000]);
    }
}
