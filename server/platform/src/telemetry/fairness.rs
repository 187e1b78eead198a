//! Refusals of tries for seats, changes of holds and checkouts that came too often, and unusual behaviour.

use domain::fairness::UnusualKind;
use metrics::{Unit, counter, describe_counter};

/// Requests about seats that came too soon: limit.
const LIMITED: &str = "rowlock_hold_limits_total";
/// Sightings written down for managers: kind.
const UNUSUAL: &str = "rowlock_unusual_total";

/// A limit on requests about seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldLimit {
    /// One visitor's.
    Visitor,
    /// The limit of a client address.
    Address,
    /// A visitor's changes of holds.
    ChangesOfVisitor,
    /// Those of an address.
    ChangesOfAddress,
    /// A visitor's checkouts.
    CheckoutsOfVisitor,
    /// Those of an address.
    CheckoutsOfAddress,
}

impl HoldLimit {
    const ALL: [Self; 6] = [
        Self::Visitor,
        Self::Address,
        Self::ChangesOfVisitor,
        Self::ChangesOfAddress,
        Self::CheckoutsOfVisitor,
        Self::CheckoutsOfAddress,
    ];

    /// Its name, also shown to limited callers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Visitor => "hold-visitor",
            Self::Address => "hold-address",
            Self::ChangesOfVisitor => "change-visitor",
            Self::ChangesOfAddress => "change-address",
            Self::CheckoutsOfVisitor => "checkout-visitor",
            Self::CheckoutsOfAddress => "checkout-address",
        }
    }
}

pub(super) fn describe() {
    describe_counter!(
        LIMITED,
        Unit::Count,
        "Tries for seats, changes of holds and checkouts that were refused because they came too often, by limit."
    );
    describe_counter!(UNUSUAL, Unit::Count, "Something unusual that was written down for managers, by kind.");
}

pub(super) fn begin_at_zero() {
    for limit in HoldLimit::ALL {
        counter!(LIMITED, "limit" => limit.name()).increment(0);
    }
    for kind in UnusualKind::ALL {
        counter!(UNUSUAL, "kind" => kind.as_str()).increment(0);
    }
}

/// Counts a try for seats that came too soon.
pub fn hold_limited(limit: HoldLimit) {
    counter!(LIMITED, "limit" => limit.name()).increment(1);
}

/// Counts something unusual that was written down.
pub fn unusual(kind: UnusualKind) {
    counter!(UNUSUAL, "kind" => kind.as_str()).increment(1);
}
