//! The search: a plain form of filters, and its results of one day. The search field is in the header.

use language::say;
use leptos::prelude::*;

use super::listing::{ShowGroup, StripChoice, empty_list, film_times, strip};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{FILTERS, Head, Page, PageLink};

/// An option of the form.
#[derive(Clone, Debug)]
pub struct SearchOption {
    /// Its value in the address.
    pub value: String,
    /// Its label.
    pub label: String,
}

/// The search form with its chosen values.
#[derive(Clone, Debug, Default)]
pub struct SearchForm {
    /// Text.
    pub q: String,
    /// Chosen city, empty for any; so are the others.
    pub city: String,
    /// Chosen day.
    pub date: String,
    /// Chosen theatre.
    pub theatre: String,
    /// Chosen language.
    pub language: String,
    /// Chosen format.
    pub format: String,
    /// Available cities.
    pub cities: Vec<SearchOption>,
    /// Available days; none on a page with days as tabs.
    pub dates: Vec<SearchOption>,
    /// Available theatres.
    pub theatres: Vec<SearchOption>,
    /// Available languages.
    pub languages: Vec<SearchOption>,
    /// Available formats.
    pub formats: Vec<SearchOption>,
}

impl SearchForm {
    fn chosen_city(&self) -> Option<PageLink> {
        let city = self.cities.iter().find(|pick| pick.value == self.city)?;
        Some(PageLink::new(city.label.clone(), format!("/cities/{}", city.value)))
    }

    /// The form. It uses GET, so that results have an address.
    pub fn view(self) -> impl IntoView {
        let date = if self.dates.is_empty() {
            // The tab chosen stays chosen.
            view! { <input r#type="hidden" name="date" value=self.date /> }.into_markup()
        } else {
            choose("date", say!("search.day"), say!("search.any_day"), self.date, self.dates).into_markup()
        };
        view! {
            <form id=FILTERS class="search-form card" action="/search" method="get" aria-label=say!("search.form")>
                {choose("city", say!("search.city"), say!("search.any_city"), self.city, self.cities)}
                {date}
                {choose("theatre", say!("search.theatre"), say!("search.any_theatre"), self.theatre, self.theatres)}
                {choose("language", say!("search.language"), say!("search.any_language"), self.language, self.languages)}
                {choose("format", say!("search.format"), say!("search.any_format"), self.format, self.formats)}
                <button class="button" r#type="submit">{say!("search.find")}</button>
            </form>
        }
    }
}

fn choose(name: &'static str, label: String, any: String, chosen: String, picks: Vec<SearchOption>) -> impl IntoView {
    let id = format!("search-{name}");
    let options = picks
        .into_iter()
        .map(|pick| {
            let selected = pick.value == chosen;
            view! { <option value=pick.value selected=selected>{pick.label}</option> }
        })
        .collect_view();
    view! {
        <div class="field">
            <label for=id.clone()>{label}</label>
            <select id=id name=name>
                <option value="">{any}</option>
                {options}
            </select>
        </div>
    }
}

/// The results for one film on one day.
#[derive(Clone, Debug)]
pub struct FoundFilm {
    /// The film.
    pub film: PageLink,
    /// Hue of its poster.
    pub hue: u16,
    /// Running time, genre, rating.
    pub facts: String,
    /// Its shows in the first theatres.
    pub theatres: Vec<ShowGroup>,
    /// Link to further shows, if there are any.
    pub rest: Option<PageLink>,
}

/// The page of search results.
#[derive(Clone, Debug)]
pub struct SearchPage {
    /// The form as it was sent.
    pub form: SearchForm,
    /// Seven days; none if nothing is found on any day.
    pub days: Vec<StripChoice>,
    /// Address of the same search without its day, if it has one.
    pub any_day: Option<String>,
    /// The results of the day by film.
    pub films: Vec<FoundFilm>,
    /// Number of shows found on the day.
    pub count: usize,
    /// True if there are further results.
    pub more: bool,
}

impl Page for SearchPage {
    fn head(&self) -> Head {
        let query = &self.form.q;
        let title = if query.is_empty() { say!("search.title") } else { say!("search.title_of", query = query) };
        Head {
            title,
            description: say!("search.description"),
            query: self.form.q.clone(),
            has_filters: true,
            city: self.form.chosen_city(),
            ..Head::default()
        }
    }

    fn view(self) -> Markup {
        let summary = match (self.count, self.more) {
            (0, _) => String::new(),
            (count, false) => say!("list.shows", shows = count),
            (count, true) => say!("search.first_shows", shows = count),
        };
        let found = match self.any_day {
            _ if !self.films.is_empty() => {
                let films = self.films.into_iter().map(|film| view! { <li class="card">{film.view()}</li> });
                view! { <ul class="found-films">{films.collect_view()}</ul> }.into_markup()
            }
            Some(any_day) => {
                let any_day = PageLink::new(say!("search.any_day"), any_day);
                empty_list(say!("search.none_title"), say!("film.not_this_day"), any_day).into_markup()
            }
            None => {
                let again = PageLink::new(say!("search.start_over"), "/search");
                empty_list(say!("search.none_title"), say!("search.none_advice"), again).into_markup()
            }
        };
        view! {
            <h1 class="search-title">{say!("search.heading")}</h1>
            {self.form.view()}
            {(!self.days.is_empty()).then(|| strip(say!("list.day"), self.days))}
            <p class="search-summary quiet" role="status">{summary}</p>
            {found}
        }
        .into_markup()
    }
}

impl FoundFilm {
    fn view(self) -> impl IntoView {
        let rest = self.rest.map(|rest| view! { <p><a class="more-link" href=rest.href>{rest.name}</a></p> });
        let theatres = self.theatres.into_iter().map(ShowGroup::compact_view).collect_view();
        film_times(self.film, self.hue, self.facts, view! { {theatres} {rest} })
    }
}
