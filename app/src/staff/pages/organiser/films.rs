//! The list of films, and the form of a new one.

use domain::api::organiser::{FilmChoice, FilmRequest};
use leptos::prelude::*;

use super::fields::{Field, hidden};
use super::form::REASON;
use super::{Desk, Form, Tab, head, page};
use crate::say;
use crate::shell::{Head, Page};

const TITLE: Field = Field::text("title", "organiser.film_title").required();
const RUNNING_MINUTES: Field = Field::number("running_minutes", "organiser.running_minutes").required().marked();
const GENRE: Field = Field::text("genre", "organiser.genre");
const RATING: Field = Field::text("rating", "organiser.rating");
const TAGLINE: Field = Field::text("tagline", "organiser.tagline");
const WHY: Field = Field::reason("film-reason", "organiser.reason");

/// The film of a sent form.
///
/// # Errors
/// The running time is no number.
pub fn film_request(form: &Form) -> Result<FilmRequest, String> {
    Ok(FilmRequest {
        title: form.text(TITLE),
        tagline: form.text(TAGLINE),
        synopsis: form.text("synopsis"),
        running_minutes: form.whole(RUNNING_MINUTES, "The running time")?,
        rating: form.text(RATING),
        genre: form.text(GENRE),
        reason: form.text(REASON),
    })
}

/// The page of films.
#[derive(Clone, Debug)]
pub struct Films {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// All films, by title.
    pub films: Vec<FilmChoice>,
    /// The values of the form.
    pub form: Form,
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
        let form = self.form;
        let content = view! {
            <section class="card organiser-card" aria-labelledby="new-film">
                <h2 id="new-film">{say!("organiser.new_film")}</h2>
                <form class="organiser-form" action=format!("/staff/{}/films", self.desk.theatre) method="post">
                    {hidden("key", &self.desk.key)}
                    {TITLE.view(&form)}
                    {RUNNING_MINUTES.view(&form)}
                    {GENRE.view(&form)}
                    {RATING.view(&form)}
                    {TAGLINE.view(&form)}
                    <div class="field organiser-wide">
                        <label for="synopsis">{say!("organiser.synopsis")}</label>
                        <textarea id="synopsis" name="synopsis" rows="3" maxlength="2000">{form.text("synopsis")}</textarea>
                    </div>
                    {WHY.view(&form)}
                    <button class="button" r#type="submit" data-testid="add-film">{say!("organiser.add_film")}</button>
                </form>
            </section>
            <ul class="organiser-films">{films}</ul>
        };
        page(&self.desk, Tab::Films, say!("organiser.films"), content.into_any())
    }
}
