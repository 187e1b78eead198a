//! Front page, city, theatre, film, search. The same for everyone: they set no cookie.

use app::PageLink;
use app::pages::film::FilmPage;
use app::pages::listing::{FilmCard, StripChoice};
use app::pages::places::{CityPage, HomePage, TheatreCard, TheatreListingPage};
use app::pages::search::{FoundFilm, SearchForm, SearchOption, SearchPage};
use axum::extract::State;
use axum::routing::get;
use chrono::NaiveDate;
use domain::VariantName;
use domain::api::catalogue::{DayQuery, FilmView, ShowQuery};
use domain::pricing::Format;
use domain::time::Timestamp;
use language::say;
use serde::Deserialize;
use strum::VariantArray;

use super::{Page, PageError, PagePath, PageQuery, PageResult, public_page};
use crate::AppState;
use crate::web::budget::BROWSING;
use catalogue::{FilmTonight, ListedShow, ShowSearch, days_from, read_date, today_in};
use http::cache_tags::CacheTags;
use http::caching::CachePolicy;
use http::page_locale;
use platform::clock;

mod listing;
mod poster_picture;

pub(super) use listing::days;

pub(super) fn pages() -> [Page; 6] {
    [
        ("/", get(home), BROWSING),
        ("/cities/{id}", get(city), BROWSING),
        ("/theatres/{id}", get(theatre), BROWSING),
        ("/films/{id}", get(film), BROWSING),
        ("/films/{id}/poster.png", get(poster_picture::poster), BROWSING),
        ("/search", get(search), BROWSING),
    ]
}

/// Films on the front page: three rows on a laptop.
const HOME_FILMS: usize = 12;

async fn home(State(state): State<AppState>) -> PageResult {
    let (now, language) = (clock::now(), page_locale::language());
    let cities = state.catalogue.listings().cities().await?;
    let films = state.catalogue.listings().films_tonight(now).await?;
    let (form, _) = search_form(&state, &ShowQuery::default(), now).await?;
    let page = HomePage {
        form,
        films: films.into_iter().take(HOME_FILMS).map(tonight_card).collect(),
        cities: cities
            .into_iter()
            .map(|city| {
                let note = say!(in language, "list.theatres", count = city.theatres);
                (PageLink::new(city.name, listing::city_path(&city.id)), note)
            })
            .collect(),
    };
    Ok(public_page(page, CachePolicy::with_tags(CacheTags::lists())))
}

/// Maximum number of cities named on a card; more are only counted.
const CITIES_NAMED: usize = 3;

fn tonight_card(tonight: FilmTonight) -> FilmCard {
    let (language, shows) = (page_locale::language(), tonight.shows);
    let when = match tonight.cities.len() {
        named if named <= CITIES_NAMED => {
            let shows = say!(in language, "list.shows", shows = shows);
            format!("{shows} · {}", tonight.cities.join(listing::comma().as_str()))
        }
        many => say!(in language, "list.shows_in_cities", shows = shows, cities = many),
    };
    listing::film_card(&tonight.film, None, when)
}

async fn city(State(state): State<AppState>, PagePath(id): PagePath<String>) -> PageResult {
    let now = clock::now();
    let city = state.catalogue.listings().city(&id).await?.ok_or(PageError::NotFound)?;
    let theatres = state.catalogue.listings().theatres(Some(&city.id)).await?;
    let today = today_in(&city.time_zone, now)?;
    let today_here = ShowSearch { city: Some(city.id.clone()), date: Some(today), ..ShowSearch::default() };
    let found = state.catalogue.listings().search(&today_here, now).await?;
    let tags = theatres.iter().fold(CacheTags::default().city(&city.id), |tags, theatre| tags.theatre(&theatre.id));
    let cache_policy =
        CachePolicy::with_tags(tags.listing(found.shows.iter().map(ListedShow::theatre_and_film))).read_at(found.asked);
    let page = CityPage {
        theatres: theatres
            .into_iter()
            .map(|theatre| TheatreCard {
                place: PageLink::new(theatre.name, listing::theatre_path(&theatre.id)),
                address: theatre.address,
                screens: say!(in page_locale::language(), "list.screens", count = theatre.screens),
            })
            .collect(),
        films: listing::by_film(&found.shows)
            .into_iter()
            .map(|(film, shows)| listing::film_card(film, Some(&city.id), listing::times(&shows)))
            .collect(),
        week: format!("/search?city={}", city.id),
        place: PageLink::new(city.name, listing::city_path(&city.id)),
    };
    Ok(public_page(page, cache_policy))
}

