//! Lists used by several pages: film cards, show-time chips, the strip of days.

use domain::api::catalogue::Availability;
use domain::money::Money;
use language::{Language, say};
use leptos::prelude::*;

use super::poster::poster;
use crate::shell::PageLink;

/// A film as a card: its poster and three lines.
#[derive(Clone, Debug)]
pub struct FilmCard {
    /// Title.
    pub title: String,
    /// Path of its page.
    pub href: String,
    /// Hue of its poster.
    pub hue: u16,
    /// Running time, genre, rating: `1 h 52 min · Drama · 12`.
    pub facts: String,
    /// When it is on: `Tonight in Berlin and Lisbon`.
    pub when: String,
}

impl FilmCard {
    /// As a list item.
    pub fn view(self) -> impl IntoView {
        view! {
            <li class="film-card">
                <a href=self.href>
                    {poster(&self.title, self.hue)}
                    <h3><bdi>{self.title}</bdi></h3>
                    <p class="film-facts">{self.facts}</p>
                    <p class="film-when">{self.when}</p>
                </a>
            </li>
        }
    }
}

/// Film cards in a grid.
pub fn film_grid(films: Vec<FilmCard>) -> impl IntoView {
    view! { <ul class="film-grid">{films.into_iter().map(FilmCard::view).collect_view()}</ul> }
}

/// A film with its times as an article: poster beside title and times.
pub fn film_times(film: PageLink, hue: u16, facts: String, times: impl IntoView + 'static) -> impl IntoView {
    view! {
        <article class="film-times">
            <a class="film-times-poster" href=film.href.clone() tabindex="-1" aria-hidden="true">
                {poster(&film.name, hue)}
            </a>
            <div>
                <h2><a href=film.href><bdi>{film.name}</bdi></a></h2>
                <p class="quiet small">{facts}</p>
                {times}
            </div>
        </article>
    }
}

/// A show to choose.
#[derive(Clone, Debug)]
pub struct ShowChip {
    /// Path of its seat map.
    pub href: String,
    /// Start in the theatre's time zone, `20:15`.
    pub time: String,
    /// `2D`, `3D`, `IMAX` or `LIVE`.
    pub format: String,
    /// Language spoken.
    pub language: String,
    /// Name of the screen.
    pub screen: String,
    /// Price of its cheapest seat, wheelchair spaces and companions' seats left out.
    pub from_price: Money,
    /// Seats left.
    pub left: u32,
    /// Availability as a category.
    pub availability: Availability,
}

impl ShowChip {
    /// As a list item. A sold-out show stays a link, because seats can become free.
    pub fn view(self) -> impl IntoView {
        let (state, words) = match self.availability {
            Availability::Available => ("chip chip-available", say!("list.seats_left", seats = self.left)),
            Availability::FillingFast => ("chip chip-fast", say!("list.filling_fast", seats = self.left)),
            Availability::SoldOut => ("chip chip-sold-out", say!("list.sold_out")),
        };
        let special = (self.format != "2D").then(|| view! { <span class="chip-format">{self.format.clone()}</span> });
        let plain = (self.format == "2D").then(|| self.format.clone());
        let facts: Vec<String> = plain.into_iter().chain([self.language]).filter(|fact| !fact.is_empty()).collect();
        view! {
            <li>
                <a class=state href=self.href>
                    <span class="chip-top"><span class="chip-time">{self.time}</span>" "{special}</span>
                    <span class="chip-facts"><bdi>{facts.join(" · ")}</bdi></span>
                    <span class="chip-facts">{say!("list.screen_and_price", screen = &self.screen, price = self.from_price)}</span>
                    <span class="chip-left">{words}</span>
                </a>
            </li>
        }
    }
}

