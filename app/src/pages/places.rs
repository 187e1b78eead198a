//! The front page, the page of a city and the page of a theatre, each with its films.

use domain::seats::DEFAULT_HOLD_MS;
use domain::time::MINUTE_MS;
use language::say;
use leptos::prelude::*;

use super::listing::{FilmCard, ShowChip, StripChoice, chips, empty_list, film_grid, film_times, strip};
use super::search::SearchForm;
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page, PageLink};

/// Duration of a hold, minutes.
const HELD_FOR: i64 = DEFAULT_HOLD_MS / MINUTE_MS;

/// The front page.
#[derive(Clone, Debug)]
pub struct HomePage {
    /// The search, empty.
    pub form: SearchForm,
    /// Films that start in the next hours.
    pub films: Vec<FilmCard>,
    /// All cities with a note ("2 theatres").
    pub cities: Vec<(PageLink, String)>,
}

impl Page for HomePage {
    fn head(&self) -> Head {
        Head { description: say!("home.description", minutes = HELD_FOR), has_filters: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        let films = if self.films.is_empty() {
            let week = PageLink::new(say!("list.see_week"), "/search");
            empty_list(say!("home.dark_title"), say!("home.dark_advice"), week).into_markup()
        } else {
            film_grid(self.films).into_markup()
        };
        let cities = self
            .cities
            .into_iter()
            .map(|(city, note)| view! { <li><a class="place-card card" href=city.href><h3><bdi>{city.name}</bdi></h3><p class="quiet">{note}</p></a></li> })
            .collect_view();
        view! {
            <section class="hero">
                <h1>{say!("home.heading")}</h1>
                <p class="quiet">{say!("home.intro", minutes = HELD_FOR)}</p>
            </section>
            <section class="block">
                <h2>{say!("home.tonight")}</h2>
                {films}
            </section>
            <section class="block">
                <h2>{say!("search.heading")}</h2>
                {self.form.view()}
            </section>
            <section class="block" id="cities">
                <h2>{say!("home.cities")}</h2>
                <ul class="place-grid">{cities}</ul>
            </section>
        }
        .into_markup()
    }
}

/// A theatre of the city.
#[derive(Clone, Debug)]
pub struct TheatreCard {
    /// The theatre.
    pub place: PageLink,
    /// Street address.
    pub address: String,
    /// `3 screens`.
    pub screens: String,
}

/// The page of a city.
#[derive(Clone, Debug)]
pub struct CityPage {
    /// The city.
    pub place: PageLink,
    /// Its theatres.
    pub theatres: Vec<TheatreCard>,
    /// Films still to start today.
    pub films: Vec<FilmCard>,
    /// Address of the whole week.
    pub week: String,
}

impl Page for CityPage {
    fn head(&self) -> Head {
        let name = &self.place.name;
        Head {
            title: say!("city.title", city = name),
            description: say!("city.description", city = name),
            city: Some(self.place.clone()),
            ..Head::default()
        }
    }

    fn view(self) -> Markup {
        let theatres = self
            .theatres
            .into_iter()
            .map(|theatre| {
                view! {
                    <li>
                        <a class="place-card card" href=theatre.place.href>
                            <h3><bdi>{theatre.place.name}</bdi></h3>
                            <p class="quiet"><bdi>{theatre.address}</bdi></p>
                            <p class="quiet small">{theatre.screens}</p>
                        </a>
                    </li>
                }
            })
            .collect_view();
        let films = if self.films.is_empty() {
            let week = PageLink::new(say!("list.see_week"), self.week);
            empty_list(say!("city.over_title"), say!("city.over_advice"), week).into_markup()
        } else {
            film_grid(self.films).into_markup()
        };
        view! {
            <h1><bdi>{self.place.name}</bdi></h1>
            <section class="block">
                <h2>{say!("city.theatres")}</h2>
                <ul class="place-grid">{theatres}</ul>
            </section>
            <section class="block">
                <h2>{say!("city.today")}</h2>
                {films}
            </section>
        }
        .into_markup()
    }
}

/// A film with its shows of the day.
#[derive(Clone, Debug)]
pub struct FilmTimes {
    /// The film: title and path.
    pub film: PageLink,
    /// Hue of its poster.
    pub hue: u16,
    /// Running time, genre, rating.
    pub facts: String,
    /// Its shows.
    pub shows: Vec<ShowChip>,
}

impl FilmTimes {
    /// As an article: poster beside title and chips.
    pub fn view(self) -> impl IntoView {
        film_times(self.film, self.hue, self.facts, chips(self.shows))
    }
}

/// The page of a theatre.
#[derive(Clone, Debug)]
pub struct TheatreListingPage {
    /// Its name.
    pub name: String,
    /// Street address.
    pub address: String,
    /// Its city.
    pub city: PageLink,
    /// Seven days.
    pub days: Vec<StripChoice>,
    /// The films of that day in the order of their first show.
    pub films: Vec<FilmTimes>,
    /// Address of the next day, for a day without shows.
    pub next_day: String,
}

impl Page for TheatreListingPage {
    fn head(&self) -> Head {
        Head {
            title: format!("{}, {}", self.name, self.city.name),
            description: say!("theatre.description", theatre = &self.name, address = &self.address),
            city: Some(self.city.clone()),
            ..Head::default()
        }
    }

    fn view(self) -> Markup {
        let films = if self.films.is_empty() {
            let next = PageLink::new(say!("theatre.day_after"), self.next_day);
            empty_list(say!("theatre.dark_title"), say!("theatre.dark_advice"), next).into_markup()
        } else {
            self.films.into_iter().map(FilmTimes::view).collect_view().into_markup()
        };
        view! {
            <header class="page-head">
                <p class="crumbs"><a href=self.city.href><bdi>{self.city.name}</bdi></a></p>
                <h1><bdi>{self.name}</bdi></h1>
                <p class="quiet"><bdi>{self.address}</bdi></p>
            </header>
            {strip(say!("list.day"), self.days)}
            {films}
        }
        .into_markup()
    }
}
