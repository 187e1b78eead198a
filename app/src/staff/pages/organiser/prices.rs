//! The prices of a theatre.

use domain::VariantName;
use domain::money::Currency;
use domain::pricing::{Format, MATINEE_BEFORE_MINUTE};
use leptos::prelude::*;

use super::super::Field;
use super::super::fields::{amount_field, number_field, reason_field};
use super::{Desk, Tab, Trouble, head, hidden, page};
use crate::language::{Arg, current, time_of_day};
use crate::say;
use crate::shell::{Head, Page};

/// The price of a category in its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceLine {
    /// Its key.
    pub category: String,
    /// Its name for people.
    pub label: String,
    /// Its price; empty without one.
    pub amount: Field,
    /// True if a room has this category. Others have no name for people; their price is kept but not shown.
    pub is_in_a_room: bool,
}

/// The values of the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceForm {
    /// Version of the tariff being changed.
    pub version: String,
    /// All categories of the theatre's rooms and of the tariff.
    pub lines: Vec<PriceLine>,
    /// Percent on Saturday and Sunday.
    pub weekend: Field,
    /// Percent before 17:00.
    pub matinee: Field,
    /// Percent from 17:00.
    pub prime: Field,
    /// Surcharge per format; empty for none.
    pub surcharges: Vec<(Format, Field)>,
    /// The typed reason.
    pub reason: Field,
}

impl PriceForm {
    /// Returns true if a field has an error.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        let others = [&self.weekend, &self.matinee, &self.prime, &self.reason];
        let amounts = self.lines.iter().map(|line| &line.amount);
        let amounts = amounts.chain(self.surcharges.iter().map(|(_, amount)| amount));
        others.into_iter().chain(amounts).any(Field::is_refused)
    }
}

/// The page of prices.
#[derive(Clone, Debug)]
pub struct Prices {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The values of the form.
    pub form: PriceForm,
    /// The theatre's currency.
    pub currency: Currency,
    /// Idempotency key.
    pub key: String,
    /// True if a change was just made.
    pub done: bool,
    /// The error of the last attempt.
    pub trouble: Option<Trouble>,
}

impl Page for Prices {
    fn head(&self) -> Head {
        head(say!("organiser.prices"))
    }

    fn view(self) -> AnyView {
        let Self { desk, form, currency, key, done, trouble } = self;
        let PriceForm { version, lines, weekend, matinee, prime, surcharges, reason } = form;
        let lead = if !lines.iter().any(|line| line.is_in_a_room) {
            say!("organiser.prices_none")
        } else {
            say!("organiser.prices_lead")
        };
        let surcharges = surcharges.into_iter().map(|(format, amount)| {
            let name = format!("surcharge:{}", format.as_str());
            let id = format!("surcharge-{}", format.as_str());
            amount_field((id, name), format.as_str().to_owned(), Some(currency), amount, false)
        });
        let surcharges = surcharges.collect_view();
        let evening = time_of_day(MATINEE_BEFORE_MINUTE, current());
        let evening = Arg::Ours(&evening);
        let content = view! {
            <form class="organiser-form card organiser-card" action=format!("/staff/{}/prices", desk.theatre) method="post">
                <p class="organiser-wide quiet">{lead}</p>
                {hidden("key", key)}
                {hidden("version", version)}
                <fieldset class="organiser-wide">
                    <legend>{say!("organiser.base_prices")}</legend>
                    <div class="organiser-fields">{price_fields(lines, currency)}</div>
                </fieldset>
                {number_field("weekend", say!("organiser.weekend_percent"), weekend, true)}
                {number_field("matinee", say!("organiser.matinee_percent", time = evening), matinee, true)}
                {number_field("prime", say!("organiser.prime_percent", time = evening), prime, true)}
                <fieldset class="organiser-wide">
                    <legend>{say!("organiser.surcharges")}</legend>
                    <div class="organiser-fields">{surcharges}</div>
                </fieldset>
                {reason_field("prices-reason", say!("organiser.reason"), reason, true)}
                <button class="button" r#type="submit" data-testid="set-prices">{say!("organiser.save")}</button>
            </form>
        };
        page(&desk, Tab::Prices, say!("organiser.prices"), done, trouble, content.into_any())
    }
}

/// A field per category. The ids are numbers, because category names may contain characters that ids may not.
pub(super) fn price_fields(lines: Vec<PriceLine>, currency: Currency) -> Vec<AnyView> {
    let fields = lines.into_iter().enumerate().map(|(number, line)| {
        let name = format!("price:{}", line.category);
        if !line.is_in_a_room && !line.amount.is_refused() {
            return view! { <input r#type="hidden" name=name value=line.amount.value /> }.into_any();
        }
        let names = (format!("price-{number}"), name);
        amount_field(names, line.label, Some(currency), line.amount, false)
    });
    fields.collect()
}
