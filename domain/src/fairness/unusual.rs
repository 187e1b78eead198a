//! Kinds of unusual behaviour and their thresholds.
//!
//! Counts are per show and per [`UNUSUAL_WINDOW_MS`]. Counts below their threshold are not reported.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::time::MINUTE_MS;

/// Length of the counting window, milliseconds.
pub const UNUSUAL_WINDOW_MS: i64 = 30 * MINUTE_MS;

/// Age of a visitor from which holds without a purchase are flagged, milliseconds. A hold takes five minutes, and
/// paying takes some more.
pub const NEVER_BOUGHT_AFTER_MS: i64 = 10 * MINUTE_MS;

/// Threshold for holds of a visitor without a purchase.
const HOLDS_OF_VISITOR: u32 = 6;
/// Threshold for holds from an address without a purchase. An office, or a family with friends, would have bought
/// something.
const HOLDS_OF_ADDRESS: u32 = 40;
/// Threshold for visitors from one address.
const VISITORS_OF_ADDRESS: u32 = 60;
/// Threshold for tries that look like a program's.
const INHUMAN_TRIES: u32 = 1;
/// Threshold for puzzles with a wrong or reused answer.
const WRONG_PUZZLES: u32 = 5;

/// Kind of unusual behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum UnusualKind {
    /// Many holds and no purchase.
    NeverBought,
    /// Many visitors from one address.
    ManyVisitors,
    /// Tries faster or more regular than a person's.
    Timing,
    /// Puzzles with a wrong or reused answer.
    Puzzles,
}

/// Subject of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum UnusualSubject {
    /// One browser or one account.
    Visitor,
    /// One network address with all its visitors.
    Address,
}

/// Counts of one subject within the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnusualCounts {
    /// Holds granted.
    pub holds: u32,
    /// Visitors from this subject.
    pub visitors: u32,
    /// Tries that look like a program's.
    pub inhuman: u32,
    /// Puzzles with a wrong or reused answer.
    pub puzzles: u32,
}

impl UnusualKind {
    /// Returns the count of this kind for `subject`; `None` if it is below the threshold, or if the kind does not apply
    /// to the subject.
    #[must_use]
    pub fn of(self, subject: UnusualSubject, seen: UnusualCounts) -> Option<u32> {
        let (amount, least) = match (self, subject) {
            (Self::NeverBought, UnusualSubject::Visitor) => (seen.holds, HOLDS_OF_VISITOR),
            (Self::NeverBought, UnusualSubject::Address) => (seen.holds, HOLDS_OF_ADDRESS),
            (Self::ManyVisitors, UnusualSubject::Address) => (seen.visitors, VISITORS_OF_ADDRESS),
            (Self::Timing, UnusualSubject::Visitor) => (seen.inhuman, INHUMAN_TRIES),
            (Self::Puzzles, _) => (seen.puzzles, WRONG_PUZZLES),
            (Self::ManyVisitors, UnusualSubject::Visitor) | (Self::Timing, UnusualSubject::Address) => return None,
        };
        (amount >= least).then_some(amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VariantName;

    #[test]
    fn counts_below_threshold_are_ignored_and_addresses_have_higher_thresholds() {
        let holds = |holds| UnusualCounts { holds, ..UnusualCounts::default() };
        assert_eq!(UnusualKind::NeverBought.of(UnusualSubject::Visitor, holds(5)), None);
        assert_eq!(UnusualKind::NeverBought.of(UnusualSubject::Visitor, holds(6)), Some(6));
        assert_eq!(UnusualKind::NeverBought.of(UnusualSubject::Address, holds(39)), None);
        assert_eq!(UnusualKind::NeverBought.of(UnusualSubject::Address, holds(40)), Some(40));
        let all = UnusualCounts { holds: 0, visitors: 60, inhuman: 1, puzzles: 5 };
        assert_eq!(UnusualKind::ManyVisitors.of(UnusualSubject::Address, all), Some(60));
        assert_eq!(UnusualKind::ManyVisitors.of(UnusualSubject::Visitor, all), None);
        assert_eq!(UnusualKind::Timing.of(UnusualSubject::Visitor, all), Some(1));
        assert_eq!(UnusualKind::Timing.of(UnusualSubject::Address, all), None, "many people try at once from there");
        assert!(UnusualSubject::VARIANTS.iter().all(|subject| UnusualKind::Puzzles.of(*subject, all) == Some(5)));
        for kind in UnusualKind::VARIANTS {
            assert!(
                UnusualSubject::VARIANTS.iter().all(|subject| kind.of(*subject, UnusualCounts::default()).is_none()),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn names_parse_back_and_equal_their_json() {
        assert!(UnusualKind::VARIANTS.iter().all(|kind| kind.as_str().parse() == Ok(*kind)));
        assert!(UnusualSubject::VARIANTS.iter().all(|subject| subject.as_str().parse() == Ok(*subject)));
        assert_eq!(("bot".parse::<UnusualKind>().ok(), "".parse::<UnusualSubject>().ok()), (None, None));
        let json = serde_json::to_value(UnusualKind::VARIANTS).expect("JSON");
        assert_eq!(json, serde_json::json!(UnusualKind::VARIANTS.iter().map(UnusualKind::as_str).collect::<Vec<_>>()));
    }
}
