//! The price form of a theatre, read field by field. Each error is shown beside its field, in the currency of the input; API
//! clients get the service's errors, in minor units.

use std::collections::{BTreeMap, BTreeSet};

use app::staff::pages::organiser::{PriceForm, PriceLine, Prices};
use app::staff::pages::{Field, Refusal, Section};
use axum::extract::{Form, Path, Query, State};
use domain::api::organiser::{TariffRequest, TariffView};
use domain::money::Currency;
use domain::pricing::{Format, MAX_PERCENT};

use super::super::{StaffPageResult, StaffResult, desk};
use super::{
    OrganiserQuery, currency_of, field, intent, marked, new_key, page_locale, page_trouble, passing_or_fault, price_in,
    private, see, trouble, whole, with_status,
};
use crate::AppState;
use crate::web::pages::{FormResult, QueryResult};
use backoffice::organiser::{self, OrganiserAction, PriceInput};
use http::Code;

pub(super) async fn show_page(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
    asked: QueryResult<OrganiserQuery>,
) -> StaffPageResult {
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Query(asked) = asked?;
    let tariff = organiser::tariff(&state, &theatre).await.map_err(passing_or_fault)?;
    let ground = organiser::load_price_input(&state, &theatre).await.map_err(passing_or_fault)?;
    let currency = currency_of(&ground.currency)?;
    let form = as_kept(&tariff, &ground, currency);
    Ok(private(Prices { desk, form, currency, key: new_key(), done: asked.done, trouble: None }))
}

pub(super) async fn set(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
    form: FormResult<Vec<(String, String)>>,
) -> StaffPageResult {
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(sent) = form?;
    let ground = organiser::load_price_input(&state, &theatre).await.map_err(passing_or_fault)?;
    let currency = currency_of(&ground.currency)?;
    let (form, tariff) = as_sent(&sent, &ground, currency);
    let (status, trouble) = if form.is_refused() {
        marked()
    } else {
        let done = async {
            let tariff = TariffView { version: whole(&form.version, "The version")?, ..tariff };
            let request = TariffRequest { tariff, reason: form.reason.value.clone() };
            let intent = intent(&staff, field(&sent, "key"), &format!("form /staff/{theatre}/prices"), &request)?;
            let act = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
            organiser::set_tariff(&state, &act, &request).await
        };
        match done.await {
            Ok(_) => return Ok(see(&format!("/staff/{theatre}/prices?done=true"))),
            // A stale form must not overwrite newer prices: it keeps its old version.
            Err(problem) if problem.code() == Code::WrongState => page_trouble(
                problem.code().describe().0,
                app::say!(in page_locale::language(), "organiser.prices_changed"),
            ),
            Err(problem) => trouble(problem)?,
        }
    };
    let page = Prices { desk, form, currency, key: new_key(), done: false, trouble: Some(trouble) };
    Ok(with_status(status, private(page)))
}

/// The form of the tariff as it is.
fn as_kept(tariff: &TariffView, ground: &PriceInput, currency: Currency) -> PriceForm {
    let amount = |minor: Option<&i64>| minor.map(|minor| Field::amount(*minor, currency)).unwrap_or_default();
    let names: BTreeSet<&String> = ground.categories.keys().chain(tariff.base.keys()).collect();
    let line = |name: &String| PriceLine {
        category: name.clone(),
        label: ground.label_of(name),
        amount: amount(tariff.base.get(name)),
        is_in_a_room: ground.categories.contains_key(name),
    };
    let surcharges = Format::ALL.into_iter().filter_map(|format| {
        let minor = tariff.surcharge.get(&format);
        // A plain show rarely costs more than plain; where it does, saving the form must not lose it.
        (format != Format::TwoD || minor.is_some()).then(|| (format, amount(minor)))
    });
    let percent = |percent: i64| Field::kept(percent.to_string());
    PriceForm {
        version: tariff.version.to_string(),
        lines: names.into_iter().map(line).collect(),
        weekend: percent(tariff.weekend_percent),
        matinee: percent(tariff.matinee_percent),
        prime: percent(tariff.prime_percent),
        surcharges: surcharges.collect(),
        reason: Field::default(),
    }
}

