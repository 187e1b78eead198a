//! The days of a report, in the theatre's time zone, with a maximum.

use chrono::{DateTime, Days, Duration, LocalResult, NaiveDate, NaiveTime, TimeZone, Utc};
use chrono_tz::Tz;
use domain::api::reports::{ReportDays, ReportQuery};
use domain::time::Timestamp;

use catalogue::{read_date, today_in};
use http::{ApiResult, Code, Problem};

/// Maximum number of days in a report: a quarter of a year.
pub const MAX_DAYS: i64 = 92;
/// Number of days when no first day is given.
const USUAL_DAYS: u64 = 28;
/// Maximum skipped quarter-hours at the start of a day: a zone may skip a whole day when it crosses the date line.
const MAX_SKIPPED_QUARTERS: i32 = 200;

/// A range of days, with the instants of its begin and end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first day.
    pub from: NaiveDate,
    /// The last day, inclusive.
    pub to: NaiveDate,
    /// The time zone.
    pub zone: Tz,
    /// Start of the first day.
    pub begins: DateTime<Utc>,
    /// Start of the day after the last.
    pub ends: DateTime<Utc>,
}

impl Range {
    /// Parses the requested days.
    ///
    /// # Errors
    /// 400 when they are invalid, reversed or too many.
    pub fn read(query: &ReportQuery, zone: &str, now: Timestamp) -> ApiResult<Self> {
        let day = |text: &Option<String>| {
            read_date(text.as_deref()).map_err(|why| Problem::new(Code::Malformed, why.to_string()))
        };
        let to = match day(&query.to)? {
            Some(to) => to,
            None => today_in(zone, now)?,
        };
        let from = day(&query.from)?.or_else(|| to.checked_sub_days(Days::new(USUAL_DAYS - 1))).ok_or_else(too_far)?;
        let zone: Tz = zone.parse().map_err(|_| Problem::internal(&format!("{zone} is no time zone")))?;
        if from > to {
            return Err(Problem::new(
                Code::Malformed,
                "`from` is after `to`. Days are counted from `from` up to `to`.",
            ));
        }
        if (to - from).num_days() >= MAX_DAYS {
            let detail = format!("A report covers {MAX_DAYS} days at most. Ask for fewer, and again for the others.");
            return Err(Problem::new(Code::Malformed, detail));
        }
        let after = to.checked_add_days(Days::new(1)).ok_or_else(too_far)?;
        let begins = beginning(from, zone).ok_or_else(too_far)?;
        let ends = beginning(after, zone).ok_or_else(too_far)?;
        Ok(Self { from, to, zone, begins, ends })
    }

    /// Returns the view for reports.
    #[must_use]
    pub fn view(&self) -> ReportDays {
        ReportDays { from: self.from.to_string(), to: self.to.to_string(), time_zone: self.zone.name().to_owned() }
    }

    /// Formats an instant in the zone: `2026-11-21T20:15:00`.
    #[must_use]
    pub fn local(&self, at: DateTime<Utc>) -> String {
        at.with_timezone(&self.zone).format("%Y-%m-%dT%H:%M:%S").to_string()
    }
}

fn too_far() -> Problem {
    Problem::new(Code::Malformed, "No calendar of ours goes that far.")
}

/// Returns the first instant of a day; `None` beyond the calendar's end.
fn beginning(day: NaiveDate, zone: Tz) -> Option<DateTime<Utc>> {
    let mut clock = day.and_time(NaiveTime::MIN);
    for _ in 0..MAX_SKIPPED_QUARTERS {
        match zone.from_local_datetime(&clock) {
            LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => return Some(at.with_timezone(&Utc)),
            LocalResult::None => clock = clock.checked_add_signed(Duration::minutes(15))?,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21T23:30:00Z.
    const NOW: Timestamp = Timestamp(1_795_303_800_000);

    fn read(from: &str, to: &str, zone: &str) -> ApiResult<Range> {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Range::read(&ReportQuery { from: text(from), to: text(to), screen: None }, zone, NOW)
    }

    #[test]
    fn the_default_range_is_four_weeks_in_the_theatres_time_zone() {
        let range = read("", "", "Asia/Kolkata").expect("days");
        assert_eq!((range.from.to_string(), range.to.to_string()), ("2026-10-26".into(), "2026-11-22".into()));
        assert_eq!(range.begins.to_rfc3339(), "2026-10-25T18:30:00+00:00");
        assert_eq!(range.ends.to_rfc3339(), "2026-11-22T18:30:00+00:00");
    }

    #[test]
    fn a_day_with_a_clock_change_has_its_real_length() {
        let hours = |day: &str, zone: &str| {
            let range = read(day, day, zone).expect("a day");
            (range.ends - range.begins).num_hours()
        };
        assert_eq!(hours("2026-03-29", "Europe/Lisbon"), 23);
        assert_eq!(hours("2026-10-25", "Europe/Lisbon"), 25);
        assert_eq!(hours("2026-11-21", "Europe/Lisbon"), 24);
        // Midnight itself was skipped there.
        assert_eq!(hours("2018-11-04", "America/Sao_Paulo"), 23);
        // This day did not exist there.
        assert_eq!(hours("2011-12-30", "Pacific/Apia"), 0);
    }

    #[test]
    fn invalid_ranges_are_refused() {
        for (from, to) in [
            ("2026-11-22", "2026-11-21"),
            ("2026-08-21", "2026-11-21"),
            ("yesterday", ""),
            ("2026-02-30", "2026-03-01"),
            ("", "+262142-12-31"),
        ] {
            assert_eq!(
                read(from, to, "Europe/Lisbon").map_err(|problem| problem.code()),
                Err(Code::Malformed),
                "{from} {to}"
            );
        }
        assert!(read("2026-08-22", "2026-11-21", "Europe/Lisbon").is_ok(), "92 days");
    }
}
