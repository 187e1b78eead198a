//! The values of a staff form: read, checked and shown again by field name.

use std::ops::RangeInclusive;
use std::str::FromStr;

use domain::api::systems::{MAX_REASON_CHARS, NO_REASON, one_line};
use domain::money::{Currency, Money};
use domain::till::parse_amount;
use language::say;

/// The name of every form's reason field.
pub const REASON: &str = "reason";

/// The values of a form, stored or sent, and the errors of its fields. The first value of a name counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    name: String,
    values: Vec<(String, String)>,
    refusals: Vec<(String, Refusal)>,
}

/// The error of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not an amount in this currency.
    NoAmount(Currency),
    /// An amount below the first or above the second of these.
    AmountBeyond(Money, Money),
    /// Not a whole number from 0 to this one.
    NoNumber(u32),
    /// Not a percentage from 0 to this one, or one with more than two decimal places.
    NoPercentage(u16),
    /// Not one of the options.
    NoChoice,
    /// Not a reason: empty, or longer than a line of this many characters.
    NoReason(usize),
    /// Another error, in the reader's language.
    Message(String),
}

impl Form {
    /// A form with these values.
    pub fn new<N: Into<String>, V: Into<String>>(values: impl IntoIterator<Item = (N, V)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { values: values.collect(), ..Self::default() }
    }

    /// The same form with its name, for pages with several forms.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Returns true if it is the form with this name.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// The form if it has this name, otherwise an empty one: a page shows the values of one form only there.
    #[must_use]
    pub fn only(&self, name: &str) -> Self {
        if self.is(name) { self.clone() } else { Self::default() }
    }

    /// The value of a field; empty if it is missing.
    pub fn get(&self, field: impl AsRef<str>) -> &str {
        self.all(field).next().unwrap_or_default()
    }

    /// The value of a field, owned.
    pub fn text(&self, field: impl AsRef<str>) -> String {
        self.get(field).to_owned()
    }

    /// The value of a field; `None` if it is blank.
    pub fn filled(&self, field: impl AsRef<str>) -> Option<String> {
        Some(self.text(field)).filter(|text| !text.trim().is_empty())
    }

    /// All values of a name, as checkboxes send them.
    pub fn all(&self, field: impl AsRef<str>) -> impl Iterator<Item = &str> {
        self.values.iter().filter(move |(known, _)| known == field.as_ref()).map(|(_, value)| value.as_str())
    }

    /// The names that start with `prefix`, without it, and their values.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.values.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }

    /// Returns true if a checkbox is ticked.
    pub fn is_ticked(&self, field: impl AsRef<str>) -> bool {
        !self.get(field).is_empty()
    }

    /// A whole number.
    ///
    /// # Errors
    /// The detail of the problem, in which `what` names the field.
    pub fn whole<T: FromStr>(&self, field: impl AsRef<str>, what: &str) -> Result<T, String> {
        let text = self.get(field);
        text.trim().parse().map_err(|_| format!("{what}: {text:?} is no whole number."))
    }

    /// A whole number from 0 to `most`; otherwise 0, and the field is refused.
    pub fn whole_up_to(&mut self, field: impl AsRef<str>, most: u32) -> u32 {
        let number = self.get(&field).trim().parse::<u32>().ok().filter(|number| *number <= most);
        if number.is_none() {
            self.refuse(field, Refusal::NoNumber(most));
        }
        number.unwrap_or_default()
    }

    /// A percentage in basis points, from 0 to `most`, written as `7.5` or `7,50`. A blank field is 0. Another text is
    /// 0, and the field is refused.
    pub fn basis_points_up_to(&mut self, field: impl AsRef<str>, most: u16) -> u16 {
        if self.filled(&field).is_none() {
            return 0;
        }
        let points = parse_amount(self.get(&field), 2).and_then(|points| u16::try_from(points).ok());
        let points = points.filter(|points| *points <= most);
        if points.is_none() {
            self.refuse(field, Refusal::NoPercentage(most / 100));
        }
        points.unwrap_or_default()
    }

    /// The chosen option. A blank field is the default. Another text is the default, and the field is refused.
    pub fn choice<T: FromStr + Default>(&mut self, field: impl AsRef<str>) -> T {
        let chosen = self.filled(&field).map_or_else(|| Ok(T::default()), |text| text.parse::<T>());
        if chosen.is_err() {
            self.refuse(field, Refusal::NoChoice);
        }
        chosen.unwrap_or_default()
    }

    /// An amount in minor units, written as `12.50` or `12,50`; otherwise `None`, and the field is refused.
    pub fn amount(&mut self, field: impl AsRef<str>, currency: Currency, between: RangeInclusive<i64>) -> Option<i64> {
        let minor = signed_amount(self.get(&field), currency);
        if minor.is_some_and(|minor| between.contains(&minor)) {
            return minor;
        }
        let [least, most] = [between.start(), between.end()].map(|minor| Money::new(*minor, currency));
        let refusal = minor.map_or(Refusal::NoAmount(currency), |_| Refusal::AmountBeyond(least, most));
        self.refuse(field, refusal);
        None
    }

    /// Replaces the value of a field.
    pub fn set(&mut self, field: impl AsRef<str>, value: impl Into<String>) {
        self.values.retain(|(known, _)| known != field.as_ref());
        self.values.push((field.as_ref().to_owned(), value.into()));
    }

