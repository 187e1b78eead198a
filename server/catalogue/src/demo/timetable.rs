//! From what a screen plays to shows with instants and prices. Decided by the date alone, so that two
//! runs agree about every day they both plan.

use std::collections::HashMap;

use anyhow::{Context, ensure};
use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveTime, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use domain::layout::Area;
use domain::pricing::{ContainedTaxAndFee, Format};
use domain::seats::SeatIndex;
use domain::time::Timestamp;
use uuid::Uuid;

use super::chain::{Chain, ChainTheatre, Plays, Programme, Screen, WeeklyEvent};
use crate::{slot_of, weekday_of};
use platform::clock;

/// Between the end of a film and the next one: people leave, the room is cleaned, advertisements.
const TURNAROUND_MINUTES: u32 = 25;
/// Shows start at multiples of this.
const START_STEP_MINUTES: u32 = 5;
/// The most days one run plans.
const MAX_DAYS: u32 = 60;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlannedShow {
    /// Follows from screen and start.
    pub id: Uuid,
    pub screen: String,
    pub film: String,
    pub layout: Uuid,
    pub starts_at: DateTime<Utc>,
    /// In the theatre's zone.
    pub local_date: NaiveDate,
    pub language: String,
    pub format: Format,
    pub currency: String,
    /// Category to minor units, JSON.
    pub prices: String,
    /// The tax rate and the fee in the prices.
    pub tax_and_fee: ContainedTaxAndFee,
    pub house_seats: Vec<SeatIndex>,
    /// Areas without seats, in their order.
    pub areas: Vec<Area>,
}

/// A show of the timetable, in local time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimetableEntry<'a> {
    pub at: NaiveTime,
    pub film: &'a str,
    pub format: Format,
    pub language: &'a str,
}

/// All shows of `days` days, today in each theatre's zone included, that start after `now`.
pub(super) fn shows(chain: &Chain, now: Timestamp, days: u32) -> anyhow::Result<Vec<PlannedShow>> {
    ensure!(days <= MAX_DAYS, "at most {MAX_DAYS} days can be planned");
    let now = clock::to_utc(now);
    let mut planned = Vec::new();
    for theatre in &chain.file.theatres {
        let zone = chain.time_zone(theatre)?;
        let today = now.with_timezone(&zone).date_naive();
        for screen in &theatre.screens {
            let unpriced = chain.unpriced(theatre, screen);
            if !unpriced.is_empty() {
                tracing::warn!(screen = screen.id, ?unpriced, "demo plans no shows: categories without a price");
                continue;
            }
            for day in 0..days {
                let date = today.checked_add_days(Days::new(day.into())).context("the calendar has ended")?;
                for entry in entries(chain, theatre, &screen.programme, date)? {
                    // A start that the clocks jump over does not happen that day.
                    let Some(starts_at) = instant(zone, date, entry.at).filter(|at| *at > now) else { continue };
                    planned.push(plan(chain, theatre, screen, date, starts_at, &entry)?);
                }
            }
        }
    }
    Ok(planned)
}

/// A local time as an instant: the earlier one when the clocks go back over it, none when they jump it.
pub(super) fn instant(zone: Tz, date: NaiveDate, at: NaiveTime) -> Option<DateTime<Utc>> {
    zone.from_local_datetime(&date.and_time(at)).earliest().map(|local| local.with_timezone(&Utc))
}

fn plan(
    chain: &Chain,
    theatre: &ChainTheatre,
    screen: &Screen,
    local_date: NaiveDate,
    starts_at: DateTime<Utc>,
    entry: &TimetableEntry<'_>,
) -> anyhow::Result<PlannedShow> {
    let room = chain.room_of(screen);
    let slot = slot_of(local_date.and_time(entry.at), entry.format);
    let categories = room.layout.categories().iter().map(|category| category.name.as_str());
    let prices = theatre
        .tariff
        .price_list(categories, slot, theatre.currency)
        .with_context(|| format!("prices of {} on screen {}", theatre.id, screen.id))?;
    let identity = format!("rowlock:show:{}:{}", screen.id, starts_at.timestamp_millis());
    Ok(PlannedShow {
        id: Uuid::new_v5(&Uuid::NAMESPACE_URL, identity.as_bytes()),
        screen: screen.id.clone(),
        film: entry.film.to_owned(),
        layout: room.id,
        starts_at,
        local_date,
        language: entry.language.to_owned(),
        format: entry.format,
        currency: theatre.currency.code().to_owned(),
        prices: serde_json::to_string(&prices.by_category).context("prices are always JSON")?,
        tax_and_fee: theatre.tariff.tax_and_fee.contained(),
        house_seats: chain.house_seats[&screen.id].clone(),
        areas: room.layout.areas().to_vec(),
    })
}

/// The shows of a screen on a date, in order.
pub(super) fn entries<'a>(
    chain: &'a Chain,
    theatre: &'a ChainTheatre,
    programme: &'a Programme,
    date: NaiveDate,
) -> anyhow::Result<Vec<TimetableEntry<'a>>> {
    match programme {
        Programme::Plays(plays) => day_of_films(chain, theatre, plays, date),
        Programme::Events(events) => events
            .iter()
            .filter(|event| event.weekday == weekday_of(date))
            .map(|event| {
                let WeeklyEvent { at, film, format, .. } = event;
                let language = &chain.film(film)?.languages;
                let language = language.first().with_context(|| format!("{film} has no language"))?;
                Ok(TimetableEntry { at: *at, film, format: *format, language })
            })
            .collect(),
    }
}

fn day_of_films<'a>(
    chain: &'a Chain,
    theatre: &'a ChainTheatre,
    plays: &'a Plays,
    date: NaiveDate,
) -> anyhow::Result<Vec<TimetableEntry<'a>>> {
    ensure!(!plays.films.is_empty(), "a screen of {} plays no films", theatre.id);
    let day = date.num_days_from_ce().unsigned_abs() as usize;
    let mut shown: HashMap<&str, usize> = HashMap::new();
    let mut entries = Vec::new();
    let mut minute = plays.first.hour() * 60 + plays.first.minute();
    let last = plays.last.hour() * 60 + plays.last.minute();
    while minute <= last {
        let film = chain.film(&plays.films[(day + entries.len()) % plays.films.len()])?;
        ensure!(film.running_minutes > 0, "{} takes no time", film.id);
        let formats: Vec<Format> =
            film.formats.iter().copied().filter(|format| plays.formats.contains(format)).collect();
        ensure!(!formats.is_empty(), "{} cannot be shown on a screen of {}", film.id, theatre.id);
        let mut languages: Vec<&str> =
            theatre.languages.iter().filter(|one| film.languages.contains(one)).map(String::as_str).collect();
        if languages.is_empty() {
            languages.extend(film.languages.first().map(String::as_str));
        }
        ensure!(!languages.is_empty(), "{} has no language", film.id);
        // Every pair of language and format gets its turn, from show to show and from day to day.
        let turn = (day + shown.get(film.id.as_str()).copied().unwrap_or(0)) % (languages.len() * formats.len());
        *shown.entry(&film.id).or_default() += 1;
        entries.push(TimetableEntry {
            at: NaiveTime::from_hms_opt(minute / 60, minute % 60, 0).context("a day has 24 hours")?,
            film: &film.id,
            format: formats[turn / languages.len()],
            language: languages[turn % languages.len()],
        });
        let free_from = minute + film.running_minutes.unsigned_abs() + TURNAROUND_MINUTES;
        minute = free_from.next_multiple_of(START_STEP_MINUTES);
    }
    Ok(entries)
}
