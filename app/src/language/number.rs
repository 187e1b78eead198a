//! Numbers, money and clocks in the way of a language. Source: Unicode CLDR 48, `common/main/*.xml`
//! (`numbers`: default numbering system, symbols, decimal and currency patterns) and ISO 4217 for the
//! digits after the point. Nothing is ever a float.

use domain::money::Money;

use super::{Language, current};

/// Right-to-left mark, U+200F, and Arabic letter mark, U+061C: CLDR writes them around Arabic amounts.
const RIGHT_TO_LEFT_MARK: char = '\u{200f}';
const ARABIC_LETTER_MARK: char = '\u{61c}';
/// Between an amount and its currency.
const NO_BREAK_SPACE: char = '\u{a0}';

/// How a language writes numbers.
struct Style {
    /// Its digit for nought; the others follow it in Unicode.
    zero: char,
    decimal: char,
    group: char,
    /// Digits in a group, the last aside, which has three.
    group_size: usize,
    /// Digits that must stand before the first separator: Spanish writes 1250 and 12.500.
    least_before_group: usize,
    /// Whether the currency stands in front.
    currency_first: bool,
}

const fn style(language: Language) -> Style {
    let english =
        Style { zero: '0', decimal: '.', group: ',', group_size: 3, least_before_group: 1, currency_first: true };
    match language {
        Language::English => english,
        Language::German => Style { decimal: ',', group: '.', currency_first: false, ..english },
        Language::Spanish => {
            Style { decimal: ',', group: '.', least_before_group: 2, currency_first: false, ..english }
        }
        // `#,##,##0.###`: thousands, then lakhs and crores.
        Language::Hindi => Style { group_size: 2, ..english },
        Language::Arabic => Style { zero: '٠', decimal: '٫', group: '٬', currency_first: false, ..english },
    }
}

/// A whole number: `1,250`, `1.250`, `1,25,000`, `١٬٢٥٠`.
#[must_use]
pub fn number(value: i64, language: Language) -> String {
    let mut out = String::new();
    sign(&mut out, value, language);
    grouped(&mut out, value.unsigned_abs(), &style(language));
    out
}

/// An amount with its currency: `€12.50`, `12,50 €`, `₹1,25,000.00`, `‏١٢٫٥٠ €`.
#[must_use]
pub fn money(money: Money, language: Language) -> String {
    let style = style(language);
    let digits = money.currency.minor_digits();
    let unit = 10_u64.pow(digits);
    let magnitude = money.minor.unsigned_abs();
    let (symbol, code) = (symbol(money, language), money.currency.code());
    let mut out = String::new();
    if language == Language::Arabic {
        out.push(RIGHT_TO_LEFT_MARK);
    }
    sign(&mut out, money.minor, language);
    if let (Some(symbol), true) = (symbol, style.currency_first) {
        out.push_str(symbol);
    }
    grouped(&mut out, magnitude / unit, &style);
    if digits > 0 {
        out.push(style.decimal);
        padded(&mut out, magnitude % unit, digits as usize, &style);
    }
    if symbol.is_none() || !style.currency_first {
        out.push(NO_BREAK_SPACE);
        out.push_str(symbol.unwrap_or(code));
    }
    out
}

/// Minutes and seconds of a countdown: `4:09`, `٤:٠٩`.
#[must_use]
pub fn clock(minutes: i64, seconds: i64) -> String {
    let style = style(current());
    let mut out = String::new();
    padded(&mut out, minutes.unsigned_abs(), 1, &style);
    out.push(':');
    padded(&mut out, seconds.unsigned_abs(), 2, &style);
    out
}

/// A number of tenths: `1.2`, `1,2`.
#[must_use]
pub fn tenths(value: u32, language: Language) -> String {
    let style = style(language);
    let mut out = String::new();
    padded(&mut out, u64::from(value / 10), 1, &style);
    out.push(style.decimal);
    padded(&mut out, u64::from(value % 10), 1, &style);
    out
}

/// A number of at least so many digits and without separators: a year, a minute.
pub(super) fn plain(value: u32, width: usize, language: Language) -> String {
    let mut out = String::new();
    padded(&mut out, u64::from(value), width, &style(language));
    out
}

