//! Planning weeks of shows by a pattern.

use domain::api::organiser::{FilmChoice, ScreenView};
use domain::pricing::Format;
use domain::seats::{DEFAULT_HOLD_MS, FLASH_HOLD_MS};
use domain::time::SECOND_MS;
use leptos::prelude::*;

use super::super::Field;
use super::super::fields::reason_field;
use super::{Desk, Tab, Trouble, choice, field, head, hidden, page, sales_choices, tick};
use crate::language::{self, Moment};
use crate::say;
use crate::shell::{Head, Page};

/// A Monday, from which the weekdays' names are derived.
const SOME_MONDAY: &str = "2024-01-0";
/// Field names of the weekdays, Monday first.
pub(super) const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The values of the form.
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
    /// First day.
    pub from: String,
    /// Number of weeks.
    pub weeks: String,
    /// Times of each weekday, Monday first: `17:00, 20:15`.
    pub times: [String; 7],
    /// Minutes between two shows.
    pub cleaning: String,
    /// True if a time skipped by a clock change is moved.
    pub moves: bool,
    /// Sales state, as the API spells it.
    pub sales: String,
    /// Start of sales.
    pub sales_from: String,
    /// Duration of a hold, seconds.
    pub hold_seconds: String,
    /// Seats per person.
    pub per_person: String,
    /// True if it is an on-sale day with a rush.
    pub flash: bool,
    /// True if guests must confirm their address by a code.
    pub email_code: bool,
    /// Seats per card; empty for no limit.
    pub per_instrument: String,
    /// The typed reason.
    pub reason: Field,
}

impl PlanningForm {
    /// An empty form for a week from this day.
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
            hold_seconds: (DEFAULT_HOLD_MS / SECOND_MS).to_string(),
            per_person: "10".to_owned(),
            flash: false,
            email_code: false,
            per_instrument: String::new(),
            reason: Field::default(),
        }
    }
}

/// The planning page.
#[derive(Clone, Debug)]
pub struct Planning {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// Available screens.
    pub screens: Vec<ScreenView>,
    /// Available films.
    pub films: Vec<FilmChoice>,
    /// True if the theatre has prices.
    pub has_prices: bool,
    /// The values of the form.
    pub form: PlanningForm,
    /// Idempotency key.
    pub key: String,
    /// The error of the last attempt.
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
