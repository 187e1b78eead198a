//! The prices of a theatre. Each error is beside its field, in the currency of the input; API clients get the service's
//! errors, in minor units.

use domain::VariantName;
use domain::api::organiser::TariffView;
use domain::money::Currency;
use domain::pricing::{
    Format, MATINEE_BEFORE_MINUTE, MAX_AMOUNT_MINOR, MAX_PERCENT, MAX_TAX_BASIS_POINTS, TaxAndFee, TaxStrategy,
};
use language::{Arg, current, say, time_of_day};
use leptos::prelude::*;
use strum::VariantArray;

use super::fields::{Field, amount_field, choice, hidden};
use super::form::decimal;
use super::{Desk, Form, untabbed_page};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::Page;

/// Prefix of the field of a category's price.
pub const PRICE: &str = "price:";
const WEEKEND: Field = Field::number("weekend", "organiser.weekend_percent").required().marked();
/// Before 17:00.
const MATINEE: Field = Field::number("matinee", "organiser.matinee_percent").required().marked();
/// From 17:00.
const PRIME: Field = Field::number("prime", "organiser.prime_percent").required().marked();

const TAX_STRATEGY: &str = "tax_strategy";
const TAX_RATE: &str = "tax_rate";
const FEE: &str = "fee";

/// A category with a price field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceLine {
    /// Its key.
    pub category: String,
    /// Its name for people.
    pub label: String,
    /// True if a room has this category. Others have no name for people; their price is kept but not shown.
    pub is_in_a_room: bool,
}

/// The form of a stored tariff.
#[must_use]
pub fn tariff_form(tariff: &TariffView, currency: Currency) -> Form {
    let prices = tariff.base.iter().map(|(category, minor)| (format!("{PRICE}{category}"), decimal(*minor, currency)));
    let surcharges = tariff.surcharge.iter().map(|(format, minor)| (surcharge(*format), decimal(*minor, currency)));
    let percents =
        [(WEEKEND, tariff.weekend_percent), (MATINEE, tariff.matinee_percent), (PRIME, tariff.prime_percent)];
    let percents = percents.map(|(field, percent)| (field.as_ref().to_owned(), percent.to_string()));
    let TaxAndFee { strategy, tax_basis_points: rate, fee_minor } = tariff.tax_and_fee.unwrap_or_default();
    let tax_and_fee = [
        (TAX_STRATEGY.to_owned(), strategy.as_str().to_owned()),
        (TAX_RATE.to_owned(), format!("{}.{:02}", rate / 100, rate % 100)),
        (FEE.to_owned(), decimal(fee_minor.cast_signed(), currency)),
    ];
    let version = ("version".to_owned(), tariff.version.to_string());
    Form::new(prices.chain(surcharges).chain(percents).chain(tax_and_fee).chain([version]))
}

/// The tariff of a sent form, without a version. It is valid only if no field is refused. A category with an empty field
/// has no price.
pub fn read_tariff(form: &mut Form, currency: Currency) -> TariffView {
    let categories: Vec<String> = form.with_prefix(PRICE).map(|(category, _)| category.to_owned()).collect();
    let base = categories.into_iter().filter_map(|category| {
        let minor = price_in(form, &format!("{PRICE}{category}"), currency)?;
        Some((category, minor))
    });
    let base = base.collect();
    let extra =
        Format::VARIANTS.iter().filter_map(|&format| Some((format, price_in(form, &surcharge(format), currency)?)));
    let surcharge = extra.collect();
    let [weekend_percent, matinee_percent, prime_percent] =
        [WEEKEND, MATINEE, PRIME].map(|field| i64::from(form.whole_up_to(field, u32::from(MAX_PERCENT))));
    let tax_and_fee = Some(TaxAndFee {
        strategy: form.choice(TAX_STRATEGY),
        tax_basis_points: form.basis_points_up_to(TAX_RATE, MAX_TAX_BASIS_POINTS),
        fee_minor: price_in(form, FEE, currency).unwrap_or_default().unsigned_abs(),
    });
    TariffView { base, weekend_percent, matinee_percent, prime_percent, surcharge, tax_and_fee, version: 0 }
}

/// The price in a field, minor units; `None` if it is empty or refused.
pub(super) fn price_in(form: &mut Form, field: &str, currency: Currency) -> Option<i64> {
    form.filled(field)?;
    form.amount(field, currency, 0..=MAX_AMOUNT_MINOR.cast_signed())
}

fn surcharge(format: Format) -> String {
    format!("surcharge:{}", format.as_str())
}

