//! Taxes and fees in prices: the rule of a theatre, and the parts of a total.
//!
//! The price of a line is what the buyer pays. A show stores which tax rate and which fee its prices contain, so the
//! parts of a total follow from its lines.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::{BASIS_POINTS, MAX_AMOUNT_MINOR, PriceError, round_half_up};
use crate::money::{Currency, Money};

/// Maximum tax rate: 50 %.
pub const MAX_TAX_BASIS_POINTS: u16 = 5_000;

/// Relation of a tariff's base prices to the tax.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TaxStrategy {
    /// Base prices contain the tax, as in the European Union.
    #[default]
    Included,
    /// Base prices are net. The tax is added when a show is planned, as in the United States.
    Added,
}

/// Tax and fee of a theatre's tariff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TaxAndFee {
    /// Relation of the base prices to the tax.
    pub strategy: TaxStrategy,
    /// Tax rate in hundredths of a percent, at most 5,000: 700 is 7 %.
    pub tax_basis_points: u16,
    /// Fee of each seat or place that is not free, minor units. It contains its own tax.
    pub fee_minor: u64,
}

impl TaxAndFee {
    /// Returns true without tax and fee when base prices contain the tax.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the tax rate and the fee that prices by this tariff contain.
    #[must_use]
    pub const fn contained(self) -> ContainedTaxAndFee {
        ContainedTaxAndFee { tax_basis_points: self.tax_basis_points, fee_minor: self.fee_minor.cast_signed() }
    }

    /// Returns the price that the buyer pays, minor units. A free seat stays free.
    ///
    /// # Errors
    /// [`PriceError::OutOfRange`] for a rate or a fee above its limit.
    pub(super) fn applied_to(self, price: u64) -> Result<u64, PriceError> {
        if self.tax_basis_points > MAX_TAX_BASIS_POINTS {
            return Err(PriceError::OutOfRange("the tax rate"));
        }
        if self.fee_minor > MAX_AMOUNT_MINOR {
            return Err(PriceError::OutOfRange("the fee"));
        }
        if price == 0 {
            return Ok(0);
        }
        let with_tax = match self.strategy {
            TaxStrategy::Included => price,
            TaxStrategy::Added => round_half_up(price * (BASIS_POINTS + u64::from(self.tax_basis_points))),
        };
        Ok(with_tax + self.fee_minor)
    }
}

/// The tax rate and the fee in the prices of a show. They are stored with the show when it is planned and never change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainedTaxAndFee {
    /// Tax rate in hundredths of a percent.
    pub tax_basis_points: u16,
    /// Fee of each seat or place, minor units. It contains its own tax.
    pub fee_minor: i64,
}

impl ContainedTaxAndFee {
    /// Returns the parts of the total of these lines, each a price and a quantity.
    ///
    /// The tax is rounded half up for each seat, so the parts of several seats are the sums of each seat's parts. A
    /// price below the fee is all fee. Sums saturate.
    #[must_use]
    pub fn breakdown(self, lines: impl IntoIterator<Item = (i64, u32)>, currency: Currency) -> Breakdown {
        let rate = i64::from(self.tax_basis_points);
        let gross = BASIS_POINTS.cast_signed() + rate;
        let mut sums = [0_i64; 3];
        for (price, quantity) in lines {
            let fee = self.fee_minor.min(price);
            // SQL has the same formula: `contained_tax` in migration 17.
            let tax = (price - fee).saturating_mul(rate).saturating_add(gross / 2) / gross;
            for (sum, part) in sums.iter_mut().zip([tax, fee, price]) {
                *sum = sum.saturating_add(part.saturating_mul(i64::from(quantity)));
            }
        }
        let [taxes, fees, total] = sums.map(|minor| Money::new(minor, currency));
        let subtotal = Money::new(total.minor - taxes.minor - fees.minor, currency);
        Breakdown { subtotal, taxes, fees, total }
    }
}

/// The parts of a total: subtotal, taxes and fees add up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Breakdown {
    /// Prices without taxes and fees.
    pub subtotal: Money,
    /// Taxes.
    pub taxes: Money,
    /// Fees with their tax.
    pub fees: Money,
    /// The amount that the buyer pays.
    pub total: Money,
}

