//! What a theatre asks for its seats.

use domain::api_organiser::TariffView;
use domain::money::Currency;
use domain::pricing::{Format, MATINEE_BEFORE_MINUTE};
use leptos::prelude::*;

use super::{Desk, Tab, Trouble, decimal, field, head, hidden, page, reason};
use crate::language::{Arg, current, time_of_day};
use crate::say;
use crate::shell::{Head, Page};

/// A category with its price as it stands in the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceLine {
    /// The category.
    pub category: String,
    /// Minor units; none where it has no price yet.
    pub minor: Option<i64>,
}

/// The page.
#[derive(Clone, Debug)]
pub struct Prices {
    /// Who, where.
    pub desk: Desk,
    /// The tariff as it is.
    pub tariff: TariffView,
    /// Every category of the theatre's rooms and of the tariff.
    pub lines: Vec<PriceLine>,
    /// The theatre's currency.
    pub currency: Currency,
    /// Idempotency key.
    pub key: String,
    /// Whether something was just done.
    pub done: bool,
    /// What stood in the way.
    pub trouble: Option<Trouble>,
}

impl Page for Prices {
    fn head(&self) -> Head {
        head(say!("organiser.prices"))
    }

    fn view(self) -> AnyView {
        let Self { desk, tariff, lines, currency, key, done, trouble } = self;
        let amount = |name: String, label: String, minor: Option<i64>| {
            let value = minor.map(|minor| decimal(minor, currency)).unwrap_or_default();
            view! {
                <div class="field">
                    <label for=name.clone()><bdi>{label}</bdi>" ("{currency.code().to_owned()}")"</label>
                    <input id=name.clone() name=name r#type="text" inputmode="decimal" dir="ltr" value=value />
                </div>
            }
        };
        let has_lines = !lines.is_empty();
        let base = lines.into_iter().map(|line| amount(format!("price:{}", line.category), line.category, line.minor));
        let base = base.collect_view();
        let surcharges = Format::ALL.into_iter().filter_map(|format| {
            let minor = tariff.surcharge.get(&format).copied();
            // A plain show rarely costs more than plain; where it does, saving the form must not lose it.
            let is_offered = format != Format::TwoD || minor.is_some();
            is_offered.then(|| amount(format!("surcharge:{}", format.as_str()), format.as_str().to_owned(), minor))
        });
        let surcharges = surcharges.collect_view();
        let lead = if has_lines { say!("organiser.prices_lead") } else { say!("organiser.prices_none") };
        let evening = time_of_day(MATINEE_BEFORE_MINUTE, current());
        let evening = Arg::Ours(&evening);
        let percent = |name, label, value: i64| field(name, "number", label, value.to_string(), true);
        let content = view! {
            <form class="organiser-form card organiser-card" action=format!("/staff/{}/prices", desk.theatre) method="post">
                <p class="organiser-wide quiet">{lead}</p>
                {hidden("key", key)}
                {hidden("version", tariff.version.to_string())}
                <fieldset class="organiser-wide">
                    <legend>{say!("organiser.base_prices")}</legend>
                    <div class="organiser-fields">{base}</div>
                </fieldset>
                {percent("weekend", say!("organiser.weekend_percent"), tariff.weekend_percent)}
                {percent("matinee", say!("organiser.matinee_percent", time = evening), tariff.matinee_percent)}
                {percent("prime", say!("organiser.prime_percent", time = evening), tariff.prime_percent)}
                <fieldset class="organiser-wide">
                    <legend>{say!("organiser.surcharges")}</legend>
                    <div class="organiser-fields">{surcharges}</div>
                </fieldset>
                {reason("prices-reason")}
                <button class="button" r#type="submit" data-testid="set-prices">{say!("organiser.save")}</button>
            </form>
        };
        page(&desk, Tab::Prices, say!("organiser.prices"), done, trouble, content.into_any())
    }
}
