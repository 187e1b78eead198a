//! Sums of a till's ledger.
//!
//! Amounts are minor units of the till's currency. A sum that overflows is `None`.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::time::{MINUTE_MS, Timestamp};

/// Maximum amount of a count, a drop or a float, minor units.
pub const MAX_COUNTED_MINOR: i64 = 100_000_000;
/// Time during which the seller may undo a sale, milliseconds.
pub const UNDO_MS: i64 = 5 * MINUTE_MS;

/// Means of payment at the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Means {
    /// Coins and notes, kept in the till.
    Cash,
    /// A card terminal beside the till.
    Card,
    /// A free ticket: no payment.
    Free,
}

impl Means {
    /// Name stored in place of a gateway's name, since no gateway is involved.
    #[must_use]
    pub const fn gateway_name(self) -> &'static str {
        match self {
            Self::Cash => "counter_cash",
            Self::Card => "counter_card",
            Self::Free => "counter_free",
        }
    }

    /// Parses a name written by [`Means::gateway_name`]; `None` for the name of a gateway.
    #[must_use]
    pub fn parse_gateway_name(name: &str) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|means| means.gateway_name() == name)
    }
}

/// Kind of a line in a till's ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Entry))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TillEntryKind {
    /// The float when the till was opened.
    Float,
    /// A sale.
    Sale,
    /// A refund to a customer.
    Refund,
    /// The price difference of an exchange.
    Exchange,
    /// Cash taken to the safe.
    Drop,
}

/// A line of the ledger: kind, means of payment, and amount received (negative if paid out).
pub type LedgerLine = (TillEntryKind, Means, i64);

/// Sums of a till, minor units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TillSums {
    /// The float.
    pub float: i64,
    /// Cash sales less cash refunds.
    pub cash: i64,
    /// Card sales less card refunds.
    pub card: i64,
    /// Cash taken to the safe.
    pub dropped: i64,
}

impl TillSums {
    /// Adds up the lines; `None` if a sum overflows.
    #[must_use]
    pub fn of(lines: impl IntoIterator<Item = LedgerLine>) -> Option<Self> {
        lines.into_iter().try_fold(Self::default(), |sums, (entry, means, amount)| {
            let mut sums = sums;
            let (sum, amount) = match (entry, means) {
                (TillEntryKind::Float, _) => (&mut sums.float, amount),
                (TillEntryKind::Drop, _) => (&mut sums.dropped, amount.checked_neg()?),
                (TillEntryKind::Sale | TillEntryKind::Refund | TillEntryKind::Exchange, Means::Cash) => {
                    (&mut sums.cash, amount)
                }
                (TillEntryKind::Sale | TillEntryKind::Refund | TillEntryKind::Exchange, Means::Card) => {
                    (&mut sums.card, amount)
                }
                (TillEntryKind::Sale | TillEntryKind::Refund | TillEntryKind::Exchange, Means::Free) => {
                    return (amount == 0).then_some(sums);
                }
            };
            *sum = sum.checked_add(amount)?;
            sums.expected()?;
            Some(sums)
        })
    }

    /// Returns the expected cash; `None` if it overflows.
    #[must_use]
    pub fn expected(&self) -> Option<i64> {
        self.float.checked_add(self.cash)?.checked_sub(self.dropped)
    }
}

/// True if the amount is a plausible count: 0 to [`MAX_COUNTED_MINOR`].
#[must_use]
pub const fn is_plausible_count(minor: i64) -> bool {
    0 <= minor && minor <= MAX_COUNTED_MINOR
}

/// Parses an amount as people write it, to minor units: `12.50`, `12,5`, `12`. `None` if it is not a number, has more
/// decimals than the currency, or overflows. [`is_plausible_count`] checks its range. Thousands separators are refused:
/// `1.000` is ambiguous between languages.
#[must_use]
pub fn parse_amount(text: &str, minor_digits: u32) -> Option<i64> {
    let text = text.trim();
    let (whole, part) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = minor_digits as usize;
    if whole.is_empty() || !is_number(whole) || !is_number(part) || part.len() > digits {
        return None;
    }
    format!("{whole}{part:0<digits$}").parse().ok()
}

/// Returns the last instant at which a sale made at `sold_at` may be undone.
#[must_use]
pub const fn undo_until(sold_at: Timestamp) -> Timestamp {
    sold_at.plus_ms(UNDO_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VariantName;
    use Means::{Card, Cash, Free};
    use TillEntryKind::{Drop, Float, Refund, Sale};

    #[test]
    fn sums_of_a_shift_add_up() {
        let lines = [
            (Float, Cash, 10_000),
            (Sale, Cash, 2_500),
            (Sale, Card, 1_250),
            (Sale, Free, 0),
            (Refund, Cash, -1_250),
            (Drop, Cash, -5_000),
            (Refund, Card, -1_250),
        ];
        let sums = TillSums::of(lines).expect("it fits");
        assert_eq!(sums, TillSums { float: 10_000, cash: 1_250, card: 0, dropped: 5_000 });
        assert_eq!(sums.expected(), Some(6_250));
    }

    #[test]
    fn overflowing_sums_are_refused() {
        assert_eq!(TillSums::of([(Float, Cash, i64::MAX), (Sale, Cash, 1)]), None);
        assert_eq!(TillSums::of([(Drop, Cash, i64::MIN)]), None);
        assert_eq!(TillSums::of([(Sale, Free, 1)]), None, "free tickets have no amount");
        assert_eq!(TillSums::of([]), Some(TillSums::default()));
    }

    #[test]
    fn counts_below_zero_or_above_the_maximum_are_implausible() {
        for minor in [0, 1, MAX_COUNTED_MINOR] {
            assert!(is_plausible_count(minor));
        }
        for minor in [-1, i64::MIN, MAX_COUNTED_MINOR + 1, i64::MAX] {
            assert!(!is_plausible_count(minor));
        }
    }

    #[test]
    fn amounts_are_parsed_as_people_write_them() {
        for (text, digits, minor) in [
            ("100", 2, 10_000),
            ("12.50", 2, 1_250),
            (" 12,5 ", 2, 1_250),
            ("0", 2, 0),
            ("900", 0, 900),
            ("1,250", 3, 1_250),
        ] {
            assert_eq!(parse_amount(text, digits), Some(minor), "{text}");
        }
        for text in ["", ".5", "-1", "+1", "1.234", "1.0.0", "1e3", "١٠", "99999999999999999999", "a"] {
            assert_eq!(parse_amount(text, 2), None, "{text}");
        }
        assert_eq!(parse_amount("1.5", 0), None);
        let beyond = parse_amount("1000000.01", 2);
        assert_eq!(
            beyond.map(|minor| (minor, is_plausible_count(minor))),
            Some((100_000_001, false)),
            "an implausible count"
        );
    }

    #[test]
    fn names_parse_back_and_gateways_are_not_counter_payments() {
        for &means in Means::VARIANTS {
            assert_eq!(means.as_str().parse(), Ok(means));
            assert_eq!(Means::parse_gateway_name(means.gateway_name()), Some(means));
        }
        for entry in TillEntryKind::VARIANTS {
            assert_eq!(entry.as_str().parse(), Ok(*entry));
        }
        for gateway in ["simulator", "stripe", "cash", ""] {
            assert_eq!(Means::parse_gateway_name(gateway), None, "{gateway}");
        }
    }
}