/// The form as sent, with the error of each field; and its tariff, without a version, which is valid only if no field has an
/// error. A category with an empty field has no price.
fn as_sent(sent: &[(String, String)], ground: &PriceInput, currency: Currency) -> (PriceForm, TariffView) {
    let names = sent.iter().filter_map(|(name, _)| name.strip_prefix("price:"));
    let names: BTreeSet<&str> = names.chain(ground.categories.keys().map(String::as_str)).collect();
    let mut base = BTreeMap::new();
    let mut lines = Vec::with_capacity(names.len());
    for name in names {
        let (amount, minor) = price_in(field(sent, &format!("price:{name}")), currency);
        base.extend(minor.map(|minor| (name.to_owned(), minor)));
        let is_in_a_room = ground.categories.contains_key(name);
        lines.push(PriceLine { category: name.to_owned(), label: ground.label_of(name), amount, is_in_a_room });
    }
    let mut surcharge = BTreeMap::new();
    let mut surcharges = Vec::with_capacity(Format::ALL.len());
    for format in Format::ALL {
        let name = format!("surcharge:{}", format.as_str());
        let (amount, minor) = price_in(field(sent, &name), currency);
        surcharge.extend(minor.map(|minor| (format, minor)));
        if format != Format::TwoD || sent.iter().any(|(known, _)| *known == name) {
            surcharges.push((format, amount));
        }
    }
    let [(weekend, weekend_percent), (matinee, matinee_percent), (prime, prime_percent)] =
        ["weekend", "matinee", "prime"].map(|name| percent_in(field(sent, name)));
    let reason = Field::reason(field(sent, "reason"));
    let version = field(sent, "version").to_owned();
    let tariff = TariffView { base, weekend_percent, matinee_percent, prime_percent, surcharge, version: 0 };
    (PriceForm { version, lines, weekend, matinee, prime, surcharges, reason }, tariff)
}

/// A percentage in its field; 0 if it is invalid.
fn percent_in(text: &str) -> (Field, i64) {
    let percent = text.trim().parse::<i64>().ok().filter(|percent| (0..=i64::from(MAX_PERCENT)).contains(percent));
    match percent {
        Some(percent) => (Field::kept(text), percent),
        None => (Field::refused(text, Refusal::NoNumber(u32::from(MAX_PERCENT))), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground() -> PriceInput {
        let categories = [("cat-2", "Premium"), ("gold", "Gold"), ("vip", "Premium")];
        let categories = categories.map(|(name, label)| (name.to_owned(), label.to_owned()));
        PriceInput { currency: "INR".to_owned(), categories: categories.into() }
    }

    fn sent(fields: &[(&str, &str)]) -> (PriceForm, TariffView) {
        let usual = [("weekend", "120"), ("matinee", "80"), ("prime", "100"), ("reason", "Spring.")];
        // The first of a name counts.
        let fields = fields.iter().chain(&usual).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let fields: Vec<(String, String)> = fields.collect();
        as_sent(&fields, &ground(), Currency::parse("INR").expect("a code"))
    }

    #[test]
    fn each_error_is_beside_its_field_and_the_input_stays() {
        let (form, _) = sent(&[
            ("price:gold", "350.00"),
            ("price:cat-2", "3,5,0"),
            ("surcharge:3D", "-2"),
            ("weekend", "1001"),
            ("reason", " "),
        ]);
        let refused: Vec<&str> =
            form.lines.iter().filter(|line| line.amount.is_refused()).map(|line| line.category.as_str()).collect();
        assert_eq!(refused, ["cat-2"]);
        let typed: Vec<&str> = form.lines.iter().map(|line| line.amount.value.as_str()).collect();
        assert_eq!(typed, ["3,5,0", "350.00", ""]);
        let added = form.surcharges.iter().find(|(format, _)| *format == Format::ThreeD).map(|(_, amount)| amount);
        assert!(added.is_some_and(|amount| amount.value == "-2" && amount.is_refused()), "{form:?}");
        assert_eq!((form.weekend.value.as_str(), form.weekend.is_refused()), ("1001", true));
        assert!(form.reason.is_refused() && !form.prime.is_refused() && form.is_refused());
    }

    #[test]
    fn a_form_without_errors_is_a_tariff_in_minor_units() {
        let (form, tariff) = sent(&[("price:gold", "350.00"), ("price:vip", " "), ("surcharge:LIVE", "50")]);
        assert!(!form.is_refused(), "{form:?}");
        assert_eq!(tariff.base, BTreeMap::from([("gold".to_owned(), 35_000)]));
        assert_eq!(tariff.surcharge, BTreeMap::from([(Format::Live, 5_000)]));
        assert_eq!((tariff.weekend_percent, tariff.matinee_percent, tariff.prime_percent), (120, 80, 100));
    }

    #[test]
    fn a_category_no_room_has_keeps_its_price_and_is_not_shown() {
        let (form, tariff) = sent(&[("price:gold", "350.00"), ("price:couple", "800.00")]);
        assert_eq!(tariff.base.get("couple"), Some(&80_000), "kept");
        let shown: Vec<&str> =
            form.lines.iter().filter(|line| line.is_in_a_room).map(|line| line.category.as_str()).collect();
        assert_eq!(shown, ["cat-2", "gold", "vip"]);
        let kept = as_kept(&tariff, &ground(), Currency::parse("INR").expect("a code"));
        assert!(kept.lines.iter().any(|line| line.category == "couple" && !line.is_in_a_room), "{kept:?}");
    }

    #[test]
    fn categories_have_their_public_names_and_equal_names_are_distinguished() {
        let labels: Vec<String> = sent(&[("price:loge", "1")]).0.lines.into_iter().map(|line| line.label).collect();
        assert_eq!(labels, ["Premium (cat-2)", "Gold", "loge", "Premium (vip)"]);
    }
}
