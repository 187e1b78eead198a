//! The programme of a week as a calendar: for each day a row per screen, with a block per show and a link per free time;
//! and the forms of a new show and of a moved draft, which an island fills in when a film or a draft is dragged.
//!
//! It is a table whose columns are five minutes wide, so that no style depends on data. On a narrow screen the same cells
//! are an agenda.

mod layout;

use domain::api::moving::{DraftStart, MoveRequest};
use domain::api::organiser::{
    DayPattern, FilmChoice, OrganisedShow, Sales, ScreenView, ShowsRequest, SkippedTimeHandling, TermsOfSale,
};
use domain::money::Money;
use domain::pricing::Weekday;
use language::{Arg, isolated, say};
use leptos::prelude::*;
use uuid::Uuid;

use self::layout::{CalendarCell, HOUR, columns};
use super::fields::{Field, choice, hidden};
use super::programme::{
    CLEANING, LANGUAGE, USUAL_CLEANING, USUAL_FORMAT, film_field, film_words, format_field, missing_step,
    missing_step_link, read_format, screen_field,
};
use super::{Desk, Form, Tab, frame, head, tabbed, when};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page};
use crate::staff::islands::calendar::{
    ADD_BUTTON, DAY_MINUTES, DRAFT, MOVE_BUTTON, MOVE_PLACE, MinuteRange, NEW_PLACE, StaffCalendar, TakenTime, WORDS,
    clock_words, day_words, field_time,
};

const DAY: Field = Field::date(NEW_PLACE[1], "calendar.day").required();
const TIME: Field = Field::time(NEW_PLACE[2], "calendar.time").required();
const MOVE_SCREEN: &str = MOVE_PLACE[0];
const MOVE_DAY: Field = Field::date(MOVE_PLACE[1], "calendar.day").required();
const MOVE_TIME: Field = Field::time(MOVE_PLACE[2], "calendar.time").required();
/// Shortest free time with a link to add a show, minutes. Its cell has space for a finger.
const LEAST_OFFERED: u32 = 60;

/// The form of a new show at this place of the calendar; each part may be empty.
#[must_use]
pub fn new_show(screen: String, day: String, time: String) -> Form {
    let usual = [("format", USUAL_FORMAT.to_owned()), (CLEANING.as_ref(), USUAL_CLEANING.to_owned())];
    let place = [("screen", screen), (DAY.as_ref(), day), (TIME.as_ref(), time)];
    Form::new(place.into_iter().chain(usual))
}

/// The show of a sent form, as a draft. `weekday` is the weekday of its day.
///
/// # Errors
/// A field cannot be read.
pub fn show_request(form: &Form, weekday: Weekday) -> Result<ShowsRequest, String> {
    Ok(ShowsRequest {
        screen: form.text("screen"),
        film: form.text("film"),
        language: form.text(LANGUAGE),
        format: read_format(form)?,
        from: form.text(DAY),
        weeks: 1,
        pattern: vec![DayPattern { weekday, times: vec![form.text(TIME)] }],
        cleaning_minutes: form.whole(CLEANING, "Minutes between shows")?,
        in_gap: SkippedTimeHandling::Refuse,
        terms: TermsOfSale { sales: Sales::Planned, ..TermsOfSale::default() },
        reason: form.reason(),
    })
}

/// The show and the request of a sent form that moves a draft. Without a screen the draft keeps its own.
///
/// # Errors
/// No draft is chosen.
pub fn draft_request(form: &Form) -> Result<(Uuid, MoveRequest), String> {
    let chosen = form.get(DRAFT).split_once('/');
    let chosen = chosen.and_then(|(show, version)| Some((show.parse().ok()?, version.parse().ok()?)));
    let (show, version) = chosen.ok_or("Choose a draft.")?;
    let at = format!("{}T{}", form.get(MOVE_DAY).trim(), form.get(MOVE_TIME).trim());
    let start = Some(DraftStart { at, version });
    let screen = form.text(MOVE_SCREEN);
    Ok((show, MoveRequest { screen, start, version: None, layout: None, reason: form.reason() }))
}

