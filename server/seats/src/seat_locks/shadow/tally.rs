//! Counts the comparisons by kind, and logs the first of a kind, the tenth, the hundredth and
//! so on.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::super::StoreError;
use platform::telemetry::{ShadowOutcome, shadow_call};

/// A difference between the answers of two stores: "lock: held there, taken here".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DivergenceKind {
    /// Name of the call.
    pub call: &'static str,
    /// The code of the first store's answer.
    pub first: &'static str,
    /// The code of the second's answer; `otherwise` for the same code with different content.
    pub second: &'static str,
}

/// The result of the comparisons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Divergence {
    /// Answers compared.
    pub compared: u64,
    /// Different answers, by kind. A few that are symmetric (held and taken, taken and held) come from holds
    /// that ended between the two calls, or from other replicas; any other kind is a defect.
    pub kinds: BTreeMap<DivergenceKind, u64>,
    /// Different answers to calls that overlapped; they prove nothing, because their order is unknown.
    pub unordered: u64,
    /// Holds of the first that the second did not have, from before it was started or after missed calls.
    /// It has them now, unless another hold conflicted.
    pub unknown_holds: u64,
    /// Calls that were not compared: the queue was full, or it is unknown whether the first did them.
    pub missed: u64,
    /// Calls the second did not answer.
    pub unreachable: u64,
}

impl Divergence {
    /// True if the second answered every call, and as the first did.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self { compared: self.compared, ..Self::default() }
    }
}

#[derive(Default)]
pub(super) struct DivergenceCounter(Mutex<Divergence>);

impl DivergenceCounter {
    pub(super) fn so_far(&self) -> Divergence {
        self.lock().clone()
    }

    pub(super) fn compared(&self) {
        shadow_call(ShadowOutcome::Compared);
        self.lock().compared += 1;
    }

    pub(super) fn differs(&self, show: Uuid, kind: DivergenceKind, detail: &dyn std::fmt::Debug) {
        shadow_call(ShadowOutcome::Differed);
        let count = {
            let mut so_far = self.lock();
            let count = so_far.kinds.entry(kind).or_default();
            *count += 1;
            *count
        };
        if is_logged(count) {
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
        if is_logged(count) {
            tracing::warn!(count, "a call was not sent to the second lock store");
        }
    }

    pub(super) fn unreachable(&self, show: Uuid, cause: &StoreError) {
        shadow_call(ShadowOutcome::Unreachable);
        let count = {
            let mut so_far = self.lock();
            so_far.unreachable += 1;
            so_far.unreachable
        };
        if is_logged(count) {
            tracing::warn!(%show, %cause, count, "the second lock store did not answer");
        }
    }

    // Held for a count only, never across an await.
    fn lock(&self) -> MutexGuard<'_, Divergence> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True for 1, 10, 100, …
const fn is_logged(count: u64) -> bool {
    count > 0 && count == 10_u64.pow(count.ilog10())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_gets_the_first_occurrence_and_then_each_power_of_ten() {
        let logged: Vec<u64> = (0..=1_000).filter(|count| is_logged(*count)).collect();
        assert_eq!(logged, [1, 10, 100, 1_000]);
    }
}
