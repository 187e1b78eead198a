//! The search page: six fields in, shows by film out.

use axum::extract::State;
use domain::VariantName;
use domain::api::catalogue::{FilmView, ShowQuery};
use domain::pricing::Format;
use domain::time::Timestamp;
use strum::VariantArray;

use app::language::Moment;
use app::pages::search::{FoundFilm, SearchForm, SearchOption, SearchPage};
use app::{PageLink, say};

use super::listing;
use crate::AppState;
use crate::web::pages::{PageError, PageQuery, PageResult, for_all};
use catalogue::{ListedShow, ShowSearch, days_from, today_in};
use http::cache_tags::CacheTags;
use http::caching::CachePolicy;
use http::page_locale;
use platform::clock;

/// Groups of shows listed of one film; its own page has all.
const GROUPS_PER_FILM: usize = 3;

pub(super) async fn search(State(state): State<AppState>, PageQuery(query): PageQuery<ShowQuery>) -> PageResult {
    let search = ShowSearch::read(&query)?;
    let now = clock::now();
    let found = state.catalogue.listings().search(&search, now).await?;
    let page = SearchPage {
        form: form(&state, &query, now).await?,
        films: listing::by_film(&found.shows)
            .into_iter()
            .map(|(film, shows)| found_film(film, &shows, &search))
            .collect(),
        count: found.shows.len(),
        more: found.more,
    };
    Ok(for_all(page, CachePolicy::with_tags(CacheTags::lists()).read_at(found.asked)))
}

fn found_film(film: &FilmView, shows: &[&ListedShow], search: &ShowSearch) -> FoundFilm {
    let groups = listing::group_by(shows.iter().copied(), |listed| {
        (listed.show.local_date.as_str(), listed.show.theatre.as_str())
    });
    let left_out: usize = groups.iter().skip(GROUPS_PER_FILM).map(|(_, shows)| shows.len()).sum();
    let path = listing::film_path(&film.id, search.city.as_deref());
    let comma = listing::comma();
    FoundFilm {
        film: PageLink::new(film.title.clone(), path.clone()),
        hue: film.hue,
        facts: listing::facts_line(film),
        groups: groups
            .iter()
            .take(GROUPS_PER_FILM)
            .filter_map(|(_, shows)| {
                listing::theatre_group(shows, |show| show.city_name.clone() + &comma + &long_day(&show.local_date))
            })
            .collect(),
        rest: (left_out > 0)
            .then(|| PageLink::new(say!(in page_locale::language(), "list.more_show_times", count = left_out), path)),
    }
}

/// `Sat 21 Nov` of `2026-11-21`.
fn long_day(date: &str) -> String {
    Moment::parse(date).map_or_else(|| date.to_owned(), |day| day.date(page_locale::language()))
}

pub(super) async fn form(state: &AppState, query: &ShowQuery, now: Timestamp) -> Result<SearchForm, PageError> {
    let cities = state.catalogue.listings().cities().await?;
    let theatres = state.catalogue.listings().theatres(None).await?;
    let languages = state.catalogue.listings().languages(now).await?;
    let chosen = |field: &Option<String>| field.as_deref().unwrap_or_default().trim().to_owned();
    let city = chosen(&query.city);
    let zone = cities.iter().find(|known| known.id == city).map_or("UTC", |city| city.time_zone.as_str());
    let today = today_in(zone, now)?;
    let comma = listing::comma();
    let theatre_label =
        |name: &str, in_city: &str| if city.is_empty() { name.to_owned() + &comma + in_city } else { name.to_owned() };
    Ok(SearchForm {
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
    })
}