/// The forms of the calendar after a refused move: the sent values, and an empty new show.
#[must_use]
pub fn refused_move(sent: &Form) -> Form {
    let mut form = new_show(String::new(), String::new(), String::new());
    for field in [DRAFT].into_iter().chain(MOVE_PLACE) {
        form.set(field, sent.text(field));
    }
    form
}

/// The calendar of seven days.
pub struct CalendarPage {
    /// Navigation of the theatre and outcome of the form.
    pub desk: Desk,
    /// The days, `2026-12-07`.
    pub days: Vec<String>,
    /// The first of the seven days before.
    pub before: String,
    /// The first of the seven days after.
    pub after: String,
    /// The screens of the theatre.
    pub screens: Vec<ScreenView>,
    /// The shows of these days, by start.
    pub shows: Vec<OrganisedShow>,
    /// True if these days have more shows.
    pub is_cut: bool,
    /// Films to choose from.
    pub films: Vec<FilmChoice>,
    /// True if the theatre has prices.
    pub has_prices: bool,
    /// The values of the forms of a new show and of a moved draft.
    pub form: Form,
    /// Prices that a draft kept in the move before this page, by label.
    pub kept_prices: Vec<(String, Money)>,
}

impl CalendarPage {
    fn missing_step(&self) -> Option<(String, String)> {
        missing_step(&self.desk.theatre, &self.screens, &self.films, self.has_prices)
    }
}

impl Page for CalendarPage {
    fn head(&self) -> Head {
        let has_form = self.missing_step().is_none();
        Head { has_island: has_form, words: if has_form { WORDS } else { &[] }, ..head(Tab::Programme.words()) }
    }

    fn view(self) -> Markup {
        let missing = self.missing_step();
        let Self { desk, days, before, after, screens, shows, is_cut, films, form, kept_prices, .. } = self;
        let base = format!("/staff/{}/shows", desk.theatre);
        let from = days.first().cloned().unwrap_or_default();
        let nothing = shows.is_empty().then(|| view! { <p class="quiet">{say!("organiser.nothing_planned")}</p> });
        let cut = is_cut.then(|| {
            view! { <p data-testid="calendar-cut">{say!("organiser.week_cut", count = shows.len())}</p> }
        });
        let kept = (!kept_prices.is_empty()).then(|| {
            view! { <p class="account-notice" role="status" data-testid="kept-prices">{kept_words(&kept_prices)}</p> }
        });
        let side = match missing {
            Some(step) => missing_step_link(step),
            None => side_view(&desk.key, (&base, &days), &shows, &screens, &films, form),
        };
        let content = view! {
            {kept}
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
            {cut}
            <div class="calendar">
                {table(&base, &days, &screens, shows)}
                {side}
            </div>
        };
        frame(&desk, Tab::Programme.words(), tabbed(&desk, Some(Tab::Programme), content.into_markup()))
    }
}

/// The notice about prices that differ from the tariff: `Prices kept: Gold €8.00. …`
fn kept_words(prices: &[(String, Money)]) -> String {
    let language = language::current();
    let prices = prices
        .iter()
        .map(|(label, price)| format!("{} {}", isolated(label, language), language::money(*price, language)));
    let prices: Vec<String> = prices.collect();
    say!("organiser.prices_kept", prices = Arg::Ours(&prices.join(" · ")))
}

fn table(base: &str, days: &[String], screens: &[ScreenView], shows: Vec<OrganisedShow>) -> Markup {
    let hours = layout::hours(shows.iter().map(range_of));
    let mut of_days: Vec<Vec<OrganisedShow>> = days.iter().map(|_| Vec::new()).collect();
    for show in shows {
        if let Some(number) = number_of(days, &show) {
            of_days[number].push(show);
        }
    }
    let of_days = days.iter().zip(0..).zip(of_days).map(|((day, number), shows)| {
        let midnight = number * DAY_MINUTES;
        let row = RowPlace { base, week: &days[0], day, midnight, hours };
        row.day_view(screens, shows)
    });
    let of_days = of_days.collect_view();
    view! {
        <table class="calendar-table" data-testid="calendar">
            <caption class="visually-hidden">{say!("organiser.programme")}</caption>
            <colgroup>
                <col class="calendar-names" />
                <col span=columns(hours) />
            </colgroup>
            {of_days}
        </table>
    }
    .into_markup()
}

