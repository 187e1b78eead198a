//! Weeks of shows by a pattern.

use domain::api::organiser::{FilmChoice, ScreenView};
use domain::pricing::Format;
use domain::seats::{FLASH_HOLD_MS, USUAL_HOLD_MS};
use domain::time::SECOND_MS;
use leptos::prelude::*;

use super::super::Field;
use super::super::fields::reason_field;
use super::{Desk, Tab, Trouble, choice, field, head, hidden, page, sales_choices, tick};
use crate::language::{self, Moment};
use crate::say;
use crate::shell::{Head, Page};

/// A Monday, from which the days of the week have their names.
const SOME_MONDAY: &str = "2024-01-0";
/// Days of the week as fields are called, Monday first.
pub(super) const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// What stands in the fields.
#[derive(Clone, Debug)]
pub struct PlanningForm {
    /// Slug of the screen.
    pub screen: String,
    /// Slug of the film.
    pub film: String,
    /// Language spoken.
    pub language: String,
    /// Format.
    pub format: String,
    /// The first day.
    pub from: String,
    /// How many weeks.
    pub weeks: String,
    /// Times of each day of the week, Monday first: `17:00, 20:15`.
    pub times: [String; 7],
    /// Minutes between two shows.
    pub cleaning: String,
    /// Whether a time that the clocks jump over is moved.
    pub moves: bool,
    /// Whether the shows are sold, as the API spells it.
    pub sales: String,
    /// From when.
    pub sales_from: String,
    /// How long seats are held, seconds.
    pub hold_seconds: String,
    /// Seats one person may have.
    pub per_person: String,
    /// Whether it is an on-sale day.
    pub flash: bool,
    /// Whether guests prove their address by a code.
    pub email_code: bool,
    /// Seats one card may pay for; empty: any number.
    pub per_instrument: String,
    /// Why they are planned.
    pub reason: Field,
}

impl PlanningForm {
    /// An empty one for a week from that day.
    #[must_use]
    pub fn from_day(from: String) -> Self {
        Self {
            screen: String::new(),
            film: String::new(),
            language: String::new(),
            format: "2D".to_owned(),
            from,
            weeks: "1".to_owned(),
            times: Default::default(),
            cleaning: "20".to_owned(),
            moves: false,
            sales: "open".to_owned(),
            sales_from: String::new(),
            hold_seconds: (USUAL_HOLD_MS / SECOND_MS).to_string(),
            per_person: "10".to_owned(),
            flash: false,
            email_code: false,
            per_instrument: String::new(),
            reason: Field::default(),
        }
    }
}

/// The page.
#[derive(Clone, Debug)]
pub struct Planning {
    /// Who, where.
    pub desk: Desk,
    /// Screens to choose from.
    pub screens: Vec<ScreenView>,
    /// Films to choose from.
    pub films: Vec<FilmChoice>,
    /// Whether the theatre has prices.
    pub has_prices: bool,
    /// What stands in the fields.
    pub form: PlanningForm,
    /// Idempotency key.
    pub key: String,
    /// What stood in the way.
    pub trouble: Option<Trouble>,
}

impl Page for Planning {
    fn head(&self) -> Head {
        head(say!("organiser.plan_shows"))
    }

    fn view(self) -> AnyView {
        let theatre = &self.desk.theatre;
        let first = if self.screens.is_empty() {
            Some((format!("/staff/{theatre}/screens"), say!("organiser.first_screens")))
        } else if !self.has_prices {
            Some((format!("/staff/{theatre}/prices"), say!("organiser.first_prices")))
        } else if self.films.is_empty() {
            Some((format!("/staff/{theatre}/films"), say!("organiser.first_films")))
        } else {
            None
        };
        let content = match first {
            Some((href, words)) => view! { <p class="organiser-first"><a href=href>{words}</a></p> }.into_any(),
            None => {
                form(format!("/staff/{theatre}/shows/plan"), self.screens, self.films, self.form, self.key).into_any()
            }
        };
        page(&self.desk, Tab::Planning, say!("organiser.plan_shows"), false, self.trouble, content)
    }
}

fn form(
    action: String,
    screens: Vec<ScreenView>,
    films: Vec<FilmChoice>,
    form: PlanningForm,
    key: String,
) -> impl IntoView {
    let screens = screens.into_iter().map(|screen| (screen.id, screen.name)).collect();
    let films = films.into_iter().map(|film| {
        let words = format!("{} ({})", film.title, say!("list.minutes", minutes = film.running_minutes));
        (film.id, words)
    });
    let films = films.collect();
    let formats = Format::ALL.map(|format| (format.as_str().to_owned(), format.as_str().to_owned())).to_vec();
    let days = DAYS.iter().zip(1..).zip(form.times).map(|((day, number), times)| {
        let name = Moment::parse(&format!("{SOME_MONDAY}{number}")).map(|moment| moment.weekday(language::current()));
        view! {
            <div class="field">
                <label for=*day>{name}</label>
                <input id=*day name=*day r#type="text" value=times placeholder="17:00, 20:15" dir="ltr" />
            </div>
        }
    });
    let days = days.collect_view();
    view! {
        <form class="organiser-form card organiser-card" action=action method="post">
            {hidden("key", key)}
            {choice("screen", say!("organiser.screen"), screens, &form.screen)}
            {choice("film", say!("organiser.film"), films, &form.film)}
            {field("language", "text", say!("organiser.language"), form.language, true)}
            {choice("format", say!("organiser.format"), formats, &form.format)}
            {field("from", "date", say!("organiser.from"), form.from, true)}
            {field("weeks", "number", say!("organiser.weeks"), form.weeks, true)}
            <fieldset class="organiser-wide organiser-days">
                <legend>{say!("organiser.times")}</legend>
                <p class="quiet small">{say!("organiser.times_hint")}</p>
                <div class="organiser-fields">{days}</div>
            </fieldset>
            {field("cleaning", "number", say!("organiser.cleaning"), form.cleaning, true)}
            {tick("moves", say!("organiser.moves"), form.moves)}
            <fieldset class="organiser-wide">
                <legend>{say!("organiser.terms")}</legend>
                <div class="organiser-fields">
                    {choice("sales", say!("organiser.sales"), sales_choices(), &form.sales)}
                    {field("sales_from", "datetime-local", say!("organiser.sales_from"), form.sales_from, false)}
                    {field("hold_seconds", "number", say!("organiser.hold_seconds"), form.hold_seconds, true)}
                    {field("per_person", "number", say!("organiser.per_person"), form.per_person, true)}
                    {field("per_instrument", "number", say!("organiser.per_instrument"), form.per_instrument, false)}
                    {tick("flash", say!("organiser.flash", seconds = FLASH_HOLD_MS / SECOND_MS), form.flash)}
                    {tick("email_code", say!("organiser.email_code"), form.email_code)}
                </div>
            </fieldset>
            {reason_field("plan-reason", say!("organiser.reason"), form.reason, true)}
            <button class="button" r#type="submit" data-testid="plan">{say!("organiser.plan")}</button>
        </form>
    }
}
