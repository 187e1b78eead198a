//! Dates and times in a theatre's time zone, formatted by language.
//!
//! Names and patterns are messages (`date.*`), so that an island without dates carries none. They are from Unicode CLDR
//! 48 (`calendar[type=gregorian]`): abbreviated names and the available formats `Ed`, `MMMd`, `MMMEd`, `Hm` or `hm`, as
//! the language prefers.

use super::message::Arg;
use super::{Language, say_in};

/// Separates the names in a list of names.
const NAME_SEPARATOR: char = '|';

/// A local date and time of day, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

impl Moment {
    /// Parses `2026-11-21`, `2026-11-21T20:15` or `2026-11-21T20:15:07`; an offset after it is ignored. `None` for
    /// other texts.
    pub fn parse(text: &str) -> Option<Self> {
        let part = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok();
        let moment = Self {
            year: part(0, 4)?,
            month: part(5, 7)?,
            day: part(8, 10)?,
            hour: part(11, 13).unwrap_or(0),
            minute: part(14, 16).unwrap_or(0),
            second: part(17, 19).unwrap_or(0),
        };
        let exists = (1..=12).contains(&moment.month) && (1..=31).contains(&moment.day);
        (exists && moment.hour < 24 && moment.minute < 60 && moment.second < 61).then_some(moment)
    }

    /// `Sat`.
    pub fn weekday(self, language: Language) -> String {
        name(language, "date.weekdays", self.weekday_number())
    }

    /// `21 Nov`.
    pub fn day_and_month(self, language: Language) -> String {
        let (day, month) = (self.day.to_string(), name(language, "date.months", self.month as usize - 1));
        say_in(language, "date.day_and_month", &[("day", Arg::Ours(&day)), ("month", Arg::Ours(&month))])
    }

    /// `Sat 21 Nov`.
    pub fn date(self, language: Language) -> String {
        let (weekday, day) = (self.weekday(language), self.day_and_month(language));
        say_in(language, "date.date", &[("weekday", Arg::Ours(&weekday)), ("day", Arg::Ours(&day))])
    }

    /// `20:15`.
    pub fn time(self, language: Language) -> String {
        self.clock(language, "date.time")
    }

    /// `Sat 21 Nov, 20:15`.
    pub fn in_words(self, language: Language) -> String {
        self.both(language, "date.time")
    }

    /// `Sat 21 Nov, 20:15:07`.
    pub fn to_the_second(self, language: Language) -> String {
        self.both(language, "date.time_to_the_second")
    }

    fn both(self, language: Language, time: &str) -> String {
        let (date, time) = (self.date(language), self.clock(language, time));
        say_in(language, "date.date_and_time", &[("date", Arg::Ours(&date)), ("time", Arg::Ours(&time))])
    }

    fn clock(self, language: Language, key: &str) -> String {
        let [hour, minute, second] = [self.hour, self.minute, self.second].map(|part| format!("{part:02}"));
        // Midnight and noon are twelve on a twelve-hour clock.
        let hour_of_twelve = ((self.hour + 11) % 12 + 1).to_string();
        let half = if self.hour < 12 { "am" } else { "pm" };
        let args = [
            ("hour", Arg::Ours(&hour)),
            ("hour_of_twelve", Arg::Ours(&hour_of_twelve)),
            ("minute", Arg::Ours(&minute)),
            ("second", Arg::Ours(&second)),
            ("half", Arg::Ours(half)),
        ];
        say_in(language, key, &args)
    }

    /// 0 for Sunday. The method of Tomohiko Sakamoto (1992), for the Gregorian calendar.
    fn weekday_number(self) -> usize {
        const MONTHS: [u32; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
        let year = if self.month < 3 { self.year.saturating_sub(1) } else { self.year };
        let days = year + year / 4 - year / 100 + year / 400 + MONTHS[self.month as usize - 1] + self.day;
        (days % 7) as usize
    }
}

/// A time of day, in minutes since midnight: `17:00`, `5:00 pm`.
pub fn time_of_day(minutes: u16, language: Language) -> String {
    let (hour, minute) = (u32::from(minutes / 60), u32::from(minutes % 60));
    Moment { year: 1970, month: 1, day: 1, hour, minute, second: 0 }.time(language)
}

/// A name from a list of names in a message.
fn name(language: Language, key: &str, place: usize) -> String {
    say_in(language, key, &[]).split(NAME_SEPARATOR).nth(place).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Moment {
        Moment::parse(text).expect("a moment")
    }

    #[test]
    fn a_moment_is_formatted_by_language() {
        let evening = moment("2026-11-21T20:15:07+01:00");
        assert_eq!(
            Language::ALL.map(|language| evening.in_words(language)),
            [
                "Sat 21 Nov, 20:15",
                "Sa., 21. Nov., 20:15",
                "sáb, 21 nov, 20:15",
                "शनि, 21 नव॰, 8:15 pm",
                "السبت، 21 نوفمبر، 8:15 م"
            ]
        );
        assert_eq!(evening.to_the_second(Language::English), "Sat 21 Nov, 20:15:07");
        assert_eq!(evening.date(Language::German), "Sa., 21. Nov.");
        assert_eq!(evening.day_and_month(Language::Arabic), "21 نوفمبر");
    }

    #[test]
    fn midnight_and_noon_are_twelve_on_a_twelve_hour_clock() {
        let time = |text| moment(text).time(Language::Hindi);
        assert_eq!(
            ["2026-01-01T00:05", "2026-01-01T12:05", "2026-01-01T23:59"].map(time),
            ["12:05 am", "12:05 pm", "11:59 pm"]
        );
        assert_eq!(moment("2026-01-01T00:05").time(Language::English), "00:05");
    }

    #[test]
    fn a_time_of_day_is_formatted_by_language() {
        let said = Language::ALL.map(|language| time_of_day(17 * 60 + 5, language));
        assert_eq!(said, ["17:05", "17:05", "17:05", "5:05 pm", "5:05 م"]);
    }

    #[test]
    fn weekdays_follow_the_gregorian_calendar() {
        let days = ["2026-11-21", "2024-02-29", "2000-01-01", "2026-03-01"];
        assert_eq!(days.map(|day| moment(day).weekday(Language::English)), ["Sat", "Thu", "Sat", "Sun"]);
    }

    #[test]
    fn texts_that_are_no_date_are_rejected() {
        for text in ["", "2026", "2026-13-01", "2026-00-01", "2026-01-32", "2026-01-01T24:00", "today"] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
