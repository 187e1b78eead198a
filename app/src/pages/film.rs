//! A film: its poster, what it is about, and where and when it is on.

use leptos::prelude::*;

use super::listing::{Choice, Group, nothing, strip};
use super::poster::poster;
use crate::say;
use crate::shell::{Head, Page, Place};

/// The page of a film.
#[derive(Clone, Debug)]
pub struct Film {
    /// Title.
    pub title: String,
    /// One line about it.
    pub tagline: String,
    /// A paragraph about it.
    pub synopsis: String,
    /// Hue of its poster.
    pub hue: u16,
    /// Running time, genre, rating.
    pub facts: Vec<String>,
    /// Cities that show it this week.
    pub cities: Vec<Choice>,
    /// The city chosen, for the header.
    pub city: Option<Place>,
    /// Seven days.
    pub days: Vec<Choice>,
    /// Show times by theatre.
    pub theatres: Vec<Group>,
}

impl Page for Film {
    fn head(&self) -> Head {
        Head {
            title: self.title.clone(),
            description: format!("{} {}", self.tagline, self.synopsis),
            city: self.city.clone(),
            ..Head::default()
        }
    }

    fn view(self) -> AnyView {
        let facts = self.facts.into_iter().map(|fact| view! { <li><bdi>{fact}</bdi></li> }).collect_view();
        let no_city = self.cities.is_empty();
        let times = if self.theatres.is_empty() {
            let advice = if no_city { say!("film.nowhere") } else { say!("film.not_this_day") };
            nothing(say!("film.not_today"), advice, Place::new(say!("film.all_films"), "/search")).into_any()
        } else {
            self.theatres.into_iter().map(Group::view).collect_view().into_any()
        };
        view! {
            <article class="film-page">
                <div class="film-page-poster">{poster(&self.title, self.hue)}</div>
                <header class="film-page-head">
                    <h1>{self.title}</h1>
                    <p class="tagline">{self.tagline}</p>
                    <ul class="facts">{facts}</ul>
                    <p class="synopsis">{self.synopsis}</p>
                </header>
                <div class="film-page-times">
                    <h2>{say!("film.show_times")}</h2>
                    {(!no_city).then(|| strip(say!("film.cities"), self.cities))}
                    {(!no_city).then(|| strip(say!("list.day"), self.days))}
                    {times}
                </div>
            </article>
        }
        .into_any()
    }
}
