//! Price of a seat in a show: a base price per category, factors for the day and the time of day, a surcharge for the
//! format, and the theatre's tax and fee.
//!
//! `(base × day factor × time factor) + surcharge`, rounded half up to [`ROUND_TO_MINOR`]. A tax that is not in the
//! base price is added and rounded likewise, then the fee is added ([`TaxAndFee`]). The caller supplies the calendar as
//! plain values: this module knows no clock, time zone or holidays.

mod tax_and_fee;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

pub use tax_and_fee::{Breakdown, ContainedTaxAndFee, MAX_TAX_BASIS_POINTS, TaxAndFee, TaxStrategy};

use crate::money::{Currency, Money};

/// Prices without a fee are multiples of this many minor units, which avoids prices such as `€12.47`.
pub const ROUND_TO_MINOR: u64 = 10;
/// A show that starts before this minute of the day, local time, is a matinee: 17:00.
pub const MATINEE_BEFORE_MINUTE: u16 = 17 * 60;
/// Maximum percentage: ten times the base.
pub const MAX_PERCENT: u16 = 1_000;
/// Maximum base price, surcharge or fee, minor units.
pub const MAX_AMOUNT_MINOR: u64 = 1_000_000_000;

/// A day of the week in the theatre's time zone. Weeks start on Monday.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

impl Weekday {
    /// All days in order.
    pub const ALL: [Self; 7] =
        [Self::Monday, Self::Tuesday, Self::Wednesday, Self::Thursday, Self::Friday, Self::Saturday, Self::Sunday];

    /// Returns the day that is `days` days after a Monday.
    #[must_use]
    pub const fn after_monday(days: u32) -> Self {
        Self::ALL[(days % 7) as usize]
    }

    /// True if the weekend factor applies.
    #[must_use]
    pub const fn is_weekend(self) -> bool {
        matches!(self, Self::Saturday | Self::Sunday)
    }
}

/// Projection format of a show, spelled as in SQL and JSON.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum Format {
    /// A 2D film.
    #[serde(rename = "2D")]
    #[strum(serialize = "2D")]
    TwoD,
    /// A 3D film.
    #[serde(rename = "3D")]
    #[strum(serialize = "3D")]
    ThreeD,
    /// An IMAX film.
    #[serde(rename = "IMAX")]
    Imax,
    /// A live event on a stage.
    #[serde(rename = "LIVE")]
    Live,
}

/// Tariff of a theatre, which applies to shows when they are planned.
///
/// The column `theatre_tariffs.tariff` stores it permanently. A new field needs `#[serde(default)]`, otherwise older
/// rows cannot be read. It also needs `skip_serializing_if` for its default, otherwise servers of the previous version,
/// which run beside new ones during an update, cannot read newer rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tariff {
    /// Price of each category before factors, minor units. With factors of 100, no surcharge and no tax or fee to add,
    /// it is the final price, rounded to [`ROUND_TO_MINOR`]. On a weekday evening `prime_percent` applies.
    pub base: BTreeMap<String, u64>,
    /// Percentage for Saturday and Sunday, multiplied with the percentage for the time of day; other days have 100.
    pub weekend_percent: u16,
    /// Percentage for shows before [`MATINEE_BEFORE_MINUTE`], on every day.
    pub matinee_percent: u16,
    /// Percentage for later shows, on every day.
    pub prime_percent: u16,
    /// Surcharge of each format, minor units.
    #[serde(default)]
    pub surcharge: BTreeMap<Format, u64>,
    /// Taxes and fees.
    #[serde(default, skip_serializing_if = "TaxAndFee::is_default")]
    pub tax_and_fee: TaxAndFee,
}

/// The properties of a show that its price depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShowSlot {
    /// The day, in the theatre's time zone.
    pub weekday: Weekday,
    /// Minutes since midnight in the theatre's time zone.
    pub minute_of_day: u16,
    /// The projection format.
    pub format: Format,
}

/// Reason why no price can be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// The tariff has no such category.
    #[error("the tariff has no base price for category {0:?}")]
    UnknownCategory(String),
    /// A percentage or an amount exceeds its limit.
    #[error("{0} is above its limit")]
    OutOfRange(&'static str),
}

