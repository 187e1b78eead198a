//! A city: its theatres and today's films.

use leptos::prelude::*;

use super::listing::{FilmCard, film_grid, nothing};
use crate::say;
use crate::shell::{Head, Page, PageLink};

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

    fn view(self) -> AnyView {
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
            nothing(say!("city.over_title"), say!("city.over_advice"), week).into_any()
        } else {
            film_grid(self.films).into_any()
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
        .into_any()
    }
}
