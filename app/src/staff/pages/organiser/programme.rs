//! Planning weeks of shows by a pattern, and the list of films, with the form of a new one.

use domain::VariantName;
use domain::api::organiser::{
    DayPattern, FilmChoice, FilmRequest, ScreenView, ShowsRequest, SkippedTimeHandling, TermsOfSale,
};
use domain::pricing::{Format, Weekday};
use language::{Moment, say};
use leptos::prelude::*;
use strum::VariantArray;

use super::fields::{Field, choice, hidden};
use super::{Desk, Form, Tab, page, terms};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::Page;

/// A Monday, from which the weekdays' names are derived.
const SOME_MONDAY: &str = "2024-01-0";
/// Weekdays with their field names, Monday first.
const DAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];
pub(super) const LANGUAGE: Field = Field::text("language", "organiser.language").required();
const FROM: Field = Field::date("from", "organiser.from").required();
const WEEKS: Field = Field::number("weeks", "organiser.weeks").required();
pub(super) const CLEANING: Field = Field::number("cleaning", "organiser.cleaning").required();
/// Usual cleaning time, minutes.
pub(super) const USUAL_CLEANING: &str = "20";
/// Usual projection format.
pub(super) const USUAL_FORMAT: &str = "2D";
/// A time skipped by a clock change is moved.
const MOVES: Field = Field::tick("moves", "organiser.moves");

/// The form for a week from this day.
#[must_use]
pub fn new_plan(from: String) -> Form {
    let week = [("format", USUAL_FORMAT), ("from", from.as_str()), ("weeks", "1"), ("cleaning", USUAL_CLEANING)];
    let week = week.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Form::new(week.into_iter().chain(terms::values(TermsOfSale::default())))
}

/// The shows of a sent form.
///
/// # Errors
/// A field cannot be read.
pub fn shows_request(form: &Form) -> Result<ShowsRequest, String> {
    let pattern = DAYS.into_iter().filter_map(|(name, weekday)| {
        let times = form.filled(name)?;
        let times = times.split([',', ' ', ';']).map(str::trim).filter(|time| !time.is_empty());
        Some(DayPattern { weekday, times: times.map(str::to_owned).collect() })
    });
    Ok(ShowsRequest {
        screen: form.text("screen"),
        film: form.text("film"),
        language: form.text(LANGUAGE),
        format: read_format(form)?,
        from: form.text(FROM),
        weeks: form.whole(WEEKS, "Weeks")?,
        pattern: pattern.collect(),
        cleaning_minutes: form.whole(CLEANING, "Minutes between shows")?,
        in_gap: if form.is_ticked(MOVES) { SkippedTimeHandling::Move } else { SkippedTimeHandling::Refuse },
        terms: terms::read(form)?,
        reason: form.reason(),
    })
}

pub(super) fn read_format(form: &Form) -> Result<Format, String> {
    form.get("format").parse().map_err(|_| "Say how it is shown: 2D, 3D, IMAX or LIVE.".to_owned())
}

/// The first step that a theatre lacks before its shows: the address of its page and the words of the link.
pub(super) fn missing_step(
    theatre: &str,
    screens: &[ScreenView],
    films: &[FilmChoice],
    has_prices: bool,
) -> Option<(String, String)> {
    if screens.is_empty() {
        Some((format!("/staff/{theatre}/screens"), say!("organiser.first_screens")))
    } else if !has_prices {
        Some((format!("/staff/{theatre}/prices"), say!("organiser.first_prices")))
    } else if films.is_empty() {
        Some((format!("/staff/{theatre}/films"), say!("organiser.first_films")))
    } else {
        None
    }
}

/// The link to a missing step.
pub(super) fn missing_step_link((href, words): (String, String)) -> Markup {
    view! { <p class="organiser-first"><a href=href>{words}</a></p> }.into_markup()
}

/// A film in a list to choose from: `Salt Road (1 h 52 min)`.
pub(super) fn film_words(film: &FilmChoice) -> String {
    format!("{} ({})", film.title, say!("list.minutes", minutes = film.running_minutes))
}

pub(super) fn screen_field(form: &Form, screens: &[ScreenView]) -> Markup {
    let screens = screens.iter().map(|screen| (screen.id.clone(), screen.name.clone()));
    choice(form, "screen", say!("organiser.screen"), screens.collect())
}