async fn theatre(
    State(state): State<AppState>,
    PagePath(id): PagePath<String>,
    PageQuery(day): PageQuery<DayQuery>,
) -> PageResult {
    let requested = read_date(day.date.as_deref())?;
    let now = clock::now();
    let theatre = state.catalogue.listings().theatre(&id).await?.ok_or(PageError::NotFound)?;
    let today = today_in(&theatre.time_zone, now)?;
    let date = requested.unwrap_or(today);
    let search = ShowSearch { theatre: Some(theatre.id.clone()), date: Some(date), ..ShowSearch::default() };
    let found = state.catalogue.listings().search(&search, now).await?;
    let path = listing::theatre_path(&theatre.id);
    let cache_policy = CachePolicy::with_tags(
        CacheTags::default().theatre(&theatre.id).listing(found.shows.iter().map(ListedShow::theatre_and_film)),
    )
    .read_at(found.asked);
    let page = TheatreListingPage {
        days: listing::days(today, date, |day| format!("{path}?date={day}")),
        films: listing::by_film(&found.shows)
            .into_iter()
            .map(|(film, shows)| listing::film_times(film, &theatre.city, date, &shows))
            .collect(),
        next_day: format!("{path}?date={}", listing::day_after(date)),
        city: PageLink::new(theatre.city_name, listing::city_path(&theatre.city)),
        name: theatre.name,
        address: theatre.address,
    };
    Ok(public_page(page, cache_policy))
}

#[derive(Deserialize)]
struct FilmQuery {
    #[serde(default)]
    city: String,
    date: Option<String>,
}

async fn film(
    State(state): State<AppState>,
    PagePath(id): PagePath<String>,
    PageQuery(query): PageQuery<FilmQuery>,
) -> PageResult {
    let requested = read_date(query.date.as_deref())?;
    let now = clock::now();
    let film = state.catalogue.listings().film(&id).await?.ok_or(PageError::NotFound)?;
    let everywhere = ShowSearch { film: Some(film.id.clone()), ..ShowSearch::default() };
    let found = state.catalogue.listings().search(&everywhere, now).await?;

    let mut cities = listing::group_by(&found.shows, |listed| &listed.show.city);
    cities.sort_by(|(_, one), (_, other)| city_name(one).cmp(&city_name(other)));
    let chosen = cities.iter().find(|(city, _)| **city == query.city).or(cities.first());
    let Some(show) = chosen.and_then(|(_, shows)| Some(&shows.first()?.show)) else {
        let cache_policy = CachePolicy::with_tags(CacheTags::default().film(&film.id)).read_at(found.asked);
        return Ok(public_page(empty_film_page(&film), cache_policy));
    };

    // The search in all cities may have been cut off at its limit; the search in one city is not.
    let here = ShowSearch { city: Some(show.city.clone()), ..everywhere };
    let week = state.catalogue.listings().search(&here, now).await?;
    let zone = state.catalogue.listings().city(&show.city).await?.ok_or(PageError::NotFound)?.time_zone;
    let today = today_in(&zone, now)?;
    let first_day = week.shows.first().and_then(|listed| listed.show.local_date.parse().ok());
    let date = requested.or(first_day).unwrap_or(today);
    let day = date.to_string();
    let theatres = listing::group_by(week.shows.iter().filter(|listed| listed.show.local_date == day), |listed| {
        listed.show.theatre.as_str()
    });
    let path = listing::film_path(&film.id, Some(&show.city), None);
    let tags = CacheTags::default()
        .film(&film.id)
        .listing(found.shows.iter().map(ListedShow::theatre_and_film))
        .listing(week.shows.iter().map(ListedShow::theatre_and_film));
    Ok(public_page(
        FilmPage {
            cities: cities.iter().map(|(city, shows)| city_choice(&film, city, shows, &show.city)).collect(),
            city: Some(PageLink::new(show.city_name.clone(), listing::city_path(&show.city))),
            days: listing::days(today, date, |day| format!("{path}&date={day}")),
            theatres: theatres
                .iter()
                .filter_map(|(_, shows)| listing::theatre_group(shows, |_| listing::day_in_words(today, date)))
                .collect(),
            ..empty_film_page(&film)
        },
        CachePolicy::with_tags(tags).read_at(found.asked).read_at(week.asked),
    ))
}

/// The page of a film without shows.
fn empty_film_page(film: &FilmView) -> FilmPage {
    FilmPage {
        path: listing::film_path(&film.id, None, None),
        title: film.title.clone(),
        tagline: film.tagline.clone(),
        synopsis: film.synopsis.clone(),
        hue: film.hue,
        facts: listing::facts(film),
        cities: Vec::new(),
        city: None,
        days: Vec::new(),
        theatres: Vec::new(),
    }
}

fn city_name<'a>(shows: &[&'a ListedShow]) -> Option<&'a str> {
    shows.first().map(|listed| listed.show.city_name.as_str())
}