impl ShowChip {
    /// As a time in a list item, with the facts that choose between times. A sold-out show stays a link.
    fn time_view(self) -> impl IntoView {
        let (state, words) = match self.availability {
            Availability::Available => ("time", None),
            Availability::FillingFast => ("time time-fast", Some(say!("list.seats_left", seats = self.left))),
            Availability::SoldOut => ("time time-sold-out", Some(say!("list.sold_out"))),
        };
        let format = Some(self.format).filter(|format| format != "2D");
        let facts: Vec<String> = format.into_iter().chain([self.language]).filter(|fact| !fact.is_empty()).collect();
        view! {
            <li>
                <a class=state href=self.href>
                    <b>{self.time}</b>" "
                    <small><bdi>{facts.join(" · ")}</bdi></small>
                    {words.map(|words| view! { " "<small class="time-left">{words}</small> })}
                </a>
            </li>
        }
    }
}

/// Chips in a wrapping row.
pub fn chips(shows: Vec<ShowChip>) -> impl IntoView {
    view! { <ul class="chips">{shows.into_iter().map(ShowChip::view).collect_view()}</ul> }
}

/// Chips grouped by place, or by place and day.
#[derive(Clone, Debug)]
pub struct ShowGroup {
    /// The place, linked.
    pub place: PageLink,
    /// An address or a day that distinguishes the group.
    pub note: String,
    /// Its shows.
    pub shows: Vec<ShowChip>,
}

impl ShowGroup {
    /// As a section with a third-level heading.
    pub fn view(self) -> impl IntoView {
        show_group(self.place, self.note, chips(self.shows))
    }

    /// The same with times in place of chips, for one film among many.
    pub fn compact_view(self) -> impl IntoView {
        let times = self.shows.into_iter().map(ShowChip::time_view).collect_view();
        show_group(self.place, self.note, view! { <ul class="times">{times}</ul> })
    }
}

fn show_group(place: PageLink, note: String, shows: impl IntoView + 'static) -> impl IntoView {
    view! {
        <section class="show-group">
            <header>
                <h3><a href=place.href><bdi>{place.name}</bdi></a></h3>
                <p class="quiet small"><bdi>{note}</bdi></p>
            </header>
            {shows}
        </section>
    }
}

/// A choice of a strip: a day or a city.
#[derive(Clone, Debug)]
pub struct StripChoice {
    /// Large line: `Today`, `Sat`, `Lisbon`.
    pub label: String,
    /// Small line: `21 Nov`; may be empty.
    pub note: String,
    /// Path of the page with this choice.
    pub href: String,
    /// True if it is the current choice.
    pub current: bool,
}

/// Choices side by side, scrolling on a phone.
pub fn strip(name: String, choices: Vec<StripChoice>) -> impl IntoView {
    let items = choices
        .into_iter()
        .map(|choice| {
            let note = (!choice.note.is_empty()).then(|| view! { <small>{choice.note}</small> });
            view! {
                <li><a href=choice.href aria-current=choice.current.then_some("true")><span><bdi>{choice.label}</bdi></span>{note}</a></li>
            }
        })
        .collect_view();
    view! { <nav class="strip" aria-label=name><ul>{items}</ul></nav> }
}

/// The empty state of a list: a title, advice and a link.
pub fn empty_list(title: String, advice: String, link: PageLink) -> impl IntoView {
    view! {
        <div class="nothing card">
            <h2>{title}</h2>
            <p class="quiet">{advice}</p>
            <p><a class="button button-quiet" href=link.href>{link.name}</a></p>
        </div>
    }
}

/// Running time in words: `1 h 52 min`.
pub fn running_time(minutes: u32, language: Language) -> String {
    match (minutes / 60, minutes % 60) {
        (0, minutes) => say!(in language, "list.minutes", minutes = minutes),
        (hours, 0) => say!(in language, "list.hours", hours = hours),
        (hours, minutes) => say!(in language, "list.hours_and_minutes", hours = hours, minutes = minutes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_times_are_worded_in_hours_and_minutes() {
        assert_eq!(running_time(112, Language::English), "1 h 52 min");
        assert_eq!(running_time(120, Language::English), "2 h");
        assert_eq!(running_time(45, Language::English), "45 min");
        assert_eq!(running_time(112, Language::German), "1 Std. 52 Min.");
    }
}
