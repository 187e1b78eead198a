//! The search: a plain form of six fields, and its results.

use language::say;
use leptos::prelude::*;

use super::listing::{ShowGroup, film_times, nothing};
use crate::shell::{Head, Page, PageLink};

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
    /// Available days.
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
        view! {
            <form class="search-form card" action="/search" method="get" aria-label=say!("search.form")>
                <div class="field field-wide">
                    <label for="search-q">{say!("search.film")}</label>
                    <input id="search-q" r#type="search" name="q" value=self.q maxlength="80" placeholder=say!("search.film_hint") />
                </div>
                {choose("city", say!("search.city"), say!("search.any_city"), self.city, self.cities)}
                {choose("date", say!("search.day"), say!("search.any_day"), self.date, self.dates)}
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

/// The results for one film.
#[derive(Clone, Debug)]
pub struct FoundFilm {
    /// The film.
    pub film: PageLink,
    /// Hue of its poster.
    pub hue: u16,
    /// Running time, genre, rating.
    pub facts: String,
    /// Its first shows by day and theatre.
    pub groups: Vec<ShowGroup>,
    /// Link to further shows, if there are any.
    pub rest: Option<PageLink>,
}

/// The page of search results.
#[derive(Clone, Debug)]
pub struct SearchPage {
    /// The form as it was sent.
    pub form: SearchForm,
    /// The results by film.
    pub films: Vec<FoundFilm>,
    /// Number of shows found.
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
            city: self.form.chosen_city(),
            ..Head::default()
        }
    }

    fn view(self) -> AnyView {
        let summary = match (self.count, self.more) {
            (0, _) => String::new(),
            (count, false) => say!("list.shows", shows = count),
            (count, true) => say!("search.first_shows", shows = count),
        };
        let found = if self.films.is_empty() {
            let again = PageLink::new(say!("search.start_over"), "/search");
            nothing(say!("search.none_title"), say!("search.none_advice"), again).into_any()
        } else {
            self.films.into_iter().map(FoundFilm::view).collect_view().into_any()
        };
        view! {
            <h1 class="search-title">{say!("search.heading")}</h1>
            {self.form.view()}
            <p class="search-summary quiet" role="status">{summary}</p>
            {found}
        }
        .into_any()
    }
}

impl FoundFilm {
    fn view(self) -> impl IntoView {
        let rest = self.rest.map(|rest| view! { <p><a class="more-link" href=rest.href>{rest.name}</a></p> });
        let groups = self.groups.into_iter().map(ShowGroup::view).collect_view();
        film_times(self.film, self.hue, self.facts, view! { {groups} {rest} })
    }
}