/// The sign of a currency where people know it; elsewhere its code says more.
fn symbol(money: Money, language: Language) -> Option<&'static str> {
    let arabic = match (language, money.currency.code()) {
        (Language::Arabic, "AED") => "د.إ.\u{200f}",
        (Language::Arabic, "BHD") => "د.ب.\u{200f}",
        (Language::Arabic, "EGP") => "ج.م.\u{200f}",
        (Language::Arabic, "JOD") => "د.أ.\u{200f}",
        (Language::Arabic, "KWD") => "د.ك.\u{200f}",
        (Language::Arabic, "MAD") => "د.م.\u{200f}",
        (Language::Arabic, "OMR") => "ر.ع.\u{200f}",
        (Language::Arabic, "QAR") => "ر.ق.\u{200f}",
        (Language::Arabic, "SAR") => "ر.س.\u{200f}",
        (Language::Arabic, "TND") => "د.ت.\u{200f}",
        _ => return money.currency.symbol(),
    };
    Some(arabic)
}

fn sign(out: &mut String, value: i64, language: Language) {
    if value < 0 {
        if language == Language::Arabic {
            out.push(ARABIC_LETTER_MARK);
        }
        out.push('-');
    }
}

fn grouped(out: &mut String, value: u64, style: &Style) {
    let digits = value.to_string();
    let is_grouped = digits.len() >= 3 + style.least_before_group;
    for (place, digit) in digits.bytes().enumerate() {
        let left = digits.len() - place;
        // The last group has three digits, those before it their own size.
        if is_grouped && place > 0 && left >= 3 && (left - 3).is_multiple_of(style.group_size) {
            out.push(style.group);
        }
        out.push(own_digit(digit, style));
    }
}

fn padded(out: &mut String, value: u64, width: usize, style: &Style) {
    out.extend(format!("{value:0width$}").bytes().map(|digit| own_digit(digit, style)));
}

fn own_digit(digit: u8, style: &Style) -> char {
    char::from_u32(u32::from(style.zero) + u32::from(digit - b'0')).unwrap_or(char::from(digit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Language::{Arabic, English, German, Hindi, Spanish};
    use domain::money::Currency;

    fn amount(minor: i64, code: &str, language: Language) -> String {
        money(Money::new(minor, Currency::parse(code).expect("a code")), language)
    }

    #[test]
    fn numbers_are_grouped_the_way_of_the_language() {
        let all = |value| Language::ALL.map(|language| number(value, language));
        assert_eq!(all(7), ["7", "7", "7", "7", "٧"]);
        assert_eq!(all(999), ["999", "999", "999", "999", "٩٩٩"]);
        assert_eq!(all(1_250), ["1,250", "1.250", "1250", "1,250", "١٬٢٥٠"]);
        assert_eq!(all(12_345_678), ["12,345,678", "12.345.678", "12.345.678", "1,23,45,678", "١٢٬٣٤٥٬٦٧٨"]);
        assert_eq!(all(-5), ["-5", "-5", "-5", "-5", "\u{61c}-٥"]);
    }

    #[test]
    fn money_has_its_sign_and_its_point_where_the_language_has_them() {
        let euros = Language::ALL.map(|language| amount(125_050, "EUR", language));
        assert_eq!(euros, ["€1,250.50", "1.250,50\u{a0}€", "1250,50\u{a0}€", "€1,250.50", "\u{200f}١٬٢٥٠٫٥٠\u{a0}€"]);
        assert_eq!(amount(12_500_000, "INR", Hindi), "₹1,25,000.00");
        assert_eq!(amount(12_500_000, "INR", English), "₹125,000.00");
        assert_eq!(amount(35_000, "INR", Arabic), "\u{200f}٣٥٠٫٠٠\u{a0}₹");
        assert_eq!(amount(-1_250, "USD", English), "-$12.50");
        assert_eq!(amount(-1_250, "EUR", Spanish), "-12,50\u{a0}€");
        assert_eq!(amount(5, "GBP", German), "0,05\u{a0}£");
        assert_eq!(amount(900, "JPY", German), "900\u{a0}¥");
    }

    #[test]
    fn a_currency_without_a_sign_is_named_by_its_code() {
        assert_eq!(amount(12_500, "KWD", English), "12.500\u{a0}KWD");
        assert_eq!(amount(12_500, "KWD", German), "12,500\u{a0}KWD");
        assert_eq!(amount(12_500, "KWD", Arabic), "\u{200f}١٢٫٥٠٠\u{a0}د.ك.\u{200f}");
    }

    #[test]
    fn a_countdown_has_the_digits_of_the_language() {
        assert_eq!(clock(4, 9), "4:09");
        assert_eq!(super::super::speaking(Arabic, || clock(4, 9)), "٤:٠٩");
        assert_eq!([English, German, Arabic].map(|language| tenths(12, language)), ["1.2", "1,2", "١٫٢"]);
    }
}
