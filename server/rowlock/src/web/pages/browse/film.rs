//! The page of a film: where and when it is on, city by city and day by day.

use axum::extract::State;
use domain::api::catalogue::FilmView;
use serde::Deserialize;

use app::PageLink;
use app::pages::film::FilmPage;
use app::pages::listing::StripChoice;

use super::listing;
use crate::AppState;
use crate::web::pages::{PageError, PagePath, PageQuery, PageResult, for_all};
use catalogue::{ListedShow, ShowSearch, read_date, today_in};
use http::cache_tags::CacheTags;
use http::caching::CachePolicy;
use platform::clock;

#[derive(Deserialize)]
pub(super) struct FilmQuery {
    #[serde(default)]
    city: String,
    date: Option<String>,
}

pub(super) async fn film(
    State(state): State<AppState>,
    PagePath(id): PagePath<String>,
    PageQuery(query): PageQuery<FilmQuery>,
) -> PageResult {
    let asked = read_date(query.date.as_deref())?;
    let now = clock::now();
    let film = state.catalogue.listings().film(&id).await?.ok_or(PageError::NotFound)?;
    let everywhere = ShowSearch { film: Some(film.id.clone()), ..ShowSearch::default() };
    let found = state.catalogue.listings().search(&everywhere, now).await?;

    let mut cities = listing::group_by(&found.shows, |listed| &listed.show.city);
    cities.sort_by(|(_, one), (_, other)| city_name(one).cmp(&city_name(other)));
    let chosen = cities.iter().find(|(city, _)| **city == query.city).or(cities.first());
    let Some(show) = chosen.and_then(|(_, shows)| Some(&shows.first()?.show)) else {
        let kept = CachePolicy::with_tags(CacheTags::default().film(&film.id)).read_at(found.asked);
        return Ok(for_all(page(&film), kept));
    };

    // What was found everywhere may have been cut off; one city's week is not.
    let here = ShowSearch { city: Some(show.city.clone()), ..everywhere };
    let week = state.catalogue.listings().search(&here, now).await?;
    let zone = state.catalogue.listings().city(&show.city).await?.ok_or(PageError::NotFound)?.time_zone;
    let today = today_in(&zone, now)?;
    let first_day = week.shows.first().and_then(|listed| listed.show.local_date.parse().ok());
    let date = asked.or(first_day).unwrap_or(today);
    let day = date.to_string();
    let theatres = listing::group_by(week.shows.iter().filter(|listed| listed.show.local_date == day), |listed| {
        listed.show.theatre.as_str()
    });
    let path = listing::film_path(&film.id, Some(&show.city));
    let tags = CacheTags::default()
        .film(&film.id)
        .listing(found.shows.iter().map(ListedShow::theatre_and_film))
        .listing(week.shows.iter().map(ListedShow::theatre_and_film));
    Ok(for_all(
        FilmPage {
            cities: cities.iter().map(|(city, shows)| city_choice(&film, city, shows, &show.city)).collect(),
            city: Some(PageLink::new(show.city_name.clone(), listing::city_path(&show.city))),
            days: listing::days(today, date, |day| format!("{path}&date={day}")),
            theatres: theatres
                .iter()
                .filter_map(|(_, shows)| listing::theatre_group(shows, |_| listing::day_in_words(today, date)))
                .collect(),
            ..page(&film)
        },
        CachePolicy::with_tags(tags).read_at(found.asked).read_at(week.asked),
    ))
}

/// The page of a film that is on nowhere.
fn page(film: &FilmView) -> FilmPage {
    FilmPage {
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
        href: listing::film_path(&film.id, Some(city)),
        current: city == chosen,
    }
}
