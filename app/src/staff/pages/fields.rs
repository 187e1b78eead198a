//! Fields of forms: what was typed stays in them, and why it was refused stands below.

use domain::api::systems::{MAX_REASON_CHARS, one_line};
use domain::money::{Currency, Money};
use leptos::prelude::*;

use crate::say;

/// What stands in a field, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// As it is kept, or as it was typed.
    pub value: String,
    /// Why it was refused; none where it was not.
    pub refusal: Option<Refusal>,
}

/// Why what was typed in a field was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no amount of money as this currency writes it.
    NoAmount(Currency),
    /// It is an amount below the first of these, or above the second.
    AmountBeyond(Money, Money),
    /// It is no whole number from 0 to this one.
    NoNumber(u32),
    /// It is no reason: nothing, or more than a line of so many characters.
    NoReason(usize),
    /// Something else, in the reader's language.
    Told(String),
}

impl Field {
    /// With nothing wrong.
    #[must_use]
    pub fn kept(value: impl Into<String>) -> Self {
        Self { value: value.into(), refusal: None }
    }

    /// With an amount of so many minor units, as this currency writes it.
    #[must_use]
    pub fn amount(minor: i64, currency: Currency) -> Self {
        Self::kept(decimal(minor, currency))
    }

    /// With what was typed as a reason: refused where it is none, or too long.
    #[must_use]
    pub fn reason(typed: impl Into<String>) -> Self {
        let typed = typed.into();
        let is_one = one_line(&typed, MAX_REASON_CHARS).is_some();
        Self { refusal: (!is_one).then_some(Refusal::NoReason(MAX_REASON_CHARS)), value: typed }
    }

    /// As it was typed, and why it was refused.
    #[must_use]
    pub fn refused(typed: impl Into<String>, refusal: Refusal) -> Self {
        Self { value: typed.into(), refusal: Some(refusal) }
    }

    /// Whether something is wrong with it.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// For the input of that id: that it is invalid, and the id of what says why; and what stands below it.
    pub(super) fn told(&self, id: &str) -> (Option<&'static str>, Option<String>, Option<AnyView>) {
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
            Self::Told(words) => words.clone(),
        }
    }
}

/// `12.50`, as this currency writes it.
fn example(currency: Currency) -> String {
    // Twelve and a half, where it has halves.
    let minor = if currency.minor_digits() == 0 { 1_250 } else { 125 * 10_i64.pow(currency.minor_digits() - 1) };
    decimal(minor, currency)
}

/// `12.50`, as fields have it.
fn decimal(minor: i64, currency: Currency) -> String {
    let digits = currency.minor_digits();
    let unit = 10_i64.pow(digits);
    if digits == 0 {
        return minor.to_string();
    }
    format!("{}.{:0width$}", minor / unit, (minor % unit).abs(), width = digits as usize)
}

/// A sum of money, in a currency that the label names where its code is given.
pub(super) fn amount_field(
    (id, name): (String, String),
    label: String,
    currency: Option<Currency>,
    field: Field,
    required: bool,
) -> AnyView {
    let (invalid, described_by, below) = field.told(&id);
    let currency = currency.map(|currency| format!(" ({})", currency.code()));
    view! {
        <div class="field">
            <label for=id.clone()><bdi>{label}</bdi>{currency}</label>
            <div class="field-told">
                <input id=id name=name r#type="text" inputmode="decimal" autocomplete="off" maxlength="20" dir="ltr"
                    required=required value=field.value aria-invalid=invalid aria-describedby=described_by />
                {below}
            </div>
        </div>
    }
    .into_any()
}

/// A whole number, under an id that is also its name.
pub(super) fn number_field(id: &'static str, label: String, field: Field, required: bool) -> AnyView {
    let (invalid, described_by, below) = field.told(id);
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <div class="field-told">
                <input id=id name=id r#type="number" required=required value=field.value aria-invalid=invalid
                    aria-describedby=described_by />
                {below}
            </div>
        </div>
    }
    .into_any()
}

/// A day and a time, on the clocks of a theatre.
pub(super) fn moment_field(id: &'static str, label: String, field: Field) -> AnyView {
    let (invalid, described_by, below) = field.told(id);
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <div class="field-told">
                <input id=id name=id r#type="datetime-local" required value=field.value aria-invalid=invalid
                    aria-describedby=described_by />
                {below}
            </div>
        </div>
    }
    .into_any()
}

/// A line that says why.
pub(super) fn reason_field(id: impl Into<String>, label: String, field: Field, required: bool) -> AnyView {
    let id: String = id.into();
    let (invalid, described_by, below) = field.told(&id);
    view! {
        <div class="field organiser-reason">
            <label for=id.clone()>{label}</label>
            <div class="field-told">
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
    use crate::language::{Language, speaking};

    fn currency(code: &str) -> Currency {
        Currency::parse(code).expect("a code")
    }

    #[test]
    fn amounts_stand_in_fields_as_their_currency_writes_them() {
        let written = |minor, code| decimal(minor, currency(code));
        assert_eq!(written(1_250, "EUR"), "12.50");
        assert_eq!(written(5, "EUR"), "0.05");
        assert_eq!(written(900, "JPY"), "900");
        assert_eq!(written(12_500, "KWD"), "12.500");
        assert_eq!(["EUR", "JPY", "KWD"].map(|code| example(currency(code))), ["12.50", "1250", "12.500"]);
    }

    #[test]
    fn a_refusal_speaks_of_money_as_people_write_it() {
        let [least, most] = [0, 100_000_000_000].map(|minor| Money::new(minor, currency("INR")));
        let said = speaking(Language::English, || Refusal::AmountBeyond(least, most).words());
        assert!(said.contains("₹0.00") && !said.contains("100000000000"), "{said}");
        let said = speaking(Language::English, || Refusal::NoAmount(currency("INR")).words());
        assert!(said.contains("INR") && said.contains("12.50"), "{said}");
    }
}