impl ShowSlot {
    /// Builds a slot from a day and a time in the theatre's time zone.
    #[must_use]
    pub const fn at(weekday: Weekday, hour: u32, minute: u32, format: Format) -> Self {
        Self { weekday, minute_of_day: (hour * 60 + minute) as u16, format }
    }
}

impl Tariff {
    /// Returns the price of a seat of `category`, minor units.
    ///
    /// # Errors
    /// [`PriceError`] for an unknown category or a tariff that exceeds the limits.
    pub fn price_minor(&self, category: &str, slot: ShowSlot) -> Result<i64, PriceError> {
        let base = *self.base.get(category).ok_or_else(|| PriceError::UnknownCategory(category.to_owned()))?;
        let surcharge = self.surcharge.get(&slot.format).copied().unwrap_or(0);
        let day = if slot.weekday.is_weekend() { self.weekend_percent } else { 100 };
        let time = if slot.minute_of_day < MATINEE_BEFORE_MINUTE { self.matinee_percent } else { self.prime_percent };
        if base > MAX_AMOUNT_MINOR || surcharge > MAX_AMOUNT_MINOR {
            return Err(PriceError::OutOfRange("an amount"));
        }
        if day > MAX_PERCENT || time > MAX_PERCENT {
            return Err(PriceError::OutOfRange("a percentage"));
        }
        let exact = base
            .checked_mul(u64::from(day))
            .and_then(|sum| sum.checked_mul(u64::from(time)))
            .and_then(|sum| sum.checked_add(surcharge.checked_mul(BASIS_POINTS)?))
            .ok_or(PriceError::OutOfRange("a price"))?;
        let price = self.tax_and_fee.applied_to(round_half_up(exact))?;
        i64::try_from(price).map_err(|_| PriceError::OutOfRange("a price"))
    }

    /// Returns the prices of the given categories in one show.
    ///
    /// # Errors
    /// As [`Tariff::price_minor`].
    pub fn price_list<'a>(
        &self,
        categories: impl IntoIterator<Item = &'a str>,
        slot: ShowSlot,
        currency: Currency,
    ) -> Result<PriceList, PriceError> {
        let price = |category: &str| Ok((category.to_owned(), self.price_minor(category, slot)?));
        let by_category = categories.into_iter().map(price).collect::<Result<_, PriceError>>()?;
        Ok(PriceList { currency, by_category })
    }
}

/// Basis points in a whole: the unit of a product of two percentages, and of a tax rate.
const BASIS_POINTS: u64 = 10_000;

/// Rounds `exact`, in ten-thousandths of a minor unit, to the nearest [`ROUND_TO_MINOR`], half up.
fn round_half_up(exact: u64) -> u64 {
    let step = BASIS_POINTS * ROUND_TO_MINOR;
    (exact + step / 2) / step * ROUND_TO_MINOR
}

/// Prices of one show, as stored in its row in `shows`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceList {
    /// The theatre's currency.
    pub currency: Currency,
    /// Prices by category, minor units: the column `shows.prices`.
    pub by_category: BTreeMap<String, i64>,
}

