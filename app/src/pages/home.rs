//! The front page: an introduction, the search, tonight's films, the cities.

use domain::seats::DEFAULT_HOLD_MS;
use domain::time::MINUTE_MS;
use leptos::prelude::*;

use super::listing::{FilmCard, film_grid, nothing};
use super::search::SearchForm;
use crate::say;
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
        Head { description: say!("home.description", minutes = HELD_FOR), ..Head::default() }
    }

    fn view(self) -> AnyView {
        let films = if self.films.is_empty() {
            let week = PageLink::new(say!("list.see_week"), "/search");
            nothing(say!("home.dark_title"), say!("home.dark_advice"), week).into_any()
        } else {
            film_grid(self.films).into_any()
        };
        let cities = self
            .cities
            .into_iter()
            .map(|(city, note)| view! { <li><a class="place-card card" href=city.href><h3><bdi>{city.name}</bdi></h3><p class="quiet">{note}</p></a></li> })
            .collect_view();
        view! {
            <section class="hero">
                <div>
                    <h1>{say!("home.heading")}</h1>
                    <p class="quiet">{say!("home.intro", minutes = HELD_FOR)}</p>
                </div>
                {self.form.view()}
            </section>
            <section class="block">
                <h2>{say!("home.tonight")}</h2>
                {films}
            </section>
            <section class="block" id="cities">
                <h2>{say!("home.cities")}</h2>
                <ul class="place-grid">{cities}</ul>
            </section>
        }
        .into_any()
    }
}
