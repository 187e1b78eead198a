//! Prevents overlapping shows on a screen. Pure.

use chrono::{DateTime, TimeDelta, Utc};

/// The period a show occupies a screen: from its start until the cleaning ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScreenPeriod {
    /// The film's title.
    pub title: String,
    /// The start of the show.
    pub from: DateTime<Utc>,
    /// The earliest start of the next show.
    pub until: DateTime<Utc>,
}

impl ScreenPeriod {
    /// The period of a show that starts at `from`.
    pub fn new(title: &str, from: DateTime<Utc>, running_minutes: u32, cleaning_minutes: u32) -> Self {
        let minutes = TimeDelta::minutes(i64::from(running_minutes) + i64::from(cleaning_minutes));
        // The overflow is unreachable for real dates.
        Self { title: title.to_owned(), from, until: from.checked_add_signed(minutes).unwrap_or(from) }
    }
}

/// Returns each new show that overlaps an existing show or the new show before it, with that show. `wanted` is sorted
/// by start.
pub(super) fn conflicts<'a>(
    wanted: &'a [ScreenPeriod],
    there: &'a [ScreenPeriod],
) -> Vec<(&'a ScreenPeriod, &'a ScreenPeriod)> {
    let overlap = |one: &ScreenPeriod, other: &ScreenPeriod| one.from < other.until && other.from < one.until;
    let mut found = Vec::new();
    for (number, new) in wanted.iter().enumerate() {
        found.extend(there.iter().filter(|old| overlap(new, old)).map(|old| (new, old)));
        let before = number.checked_sub(1).map(|before| &wanted[before]);
        found.extend(before.filter(|before| overlap(new, before)).map(|before| (new, before)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64, running: u32, cleaning: u32) -> ScreenPeriod {
        let from = DateTime::from_timestamp(minute * 60, 0).expect("an instant");
        ScreenPeriod::new(&minute.to_string(), from, running, cleaning)
    }

    #[test]
    fn a_show_may_start_when_the_previous_one_and_its_cleaning_end() {
        let there = [at(0, 100, 20), at(300, 100, 20)];
        let named = |wanted: &[ScreenPeriod]| {
            conflicts(wanted, &there)
                .iter()
                .map(|(new, old)| format!("{} {}", new.title, old.title))
                .collect::<Vec<_>>()
        };
        assert_eq!(named(&[at(120, 100, 20)]), [""; 0]);
        assert_eq!(named(&[at(119, 100, 20)]), ["119 0"]);
        assert_eq!(named(&[at(181, 100, 20)]), ["181 300"]);
        assert_eq!(named(&[at(180, 100, 20)]), [""; 0]);
        assert_eq!(named(&[at(110, 300, 0)]), ["110 0", "110 300"]);
        // Two new shows overlap each other.
        assert_eq!(named(&[at(120, 60, 10), at(185, 60, 10)]), ["185 120"]);
        assert_eq!(named(&[at(0, 10, 0)]), ["0 0"], "the same time is no other time");
    }
}