fn city_choice(film: &FilmView, city: &str, shows: &[&ListedShow], chosen: &str) -> StripChoice {
    StripChoice {
        label: city_name(shows).unwrap_or(city).to_owned(),
        note: String::new(),
        href: listing::film_path(&film.id, Some(city), None),
        current: city == chosen,
    }
}

/// Maximum number of theatres listed for a found film; the page of the film lists all.
const THEATRES_PER_FILM: usize = 2;

async fn search(State(state): State<AppState>, PageQuery(query): PageQuery<ShowQuery>) -> PageResult {
    let search = ShowSearch::read(&query)?;
    let (now, reader) = (clock::now(), page_locale::current());
    let (form, today) = search_form(&state, &query, now).await?;
    let found = state.catalogue.listings().search(&search, now).await?;
    // A search without a day shows the first day with shows. That day is searched again, because the first search may
    // have been cut off within it.
    let first_day = found.shows.first().and_then(|listed| listed.show.local_date.parse().ok());
    let date = search.date.or(first_day);
    let of_day = state.catalogue.listings().search(&ShowSearch { date, ..search.clone() }, now).await?;
    let page = SearchPage {
        form: SearchForm { dates: Vec::new(), ..form },
        days: date.map_or_else(Vec::new, |date| {
            listing::days(today, date, |day| reader.address_with("date", &day.to_string()))
        }),
        any_day: search.date.map(|_| reader.address_with("date", "")),
        films: listing::by_film(&of_day.shows)
            .into_iter()
            .map(|(film, shows)| found_film(film, &shows, search.city.as_deref(), date))
            .collect(),
        count: of_day.shows.len(),
        more: of_day.more,
    };
    Ok(public_page(page, CachePolicy::with_tags(CacheTags::lists()).read_at(found.asked).read_at(of_day.asked)))
}

fn found_film(film: &FilmView, shows: &[&ListedShow], city: Option<&str>, date: Option<NaiveDate>) -> FoundFilm {
    let theatres = listing::group_by(shows.iter().copied(), |listed| listed.show.theatre.as_str());
    let left_out: usize = theatres.iter().skip(THEATRES_PER_FILM).map(|(_, shows)| shows.len()).sum();
    let path = listing::film_path(&film.id, city, date);
    FoundFilm {
        film: PageLink::new(film.title.clone(), path.clone()),
        hue: film.hue,
        facts: listing::facts_line(film),
        theatres: theatres
            .iter()
            .take(THEATRES_PER_FILM)
            .filter_map(|(_, shows)| listing::theatre_group(shows, |show| show.city_name.clone()))
            .collect(),
        rest: (left_out > 0)
            .then(|| PageLink::new(say!(in page_locale::language(), "list.more_show_times", count = left_out), path)),
    }
}

/// The form, and today: the earliest of all cities, if none is chosen.
async fn search_form(
    state: &AppState,
    query: &ShowQuery,
    now: Timestamp,
) -> Result<(SearchForm, NaiveDate), PageError> {
    let cities = state.catalogue.listings().cities().await?;
    let theatres = state.catalogue.listings().theatres(None).await?;
    let languages = state.catalogue.listings().languages(now).await?;
    let chosen = |field: &Option<String>| field.as_deref().unwrap_or_default().trim().to_owned();
    let city = chosen(&query.city);
    let in_question = cities.iter().filter(|known| city.is_empty() || known.id == city);
    let dates = in_question.map(|city| today_in(&city.time_zone, now)).collect::<Result<Vec<_>, _>>()?;
    let today = dates.into_iter().min().map_or_else(|| today_in("UTC", now), Ok)?;
    let comma = listing::comma();
    let theatre_label =
        |name: &str, in_city: &str| if city.is_empty() { name.to_owned() + &comma + in_city } else { name.to_owned() };
    let form = SearchForm {
        q: chosen(&query.q),
        date: chosen(&query.date),
        theatre: chosen(&query.theatre),
        language: chosen(&query.language),
        format: chosen(&query.format),
        dates: days_from(today)
            .map(|day| SearchOption { value: day.to_string(), label: listing::day_in_words(today, day) })
            .collect(),
        theatres: theatres
            .into_iter()
            .filter(|theatre| city.is_empty() || theatre.city == city)
            .map(|theatre| SearchOption { label: theatre_label(&theatre.name, &theatre.city_name), value: theatre.id })
            .collect(),
        cities: cities.into_iter().map(|city| SearchOption { value: city.id, label: city.name }).collect(),
        languages: languages
            .into_iter()
            .map(|language| SearchOption { value: language.clone(), label: language })
            .collect(),
        formats: Format::VARIANTS
            .iter()
            .map(|format| SearchOption { value: format.as_str().to_owned(), label: format.as_str().to_owned() })
            .collect(),
        city,
    };
    Ok((form, today))
}
