//! The programme: seven days of a theatre with planned, open and called-off shows; planning weeks of shows by a pattern; and
//! the list of films, with the form of a new one.

use domain::VariantName;
use domain::api::organiser::{
    DayPattern, FilmChoice, FilmRequest, OrganisedShow, ScreenView, ShowsRequest, SkippedTimeHandling, TermsOfSale,
};
use domain::pricing::{Format, Weekday};
use language::{Moment, say};
use leptos::prelude::*;
use strum::VariantArray;

use super::fields::{Field, choice, hidden};
use super::{Desk, Form, Tab, page, sales_words, terms};
use crate::shell::Page;

/// The page of seven days of the programme, from `from`, `2026-12-07`; `before` and `after` are seven days away.
pub fn programme_page(desk: Desk, from: String, before: String, after: String, shows: Vec<OrganisedShow>) -> impl Page {
    page(desk, Tab::Programme, move |desk| {
        let base = format!("/staff/{}/shows", desk.theatre);
        let nothing = shows.is_empty().then(|| view! { <p class="quiet">{say!("organiser.nothing_planned")}</p> });
        let mut days: Vec<(String, Vec<OrganisedShow>)> = Vec::new();
        for show in shows {
            let day = show.starts_local.get(..10).unwrap_or_default().to_owned();
            match days.last_mut().filter(|(last, _)| *last == day) {
                Some((_, shows)) => shows.push(show),
                None => days.push((day, vec![show])),
            }
        }
        let days = days.into_iter().map(|(day, shows)| {
            let name = Moment::parse(&day).map_or(day, |moment| moment.date(language::current()));
            let lines = shows.into_iter().map(|show| line(&base, show)).collect_view();
            view! {
                <section class="organiser-day">
                    <h2>{name}</h2>
                    <ul class="organiser-list">{lines}</ul>
                </section>
            }
        });
        let days = days.collect_view();
        view! {
            <nav class="organiser-ways" aria-label=say!("organiser.weeks_nav")>
                <a class="button button-quiet" href=format!("{base}?from={before}")>{say!("organiser.week_before")}</a>
                <form class="organiser-jump" action=base.clone() method="get">
                    <label for="from">{say!("organiser.from")}</label>
                    <input id="from" name="from" r#type="date" value=from />
                    <button class="button button-quiet" r#type="submit">{say!("organiser.go")}</button>
                </form>
                <a class="button button-quiet" href=format!("{base}?from={after}")>{say!("organiser.week_after")}</a>
            </nav>
            {nothing}
            {days}
        }
        .into_any()
    })
}

fn line(base: &str, show: OrganisedShow) -> impl IntoView + use<> {
    let state = match &show.cancellation {
        Some(_) => say!("organiser.called_off"),
        None => sales_words(show.terms.sales),
    };
    let time = Moment::parse(&show.starts_local).map_or(show.starts_local, |moment| moment.time(language::current()));
    view! {
        <li>
            <a class="card organiser-show" href=format!("{base}/{}", show.id) data-testid="organised-show" data-called-off=show.cancellation.is_some().then_some("true")>
                <strong>{time}</strong>
                <span><bdi>{show.title}</bdi>" "<span class="quiet small"><bdi>{show.language}</bdi>" · "{show.format}</span></span>
                <span class="quiet"><bdi>{show.screen_name}</bdi></span>
                <span>{say!("organiser.sold", sold = show.sold, seats = show.seats)}</span>
                <span class="organiser-state">{state}</span>
            </a>
        </li>
    }
}

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
const LANGUAGE: Field = Field::text("language", "organiser.language").required();
const FROM: Field = Field::date("from", "organiser.from").required();
const WEEKS: Field = Field::number("weeks", "organiser.weeks").required();
const CLEANING: Field = Field::number("cleaning", "organiser.cleaning").required();
/// A time skipped by a clock change is moved.
const MOVES: Field = Field::tick("moves", "organiser.moves");

/// The form for a week from this day.
#[must_use]
pub fn new_plan(from: String) -> Form {
    let week = [("format", "2D".to_owned()), ("from", from), ("weeks", "1".to_owned()), ("cleaning", "20".to_owned())];
    let week = week.map(|(name, value)| (name.to_owned(), value));
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
    let format = form.get("format").parse::<Format>();
    Ok(ShowsRequest {
        screen: form.text("screen"),
        film: form.text("film"),
        language: form.text(LANGUAGE),
        format: format.map_err(|_| "Say how it is shown: 2D, 3D, IMAX or LIVE.")?,
        from: form.text(FROM),
        weeks: form.whole(WEEKS, "Weeks")?,
        pattern: pattern.collect(),
        cleaning_minutes: form.whole(CLEANING, "Minutes between shows")?,
        in_gap: if form.is_ticked(MOVES) { SkippedTimeHandling::Move } else { SkippedTimeHandling::Refuse },
        terms: terms::read(form)?,
        reason: form.reason(),
    })
}

/// The planning page, with the values of the form.
pub fn planning_page(
    desk: Desk,
    screens: Vec<ScreenView>,
    films: Vec<FilmChoice>,
    has_prices: bool,
    form: Form,
) -> impl Page {
    page(desk, Tab::Planning, move |desk| {
        let theatre = &desk.theatre;
        let first = if screens.is_empty() {
            Some((format!("/staff/{theatre}/screens"), say!("organiser.first_screens")))
        } else if !has_prices {
            Some((format!("/staff/{theatre}/prices"), say!("organiser.first_prices")))
        } else if films.is_empty() {
            Some((format!("/staff/{theatre}/films"), say!("organiser.first_films")))
        } else {
            None
        };
        match first {
            Some((href, words)) => view! { <p class="organiser-first"><a href=href>{words}</a></p> }.into_any(),
            None => plan_form(desk, screens, films, &form).into_any(),
        }
    })
}

fn plan_form(desk: &Desk, screens: Vec<ScreenView>, films: Vec<FilmChoice>, form: &Form) -> impl IntoView + use<> {
    let screens = screens.into_iter().map(|screen| (screen.id, screen.name)).collect();
    let films = films.into_iter().map(|film| {
        let words = format!("{} ({})", film.title, say!("list.minutes", minutes = film.running_minutes));
        (film.id, words)
    });
    let films = films.collect();
    let formats =
        Format::VARIANTS.iter().map(|format| (format.as_str().to_owned(), format.as_str().to_owned())).collect();
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
            {choice(form, "screen", say!("organiser.screen"), screens)}
            {choice(form, "film", say!("organiser.film"), films)}
            {LANGUAGE.view(form)}
            {choice(form, "format", say!("organiser.format"), formats)}
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
const TAGLINE: Field = Field::text("tagline", "organiser.tagline");

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
        .into_any()
    })
}
