//! Amounts of money: integer minor units with an ISO 4217 currency code.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An ISO 4217 currency code, three capital letters, for example `EUR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Currency([u8; 3]);

impl Currency {
    /// Parses a code; `None` unless it is exactly three ASCII capitals.
    #[must_use]
    pub fn parse(code: &str) -> Option<Self> {
        let bytes: [u8; 3] = code.as_bytes().try_into().ok()?;
        bytes.iter().all(u8::is_ascii_uppercase).then_some(Self(bytes))
    }

    /// The three letters.
    #[must_use]
    pub fn code(&self) -> &str {
        // The constructor admits ASCII only, so this cannot fail.
        std::str::from_utf8(&self.0).unwrap_or("XXX")
    }

    /// Number of digits after the decimal point (ISO 4217 "minor unit"): 2 for all currencies that are not listed. The
    /// ariary has fifths on paper but not in tills, as in Unicode's CLDR and at Stripe.
    #[must_use]
    pub fn minor_digits(&self) -> u32 {
        match &self.0 {
            b"BIF" | b"CLP" | b"DJF" | b"GNF" | b"ISK" | b"JPY" | b"KMF" | b"KRW" | b"MGA" | b"PYG" | b"RWF"
            | b"UGX" | b"VND" | b"VUV" | b"XAF" | b"XOF" | b"XPF" => 0,
            b"BHD" | b"IQD" | b"JOD" | b"KWD" | b"LYD" | b"OMR" | b"TND" => 3,
            _ => 2,
        }
    }

    /// Internationally known symbol, if any.
    #[must_use]
    pub fn symbol(&self) -> Option<&'static str> {
        Some(match &self.0 {
            b"EUR" => "€",
            b"GBP" => "£",
            b"USD" => "$",
            b"INR" => "₹",
            b"JPY" => "¥",
            _ => return None,
        })
    }
}

impl TryFrom<String> for Currency {
    type Error = String;
    fn try_from(code: String) -> Result<Self, Self::Error> {
        Self::parse(&code).ok_or_else(|| format!("{code:?} is not an ISO 4217 code"))
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.code().to_owned()
    }
}

/// An amount in the minor unit of its currency: `Money { minor: 1250, currency: EUR }` is €12.50.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Money {
    /// Minor units (cents, pence, paise); negative only in reports.
    pub minor: i64,
    /// ISO 4217 code.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "EUR"))]
    pub currency: Currency,
}

impl Money {
    /// `minor` units of `currency`.
    #[must_use]
    pub const fn new(minor: i64, currency: Currency) -> Self {
        Self { minor, currency }
    }

    /// The number without its currency, as programs and fields write it: `12.50`, `900`, `-0.50`.
    #[must_use]
    pub fn decimal(self) -> String {
        let digits = self.currency.minor_digits();
        let (unit, magnitude) = (10_u64.pow(digits), self.minor.unsigned_abs());
        let sign = if self.minor < 0 { "-" } else { "" };
        if digits == 0 {
            return format!("{sign}{magnitude}");
        }
        format!("{sign}{}.{:0width$}", magnitude / unit, magnitude % unit, width = digits as usize)
    }

    /// The sum, or `None` when the currencies differ or the sum overflows.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        if self.currency != other.currency {
            return None;
        }
        Some(Self::new(self.minor.checked_add(other.minor)?, self.currency))
    }

    /// The sum of all amounts, or `None` when there are none, the currencies differ or the sum overflows.
    #[must_use]
    pub fn total(amounts: impl Iterator<Item = Self>) -> Option<Self> {
        amounts.map(Some).reduce(|sum, amount| sum?.checked_add(amount?)).flatten()
    }
}

impl fmt::Display for Money {
    /// Formats as `€12.50`, `¥900`, or `12.500 KWD` for a currency without a known symbol.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.currency.minor_digits();
        let unit = 10_u64.pow(digits);
        let magnitude = self.minor.unsigned_abs();
        let sign = if self.minor < 0 { "-" } else { "" };
        let symbol = self.currency.symbol();
        write!(f, "{sign}{}{}", symbol.unwrap_or(""), magnitude / unit)?;
        if digits > 0 {
            write!(f, ".{:0width$}", magnitude % unit, width = digits as usize)?;
        }
        if symbol.is_none() {
            write!(f, " {}", self.currency.code())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(minor: i64, code: &str) -> Money {
        Money::new(minor, Currency::parse(code).expect("a valid code"))
    }

    #[test]
    fn amounts_are_formatted_with_their_symbol() {
        assert_eq!(money(1250, "EUR").to_string(), "€12.50");
        assert_eq!(money(5, "GBP").to_string(), "£0.05");
        assert_eq!(money(900, "JPY").to_string(), "¥900");
        assert_eq!(money(12_500, "KWD").to_string(), "12.500 KWD");
        assert_eq!(money(-1250, "USD").to_string(), "-$12.50");
    }

    #[test]
    fn a_decimal_has_the_digits_of_its_currency_and_a_point() {
        assert_eq!(money(1250, "EUR").decimal(), "12.50");
        assert_eq!(money(900, "JPY").decimal(), "900");
        assert_eq!(money(12_500, "KWD").decimal(), "12.500");
        assert_eq!(money(-50, "EUR").decimal(), "-0.50");
    }

    #[test]
    fn adding_different_currencies_or_overflowing_is_none() {
        assert_eq!(money(1, "EUR").checked_add(money(1, "USD")), None);
        assert_eq!(money(i64::MAX, "EUR").checked_add(money(1, "EUR")), None);
        assert_eq!(money(1, "EUR").checked_add(money(2, "EUR")), Some(money(3, "EUR")));
    }

    #[test]
    fn total_is_of_all_amounts_in_one_currency() {
        assert_eq!(Money::total([money(1_250, "EUR"), money(900, "EUR")].into_iter()), Some(money(2_150, "EUR")));
        assert_eq!(Money::total([money(1, "EUR"), money(1, "USD"), money(1, "EUR")].into_iter()), None);
        assert_eq!(Money::total(std::iter::empty()), None);
    }

    #[test]
    fn codes_other_than_three_capitals_are_refused() {
        for bad in ["", "eur", "EURO", "E1R", "€"] {
            assert_eq!(Currency::parse(bad), None, "{bad}");
        }
    }
}
