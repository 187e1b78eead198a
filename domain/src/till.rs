//! A till's arithmetic: what came in, what went out, what should be in it.
//!
//! Money is in minor units of the till's one currency. A sum that does not fit is none: nobody's drawer holds it.

use serde::{Deserialize, Serialize};

use crate::time::{MINUTE_MS, Timestamp};

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// The largest sum anybody counts, drops or opens a till with at once, minor units.
pub const MAX_COUNTED_MINOR: i64 = 100_000_000;
/// How long a sale may be undone by who made it, milliseconds.
pub const UNDO_MS: i64 = 5 * MINUTE_MS;

/// How money changes hands at the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// Coins and notes, which lie in the till.
    Cash,
    /// The terminal beside the till.
    Card,
    /// No money at all: a guest of the house.
    Free,
}

impl Means {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cash, Self::Card, Self::Free];

    /// As JSON and SQL spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cash => "cash",
            Self::Card => "card",
            Self::Free => "free",
        }
    }

    /// Reads what [`Means::as_str`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|means| means.as_str() == text)
    }

    /// What a payment of this kind stands under in place of a gateway's name: nobody outside is ever asked about it.
    #[must_use]
    pub const fn settled_as(self) -> &'static str {
        match self {
            Self::Cash => "counter_cash",
            Self::Card => "counter_card",
            Self::Free => "counter_free",
        }
    }

    /// Reads what [`Means::settled_as`] wrote; `None` for a gateway's name.
    #[must_use]
    pub fn of_settled(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|means| means.settled_as() == name)
    }
}

/// What a line of a till's ledger is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// What it was opened with.
    Float,
    /// A sale.
    Sale,
    /// Money that went back to a customer.
    Refund,
    /// The difference when seats were exchanged for others.
    Exchange,
    /// Cash that went to the safe.
    Drop,
}

impl Entry {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Float, Self::Sale, Self::Refund, Self::Exchange, Self::Drop];

    /// As JSON and SQL spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Sale => "sale",
            Self::Refund => "refund",
            Self::Exchange => "exchange",
            Self::Drop => "drop",
        }
    }

    /// Reads what [`Entry::as_str`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|entry| entry.as_str() == text)
    }
}

/// A line of the ledger: what, how, and how much came in (below zero: went out).
pub type Line = (Entry, Means, i64);

/// The sums of a till, minor units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// What it was opened with.
    pub float: i64,
    /// Sales for cash, less what went back in cash.
    pub cash: i64,
    /// Sales by card, less what went back to cards.
    pub card: i64,
    /// What went to the safe.
    pub dropped: i64,
}

impl Sums {
    /// Of these lines; `None` when a sum does not fit.
    #[must_use]
    pub fn of(lines: impl IntoIterator<Item = Line>) -> Option<Self> {
        lines.into_iter().try_fold(Self::default(), |sums, (entry, means, amount)| {
            let mut sums = sums;
            let (sum, amount) = match (entry, means) {
                (Entry::Float, _) => (&mut sums.float, amount),
                (Entry::Drop, _) => (&mut sums.dropped, amount.checked_neg()?),
                (Entry::Sale | Entry::Refund | Entry::Exchange, Means::Cash) => (&mut sums.cash, amount),
                (Entry::Sale | Entry::Refund | Entry::Exchange, Means::Card) => (&mut sums.card, amount),
                (Entry::Sale | Entry::Refund | Entry::Exchange, Means::Free) => return (amount == 0).then_some(sums),
            };
            *sum = sum.checked_add(amount)?;
            sums.expected()?;
            Some(sums)
        })
    }

    /// Cash that should be in it; `None` when it does not fit.
    #[must_use]
    pub fn expected(&self) -> Option<i64> {
        self.float.checked_add(self.cash)?.checked_sub(self.dropped)
    }
}

