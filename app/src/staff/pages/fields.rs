//! Form fields that keep the typed value and show why it was refused.

use domain::api::systems::{MAX_REASON_CHARS, one_line};
use domain::money::{Currency, Money};
use leptos::prelude::*;

use crate::say;

/// The value of a field, and its error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// The stored or typed value.
    pub value: String,
    /// Why it was refused; `None` if it was not.
    pub refusal: Option<Refusal>,
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
    /// Not a reason: empty, or longer than a line of this many characters.
    NoReason(usize),
    /// Another error, in the reader's language.
    Message(String),
}

impl Field {
    /// A field without an error.
    #[must_use]
    pub fn kept(value: impl Into<String>) -> Self {
        Self { value: value.into(), refusal: None }
    }

    /// A field with an amount in minor units, formatted for this currency.
    #[must_use]
    pub fn amount(minor: i64, currency: Currency) -> Self {
        Self::kept(decimal(minor, currency))
    }

    /// A field with a typed reason, refused if empty or too long.
    #[must_use]
    pub fn reason(typed: impl Into<String>) -> Self {
        let typed = typed.into();
        let is_one = one_line(&typed, MAX_REASON_CHARS).is_some();
        Self { refusal: (!is_one).then_some(Refusal::NoReason(MAX_REASON_CHARS)), value: typed }
    }

    /// A field with the typed value and its error.
    #[must_use]
    pub fn refused(typed: impl Into<String>, refusal: Refusal) -> Self {
        Self { value: typed.into(), refusal: Some(refusal) }
    }

    /// Returns true if the field has an error.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// ARIA attributes for the input with this id (`aria-invalid`, `aria-describedby`), and the error below it.
    pub(super) fn error_attributes(&self, id: &str) -> (Option<&'static str>, Option<String>, Option<AnyView>) {
        let Some(refusal) = &self.refusal else { return (None, None, None) };
        let (error, words) = (format!("{id}-error"), refusal.words());
        let below = view! { <p class="field-error" id=error.clone() data-testid="field-error">{words}</p> };
        (Some("true"), Some(error), Some(below.into_any()))
    }
}

impl Refusal {
    fn words(&self) -> String {
        match self {
            Self::NoAmount(currency) => {
                say!("field.no_amount", currency = currency.code(), example = &example(*currency))
            }
            Self::AmountBeyond(least, most) => say!("field.amount_beyond", least = *least, most = *most),
            Self::NoNumber(most) => say!("field.no_number", least = 0_u32, most = *most),
            Self::NoReason(most) => say!("field.no_reason", most = *most),
            Self::Message(words) => words.clone(),
        }
    }
}

/// An example amount: `12.50`, formatted for this currency.
fn example(currency: Currency) -> String {
    // Twelve and a half, if the currency has fractions.
    let minor = if currency.minor_digits() == 0 { 1_250 } else { 125 * 10_i64.pow(currency.minor_digits() - 1) };
    decimal(minor, currency)
}

/// An amount as fields contain it: `12.50`.
fn decimal(minor: i64, currency: Currency) -> String {
    let digits = currency.minor_digits();
    let unit = 10_i64.pow(digits);
    if digits == 0 {
        return minor.to_string();
    }
    format!("{}.{:0width$}", minor / unit, (minor % unit).abs(), width = digits as usize)
}

/// A field for an amount. The label shows the currency's code if given.
pub(super) fn amount_field(
    (id, name): (String, String),
    label: String,
    currency: Option<Currency>,
    field: Field,
    required: bool,
) -> AnyView {
    let (invalid, described_by, below) = field.error_attributes(&id);
    let currency = currency.map(|currency| format!(" ({})", currency.code()));
    view! {
        <div class="field">
            <label for=id.clone()><bdi>{label}</bdi>{currency}</label>
            <div class="field-message">
                <input id=id name=name r#type="text" inputmode="decimal" autocomplete="off" maxlength="20" dir="ltr"
                    required=required value=field.value aria-invalid=invalid aria-describedby=described_by />
                {below}
            </div>
        </div>
    }
    .into_any()
}

/// A field for a whole number. The id is also the name.
pub(super) fn number_field(id: &'static str, label: String, field: Field, required: bool) -> AnyView {
    let (invalid, described_by, below) = field.error_attributes(id);
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <div class="field-message">
                <input id=id name=id r#type="number" required=required value=field.value aria-invalid=invalid
                    aria-describedby=described_by />
                {below}
            </div>
        </div>
    }
    .into_any()
}

/// A field for a date and time, in the theatre's time zone.
pub(super) fn moment_field(id: &'static str, label: String, field: Field) -> AnyView {
    let (invalid, described_by, below) = field.error_attributes(id);
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <div class="field-message">
                <input id=id name=id r#type="datetime-local" required value=field.value aria-invalid=invalid
                    aria-describedby=described_by />
                {below}
            </div>
        </div>
    }
    .into_any()
}

/// A field for a reason of one line.
pub(super) fn reason_field(id: impl Into<String>, label: String, field: Field, required: bool) -> AnyView {
    let id: String = id.into();
    let (invalid, described_by, below) = field.error_attributes(&id);
    view! {
        <div class="field organiser-reason">
            <label for=id.clone()>{label}</label>
            <div class="field-message">
                <input id=id name="reason" r#type="text" autocomplete="off" maxlength="300" required=required
                    value=field.value aria-invalid=invalid aria-describedby=described_by />
                {below}
            </div>
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::{Language, with_language};

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
    fn a_refusal_contains_formatted_money() {
        let [least, most] = [0, 100_000_000_000].map(|minor| Money::new(minor, currency("INR")));
        let said = with_language(Language::English, || Refusal::AmountBeyond(least, most).words());
        assert!(said.contains("₹0.00") && !said.contains("100000000000"), "{said}");
        let said = with_language(Language::English, || Refusal::NoAmount(currency("INR")).words());
        assert!(said.contains("INR") && said.contains("12.50"), "{said}");
    }
}
