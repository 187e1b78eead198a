//! A film: its poster, description, and show times.

use language::{current, say, text_language};
use leptos::prelude::*;

use super::listing::{ShowGroup, StripChoice, empty_list, strip};
use super::poster::{poster, poster_path};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page, PageLink};

/// The page of a film.
#[derive(Clone, Debug)]
pub struct FilmPage {
    /// Its address, without a query.
    pub path: String,
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
    pub cities: Vec<StripChoice>,
    /// The city chosen, for the header.
    pub city: Option<PageLink>,
    /// Seven days.
    pub days: Vec<StripChoice>,
    /// Show times by theatre.
    pub theatres: Vec<ShowGroup>,
}

impl Page for FilmPage {
    fn head(&self) -> Head {
        Head {
            title: self.title.clone(),
            description: format!("{} {}", self.tagline, self.synopsis),
            city: self.city.clone(),
            picture: poster_path(&self.path),
            ..Head::default()
        }
    }

    fn view(self) -> Markup {
        let facts = fact_items(self.facts);
        // One language for both: a tagline alone is too short for detection.
        let language = foreign(&format!("{} {}", self.tagline, self.synopsis));
        let title_language = foreign(&self.title);
        let text = |class, text: String| {
            (!text.is_empty()).then(|| view! { <p class=class dir="auto" lang=language>{text}</p> })
        };
        let (tagline, synopsis) = (text("tagline", self.tagline), text("synopsis", self.synopsis));
        let no_city = self.cities.is_empty();
        let times = if self.theatres.is_empty() {
            let advice = if no_city { say!("film.nowhere") } else { say!("film.not_this_day") };
            empty_list(say!("film.not_today"), advice, PageLink::new(say!("film.all_films"), "/search")).into_markup()
        } else {
            self.theatres.into_iter().map(ShowGroup::view).collect_view().into_markup()
        };
        view! {
            <article class="film-page">
                <div class="film-page-poster">{poster(&self.title, self.hue)}</div>
                <header class="film-page-head">
                    <h1><bdi lang=title_language>{self.title}</bdi></h1>
                    {tagline}
                    <ul class="facts">{facts}</ul>
                    {synopsis}
                </header>
                <div class="film-page-times">
                    <h2>{say!("film.show_times")}</h2>
                    {(!no_city).then(|| strip(say!("film.cities"), self.cities))}
                    {(!no_city).then(|| strip(say!("list.day"), self.days))}
                    {times}
                </div>
            </article>
        }
        .into_markup()
    }
}

/// The tag of a text's language, if detected and different from the page's.
fn foreign(text: &str) -> Option<&'static str> {
    text_language(text).filter(|tag| *tag != current().tag())
}

/// Facts as pills, without empty ones. A fact without letters, such as `12+`, reads left to right on every page.
pub(super) fn fact_items(facts: impl IntoIterator<Item = String>) -> impl IntoView {
    let item = |fact: String| {
        let direction = if fact.chars().any(char::is_alphabetic) { "auto" } else { "ltr" };
        view! { <li><bdi dir=direction>{fact}</bdi></li> }
    };
    facts.into_iter().filter(|fact| !fact.trim().is_empty()).map(item).collect_view()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{render, render_in};
    use language::Language;

    fn film() -> FilmPage {
        FilmPage {
            path: "/films/gate".to_owned(),
            title: "باب الحديد".to_owned(),
            tagline: "She counted what they took.".to_owned(),
            synopsis: "A schoolteacher proves with chalk that her district has been robbed.".to_owned(),
            hue: 30,
            facts: vec!["1 h 17 min".to_owned(), String::new(), "12+".to_owned()],
            cities: vec![],
            city: None,
            days: vec![],
            theatres: vec![],
        }
    }

    #[test]
    fn film_texts_have_their_own_lang_and_direction() {
        let html = render_in(Language::Arabic, String::new(), |_| String::new(), film());
        assert!(html.contains("<h1><bdi>باب الحديد</bdi></h1>"), "{html}");
        for class in ["tagline", "synopsis"] {
            assert!(html.contains(&format!("<p dir=\"auto\" lang=\"en\" class=\"{class}\">")), "{class}: {html}");
        }
        assert!(html.contains("<bdi dir=\"ltr\">12+</bdi>"), "{html}");
        let html = render(film());
        assert!(html.contains("<bdi lang=\"ar\">باب الحديد</bdi>"), "{html}");
        assert!(html.contains("<p dir=\"auto\" class=\"synopsis\">"), "{html}");
    }

    #[test]
    fn empty_film_facts_are_not_rendered() {
        let html = render(FilmPage { tagline: String::new(), synopsis: String::new(), ..film() });
        assert!(!html.contains("<bdi dir=\"ltr\"></bdi>") && html.matches("<li><bdi dir=").count() == 2, "{html}");
        assert!(!html.contains("tagline") && !html.contains("synopsis"), "{html}");
    }
}
