//! What shows are made of besides rooms: prices and films.

use app::pages::staff::organiser::{Films, PriceLine, Prices, Trouble};
use app::pages::staff::{Desk, Section};
use axum::extract::{Form, Path, Query, State};
use domain::api_organiser::{FilmRequest, TariffRequest, TariffView};
use domain::money::Currency;
use domain::pricing::Format;
use serde::Deserialize;

use super::super::{Who, desk};
use super::{
    Asked, FormResult, PageResult, amount, currency_of, intent, new_key, passing_or_fault, private, see, trouble,
    whole, with_status,
};
use crate::AppState;
use crate::organiser::{self, Act};
use crate::web::{Code, Problem};

pub(super) async fn prices(
    State(state): State<AppState>,
    who: Who,
    Path(theatre): Path<String>,
    asked: Asked,
) -> PageResult {
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Query(asked) = asked?;
    prices_page(&state, desk, asked.done, None).await
}

async fn prices_page(state: &AppState, desk: Desk, done: bool, trouble: Option<Trouble>) -> PageResult {
    let tariff = organiser::tariff(state, &desk.theatre).await.map_err(passing_or_fault)?;
    let place = organiser::price_ground(state, &desk.theatre).await.map_err(passing_or_fault)?;
    let mut categories = place.categories;
    categories.extend(tariff.base.keys().cloned());
    categories.sort();
    categories.dedup();
    let line = |category: String| PriceLine { minor: tariff.base.get(&category).copied(), category };
    let lines = categories.into_iter().map(line).collect();
    let currency = currency_of(&place.currency)?;
    Ok(private(Prices { desk, tariff, lines, currency, key: new_key(), done, trouble }))
}

pub(super) async fn set_prices(
    State(state): State<AppState>,
    who: Who,
    Path(theatre): Path<String>,
    form: FormResult<Vec<(String, String)>>,
) -> PageResult {
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(fields) = form?;
    let done = async {
        let place = organiser::price_ground(&state, &theatre).await?;
        let currency = currency_of(&place.currency).map_err(|_| Problem::internal(&"a theatre's currency is none"))?;
        let (request, key) = tariff_request(&fields, currency)?;
        let intent = intent(&staff, key, &format!("form /staff/{theatre}/prices"), &request)?;
        let act = Act { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
        organiser::set_tariff(&state, &act, &request).await
    };
    match done.await {
        Ok(_) => Ok(see(&format!("/staff/{theatre}/prices?done=true"))),
        Err(problem) => {
            let (status, trouble) = trouble(problem)?;
            Ok(with_status(status, prices_page(&state, desk, false, Some(trouble)).await?))
        }
    }
}

/// The fields of a form as a request, and its key. A category whose field is empty has no price.
fn tariff_request(fields: &[(String, String)], currency: Currency) -> Result<(TariffRequest, &str), Problem> {
    let field = |name: &str| fields.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str());
    let filled = || fields.iter().filter(|(_, value)| !value.trim().is_empty());
    let percent = |name: &str| {
        let text = field(name);
        text.trim()
            .parse::<i64>()
            .map_err(|_| Problem::new(Code::PriceInvalid, format!("{name}: {text:?} is no percentage.")))
    };
    let base = filled().filter_map(|(name, value)| Some((name.strip_prefix("price:")?, value)));
    let base = base.map(|(name, value)| Ok((name.to_owned(), amount(value, name, currency)?)));
    let surcharge = filled().filter_map(|(name, value)| {
        let format = Format::parse(name.strip_prefix("surcharge:")?)?;
        Some((format, value))
    });
    let surcharge = surcharge.map(|(format, value)| Ok((format, amount(value, format.as_str(), currency)?)));
    let tariff = TariffView {
        base: base.collect::<Result<_, Problem>>()?,
        weekend_percent: percent("weekend")?,
        matinee_percent: percent("matinee")?,
        prime_percent: percent("prime")?,
        surcharge: surcharge.collect::<Result<_, Problem>>()?,
        version: whole(field("version"), "The version")?,
    };
    Ok((TariffRequest { tariff, reason: field("reason").to_owned() }, field("key")))
}

pub(super) async fn films(
    State(state): State<AppState>,
    who: Who,
    Path(theatre): Path<String>,
    asked: Asked,
) -> PageResult {
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Query(asked) = asked?;
    films_page(&state, desk, asked.done, None).await
}

async fn films_page(state: &AppState, desk: Desk, done: bool, trouble: Option<Trouble>) -> PageResult {
    let films = organiser::films(state).await.map_err(passing_or_fault)?;
    Ok(private(Films { desk, films, key: new_key(), done, trouble }))
}

#[derive(Deserialize)]
pub(super) struct FilmForm {
    key: String,
    title: String,
    running_minutes: String,
    #[serde(default)]
    genre: String,
    #[serde(default)]
    rating: String,
    #[serde(default)]
    tagline: String,
    #[serde(default)]
    synopsis: String,
    reason: String,
}

pub(super) async fn add_film(
    State(state): State<AppState>,
    who: Who,
    Path(theatre): Path<String>,
    form: FormResult<FilmForm>,
) -> PageResult {
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(form) = form?;
    let done = async {
        let FilmForm { key, title, running_minutes, genre, rating, tagline, synopsis, reason } = form;
        let running_minutes = whole(&running_minutes, "The running time")?;
        let request = FilmRequest { title, tagline, synopsis, running_minutes, rating, genre, reason };
        let intent = intent(&staff, &key, &format!("form /staff/{theatre}/films"), &request)?;
        let act = Act { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
        organiser::add_film(&state, &act, &request).await
    };
    match done.await {
        Ok(_) => Ok(see(&format!("/staff/{theatre}/films?done=true"))),
        Err(problem) => {
            let (status, trouble) = trouble(problem)?;
            Ok(with_status(status, films_page(&state, desk, false, Some(trouble)).await?))
        }
    }
}
