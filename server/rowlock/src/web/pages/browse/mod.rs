//! Front page, city, theatre, film, search. The same for everyone: they set no cookie.

use axum::extract::State;
use axum::routing::get;
use domain::api::catalogue::DayQuery;

use app::pages::city::{CityPage, TheatreCard};
use app::pages::home::HomePage;
use app::pages::listing::FilmCard;
use app::pages::theatre::TheatreListingPage;
use app::{PageLink, say};

use super::{Page, PageError, PagePath, PageQuery, PageResult, for_all};
use crate::AppState;
use crate::web::budget::BROWSING;
use catalogue::{FilmTonight, ListedShow, ShowSearch, read_date, today_in};
use http::cache_tags::CacheTags;
use http::caching::CachePolicy;
use http::page_locale;
use platform::clock;

mod film;
mod listing;
mod search;

pub(super) use listing::days;

pub(super) fn pages() -> [Page; 5] {
    [
        ("/", get(home), BROWSING),
        ("/cities/{id}", get(city), BROWSING),
        ("/theatres/{id}", get(theatre), BROWSING),
        ("/films/{id}", get(film::film), BROWSING),
        ("/search", get(search::search), BROWSING),
    ]
}

/// Films on the front page: three rows on a laptop.
const HOME_FILMS: usize = 12;

async fn home(State(state): State<AppState>) -> PageResult {
    let (now, language) = (clock::now(), page_locale::language());
    let cities = state.catalogue.listings().cities().await?;
    let films = state.catalogue.listings().films_tonight(now).await?;
    let form = search::form(&state, &domain::api::catalogue::ShowQuery::default(), now).await?;
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
    Ok(for_all(page, CachePolicy::with_tags(CacheTags::lists())))
}

/// Most cities named on a card; beyond, they are counted.
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
    let kept =
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
    Ok(for_all(page, kept))
}

async fn theatre(
    State(state): State<AppState>,
    PagePath(id): PagePath<String>,
    PageQuery(day): PageQuery<DayQuery>,
) -> PageResult {
    let asked = read_date(day.date.as_deref())?;
    let now = clock::now();
    let theatre = state.catalogue.listings().theatre(&id).await?.ok_or(PageError::NotFound)?;
    let today = today_in(&theatre.time_zone, now)?;
    let date = asked.unwrap_or(today);
    let search = ShowSearch { theatre: Some(theatre.id.clone()), date: Some(date), ..ShowSearch::default() };
    let found = state.catalogue.listings().search(&search, now).await?;
    let path = listing::theatre_path(&theatre.id);
    let kept = CachePolicy::with_tags(
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
    Ok(for_all(page, kept))
}
