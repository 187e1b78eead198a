//! The list of films, and the form of a new one.

use domain::api::organiser::{FilmChoice, FilmRequest};
use leptos::prelude::*;

use super::fields::{Field, hidden};
use super::form::REASON;
use super::{Desk, Form, Tab, page};
use crate::say;
use crate::shell::Page;

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

/// The page of all films by title, with the values of the form of a new one.
pub fn films_page(desk: Desk, films: Vec<FilmChoice>, form: Form) -> impl Page {
    page(desk, Tab::Films, move |desk| {
        let films = films.into_iter().map(|film| {
            view! {
                <li>
                    <a href=format!("/films/{}", film.id)><bdi>{film.title}</bdi></a>
                    " "<span class="quiet small">{say!("list.minutes", minutes = film.running_minutes)}</span>
                </li>
            }
        });
        let films = films.collect_view();
        view! {
            <section class="card organiser-card" aria-labelledby="new-film">
                <h2 id="new-film">{say!("organiser.new_film")}</h2>
                <form class="organiser-form" action=format!("/staff/{}/films", desk.theatre) method="post">
                    {hidden("key", &desk.key)}
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
        }
        .into_any()
    })
}