/// Whether somebody can have counted that sum.
#[must_use]
pub const fn can_be_counted(minor: i64) -> bool {
    0 <= minor && minor <= MAX_COUNTED_MINOR
}

/// A sum as people write it, in minor units: `12.50`, `12,5`, `12`. `None` for what is none, has more digits than the
/// currency, or does not fit; whether somebody can have counted it says [`can_be_counted`]. Thousands are not grouped:
/// `1.000` is read by nobody the same way.
#[must_use]
pub fn read_amount(text: &str, minor_digits: u32) -> Option<i64> {
    let text = text.trim();
    let (whole, part) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = minor_digits as usize;
    if whole.is_empty() || !is_number(whole) || !is_number(part) || part.len() > digits {
        return None;
    }
    format!("{whole}{part:0<digits$}").parse().ok()
}

/// The last instant at which a sale of `sold_at` may be undone.
#[must_use]
pub const fn undo_until(sold_at: Timestamp) -> Timestamp {
    sold_at.plus_ms(UNDO_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Entry::{Drop, Float, Refund, Sale};
    use Means::{Card, Cash, Free};

    #[test]
    fn a_shift_adds_up() {
        let lines = [
            (Float, Cash, 10_000),
            (Sale, Cash, 2_500),
            (Sale, Card, 1_250),
            (Sale, Free, 0),
            (Refund, Cash, -1_250),
            (Drop, Cash, -5_000),
            (Refund, Card, -1_250),
        ];
        let sums = Sums::of(lines).expect("it fits");
        assert_eq!(sums, Sums { float: 10_000, cash: 1_250, card: 0, dropped: 5_000 });
        assert_eq!(sums.expected(), Some(6_250));
    }

    #[test]
    fn what_does_not_fit_is_no_sum() {
        assert_eq!(Sums::of([(Float, Cash, i64::MAX), (Sale, Cash, 1)]), None);
        assert_eq!(Sums::of([(Drop, Cash, i64::MIN)]), None);
        assert_eq!(Sums::of([(Sale, Free, 1)]), None, "a guest of the house pays nothing");
        assert_eq!(Sums::of([]), Some(Sums::default()));
    }

    #[test]
    fn nobody_counts_less_than_nothing_or_a_million() {
        for minor in [0, 1, MAX_COUNTED_MINOR] {
            assert!(can_be_counted(minor));
        }
        for minor in [-1, i64::MIN, MAX_COUNTED_MINOR + 1, i64::MAX] {
            assert!(!can_be_counted(minor));
        }
    }

    #[test]
    fn sums_are_read_as_people_write_them() {
        for (text, digits, minor) in [
            ("100", 2, 10_000),
            ("12.50", 2, 1_250),
            (" 12,5 ", 2, 1_250),
            ("0", 2, 0),
            ("900", 0, 900),
            ("1,250", 3, 1_250),
        ] {
            assert_eq!(read_amount(text, digits), Some(minor), "{text}");
        }
        for text in ["", ".5", "-1", "+1", "1.234", "1.0.0", "1e3", "١٠", "99999999999999999999", "a"] {
            assert_eq!(read_amount(text, 2), None, "{text}");
        }
        assert_eq!(read_amount("1.5", 0), None);
        let beyond = read_amount("1000000.01", 2);
        assert_eq!(
            beyond.map(|minor| (minor, can_be_counted(minor))),
            Some((100_000_001, false)),
            "a sum nobody counts"
        );
    }

    #[test]
    fn names_read_back_and_no_gateway_is_taken_for_the_counter() {
        for means in Means::ALL {
            assert_eq!(Means::parse(means.as_str()), Some(means));
            assert_eq!(Means::of_settled(means.settled_as()), Some(means));
        }
        for entry in Entry::ALL {
            assert_eq!(Entry::parse(entry.as_str()), Some(entry));
        }
        for gateway in ["simulator", "stripe", "cash", ""] {
            assert_eq!(Means::of_settled(gateway), None, "{gateway}");
        }
    }
}
