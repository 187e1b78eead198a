//! The prices of a theatre.

use std::collections::BTreeSet;

use app::staff::pages::Form;
use app::staff::pages::organiser::{PRICE, PriceLine, prices_page, read_tariff, tariff_form};
use domain::api::organiser::{TariffRequest, TariffView};
use domain::money::Currency;

use super::super::{PageError, SignedInPageResult};
use super::visit::{SentForm, StaffVisit, malformed};
use backoffice::organiser::{self, PriceInput};
use http::Code;

pub(super) async fn show_page(visit: StaffVisit) -> SignedInPageResult {
    let tariff = organiser::tariff(&visit.state, &visit.desk.theatre).await?;
    let price_input = organiser::load_price_input(&visit.state, &visit.desk.theatre).await?;
    let form = tariff_form(&tariff, currency_of(&price_input.currency)?);
    page(visit, &price_input, form)
}

fn page(visit: StaffVisit, price_input: &PriceInput, form: Form) -> SignedInPageResult {
    let (lines, currency) = (lines(price_input, &form), currency_of(&price_input.currency)?);
    Ok(visit.show(|desk| prices_page(desk, form, lines, currency)))
}

/// The currency of prices that are shown.
pub(super) fn currency_of(code: &str) -> Result<Currency, PageError> {
    Currency::parse(code).ok_or(PageError::Fault)
}

/// All categories of the rooms and of the form.
fn lines(price_input: &PriceInput, form: &Form) -> Vec<PriceLine> {
    let priced = form.with_prefix(PRICE).map(|(category, _)| category);
    let all: BTreeSet<&str> = priced.chain(price_input.categories.keys().map(String::as_str)).collect();
    let line = |category: &str| PriceLine {
        category: category.to_owned(),
        label: price_input.label_of(category),
        is_in_a_room: price_input.categories.contains_key(category),
    };
    all.into_iter().map(line).collect()
}

pub(super) async fn set(visit: StaffVisit, SentForm(mut form): SentForm) -> SignedInPageResult {
    let price_input = organiser::load_price_input(&visit.state, &visit.desk.theatre).await?;
    let tariff = read_tariff(&mut form, currency_of(&price_input.currency)?);
    if form.is_refused() {
        return page(visit.refuse_fields(), &price_input, form);
    }
    let done = async {
        let tariff = TariffView { version: form.whole("version", "The version").map_err(malformed)?, ..tariff };
        let request = TariffRequest { tariff, reason: form.reason() };
        let intent = visit.intent(&form, &request)?;
        organiser::set_tariff(&visit.state, &visit.action(&intent, &request.reason), &request).await
    };
    let visit = match done.await {
        Ok(_) => return Ok(visit.redirect_to("prices?done=true")),
        // A stale form must not overwrite newer prices: it keeps its old version.
        Err(problem) if problem.code() == Code::WrongState => {
            visit.refuse_in_words(&problem, "organiser.prices_changed")?
        }
        Err(problem) => visit.refuse(&problem)?,
    };
    page(visit, &price_input, form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(prices: &[(&str, &str)]) -> Vec<PriceLine> {
        let categories = [("cat-2", "Premium"), ("gold", "Gold"), ("vip", "Premium")];
        let categories = categories.map(|(name, label)| (name.to_owned(), label.to_owned()));
        let price_input = PriceInput { currency: "INR".to_owned(), categories: categories.into() };
        lines(&price_input, &Form::new(prices.iter().copied()))
    }

    #[test]
    fn a_category_no_room_has_keeps_its_price_and_is_not_shown() {
        let prices = [("price:gold", "350.00"), ("price:couple", "800.00")];
        let tariff = read_tariff(&mut Form::new(prices), Currency::parse("INR").expect("a code"));
        assert_eq!(tariff.base.get("couple"), Some(&80_000), "kept");
        let lines = lines_of(&prices);
        assert!(lines.iter().any(|line| line.category == "couple" && !line.is_in_a_room), "{lines:?}");
        let shown: Vec<&str> =
            lines.iter().filter(|line| line.is_in_a_room).map(|line| line.category.as_str()).collect();
        assert_eq!(shown, ["cat-2", "gold", "vip"]);
    }

    #[test]
    fn categories_have_their_public_names_and_equal_names_are_distinguished() {
        let labels: Vec<String> = lines_of(&[("price:loge", "1")]).into_iter().map(|line| line.label).collect();
        assert_eq!(labels, ["Premium (cat-2)", "Gold", "loge", "Premium (vip)"]);
    }
}