/// From its start to the end of cleaning, on the clocks of its day.
fn range_of(show: &OrganisedShow) -> MinuteRange {
    let part = |from: usize| show.starts_local.get(from..from + 2).and_then(|text| text.parse::<u32>().ok());
    // `2026-12-07T20:15:00`
    let from = part(11).unwrap_or(0) * HOUR + part(14).unwrap_or(0);
    MinuteRange { from, until: from + show.running_minutes + show.cleaning_minutes }
}

/// The number of its day among these.
fn number_of(days: &[String], show: &OrganisedShow) -> Option<usize> {
    days.iter().position(|day| show.starts_local.starts_with(day.as_str()))
}

/// The rows of a day.
struct RowPlace<'a> {
    /// Address of the programme.
    base: &'a str,
    /// The first day of the calendar.
    week: &'a str,
    day: &'a str,
    /// The day's midnight, minutes since the first of the calendar.
    midnight: u32,
    hours: MinuteRange,
}

impl RowPlace<'_> {
    fn day_view(&self, screens: &[ScreenView], mut shows: Vec<OrganisedShow>) -> Markup {
        let name = day_words(self.day);
        let scale = (self.hours.from / HOUR..self.hours.until / HOUR).map(|hour| {
            let range = MinuteRange { from: hour * HOUR, until: (hour + 1) * HOUR };
            view! { <td class="calendar-hour" colspan=columns(range)>{clock_words(range.from)}</td> }
        });
        let scale = scale.collect_view();
        // A cancelled show gives way to the others.
        shows.sort_by_key(|show| show.cancellation.is_some());
        let rows = screens.iter().map(|screen| {
            let own = shows.iter().filter(|show| show.screen == screen.id).map(|show| (range_of(show), show));
            self.screen_rows(screen, layout::lanes(own, self.hours))
        });
        let rows = rows.collect_view();
        view! {
            <tbody>
                <tr class="calendar-scale">
                    <th scope="rowgroup">{name}</th>
                    {scale}
                </tr>
                {rows}
            </tbody>
        }
        .into_markup()
    }

    fn screen_rows(&self, screen: &ScreenView, lanes: Vec<Vec<CalendarCell<&OrganisedShow>>>) -> Markup {
        let count = lanes.len();
        let rows = lanes.into_iter().enumerate().map(|(lane, cells)| {
            let name = (lane == 0).then(|| {
                view! { <th scope="row" rowspan=count><bdi>{screen.name.clone()}</bdi></th> }
            });
            let cells = cells.into_iter().map(|CalendarCell { range, show }| {
                let content = match show {
                    Some(show) => Some(block(self.base, show)),
                    None if lane == 0 => self.free_time(screen, range),
                    None => None,
                };
                view! {
                    <td colspan=columns(range) data-from=range.from.to_string() data-until=range.until.to_string()>{content}</td>
                }
            });
            let cells = cells.collect_view();
            view! {
                <tr data-screen=screen.id.clone() data-day=self.day.to_owned() data-midnight=self.midnight.to_string()>
                    {name}
                    {cells}
                </tr>
            }
        });
        rows.collect_view().into_markup()
    }

    /// The link to add a show, if the time is long enough for one and starts on this day.
    fn free_time(&self, screen: &ScreenView, range: MinuteRange) -> Option<Markup> {
        if range.minutes() < LEAST_OFFERED || range.from >= DAY_MINUTES {
            return None;
        }
        let Self { base, week, day, .. } = self;
        let time = field_time(range.from);
        let href = format!("{base}?from={week}&screen={}&day={day}&time={time}#new-show", screen.id);
        let words = say!("calendar.add_to", screen = &screen.name, day = Arg::Ours(&day_words(day)));
        let link = view! {
            <a class="calendar-add" href=href data-add="true" data-testid="calendar-free">
                <span class="visually-hidden">{words}" "</span>
                <span>{range.in_words()}</span>
            </a>
        };
        Some(link.into_markup())
    }
}