impl Breakdown {
    /// Returns the parts to display with their names (subtotal, taxes, fees). Omits zero amounts. Empty without taxes
    /// and fees.
    pub fn parts<T>(self, names: [T; 3]) -> impl Iterator<Item = (T, Money)> {
        let has_tax_or_fee = self.subtotal != self.total;
        let amounts = [self.subtotal, self.taxes, self.fees];
        names.into_iter().zip(amounts).filter(move |(_, amount)| has_tax_or_fee && amount.minor != 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn euro() -> Currency {
        Currency::parse("EUR").expect("a code")
    }

    /// Subtotal, taxes and fees, minor units.
    fn parts(tax_basis_points: u16, fee_minor: i64, lines: &[(i64, u32)]) -> [i64; 3] {
        let breakdown = ContainedTaxAndFee { tax_basis_points, fee_minor }.breakdown(lines.iter().copied(), euro());
        [breakdown.subtotal, breakdown.taxes, breakdown.fees].map(|part| part.minor)
    }

    #[test]
    fn contained_tax_is_rounded_half_up_after_the_fee() {
        assert_eq!(parts(700, 0, &[(1_200, 1)]), [1_121, 79, 0]); // 78.50
        assert_eq!(parts(700, 150, &[(1_200, 1)]), [981, 69, 150]); // 68.69
        assert_eq!(parts(5_000, 0, &[(15, 1), (3, 2)]), [14, 7, 0]); // 5 and twice 1
        assert_eq!(parts(1_200, 0, &[(14, 1)]), [12, 2, 0], "1.5 is rounded up");
        assert_eq!(parts(0, 0, &[(1_200, 2)]), [2_400, 0, 0]);
        assert_eq!(parts(700, 150, &[]), [0; 3]);
    }

    #[test]
    fn free_seat_has_neither_tax_nor_fee_and_a_price_below_the_fee_is_all_fee() {
        assert_eq!(parts(700, 150, &[(0, 3)]), [0; 3]);
        assert_eq!(parts(700, 150, &[(100, 2)]), [0, 0, 200]);
    }

    #[test]
    fn added_tax_is_rounded_like_prices_and_the_fee_follows() {
        let price = |strategy, price| TaxAndFee { strategy, tax_basis_points: 1_800, fee_minor: 150 }.applied_to(price);
        assert_eq!(price(TaxStrategy::Added, 10_000), Ok(11_950));
        assert_eq!(price(TaxStrategy::Added, 1_250), Ok(1_630)); // 1475 is rounded to 1480
        assert_eq!(price(TaxStrategy::Included, 1_200), Ok(1_350));
        assert_eq!([TaxStrategy::Added, TaxStrategy::Included].map(|strategy| price(strategy, 0)), [Ok(0), Ok(0)]);
        let no_fee = TaxAndFee { strategy: TaxStrategy::Added, tax_basis_points: 1_800, fee_minor: 0 };
        assert_eq!(no_fee.applied_to(10_000), Ok(11_800));
    }

    #[test]
    fn rate_or_fee_above_its_limit_is_refused() {
        let steep = TaxAndFee { tax_basis_points: MAX_TAX_BASIS_POINTS + 1, ..TaxAndFee::default() };
        assert_eq!(steep.applied_to(0), Err(PriceError::OutOfRange("the tax rate")));
        let dear = TaxAndFee { fee_minor: MAX_AMOUNT_MINOR + 1, ..TaxAndFee::default() };
        assert_eq!(dear.applied_to(0), Err(PriceError::OutOfRange("the fee")));
    }

    #[test]
    fn parts_of_a_total_are_named_only_with_taxes_or_fees() {
        let named = |tax_basis_points, fee_minor| {
            let breakdown = ContainedTaxAndFee { tax_basis_points, fee_minor }.breakdown([(1_200, 1)], euro());
            breakdown.parts(["net", "tax", "fee"]).map(|(name, amount)| format!("{name} {amount}")).collect::<Vec<_>>()
        };
        assert!(named(0, 0).is_empty());
        assert_eq!(named(700, 0), ["net €11.21", "tax €0.79"]);
        assert_eq!(named(700, 150), ["net €9.81", "tax €0.69", "fee €1.50"]);
        assert_eq!(named(0, 150), ["net €10.50", "fee €1.50"]);
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_total_and_are_sums_of_each_seats_parts(
            rate in 0..=MAX_TAX_BASIS_POINTS, fee in 0..=100_000_i64,
            lines in proptest::collection::vec((0..=100_000_000_000_i64, 0..=10_u32), 0..12),
        ) {
            let [subtotal, taxes, fees] = parts(rate, fee, &lines);
            let total: i64 = lines.iter().map(|(price, quantity)| price * i64::from(*quantity)).sum();
            prop_assert_eq!(subtotal + taxes + fees, total);
            prop_assert!(subtotal >= 0 && taxes >= 0 && fees >= 0);
            let mut sums = [0_i64; 3];
            for (price, quantity) in lines {
                for _ in 0..quantity {
                    let seat = parts(rate, fee, &[(price, 1)]);
                    sums = std::array::from_fn(|part| sums[part] + seat[part]);
                }
            }
            prop_assert_eq!(sums, [subtotal, taxes, fees]);
        }

        #[test]
        fn contained_tax_differs_from_the_added_one_by_the_rounding_at_most(
            rate in 0..=MAX_TAX_BASIS_POINTS, fee in 0..=MAX_AMOUNT_MINOR, price in 1..=100_000_000_u64,
        ) {
            let price = price * 10;
            let tax_and_fee = TaxAndFee { strategy: TaxStrategy::Added, tax_basis_points: rate, fee_minor: fee };
            let paid = tax_and_fee.applied_to(price).expect("within limits").cast_signed();
            let parts = tax_and_fee.contained().breakdown([(paid, 1)], euro());
            prop_assert_eq!(parts.fees.minor, fee.cast_signed());
            prop_assert!((parts.subtotal.minor - price.cast_signed()).abs() <= 5, "{:?}", parts);
        }
    }
}