    /// The reason; [`NO_REASON`] if the form has none.
    #[must_use]
    pub fn reason(&self) -> String {
        self.filled(REASON).unwrap_or_else(|| NO_REASON.to_owned())
    }

    /// Refuses a reason that is empty or too long.
    pub fn check_reason(&mut self) {
        if one_line(self.get(REASON), MAX_REASON_CHARS).is_none() {
            self.refuse(REASON, Refusal::NoReason(MAX_REASON_CHARS));
        }
    }

    /// The form after a failed attempt: a bad reason is marked.
    #[must_use]
    pub fn with_checked_reason(mut self) -> Self {
        self.check_reason();
        self
    }

    /// Refuses a field. Its first error stays.
    pub fn refuse(&mut self, field: impl AsRef<str>, refusal: Refusal) {
        self.refusals.push((field.as_ref().to_owned(), refusal));
    }

    /// The error of a field.
    pub fn refusal(&self, field: impl AsRef<str>) -> Option<&Refusal> {
        self.refusals.iter().find(|(known, _)| known == field.as_ref()).map(|(_, refusal)| refusal)
    }

    /// Returns true if a field is refused.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        !self.refusals.is_empty()
    }
}

impl Refusal {
    pub(super) fn words(&self) -> String {
        match self {
            Self::NoAmount(currency) => {
                say!("field.no_amount", currency = currency.code(), example = &example(*currency))
            }
            Self::AmountBeyond(least, most) => say!("field.amount_beyond", least = *least, most = *most),
            Self::NoNumber(most) => say!("field.no_number", least = 0_u32, most = *most),
            Self::NoPercentage(most) => say!("field.no_percentage", most = *most),
            Self::NoChoice => say!("field.no_choice"),
            Self::NoReason(most) => say!("field.no_reason", most = *most),
            Self::Message(words) => words.clone(),
        }
    }
}

/// An amount that may be negative, so that its error is the range.
fn signed_amount(text: &str, currency: Currency) -> Option<i64> {
    match text.trim().strip_prefix('-') {
        Some(positive) => parse_amount(positive, currency.minor_digits()).map(|minor| -minor),
        None => parse_amount(text, currency.minor_digits()),
    }
}

/// An example amount: `12.50`, formatted for this currency.
fn example(currency: Currency) -> String {
    // Twelve and a half, if the currency has fractions.
    let minor = if currency.minor_digits() == 0 { 1_250 } else { 125 * 10_i64.pow(currency.minor_digits() - 1) };
    decimal(minor, currency)
}

/// An amount in minor units as fields contain it: `12.50`.
pub(super) fn decimal(minor: i64, currency: Currency) -> String {
    Money::new(minor, currency).decimal()
}

#[cfg(test)]
mod tests {
    use super::*;
    use language::{Language, with_language};

    fn currency(code: &str) -> Currency {
        Currency::parse(code).expect("a code")
    }

    #[test]
    fn amounts_in_fields_follow_the_currency() {
        let written = |minor, code| decimal(minor, currency(code));
        assert_eq!(written(1_250, "EUR"), "12.50");
        assert_eq!(written(5, "EUR"), "0.05");
        assert_eq!(written(900, "JPY"), "900");
        assert_eq!(written(12_500, "KWD"), "12.500");
        assert_eq!(["EUR", "JPY", "KWD"].map(|code| example(currency(code))), ["12.50", "1250", "12.500"]);
    }

    #[test]
    fn amounts_are_read_as_their_currency_writes_them() {
        let read = |text: &str, code| signed_amount(text, currency(code));
        assert_eq!(read("12.50", "EUR"), Some(1_250));
        assert_eq!(read(" 12,5 ", "EUR"), Some(1_250));
        assert_eq!(read("12", "EUR"), Some(1_200));
        assert_eq!(read("900", "JPY"), Some(900));
        assert_eq!(read("1.250", "KWD"), Some(1_250));
        assert_eq!(read("-1", "EUR"), Some(-100), "an amount, and no price");
        for wrong in ["", "-", "twelve", "12.345", "1.2.3", "9223372036854775807", "1e3", ".5", "12.-5"] {
            assert_eq!(read(wrong, "EUR"), None, "{wrong}");
        }
        assert_eq!(read("1.5", "JPY"), None);
    }

    #[test]
    fn a_refusal_contains_formatted_money() {
        let [least, most] = [0, 100_000_000_000].map(|minor| Money::new(minor, currency("INR")));
        let said = with_language(Language::English, || Refusal::AmountBeyond(least, most).words());
        assert!(said.contains("₹0.00") && !said.contains("100000000000"), "{said}");
        let said = with_language(Language::English, || Refusal::NoAmount(currency("INR")).words());
        assert!(said.contains("INR") && said.contains("12.50"), "{said}");
    }

    #[test]
    fn a_refused_field_keeps_its_value_and_its_first_error() {
        let mut form = Form::new([("sum", "a lot"), ("percent", "1001"), (REASON, " ")]);
        assert_eq!(form.amount("sum", currency("EUR"), 0..=100), None);
        assert_eq!(form.whole_up_to("percent", 1_000), 0);
        form.refuse("sum", Refusal::NoNumber(7));
        form.check_reason();
        assert_eq!((form.get("sum"), form.refusal("sum")), ("a lot", Some(&Refusal::NoAmount(currency("EUR")))));
        assert!(form.refusal("percent").is_some() && form.refusal(REASON).is_some());
        assert!(form.only("another").refusals.is_empty() && form.clone().named("it").only("it").is_refused());
    }
}