pub(super) fn film_field(form: &Form, films: &[FilmChoice]) -> Markup {
    let films = films.iter().map(|film| (film.id.clone(), film_words(film)));
    choice(form, "film", say!("organiser.film"), films.collect())
}

pub(super) fn format_field(form: &Form) -> Markup {
    let formats = Format::VARIANTS.iter().map(|format| (format.as_str().to_owned(), format.as_str().to_owned()));
    choice(form, "format", say!("organiser.format"), formats.collect())
}

/// The planning page, with the values of the form.
pub fn planning_page(
    desk: Desk,
    screens: Vec<ScreenView>,
    films: Vec<FilmChoice>,
    has_prices: bool,
    form: Form,
) -> impl Page {
    page(desk, Tab::Planning, move |desk| match missing_step(&desk.theatre, &screens, &films, has_prices) {
        Some(step) => missing_step_link(step),
        None => plan_form(desk, &screens, &films, &form).into_markup(),
    })
}

fn plan_form(desk: &Desk, screens: &[ScreenView], films: &[FilmChoice], form: &Form) -> impl IntoView + use<> {
    let days = DAYS.into_iter().zip(1..).map(|((day, _), number)| {
        let name = Moment::parse(&format!("{SOME_MONDAY}{number}")).map(|moment| moment.weekday(language::current()));
        view! {
            <div class="field">
                <label for=day>{name}</label>
                <input id=day name=day r#type="text" value=form.text(day) placeholder="17:00, 20:15" dir="ltr" />
            </div>
        }
    });
    let days = days.collect_view();
    view! {
        <form class="organiser-form card organiser-card" action=format!("/staff/{}/shows/plan", desk.theatre) method="post">
            {hidden("key", &desk.key)}
            {screen_field(form, screens)}
            {film_field(form, films)}
            {LANGUAGE.view(form)}
            {format_field(form)}
            {FROM.view(form)}
            {WEEKS.view(form)}
            <fieldset class="organiser-wide organiser-days">
                <legend>{say!("organiser.times")}</legend>
                <p class="quiet small">{say!("organiser.times_hint")}</p>
                <div class="organiser-fields">{days}</div>
            </fieldset>
            {CLEANING.view(form)}
            {MOVES.view(form)}
            <fieldset class="organiser-wide">
                <legend>{say!("organiser.terms")}</legend>
                <div class="organiser-fields">{terms::view(form, false)}</div>
            </fieldset>
            <button class="button" r#type="submit" data-testid="plan">{say!("organiser.plan")}</button>
        </form>
    }
}

const FILM_TITLE: Field = Field::text("title", "organiser.film_title").required();
const RUNNING_MINUTES: Field = Field::number("running_minutes", "organiser.running_minutes").required().marked();
const GENRE: Field = Field::text("genre", "organiser.genre");
const RATING: Field = Field::text("rating", "organiser.rating");
const TAGLINE: Field = Field::text("tagline", "organiser.tagline").long();

/// The film of a sent form.
///
/// # Errors
/// The running time is no number.
pub fn film_request(form: &Form) -> Result<FilmRequest, String> {
    Ok(FilmRequest {
        title: form.text(FILM_TITLE),
        tagline: form.text(TAGLINE),
        synopsis: form.text("synopsis"),
        running_minutes: form.whole(RUNNING_MINUTES, "The running time")?,
        rating: form.text(RATING),
        genre: form.text(GENRE),
        reason: form.reason(),
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
                    {FILM_TITLE.view(&form)}
                    {RUNNING_MINUTES.view(&form)}
                    {GENRE.view(&form)}
                    {RATING.view(&form)}
                    {TAGLINE.view(&form)}
                    <div class="field organiser-wide">
                        <label for="synopsis">{say!("organiser.synopsis")}</label>
                        <textarea id="synopsis" name="synopsis" rows="3" maxlength="2000">{form.text("synopsis")}</textarea>
                    </div>
                    <button class="button" r#type="submit" data-testid="add-film">{say!("organiser.add_film")}</button>
                </form>
            </section>
            <ul class="organiser-films">{films}</ul>
        }
        .into_markup()
    })
}