/// The page of prices, with the values of the form, and all categories of the theatre's rooms and of the form.
pub fn prices_page(desk: Desk, form: Form, lines: Vec<PriceLine>, currency: Currency) -> impl Page {
    untabbed_page(desk, "organiser.prices", move |desk| {
        let lead = if !lines.iter().any(|line| line.is_in_a_room) {
            say!("organiser.prices_none")
        } else {
            say!("organiser.prices_lead")
        };
        // 2D has a surcharge field only if one is stored: without the field, saving would delete it.
        let formats = Format::VARIANTS
            .iter()
            .filter(|&&format| format != Format::TwoD || form.all(surcharge(format)).count() > 0);
        let surcharges = formats.map(|&format| {
            let names = (format!("surcharge-{}", format.as_str()), surcharge(format));
            amount_field(&form, names, format.as_str().to_owned(), Some(currency), false)
        });
        let surcharges = surcharges.collect_view();
        let strategies = [
            (TaxStrategy::Included, say!("organiser.tax_included")),
            (TaxStrategy::Added, say!("organiser.tax_added")),
        ];
        let strategies = strategies.map(|(strategy, words)| (strategy.as_str().to_owned(), words)).to_vec();
        let named = |name: &str| (name.to_owned(), name.to_owned());
        let evening = time_of_day(MATINEE_BEFORE_MINUTE, current());
        let evening = Arg::Ours(&evening);
        view! {
            <form class="organiser-form card organiser-card" action=format!("/staff/{}/prices", desk.theatre) method="post">
                <p class="organiser-wide quiet">{lead}</p>
                {hidden("key", &desk.key)}
                {hidden("version", form.get("version"))}
                <fieldset class="organiser-wide">
                    <legend>{say!("organiser.base_prices")}</legend>
                    <div class="organiser-fields">{price_fields(&form, lines, currency)}</div>
                </fieldset>
                {WEEKEND.view(&form)}
                {MATINEE.labelled(say!("organiser.matinee_percent", time = evening), &form)}
                {PRIME.labelled(say!("organiser.prime_percent", time = evening), &form)}
                <fieldset class="organiser-wide">
                    <legend>{say!("organiser.surcharges")}</legend>
                    <div class="organiser-fields">{surcharges}</div>
                </fieldset>
                <fieldset class="organiser-wide" aria-describedby="tax-and-fee-lead">
                    <legend>{say!("organiser.tax_and_fee")}</legend>
                    <p class="quiet small" id="tax-and-fee-lead">{say!("organiser.tax_and_fee_lead")}</p>
                    <div class="organiser-fields">
                        {choice(&form, TAX_STRATEGY, say!("organiser.tax_strategy"), strategies)}
                        {amount_field(&form, named(TAX_RATE), say!("organiser.tax_rate"), None, false)}
                        {amount_field(&form, named(FEE), say!("organiser.seat_fee"), Some(currency), false)}
                    </div>
                </fieldset>
                <button class="button" r#type="submit" data-testid="set-prices">{say!("organiser.save")}</button>
            </form>
        }
        .into_markup()
    })
}

/// A field per category. The ids are numbers, because category names may contain characters that ids may not.
pub(super) fn price_fields(form: &Form, lines: Vec<PriceLine>, currency: Currency) -> Vec<Markup> {
    let fields = lines.into_iter().enumerate().map(|(number, line)| {
        let name = format!("{PRICE}{}", line.category);
        if !line.is_in_a_room && form.refusal(&name).is_none() {
            let value = form.text(&name);
            return view! { <input r#type="hidden" name=name value=value /> }.into_markup();
        }
        let names = (format!("price-{number}"), name);
        amount_field(form, names, line.label, Some(currency), false)
    });
    fields.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn sent(fields: &[(&str, &str)]) -> (Form, TariffView) {
        let usual = [("weekend", "120"), ("matinee", "80"), ("prime", "100")];
        let mut form = Form::new(fields.iter().chain(&usual).copied());
        let tariff = read_tariff(&mut form, Currency::parse("INR").expect("a code"));
        (form, tariff)
    }

    #[test]
    fn each_error_is_beside_its_field_and_the_input_stays() {
        let typed = [("price:gold", "350.00"), ("price:cat-2", "3,5,0"), ("surcharge:3D", "-2"), ("weekend", "1001")];
        let (form, _) = sent(&typed);
        let refused: Vec<&str> =
            typed.iter().map(|(name, _)| *name).filter(|name| form.refusal(name).is_some()).collect();
        assert_eq!(refused, ["price:cat-2", "surcharge:3D", "weekend"], "{form:?}");
        assert!(typed.iter().all(|(name, value)| form.get(name) == *value) && form.refusal("prime").is_none());
        assert!(form.is_refused());
    }

    #[test]
    fn a_tax_rate_has_two_decimal_places_and_a_maximum() {
        let rate = |typed| {
            let (form, tariff) = sent(&[("tax_strategy", "added"), ("tax_rate", typed), ("fee", "20")]);
            let tax_and_fee = tariff.tax_and_fee.expect("a form sends it");
            assert_eq!((tax_and_fee.strategy, tax_and_fee.fee_minor), (TaxStrategy::Added, 2_000));
            let mut stored = tariff_form(&tariff, Currency::parse("INR").expect("a code"));
            assert_eq!(read_tariff(&mut stored, Currency::parse("INR").expect("a code")), tariff);
            (tax_and_fee.tax_basis_points, form.refusal("tax_rate").is_some())
        };
        assert_eq!(["18", "7,5", " 2.05 ", "50"].map(rate), [1_800, 750, 205, 5_000].map(|rate| (rate, false)));
        assert_eq!(["50.01", "7.125", "-1", "a fifth", "700"].map(rate), [(0, true); 5]);
    }

    #[test]
    fn an_unknown_tax_strategy_is_refused() {
        let is_refused = |typed| sent(&[("tax_strategy", typed)]).0.refusal("tax_strategy").is_some();
        assert_eq!(["included", "added", "", "none"].map(is_refused), [false, false, false, true]);
    }

    #[test]
    fn a_form_without_errors_is_a_tariff_in_minor_units() {
        let (form, tariff) = sent(&[("price:gold", "350.00"), ("price:vip", " "), ("surcharge:LIVE", "50")]);
        assert!(!form.is_refused(), "{form:?}");
        assert_eq!(tariff.base, BTreeMap::from([("gold".to_owned(), 35_000)]));
        assert_eq!(tariff.surcharge, BTreeMap::from([(Format::Live, 5_000)]));
        assert_eq!((tariff.weekend_percent, tariff.matinee_percent, tariff.prime_percent), (120, 80, 100));
        assert_eq!(tariff.tax_and_fee, Some(TaxAndFee::default()), "empty fields");
        let mut stored = tariff_form(&tariff, Currency::parse("INR").expect("a code"));
        assert_eq!(read_tariff(&mut stored, Currency::parse("INR").expect("a code")), tariff);
    }
}
