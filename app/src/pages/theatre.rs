//! A theatre on one day: the strip of days, and every film with its show times.

use leptos::prelude::*;

use super::listing::{ShowChip, StripChoice, chips, film_times, nothing, strip};
use crate::say;
use crate::shell::{Head, Page, PageLink};

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

    fn view(self) -> AnyView {
        let films = if self.films.is_empty() {
            let next = PageLink::new(say!("theatre.day_after"), self.next_day);
            nothing(say!("theatre.dark_title"), say!("theatre.dark_advice"), next).into_any()
        } else {
            self.films.into_iter().map(FilmTimes::view).collect_view().into_any()
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
        .into_any()
    }
}
