//! Kinds of unusual behaviour and their thresholds.
//!
//! Counts are per show and per [`UNUSUAL_WINDOW_MS`]. Counts below their threshold are not reported.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::time::MINUTE_MS;

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

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
#[cfg_attr(feature = "openapi", derive(ToSchema), schema(as = UnusualKind))]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
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
#[cfg_attr(feature = "openapi", derive(ToSchema), schema(as = UnusualSubject))]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Subject {
    /// One browser or one account.
    Visitor,
    /// One network address with all its visitors.
    Address,
}

/// Counts of one subject within the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Holds granted.
    pub holds: u32,
    /// Visitors from this subject.
    pub visitors: u32,
    /// Tries that look like a program's.
    pub inhuman: u32,
    /// Puzzles with a wrong or reused answer.
    pub puzzles: u32,
}

impl Kind {
    /// Returns the count of this kind for `subject`; `None` if it is below the threshold, or if the kind does not apply
    /// to the subject.
    #[must_use]
    pub fn of(self, subject: Subject, seen: Seen) -> Option<u32> {
        let (amount, least) = match (self, subject) {
            (Self::NeverBought, Subject::Visitor) => (seen.holds, HOLDS_OF_VISITOR),
            (Self::NeverBought, Subject::Address) => (seen.holds, HOLDS_OF_ADDRESS),
            (Self::ManyVisitors, Subject::Address) => (seen.visitors, VISITORS_OF_ADDRESS),
            (Self::Timing, Subject::Visitor) => (seen.inhuman, INHUMAN_TRIES),
            (Self::Puzzles, _) => (seen.puzzles, WRONG_PUZZLES),
            (Self::ManyVisitors, Subject::Visitor) | (Self::Timing, Subject::Address) => return None,
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
        let holds = |holds| Seen { holds, ..Seen::default() };
        assert_eq!(Kind::NeverBought.of(Subject::Visitor, holds(5)), None);
        assert_eq!(Kind::NeverBought.of(Subject::Visitor, holds(6)), Some(6));
        assert_eq!(Kind::NeverBought.of(Subject::Address, holds(39)), None);
        assert_eq!(Kind::NeverBought.of(Subject::Address, holds(40)), Some(40));
        let all = Seen { holds: 0, visitors: 60, inhuman: 1, puzzles: 5 };
        assert_eq!(Kind::ManyVisitors.of(Subject::Address, all), Some(60));
        assert_eq!(Kind::ManyVisitors.of(Subject::Visitor, all), None);
        assert_eq!(Kind::Timing.of(Subject::Visitor, all), Some(1));
        assert_eq!(Kind::Timing.of(Subject::Address, all), None, "many people try at once from there");
        assert!(Subject::VARIANTS.iter().all(|subject| Kind::Puzzles.of(*subject, all) == Some(5)));
        for kind in Kind::VARIANTS {
            assert!(Subject::VARIANTS.iter().all(|subject| kind.of(*subject, Seen::default()).is_none()), "{kind:?}");
        }
    }

    #[test]
    fn names_parse_back_and_equal_their_json() {
        assert!(Kind::VARIANTS.iter().all(|kind| kind.as_str().parse() == Ok(*kind)));
        assert!(Subject::VARIANTS.iter().all(|subject| subject.as_str().parse() == Ok(*subject)));
        assert_eq!(("bot".parse::<Kind>().ok(), "".parse::<Subject>().ok()), (None, None));
        let json = serde_json::to_value(Kind::VARIANTS).expect("JSON");
        assert_eq!(json, serde_json::json!(Kind::VARIANTS.iter().map(Kind::as_str).collect::<Vec<_>>()));
    }
}
