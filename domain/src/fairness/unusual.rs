//! What managers are shown as unusual, and from when on.
//!
//! Everything here is said of one show, within [`UNUSUAL_WINDOW_MS`]. A number below its threshold is nobody's business.

use serde::{Deserialize, Serialize};

use crate::time::MINUTE_MS;

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// What is counted is counted for so long, then anew, milliseconds.
pub const UNUSUAL_WINDOW_MS: i64 = 30 * MINUTE_MS;

/// A visitor is flagged as never buying only ten minutes after first being seen: a hold takes five minutes, and paying
/// some more. Milliseconds.
pub const NEVER_BOUGHT_AFTER_MS: i64 = 10 * MINUTE_MS;

/// Holds of a visitor who bought nothing.
const HOLDS_OF_VISITOR: u32 = 6;
/// Holds from an address where nobody bought anything: an office, or a family with its friends, buys something.
const HOLDS_OF_ADDRESS: u32 = 40;
/// Visitors of an address.
const VISITORS_OF_ADDRESS: u32 = 60;
/// Tries that no person makes.
const INHUMAN_TRIES: u32 = 1;
/// Puzzles that were not solved but answered.
const WRONG_PUZZLES: u32 = 5;

/// What is unusual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema), schema(as = UnusualKind))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Many holds, nothing bought.
    NeverBought,
    /// Many visitors of one address.
    ManyVisitors,
    /// Tries quicker, or more even, than a person's.
    Timing,
    /// Puzzles answered wrong, or by a solution that was used.
    Puzzles,
}

/// Of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema), schema(as = UnusualSubject))]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// One browser, or one account.
    Visitor,
    /// One address of the network, with all who come from it.
    Address,
}

/// What was seen of somebody within the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Holds they were granted.
    pub holds: u32,
    /// Visitors they came as.
    pub visitors: u32,
    /// Tries that no person makes.
    pub inhuman: u32,
    /// Puzzles answered wrong, or twice.
    pub puzzles: u32,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::NeverBought, Self::ManyVisitors, Self::Timing, Self::Puzzles];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NeverBought => "never_bought",
            Self::ManyVisitors => "many_visitors",
            Self::Timing => "timing",
            Self::Puzzles => "puzzles",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// How much of it was seen; `None`: too little to speak of, or nothing of this subject's.
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

impl Subject {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Visitor, Self::Address];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Visitor => "visitor",
            Self::Address => "address",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_nobodys_business_and_an_address_may_do_more_than_a_visitor() {
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
        assert_eq!(Subject::ALL.map(|subject| Kind::Puzzles.of(subject, all)), [Some(5); 2]);
        for kind in Kind::ALL {
            assert!(Subject::ALL.iter().all(|subject| kind.of(*subject, Seen::default()).is_none()), "{kind:?}");
        }
    }

    #[test]
    fn names_are_read_back() {
        assert!(Kind::ALL.iter().all(|kind| Kind::parse(kind.as_str()) == Some(*kind)));
        assert!(Subject::ALL.iter().all(|subject| Subject::parse(subject.as_str()) == Some(*subject)));
        assert_eq!((Kind::parse("bot"), Subject::parse("")), (None, None));
        let json = serde_json::to_value(Kind::ALL).expect("JSON");
        assert_eq!(json, serde_json::json!(Kind::ALL.map(Kind::as_str)));
    }
}
