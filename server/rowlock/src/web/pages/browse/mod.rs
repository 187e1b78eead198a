//! Front page, city, theatre, film, search. The same for everyone: they set no cookie.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::get;
use domain::api::catalogue::DayQuery;

use app::pages::city::{City, TheatreCard};
use app::pages::home::Home;
use app::pages::listing::FilmCard;
use app::pages::theatre::Theatre;
use app::{Place, say};

use super::{Page, PageError, for_all};
use crate::AppState;
use catalogue::ListedShow;
use catalogue::{FilmTonight, ShowSearch, read_date, today_in};
use http::cache_tags::Tags;
use http::caching::Kept;
use http::reader;
use platform::clock;

mod film;
mod listing;
mod search;

pub(super) use listing::days;

/// Pages one browses by.
pub(super) fn pages() -> [Page; 5] {
    [
        ("/", get(home)),
        ("/cities/{id}", get(city)),
        ("/theatres/{id}", get(theatre)),
        ("/films/{id}", get(film::film)),
        ("/search", get(search::search)),
    ]
}

type PageResult = Result<Response, PageError>;
/// A slug in the path, or why it is none.
type Slug = Result<Path<String>, PathRejection>;

/// Films on the front page: three rows on a laptop.
const HOME_FILMS: usize = 12;

async fn home(State(state): State<AppState>) -> PageResult {
    let (now, language) = (clock::now(), reader::language());
    let cities = state.catalogue.listings().cities().await?;
    let films = state.catalogue.listings().films_tonight(now).await?;
    let form = search::form(&state, &domain::api::catalogue::ShowQuery::default(), now).await?;
    let page = Home {
        form,
        films: films.into_iter().take(HOME_FILMS).map(tonight_card).collect(),
        cities: cities
            .into_iter()
            .map(|city| {
                let note = say!(in language, "list.theatres", count = city.theatres);
                (Place::new(city.name, listing::city_path(&city.id)), note)
            })
            .collect(),
    };
    Ok(for_all(page, Kept::under(Tags::lists())))
}

/// Most cities named on a card; beyond, they are counted.
const CITIES_NAMED: usize = 3;

fn tonight_card(tonight: FilmTonight) -> FilmCard {
    let (language, shows) = (reader::language(), tonight.shows);
    let when = match tonight.cities.len() {
        named if named <= CITIES_NAMED => {
            let shows = say!(in language, "list.shows", shows = shows);
            format!("{shows} · {}", tonight.cities.join(listing::comma().as_str()))
        }
        many => say!(in language, "list.shows_in_cities", shows = shows, cities = many),
    };
    listing::film_card(&tonight.film, None, when)
}

async fn city(State(state): State<AppState>, id: Slug) -> PageResult {
    let Path(id) = id?;
    let now = clock::now();
    let city = state.catalogue.listings().city(&id).await?.ok_or(PageError::NotFound)?;
    let theatres = state.catalogue.listings().theatres(Some(&city.id)).await?;
    let today = today_in(&city.time_zone, now)?;
    let today_here = ShowSearch { city: Some(city.id.clone()), date: Some(today), ..ShowSearch::default() };
    let found = state.catalogue.listings().search(&today_here, now).await?;
    let tags = theatres.iter().fold(Tags::default().city(&city.id), |tags, theatre| tags.theatre(&theatre.id));
    let kept = Kept::under(tags.listing(found.shows.iter().map(ListedShow::theatre_and_film))).asked(found.asked);
    let page = City {
        theatres: theatres
            .into_iter()
            .map(|theatre| TheatreCard {
                place: Place::new(theatre.name, listing::theatre_path(&theatre.id)),
                address: theatre.address,
                screens: say!(in reader::language(), "list.screens", count = theatre.screens),
            })
            .collect(),
        films: listing::by_film(&found.shows)
            .into_iter()
            .map(|(film, shows)| listing::film_card(film, Some(&city.id), listing::times(&shows)))
            .collect(),
        week: format!("/search?city={}", city.id),
        place: Place::new(city.name, listing::city_path(&city.id)),
    };
    Ok(for_all(page, kept))
}

async fn theatre(State(state): State<AppState>, id: Slug, day: Result<Query<DayQuery>, QueryRejection>) -> PageResult {
    let (Path(id), Query(day)) = (id?, day?);
    let asked = read_date(day.date.as_deref())?;
    let now = clock::now();
    let theatre = state.catalogue.listings().theatre(&id).await?.ok_or(PageError::NotFound)?;
    let today = today_in(&theatre.time_zone, now)?;
    let date = asked.unwrap_or(today);
    let search = ShowSearch { theatre: Some(theatre.id.clone()), date: Some(date), ..ShowSearch::default() };
    let found = state.catalogue.listings().search(&search, now).await?;
    let path = listing::theatre_path(&theatre.id);
    let kept =
        Kept::under(Tags::default().theatre(&theatre.id).listing(found.shows.iter().map(ListedShow::theatre_and_film)))
            .asked(found.asked);
    let page = Theatre {
        days: listing::days(today, date, |day| format!("{path}?date={day}")),
        films: listing::by_film(&found.shows)
            .into_iter()
            .map(|(film, shows)| listing::film_times(film, &theatre.city, date, &shows))
            .collect(),
        next_day: format!("{path}?date={}", listing::day_after(date)),
        city: Place::new(theatre.city_name, listing::city_path(&theatre.city)),
        name: theatre.name,
        address: theatre.address,
    };
    Ok(for_all(page, kept))
}