impl PriceList {
    /// Returns the price of a seat of `category`; `None` if the show does not sell it.
    #[must_use]
    pub fn price(&self, category: &str) -> Option<Money> {
        self.by_category.get(category).map(|minor| Money::new(*minor, self.currency))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TUESDAY_NIGHT: ShowSlot = ShowSlot::at(Weekday::Tuesday, 20, 0, Format::TwoD);

    fn tariff() -> Tariff {
        Tariff {
            base: [("silver".to_owned(), 990), ("gold".to_owned(), 1_250)].into(),
            weekend_percent: 120,
            matinee_percent: 75,
            prime_percent: 100,
            surcharge: [(Format::ThreeD, 200), (Format::Imax, 450)].into(),
            tax_and_fee: TaxAndFee::default(),
        }
    }

    #[test]
    fn weekday_evening_costs_the_base_price() {
        assert_eq!(tariff().price_minor("silver", TUESDAY_NIGHT), Ok(990));
    }

    #[test]
    fn weekend_matinee_and_format_change_the_price_and_halves_round_up() {
        let price = |slot| tariff().price_minor("gold", slot);
        assert_eq!(price(ShowSlot::at(Weekday::Saturday, 20, 0, Format::TwoD)), Ok(1_500));
        assert_eq!(price(ShowSlot::at(Weekday::Tuesday, 16, 59, Format::TwoD)), Ok(940)); // 937.50
        assert_eq!(price(ShowSlot::at(Weekday::Tuesday, 17, 0, Format::TwoD)), Ok(1_250));
        assert_eq!(price(ShowSlot::at(Weekday::Sunday, 11, 0, Format::Imax)), Ok(1_580)); // 1125 + 450 = 1575
    }

    #[test]
    fn days_after_monday_follow_the_order_of_the_week() {
        assert_eq!([0, 1, 5, 6, 7].map(Weekday::after_monday), {
            use Weekday::{Monday, Saturday, Sunday, Tuesday};
            [Monday, Tuesday, Saturday, Sunday, Monday]
        });
        assert!(Weekday::ALL.is_sorted());
    }

    #[test]
    fn stored_tariff_stays_readable_and_costs_the_same() {
        // The format of existing rows in `theatre_tariffs`. When a field is added to `Tariff`, keep this text: old rows
        // do not have the field.
        const STORED: &str = r#"{
            "base": {"gold": 1250, "silver": 990}, "surcharge": {"3D": 200, "IMAX": 450},
            "prime_percent": 110, "matinee_percent": 75, "weekend_percent": 120
        }"#;
        let stored: Tariff = serde_json::from_str(STORED).expect("every field that came later has a default");
        let sunday_morning = ShowSlot::at(Weekday::Sunday, 11, 0, Format::Imax);
        assert_eq!(stored.price_minor("silver", TUESDAY_NIGHT), Ok(1_090)); // 1089: the base is not the evening's price
        assert_eq!(stored.price_minor("gold", sunday_morning), Ok(1_580)); // 1125 + 450 = 1575
        assert_eq!(stored.tax_and_fee, TaxAndFee::default());
        let written = serde_json::to_string(&stored).expect("JSON");
        assert!(!written.contains("tax_and_fee"), "servers of the previous version read it: {written}");
    }

    #[test]
    fn price_and_stored_tariff_contain_the_tax_and_the_fee() {
        let tax_and_fee = TaxAndFee { strategy: TaxStrategy::Added, tax_basis_points: 1_800, fee_minor: 150 };
        let taxed = Tariff { tax_and_fee, ..tariff() };
        assert_eq!(taxed.price_minor("silver", TUESDAY_NIGHT), Ok(1_320)); // 1168.20 is rounded to 1170
        let text = serde_json::to_string(&taxed).expect("JSON");
        let stored = r#""tax_and_fee":{"strategy":"added","tax_basis_points":1800,"fee_minor":150}"#;
        assert!(text.contains(stored), "{text}");
        assert_eq!(serde_json::from_str::<Tariff>(&text).expect("a tariff"), taxed);
    }

    #[test]
    fn unknown_category_or_excessive_tariff_is_an_error() {
        let unknown = PriceError::UnknownCategory("velvet".to_owned());
        assert_eq!(tariff().price_minor("velvet", TUESDAY_NIGHT), Err(unknown));
        let senseless = Tariff { prime_percent: MAX_PERCENT + 1, ..tariff() };
        assert_eq!(senseless.price_minor("gold", TUESDAY_NIGHT), Err(PriceError::OutOfRange("a percentage")));
        let mut dear = tariff();
        dear.base.insert("gold".to_owned(), u64::MAX);
        assert_eq!(dear.price_minor("gold", TUESDAY_NIGHT), Err(PriceError::OutOfRange("an amount")));
    }