fn block(base: &str, show: &OrganisedShow) -> Markup {
    let (state, state_words) = match (&show.cancellation, show.terms.sales) {
        (Some(_), _) => ("called_off", say!("organiser.called_off")),
        (None, Sales::Planned) => ("planned", say!("calendar.draft")),
        (None, Sales::Paused) => ("paused", say!("calendar.paused")),
        (None, Sales::Open) => ("open", say!("reports.percent", percent = percent_sold(show))),
    };
    let sold = say!("organiser.sold", sold = show.sold, seats = show.seats);
    let facts = format!("{} · {} · {} · {sold}", show.screen_name, show.language, show.format);
    let hover = format!("{} · {facts}", show.title);
    let draft = draft_value(show);
    let (minutes, is_draggable) = draft.as_ref().map(|_| (range_of(show).minutes().to_string(), "false")).unzip();
    view! {
        <a class="calendar-show" href=format!("{base}/{}", show.id) title=hover data-testid="organised-show" data-state=state
            data-draft=draft data-minutes=minutes draggable=is_draggable>
            <span class="calendar-line"><strong>{clock_words(range_of(show).from)}</strong>" "<span>{state_words}</span></span>
            <bdi class="calendar-title">{show.title.clone()}</bdi>
            <span class="calendar-facts"><bdi>{facts}</bdi></span>
        </a>
    }
    .into_markup()
}

/// The value of a draft in the field of drafts: its id, and the version that the page shows.
fn draft_value(show: &OrganisedShow) -> Option<String> {
    let is_draft = show.cancellation.is_none() && show.terms.sales == Sales::Planned;
    is_draft.then(|| format!("{}/{}", show.id, show.version))
}

fn percent_sold(show: &OrganisedShow) -> u32 {
    (u64::from(show.sold) * 100 / u64::from(show.seats.max(1))) as u32
}

fn side_view(
    key: &str,
    (base, days): (&str, &[String]),
    shows: &[OrganisedShow],
    screens: &[ScreenView],
    films: &[FilmChoice],
    mut form: Form,
) -> Markup {
    let from = days.first().cloned().unwrap_or_default();
    let language = shows.last().map(|show| show.language.clone());
    for (field, value) in [(DAY, Some(from.clone())), (LANGUAGE, language)] {
        if form.filled(field).is_none() {
            form.set(field, value.unwrap_or_default());
        }
    }
    let taken = shows.iter().filter(|show| show.cancellation.is_none()).filter_map(|show| {
        let midnight = u32::try_from(number_of(days, show)?).ok()? * DAY_MINUTES;
        let range = range_of(show).later(midnight);
        Some(TakenTime { screen: show.screen.clone(), range, draft: draft_value(show) })
    });
    let taken: Vec<TakenTime> = taken.collect();
    let listed = films.iter().map(|film| {
        view! { <li data-film=film.id.clone() data-minutes=film.running_minutes.to_string() data-testid="calendar-film"><bdi>{film_words(film)}</bdi></li> }
    });
    let listed = listed.collect_view();
    let move_form = move_form(key, (base, &from), shows, screens, &form);
    view! {
        <section class="calendar-side card" aria-labelledby="new-show">
            <h2 id="new-show">{say!("calendar.new_show")}</h2>
            <div class="calendar-films" tabindex="0" role="group" aria-label=say!("organiser.films")>
                <p class="quiet small">{say!("calendar.drag")}</p>
                <ul>{listed}</ul>
            </div>
            <form class="calendar-form" action=base.to_owned() method="post">
                {hidden("key", key)}
                {hidden("from", from)}
                {film_field(&form, films)}
                {screen_field(&form, screens)}
                {DAY.view(&form)}
                {TIME.view(&form)}
                {LANGUAGE.view(&form)}
                {format_field(&form)}
                {CLEANING.view(&form)}
                <StaffCalendar taken=taken />
                <button id=ADD_BUTTON class="button" r#type="submit" data-testid="add-show">{say!("calendar.add_draft")}</button>
            </form>
            {move_form}
        </section>
    }
    .into_markup()
}

