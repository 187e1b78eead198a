//! The list of films, and the form of a new one.

use domain::api::organiser::FilmChoice;
use leptos::prelude::*;

use super::super::Field;
use super::super::fields::{number_field, reason_field};
use super::{Desk, Tab, Trouble, field, head, hidden, page};
use crate::say;
use crate::shell::{Head, Page};

/// The values of the form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilmForm {
    /// Its title.
    pub title: String,
    /// Running time, minutes.
    pub running_minutes: Field,
    /// Its genre.
    pub genre: String,
    /// Its age rating.
    pub rating: String,
    /// A line about it.
    pub tagline: String,
    /// A paragraph about it.
    pub synopsis: String,
    /// The typed reason.
    pub reason: Field,
}

/// The page of films.
#[derive(Clone, Debug)]
pub struct Films {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// All films, by title.
    pub films: Vec<FilmChoice>,
    /// The values of the form.
    pub form: FilmForm,
    /// Idempotency key.
    pub key: String,
    /// True if a change was just made.
    pub done: bool,
    /// The error of the last attempt.
    pub trouble: Option<Trouble>,
}

impl Page for Films {
    fn head(&self) -> Head {
        head(say!("organiser.films"))
    }

    fn view(self) -> AnyView {
        let films = self.films.into_iter().map(|film| {
            view! {
                <li>
                    <a href=format!("/films/{}", film.id)><bdi>{film.title}</bdi></a>
                    " "<span class="quiet small">{say!("list.minutes", minutes = film.running_minutes)}</span>
                </li>
            }
        });
        let films = films.collect_view();
        let FilmForm { title, running_minutes, genre, rating, tagline, synopsis, reason } = self.form;
        let content = view! {
            <section class="card organiser-card" aria-labelledby="new-film">
                <h2 id="new-film">{say!("organiser.new_film")}</h2>
                <form class="organiser-form" action=format!("/staff/{}/films", self.desk.theatre) method="post">
                    {hidden("key", self.key)}
                    {field("title", "text", say!("organiser.film_title"), title, true)}
                    {number_field("running_minutes", say!("organiser.running_minutes"), running_minutes, true)}
                    {field("genre", "text", say!("organiser.genre"), genre, false)}
                    {field("rating", "text", say!("organiser.rating"), rating, false)}
                    {field("tagline", "text", say!("organiser.tagline"), tagline, false)}
                    <div class="field organiser-wide">
                        <label for="synopsis">{say!("organiser.synopsis")}</label>
                        <textarea id="synopsis" name="synopsis" rows="3" maxlength="2000">{synopsis}</textarea>
                    </div>
                    {reason_field("film-reason", say!("organiser.reason"), reason, true)}
                    <button class="button" r#type="submit" data-testid="add-film">{say!("organiser.add_film")}</button>
                </form>
            </section>
            <ul class="organiser-films">{films}</ul>
        };
        page(&self.desk, Tab::Films, say!("organiser.films"), self.done, self.trouble, content.into_any())
    }
}
