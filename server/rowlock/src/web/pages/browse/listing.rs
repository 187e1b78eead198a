//! From shows as the catalogue lists them to what pages show of them.

use app::PageLink;
use app::pages::listing::{FilmCard, ShowChip, ShowGroup, StripChoice, running_time};
use app::pages::places::FilmTimes;
use chrono::{Days, NaiveDate};
use domain::api::catalogue::{FilmView, ShowView};
use language::{Moment, isolated, say};

use catalogue::{ListedShow, days_from};
use http::page_locale;

/// Most times named on a film's card.
const TIMES_NAMED: usize = 4;

pub(super) fn city_path(id: &str) -> String {
    format!("/cities/{id}")
}

pub(super) fn theatre_path(id: &str) -> String {
    format!("/theatres/{id}")
}

pub(super) fn film_path(id: &str, city: Option<&str>, date: Option<NaiveDate>) -> String {
    let city = city.map(|city| format!("city={city}"));
    let choices: Vec<String> = city.into_iter().chain(date.map(|date| format!("date={date}"))).collect();
    if choices.is_empty() { format!("/films/{id}") } else { format!("/films/{id}?{}", choices.join("&")) }
}

/// Running time, genre and rating, as far as they are known.
pub(super) fn facts(film: &FilmView) -> Vec<String> {
    let facts = [running_time(film.running_minutes, page_locale::language()), film.genre.clone(), film.rating.clone()];
    facts.into_iter().filter(|fact| !fact.trim().is_empty()).collect()
}

/// [`facts`] in a line that breaks after a dot, never before.
pub(super) fn facts_line(film: &FilmView) -> String {
    let language = page_locale::language();
    let facts: Vec<String> = facts(film).iter().map(|fact| isolated(fact, language)).collect();
    facts.join("\u{a0}· ")
}

pub(super) fn film_card(film: &FilmView, city: Option<&str>, when: String) -> FilmCard {
    FilmCard {
        title: film.title.clone(),
        href: film_path(&film.id, city, None),
        hue: film.hue,
        facts: facts_line(film),
        when,
    }
}

/// Shows grouped by a key, groups and shows in the order they start.
pub(super) fn group_by<'a, K: PartialEq>(
    shows: impl IntoIterator<Item = &'a ListedShow>,
    key: impl Fn(&'a ListedShow) -> K,
) -> Vec<(K, Vec<&'a ListedShow>)> {
    let mut groups: Vec<(K, Vec<&ListedShow>)> = Vec::new();
    for show in shows {
        let of = key(show);
        match groups.iter_mut().find(|(known, _)| *known == of) {
            Some((_, group)) => group.push(show),
            None => groups.push((of, vec![show])),
        }
    }
    groups
}

pub(super) fn by_film(shows: &[ListedShow]) -> Vec<(&FilmView, Vec<&ListedShow>)> {
    group_by(shows, |listed| listed.film.id.as_str())
        .into_iter()
        .filter_map(|(_, group)| Some((&group.first()?.film, group)))
        .collect()
}

/// The first times of a day: `14:10 · 16:30 · 20:15 · and 2 more`.
pub(super) fn times(shows: &[&ListedShow]) -> String {
    let mut times: Vec<String> = Vec::new();
    for listed in shows {
        let time = time_in_words(&listed.show);
        if !times.contains(&time) {
            times.push(time);
        }
    }
    let rest = times.len().saturating_sub(TIMES_NAMED);
    times.truncate(TIMES_NAMED);
    if rest > 0 {
        times.push(say!(in page_locale::language(), "list.and_more", count = rest));
    }
    times.join(" · ")
}

pub(super) fn chip(show: &ShowView) -> ShowChip {
    ShowChip {
        href: format!("/shows/{}", show.id),
        time: time_in_words(show),
        format: show.format.clone(),
        language: show.language.clone(),
        screen: show.screen.clone(),
        from_price: show.from_price,
        left: show.seats_left,
        availability: show.availability,
    }
}

pub(super) fn chips(shows: &[&ListedShow]) -> Vec<ShowChip> {
    shows.iter().map(|listed| chip(&listed.show)).collect()
}

pub(super) fn film_times(film: &FilmView, city: &str, date: NaiveDate, shows: &[&ListedShow]) -> FilmTimes {
    FilmTimes {
        film: PageLink::new(film.title.clone(), film_path(&film.id, Some(city), Some(date))),
        hue: film.hue,
        facts: facts_line(film),
        shows: chips(shows),
    }
}

/// Shows of one theatre under its name, with a note; `None` when there are none.
pub(super) fn theatre_group(shows: &[&ListedShow], note: impl FnOnce(&ShowView) -> String) -> Option<ShowGroup> {
    let show = &shows.first()?.show;
    Some(ShowGroup {
        place: PageLink::new(
            show.theatre_name.clone(),
            format!("{}?date={}", theatre_path(&show.theatre), show.local_date),
        ),
        note: note(show),
        shows: chips(shows),
    })
}

/// When a show starts, there: `20:15`.
fn time_in_words(show: &ShowView) -> String {
    let start = Moment::parse(&format!("{}T{}", show.local_date, show.local_time));
    start.map_or_else(|| show.local_time.clone(), |start| start.time(page_locale::language()))
}

/// `Today`, or `Sat`; and `21 Nov`.
pub(super) fn day_names(today: NaiveDate, day: NaiveDate) -> (String, String) {
    let (language, date) = (page_locale::language(), day.to_string());
    let Some(moment) = Moment::parse(&date) else { return (date, String::new()) };
    let name = if day == today { say!(in language, "list.today") } else { moment.weekday(language) };
    (name, moment.day_and_month(language))
}

/// `Today, 21 Nov`, or `Sat, 21 Nov`.
pub(super) fn day_in_words(today: NaiveDate, day: NaiveDate) -> String {
    let (name, date) = day_names(today, day);
    name + &comma() + &date
}

pub(super) fn comma() -> String {
    say!(in page_locale::language(), "list.comma")
}

/// The strip of days from `today`, `chosen` among them or after them.
pub(in crate::web::pages) fn days(
    today: NaiveDate,
    chosen: NaiveDate,
    href: impl Fn(NaiveDate) -> String,
) -> Vec<StripChoice> {
    days_from(today)
        .map(|day| {
            let (label, note) = day_names(today, day);
            StripChoice { label, note, href: href(day), current: day == chosen }
        })
        .collect()
}

/// The next day; the last one of the calendar has itself.
pub(super) fn day_after(date: NaiveDate) -> NaiveDate {
    date.checked_add_days(Days::new(1)).unwrap_or(date)
}