    fn any_tariff() -> impl Strategy<Value = Tariff> {
        let percent = || 0..=MAX_PERCENT;
        (0..=MAX_AMOUNT_MINOR, percent(), percent(), percent(), 0..=MAX_AMOUNT_MINOR).prop_map(
            |(base, weekend_percent, matinee_percent, prime_percent, surcharge)| Tariff {
                base: [("gold".to_owned(), base)].into(),
                weekend_percent,
                matinee_percent,
                prime_percent,
                surcharge: [(Format::ThreeD, surcharge)].into(),
                tax_and_fee: TaxAndFee::default(),
            },
        )
    }

    fn any_slot() -> impl Strategy<Value = ShowSlot> {
        let weekday = prop_oneof![Just(Weekday::Monday), Just(Weekday::Friday), Just(Weekday::Saturday)];
        let format = prop_oneof![Just(Format::TwoD), Just(Format::ThreeD)];
        (weekday, 0..1_440_u16, format).prop_map(|(weekday, minute_of_day, format)| ShowSlot {
            weekday,
            minute_of_day,
            format,
        })
    }

    /// Numbers below a limit, at it, just above it, and the maximum.
    fn up_to(limit: u64) -> impl Strategy<Value = u64> {
        prop_oneof![6 => 0..=limit, 2 => Just(limit), 1 => Just(limit + 1), 1 => Just(u64::MAX)]
    }

    proptest! {
        #[test]
        fn tariff_within_limits_gives_a_rounded_nonnegative_price(tariff in any_tariff(), slot in any_slot()) {
            let price = tariff.price_minor("gold", slot).expect("within limits");
            prop_assert!(price >= 0);
            prop_assert_eq!(price.unsigned_abs() % ROUND_TO_MINOR, 0);
        }

        #[test]
        fn raising_any_part_of_a_tariff_never_lowers_the_price(
            tariff in any_tariff(), slot in any_slot(), part in 0..5_usize, more in 1..10_000_u64,
        ) {
            let before = tariff.price_minor("gold", slot).expect("within limits");
            let mut dearer = tariff;
            let raise = |amount: &mut u64| *amount = amount.saturating_add(more).min(MAX_AMOUNT_MINOR);
            let lift = |percent: &mut u16| *percent = percent.saturating_add(more as u16).min(MAX_PERCENT);
            match part {
                0 => raise(dearer.base.entry("gold".to_owned()).or_default()),
                1 => raise(dearer.surcharge.entry(slot.format).or_default()),
                2 => lift(&mut dearer.weekend_percent),
                3 => lift(&mut dearer.matinee_percent),
                _ => lift(&mut dearer.prime_percent),
            }
            prop_assert!(dearer.price_minor("gold", slot).expect("within limits") >= before);
        }

        #[test]
        fn price_exists_exactly_for_tariffs_within_limits(
            base in up_to(MAX_AMOUNT_MINOR), percent in up_to(u64::from(MAX_PERCENT)), surcharge in up_to(MAX_AMOUNT_MINOR),
            slot in any_slot(),
        ) {
            let percent = u16::try_from(percent).unwrap_or(u16::MAX);
            let tariff = Tariff {
                base: [("gold".to_owned(), base)].into(),
                weekend_percent: percent,
                matinee_percent: percent,
                prime_percent: percent,
                surcharge: [(slot.format, surcharge)].into(),
                tax_and_fee: TaxAndFee::default(),
            };
            let is_within = base <= MAX_AMOUNT_MINOR && surcharge <= MAX_AMOUNT_MINOR && percent <= MAX_PERCENT;
            let price = tariff.price_minor("gold", slot);
            prop_assert_eq!(price.is_ok(), is_within, "{:?}", price);
            // Computed in 128 bits, where nothing overflows: an overflow in 64 bits would give less, or a negative
            // price.
            let (base, percent) = (i128::from(base), i128::from(percent));
            let day = if slot.weekday.is_weekend() { percent } else { 100 };
            if let Ok(price) = price {
                let exact = base * day * percent + i128::from(surcharge) * 10_000;
                prop_assert!((i128::from(price) * 10_000 - exact).abs() <= i128::from(ROUND_TO_MINOR) * 5_000);
            }
        }
    }
}