/// The form that moves a draft of the week; `None` without one.
fn move_form(
    key: &str,
    (base, from): (&str, &str),
    shows: &[OrganisedShow],
    screens: &[ScreenView],
    form: &Form,
) -> Option<Markup> {
    let drafts = shows.iter().filter_map(|show| Some((draft_value(show)?, draft_words(show))));
    let drafts: Vec<_> = [(String::new(), say!("calendar.choose_draft"))].into_iter().chain(drafts).collect();
    if drafts.len() == 1 {
        return None;
    }
    let screens = screens.iter().map(|screen| (screen.id.clone(), screen.name.clone()));
    let screens: Vec<_> = [(String::new(), say!("calendar.same_screen"))].into_iter().chain(screens).collect();
    // A draft that the browser restored after a reload would make free times fill in this form.
    let content = view! {
        <h2 id="move-form">{say!("calendar.move_draft")}</h2>
        <p class="calendar-move-lead quiet small">{say!("calendar.move_lead")}</p>
        <form class="calendar-form" action=format!("{base}/move") method="post" autocomplete="off" aria-labelledby="move-form">
            {hidden("key", key)}
            {hidden("from", from)}
            {choice(form, DRAFT, say!("calendar.draft"), drafts)}
            {choice(form, MOVE_SCREEN, say!("organiser.screen"), screens)}
            {MOVE_DAY.view(form)}
            {MOVE_TIME.view(form)}
            <button id=MOVE_BUTTON class="button button-quiet" r#type="submit" data-testid="move-draft">{say!("organiser.move")}</button>
        </form>
    };
    Some(content.into_markup())
}

fn draft_words(show: &OrganisedShow) -> String {
    let name = |text: &str| isolated(text, language::current());
    format!("{} · {} · {}", when(&show.starts_local), name(&show.title), name(&show.screen_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sent_form_plans_one_draft() {
        let mut form = new_show("one".to_owned(), "2026-12-07".to_owned(), "20:15".to_owned());
        form.set("film", "tide");
        form.set(LANGUAGE, "English");
        let request = show_request(&form, Weekday::Monday).expect("a request");
        assert_eq!((request.screen.as_str(), request.from.as_str(), request.weeks), ("one", "2026-12-07", 1));
        assert_eq!(request.pattern, [DayPattern { weekday: Weekday::Monday, times: vec!["20:15".to_owned()] }]);
        assert_eq!((request.cleaning_minutes, request.terms.sales), (20, Sales::Planned));
        form.set(CLEANING, "some");
        assert!(show_request(&form, Weekday::Monday).is_err());
    }

    #[test]
    fn a_sent_form_moves_the_chosen_draft_and_is_shown_again_after_a_refusal() {
        let show = Uuid::from_u128(7);
        let place = ["two", "2026-12-08", "17:30"];
        let sent =
            Form::new([(DRAFT, format!("{show}/3").as_str())].into_iter().chain(MOVE_PLACE.into_iter().zip(place)));
        let (moved, request) = draft_request(&sent).expect("a request");
        let start = request.start.expect("a start");
        assert_eq!((moved, request.screen.as_str()), (show, "two"));
        assert_eq!((start.at.as_str(), start.version), ("2026-12-08T17:30", 3));
        let shown = refused_move(&sent);
        assert_eq!(draft_request(&shown), draft_request(&sent));
        assert_eq!((shown.get(DAY), shown.get(CLEANING)), ("", USUAL_CLEANING));
        assert!(draft_request(&Form::default()).is_err());
    }
}
