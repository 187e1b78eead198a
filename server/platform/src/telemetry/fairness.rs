//! Refusals of tries for seats, changes of holds and checkouts that came too often, and unusual behaviour.

use domain::VariantName;
use domain::fairness::UnusualKind;
use metrics::{Unit, counter, describe_counter};
use strum::{IntoStaticStr, VariantArray};

/// Requests about seats that came too soon: limit.
const LIMITED: &str = "rowlock_hold_limits_total";
/// Sightings written down for managers: kind.
const UNUSUAL: &str = "rowlock_unusual_total";

/// A limit on requests about seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
pub enum HoldLimit {
    /// One visitor's.
    #[strum(serialize = "hold-visitor")]
    Visitor,
    /// The limit of a client address.
    #[strum(serialize = "hold-address")]
    Address,
    /// A visitor's changes of holds.
    #[strum(serialize = "change-visitor")]
    ChangesOfVisitor,
    /// Those of an address.
    #[strum(serialize = "change-address")]
    ChangesOfAddress,
    /// A visitor's checkouts.
    #[strum(serialize = "checkout-visitor")]
    CheckoutsOfVisitor,
    /// Those of an address.
    #[strum(serialize = "checkout-address")]
    CheckoutsOfAddress,
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
    for limit in HoldLimit::VARIANTS {
        counter!(LIMITED, "limit" => limit.as_str()).increment(0);
    }
    for kind in UnusualKind::VARIANTS {
        counter!(UNUSUAL, "kind" => kind.as_str()).increment(0);
    }
}

/// Counts a try for seats that came too soon.
pub fn hold_limited(limit: HoldLimit) {
    counter!(LIMITED, "limit" => limit.as_str()).increment(1);
}

/// Counts something unusual that was written down.
pub fn unusual(kind: UnusualKind) {
    counter!(UNUSUAL, "kind" => kind.as_str()).increment(1);
}
