//! Numbers, money and countdowns formatted by language. Source: Unicode CLDR 48, `common/main/*.xml` (`numbers`:
//! symbols, decimal and currency patterns), and ISO 4217 for minor digits. No floats are used.
//!
//! Digits are 0 to 9 in every language, also in Arabic (`latn`, the default of `ar-AE` and `ar-MA`): seats, screens,
//! references, number and date fields use them, and a page does not mix two numbering systems.

use std::fmt::Write as _;

use domain::money::Money;

use super::Language;

/// Right-to-left mark, U+200F, and left-to-right mark, U+200E: CLDR writes them around Arabic amounts.
const RIGHT_TO_LEFT_MARK: char = '\u{200f}';
const LEFT_TO_RIGHT_MARK: char = '\u{200e}';
/// Separates an amount and its currency.
const NO_BREAK_SPACE: char = '\u{a0}';

pub(super) struct NumberFormat {
    pub(super) decimal: char,
    pub(super) group: char,
    /// Digits per group, except the last group, which has three.
    pub(super) group_size: usize,
    /// Digits required before the first separator: Spanish writes 1250 and 12.500.
    pub(super) least_before_group: usize,
    pub(super) is_currency_first: bool,
    /// True if amounts and negative numbers have direction marks.
    pub(super) has_direction_marks: bool,
    /// Symbols of currencies, by code, that other languages write differently.
    pub(super) own_symbols: &'static [(&'static str, &'static str)],
}

impl NumberFormat {
    pub(super) const ENGLISH: Self = Self {
        decimal: '.',
        group: ',',
        group_size: 3,
        least_before_group: 1,
        is_currency_first: true,
        has_direction_marks: false,
        own_symbols: &[],
    };
}

/// A whole number: `1,250`, `1.250`, `1,25,000`.
pub fn number(value: i64, language: Language) -> String {
    let mut out = String::new();
    let style = language.facts().numbers;
    sign(&mut out, value, &style);
    grouped(&mut out, value.unsigned_abs(), &style);
    out
}

/// An amount with its currency: `€12.50`, `12,50 €`, `₹1,25,000.00`, `‏12.50 €`.
pub fn money(money: Money, language: Language) -> String {
    let style = language.facts().numbers;
    let digits = money.currency.minor_digits();
    let unit = 10_u64.pow(digits);
    let magnitude = money.minor.unsigned_abs();
    let (symbol, code) = (symbol(money, &style), money.currency.code());
    let mut out = String::new();
    if style.has_direction_marks {
        out.push(RIGHT_TO_LEFT_MARK);
    }
    sign(&mut out, money.minor, &style);
    if let (Some(symbol), true) = (symbol, style.is_currency_first) {
        out.push_str(symbol);
    }
    grouped(&mut out, magnitude / unit, &style);
    if digits > 0 {
        out.push(style.decimal);
        let _infallible = write!(out, "{:0width$}", magnitude % unit, width = digits as usize);
    }
    if symbol.is_none() || !style.is_currency_first {
        out.push(NO_BREAK_SPACE);
        out.push_str(symbol.unwrap_or(code));
    }
    out
}

/// Minutes and seconds of a countdown: `4:09`.
pub fn clock(minutes: i64, seconds: i64) -> String {
    format!("{}:{:02}", minutes.unsigned_abs(), seconds.unsigned_abs())
}

/// A number of tenths: `1.2`, `1,2`.
pub fn tenths(value: u32, language: Language) -> String {
    format!("{}{}{}", value / 10, language.facts().numbers.decimal, value % 10)
}

/// The symbol of a currency where people know it; otherwise its code is used.
fn symbol(money: Money, style: &NumberFormat) -> Option<&'static str> {
    let own = style.own_symbols.iter().find(|(code, _)| *code == money.currency.code());
    own.map(|(_, symbol)| *symbol).or_else(|| money.currency.symbol())
}

fn sign(out: &mut String, value: i64, style: &NumberFormat) {
    if value < 0 {
        if style.has_direction_marks {
            out.push(LEFT_TO_RIGHT_MARK);
        }
        out.push('-');
    }
}

fn grouped(out: &mut String, value: u64, style: &NumberFormat) {
    let digits = value.to_string();
    let is_grouped = digits.len() >= 3 + style.least_before_group;
    for (place, digit) in digits.bytes().enumerate() {
        let left = digits.len() - place;
        // The last group has three digits, the others `group_size`.
        if is_grouped && place > 0 && left >= 3 && (left - 3).is_multiple_of(style.group_size) {
            out.push(style.group);
        }
        out.push(char::from(digit));
    }
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
    fn numbers_are_grouped_by_language() {
        let all = |value| Language::ALL.map(|language| number(value, language));
        assert_eq!(all(7), ["7"; 5]);
        assert_eq!(all(999), ["999"; 5]);
        assert_eq!(all(1_250), ["1,250", "1.250", "1250", "1,250", "1,250"]);
        assert_eq!(all(12_345_678), ["12,345,678", "12.345.678", "12.345.678", "1,23,45,678", "12,345,678"]);
        assert_eq!(all(-5), ["-5", "-5", "-5", "-5", "\u{200e}-5"]);
    }

    #[test]
    fn money_has_symbol_and_decimal_point_by_language() {
        let euros = Language::ALL.map(|language| amount(125_050, "EUR", language));
        assert_eq!(euros, ["€1,250.50", "1.250,50\u{a0}€", "1250,50\u{a0}€", "€1,250.50", "\u{200f}1,250.50\u{a0}€"]);
        assert_eq!(amount(12_500_000, "INR", Hindi), "₹1,25,000.00");
        assert_eq!(amount(12_500_000, "INR", English), "₹125,000.00");
        assert_eq!(amount(35_000, "INR", Arabic), "\u{200f}350.00\u{a0}₹");
        assert_eq!(amount(-1_250, "USD", English), "-$12.50");
        assert_eq!(amount(-1_250, "EUR", Spanish), "-12,50\u{a0}€");
        assert_eq!(amount(5, "GBP", German), "0,05\u{a0}£");
        assert_eq!(amount(900, "JPY", German), "900\u{a0}¥");
    }

    #[test]
    fn a_currency_without_a_symbol_is_named_by_its_code() {
        assert_eq!(amount(12_500, "KWD", English), "12.500\u{a0}KWD");
        assert_eq!(amount(12_500, "KWD", German), "12,500\u{a0}KWD");
        assert_eq!(amount(12_500, "KWD", Arabic), "\u{200f}12.500\u{a0}د.ك.\u{200f}");
    }

    #[test]
    fn a_language_with_a_decimal_comma_says_so() {
        assert_eq!(Language::ALL.map(Language::has_decimal_comma), [false, true, true, false, false]);
    }

    #[test]
    fn every_language_uses_ascii_digits() {
        let written = [number(1_234_567_890, Arabic), amount(1_234_567_890, "EUR", Arabic), tenths(123, Arabic)];
        let are_latin = |text: &String| text.chars().filter(|c| c.is_numeric()).all(|c| c.is_ascii_digit());
        assert!(written.iter().all(are_latin), "{written:?}");
    }

    #[test]
    fn a_countdown_has_two_digits_for_seconds() {
        assert_eq!(clock(4, 9), "4:09");
        assert_eq!([English, German, Arabic].map(|language| tenths(12, language)), ["1.2", "1,2", "1.2"]);
    }
}
