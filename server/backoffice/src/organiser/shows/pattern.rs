//! Expands a weekly pattern to instants in a theatre's time zone. Pure.

use std::collections::BTreeSet;

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use domain::api::organiser::{DayPattern, SkippedTimeHandling};
use domain::pricing::Weekday;

use catalogue::weekday_of;
use http::{ApiResult, Code, Problem};

/// Maximum number of weeks per plan.
const MAX_WEEKS: u32 = 26;
/// Maximum number of shows per plan.
const MAX_SHOWS: usize = 500;
/// Maximum number of times in a problem's detail.
const MAX_NAMED: usize = 20;
/// Longest gap of a time zone, minutes: a day, where a zone crossed the date line.
const LONGEST_GAP_MINUTES: i64 = 24 * 60 + 1;

/// The start of a show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The instant.
    pub at: DateTime<Utc>,
    /// Local time in the theatre's zone.
    pub local: NaiveDateTime,
    /// The clocks skip the requested time, so the start is later.
    pub moved: bool,
}

/// Expands a pattern to its starts, in order.
///
/// # Errors
/// 400 for an empty pattern or duplicate times, and for each skipped time unless `in_gap` moves it.
pub(super) fn starts(
    zone: Tz,
    from: NaiveDate,
    weeks: u32,
    pattern: &[DayPattern],
    in_gap: SkippedTimeHandling,
) -> ApiResult<Vec<Start>> {
    let refuse = |detail: String| Err(Problem::new(Code::Malformed, detail));
    if !(1..=MAX_WEEKS).contains(&weeks) {
        return refuse(format!("Plan 1 to {MAX_WEEKS} weeks at once."));
    }
    let mut times: BTreeSet<(Weekday, NaiveTime)> = BTreeSet::new();
    for day in pattern {
        for text in &day.times {
            let time = time_of_day(text)?;
            if !times.insert((day.weekday, time)) {
                return refuse(format!("{} is there twice on one day.", time.format("%H:%M")));
            }
        }
    }
    if times.is_empty() {
        return refuse("The pattern has no time in it.".to_owned());
    }
    if times.len() * weeks as usize > MAX_SHOWS {
        return refuse(format!("These would be {} shows; plan {MAX_SHOWS} at once.", times.len() * weeks as usize));
    }
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for day in 0..u64::from(weeks) * 7 {
        let Some(date) = from.checked_add_days(Days::new(day)) else { return refuse("The calendar ends.".to_owned()) };
        let weekday = weekday_of(date);
        for (_, time) in times.iter().filter(|(on, _)| *on == weekday) {
            let local = date.and_time(*time);
            match (start(zone, local), in_gap) {
                (Some(at), _) => found.push(Start { at, local, moved: false }),
                (None, SkippedTimeHandling::Move) => found.extend(after_gap(zone, local)),
                (None, SkippedTimeHandling::Refuse) => missing.push(local.format("%Y-%m-%d %H:%M").to_string()),
            }
        }
    }
    if !missing.is_empty() {
        let named = missing.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
        let detail = format!(
            "{named} does not exist there: the clocks go forward past it. Choose another time, or start right after the change."
        );
        return Err(Problem::new(Code::NoSuchTime, detail));
    }
    found.sort_by_key(|start| start.at);
    Ok(found)
}

/// Parses a time of day such as `20:15`.
fn time_of_day(text: &str) -> ApiResult<NaiveTime> {
    NaiveTime::parse_from_str(text.trim(), "%H:%M")
        .map_err(|_| Problem::new(Code::Malformed, format!("{text:?} is no time of day like 20:15.")))
}

/// Converts a local time: the earlier instant when clocks go back over it, `None` when they skip it.
fn start(zone: Tz, local: NaiveDateTime) -> Option<DateTime<Utc>> {
    zone.from_local_datetime(&local).earliest().map(|at| at.to_utc())
}

/// Returns the first minute after the gap that contains a skipped time.
fn after_gap(zone: Tz, local: NaiveDateTime) -> Option<Start> {
    (1..=LONGEST_GAP_MINUTES).find_map(|later| {
        let local = local.checked_add_signed(TimeDelta::minutes(later))?;
        Some(Start { at: start(zone, local)?, local, moved: true })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> NaiveDate {
        text.parse().expect("a date")
    }

    fn day(weekday: Weekday, times: &[&str]) -> DayPattern {
        DayPattern { weekday, times: times.iter().map(|time| (*time).to_owned()).collect() }
    }

    fn planned(
        from: &str,
        weeks: u32,
        pattern: &[DayPattern],
        in_gap: SkippedTimeHandling,
    ) -> Result<Vec<String>, Code> {
        let found = starts(chrono_tz::Europe::Lisbon, date(from), weeks, pattern, in_gap);
        let formatted =
            |start: &Start| format!("{}{}", start.at.format("%d %H:%M"), if start.moved { " moved" } else { "" });
        found.map(|starts| starts.iter().map(formatted).collect()).map_err(|problem| problem.code())
    }

    #[test]
    fn starts_are_sorted_from_any_weekday() {
        let pattern = [day(Weekday::Friday, &["20:15", "17:00"]), day(Weekday::Wednesday, &["18:30"])];
        // 10 December 2026 is a Thursday.
        let found = planned("2026-12-10", 2, &pattern, SkippedTimeHandling::Refuse);
        let expected = ["11 17:00", "11 20:15", "16 18:30", "18 17:00", "18 20:15", "23 18:30"];
        assert_eq!(found.expect("a plan"), expected);
    }

    #[test]
    fn a_skipped_time_is_refused_or_moved_and_marked() {
        let pattern = [day(Weekday::Sunday, &["01:30", "10:00"])];
        assert_eq!(planned("2026-03-29", 1, &pattern, SkippedTimeHandling::Refuse), Err(Code::NoSuchTime));
        let found = planned("2026-03-29", 1, &pattern, SkippedTimeHandling::Move).expect("a plan");
        assert_eq!(found, ["29 01:00 moved", "29 09:00"]);
        let problem = starts(chrono_tz::Europe::Lisbon, date("2026-03-29"), 1, &pattern, SkippedTimeHandling::Refuse);
        assert!(problem.expect_err("refused").detail().contains("2026-03-29 01:30"));
    }

    #[test]
    fn an_ambiguous_time_is_its_earlier_instant() {
        let pattern = [day(Weekday::Sunday, &["01:30"])];
        assert_eq!(planned("2026-10-25", 1, &pattern, SkippedTimeHandling::Refuse).expect("a plan"), ["25 00:30"]);
    }

    #[test]
    fn an_invalid_pattern_is_refused() {
        let monday = |times: &[&str]| vec![day(Weekday::Monday, times)];
        for (weeks, pattern) in [
            (0, monday(&["20:00"])),
            (MAX_WEEKS + 1, monday(&["20:00"])),
            (1, monday(&[])),
            (1, vec![]),
            (1, monday(&["25:00"])),
            (1, monday(&["8 pm"])),
            (1, monday(&["20:00", "20:00"])),
        ] {
            assert_eq!(
                planned("2026-12-07", weeks, &pattern, SkippedTimeHandling::Move),
                Err(Code::Malformed),
                "{pattern:?}"
            );
        }
        let all_day: Vec<String> = (0..24).flat_map(|h| [format!("{h:02}:00"), format!("{h:02}:30")]).collect();
        let busy = vec![DayPattern { weekday: Weekday::Monday, times: all_day }];
        assert_eq!(
            planned("2026-12-07", 26, &busy, SkippedTimeHandling::Move),
            Err(Code::Malformed),
            "more than 500 shows"
        );
    }
}
