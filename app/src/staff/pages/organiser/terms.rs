//! The terms of sale of a show, as the forms of planning and of a show have them.

use domain::VariantName;
use domain::api::organiser::{Sales, TermsOfSale};
use domain::seats::FLASH_HOLD_MS;
use domain::time::SECOND_MS;
use language::say;
use leptos::prelude::*;

use super::fields::{Field, choice};
use super::{Form, sales_words};
use crate::markup::{IntoMarkup, Markup};

const SALES: &str = "sales";
const SALES_FROM: Field = Field::moment("sales_from", "organiser.sales_from");
const HOLD_SECONDS: Field = Field::number("hold_seconds", "organiser.hold_seconds").required();
const PER_PERSON: Field = Field::number("per_person", "organiser.per_person").required();
const PER_INSTRUMENT: Field = Field::number("per_instrument", "organiser.per_instrument");
const FLASH: Field = Field::tick("flash", "organiser.flash");
const EMAIL_CODE: Field = Field::tick("email_code", "organiser.email_code");

pub(super) fn values(terms: TermsOfSale) -> Vec<(String, String)> {
    let ticked = |is_ticked: bool| if is_ticked { "true".to_owned() } else { String::new() };
    let values = [
        (SALES, terms.sales.as_str().to_owned()),
        (SALES_FROM.as_ref(), terms.sales_from.unwrap_or_default()),
        (HOLD_SECONDS.as_ref(), terms.hold_seconds.to_string()),
        (PER_PERSON.as_ref(), terms.per_person.to_string()),
        (PER_INSTRUMENT.as_ref(), terms.per_instrument.map(|most| most.to_string()).unwrap_or_default()),
        (FLASH.as_ref(), ticked(terms.flash_sale)),
        (EMAIL_CODE.as_ref(), ticked(terms.email_code)),
    ];
    values.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

pub(super) fn read(form: &Form) -> Result<TermsOfSale, String> {
    let has_limit = form.filled(PER_INSTRUMENT).is_some();
    Ok(TermsOfSale {
        sales: form.get(SALES).parse().map_err(|_| "Say whether it is on sale.")?,
        sales_from: form.filled(SALES_FROM),
        hold_seconds: form.whole(HOLD_SECONDS, "Seats are held for")?,
        flash_sale: form.is_ticked(FLASH),
        per_person: form.whole(PER_PERSON, "Seats one person may have")?,
        email_code: form.is_ticked(EMAIL_CODE),
        per_instrument: has_limit.then(|| form.whole(PER_INSTRUMENT, "Seats one card may pay for")).transpose()?,
    })
}

/// The fields. `are_marked` if each shows its error.
pub(super) fn view(form: &Form, are_marked: bool) -> Markup {
    let number = |field: Field| if are_marked { field.marked().view(form) } else { field.view(form) };
    let sales =
        [Sales::Planned, Sales::Open, Sales::Paused].map(|sales| (sales.as_str().to_owned(), sales_words(sales)));
    view! {
        {choice(form, SALES, say!("organiser.sales"), sales.to_vec())}
        {SALES_FROM.view(form)}
        {number(HOLD_SECONDS)}
        {number(PER_PERSON)}
        {number(PER_INSTRUMENT)}
        {FLASH.labelled(say!("organiser.flash", seconds = FLASH_HOLD_MS / SECOND_MS), form)}
        {EMAIL_CODE.view(form)}
    }
    .into_markup()
}
