//! Places shows in the rows of the calendar. Times are minutes since local midnight of the row's day; they continue after
//! 24 hours.

use crate::staff::islands::calendar::{DAY_MINUTES, MinuteRange, STEP_MINUTES};

/// Minutes per hour.
pub const HOUR: u32 = 60;
/// The hours that every week has.
const USUAL_HOURS: MinuteRange = MinuteRange { from: 10 * HOUR, until: DAY_MINUTES };
/// The last end of a row, at six in the morning. Later ends are cut off there.
const LATEST: u32 = DAY_MINUTES + 6 * HOUR;

/// A cell of a lane: a show, or free time.
#[derive(Debug, PartialEq, Eq)]
pub struct CalendarCell<T> {
    pub range: MinuteRange,
    pub show: Option<T>,
}

/// The whole hours that contain the usual hours and all shows.
pub fn hours(shows: impl IntoIterator<Item = MinuteRange>) -> MinuteRange {
    shows.into_iter().fold(USUAL_HOURS, |hours, show| MinuteRange {
        from: hours.from.min(show.from / HOUR * HOUR),
        until: hours.until.max(show.until.div_ceil(HOUR) * HOUR).min(LATEST),
    })
}

/// Number of columns of a range.
pub const fn columns(range: MinuteRange) -> u32 {
    range.minutes() / STEP_MINUTES
}

/// Puts the shows of a screen's day into lanes without overlaps; free time fills the lanes up. There is at least one lane.
/// A show is in the first lane with space for it: shows overlap if one is cancelled, or when the clocks go back.
pub fn lanes<T>(shows: impl IntoIterator<Item = (MinuteRange, T)>, hours: MinuteRange) -> Vec<Vec<CalendarCell<T>>> {
    let mut lanes = vec![Vec::new()];
    for (range, show) in shows {
        let cell = CalendarCell { range: in_steps(range, hours), show: Some(show) };
        let has_space = |lane: &&mut Vec<CalendarCell<T>>| lane.iter().all(|other| !other.range.overlaps(cell.range));
        match lanes.iter_mut().find(has_space) {
            Some(lane) => lane.push(cell),
            None => lanes.push(vec![cell]),
        }
    }
    lanes.into_iter().map(|lane| with_free_time(lane, hours)).collect()
}

/// Rounds to steps and cuts to the hours. The result has at least one step.
fn in_steps(range: MinuteRange, hours: MinuteRange) -> MinuteRange {
    let rounded = |minute: u32| (minute + STEP_MINUTES / 2) / STEP_MINUTES * STEP_MINUTES;
    let from = rounded(range.from).clamp(hours.from, hours.until - STEP_MINUTES);
    MinuteRange { from, until: rounded(range.until).clamp(from + STEP_MINUTES, hours.until) }
}

fn with_free_time<T>(mut shows: Vec<CalendarCell<T>>, hours: MinuteRange) -> Vec<CalendarCell<T>> {
    shows.sort_by_key(|cell| cell.range.from);
    let mut cells = Vec::new();
    let mut free_from = hours.from;
    for cell in shows {
        cells.extend(free(free_from, cell.range.from));
        free_from = cell.range.until;
        cells.push(cell);
    }
    cells.extend(free(free_from, hours.until));
    cells
}

fn free<T>(from: u32, until: u32) -> Option<CalendarCell<T>> {
    (from < until).then_some(CalendarCell { range: MinuteRange { from, until }, show: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn range(from: u32, until: u32) -> MinuteRange {
        MinuteRange { from, until }
    }

    #[test]
    fn hours_contain_all_shows_and_end_in_the_morning() {
        assert_eq!(hours([]), range(600, 1_440));
        assert_eq!(hours([range(15, 130), range(1_410, 1_501)]), range(0, 1_560));
        assert_eq!(hours([range(1_380, 5_000)]), range(600, 1_800));
    }

    #[test]
    fn a_lane_has_its_shows_and_the_free_time_between_them() {
        let shows = [(range(1_215, 1_335), "late"), (range(840, 960), "early")];
        let lanes = lanes(shows, range(600, 1_440));
        let cells: Vec<_> = lanes[0].iter().map(|cell| (cell.range.from, cell.range.until, cell.show)).collect();
        let early = [(600, 840, None), (840, 960, Some("early")), (960, 1_215, None)];
        let late = [(1_215, 1_335, Some("late")), (1_335, 1_440, None)];
        assert_eq!((lanes.len(), cells), (1, [&early[..], &late[..]].concat()));
    }

    #[test]
    fn every_lane_is_as_wide_as_the_hours_whatever_the_shows() {
        let shows = [range(0, 12), range(3, 4), range(637, 758), range(758, 900), range(1_437, 9_000)];
        let hours = hours(shows);
        let lanes = lanes(shows.map(|show| (show, ())), hours);
        assert_eq!(lanes.len(), 2, "shows that meet at an odd minute share a lane; the second one overlaps");
        for lane in lanes {
            assert_eq!(lane.iter().map(|cell| columns(cell.range)).sum::<u32>(), columns(hours));
            assert!(lane.iter().all(|cell| columns(cell.range) > 0));
        }
    }

    #[test]
    fn overlapping_shows_are_in_different_lanes_and_an_empty_day_has_one() {
        let hours = range(600, 1_440);
        assert_eq!(lanes::<()>([], hours), [[CalendarCell { range: hours, show: None }]]);
        let lanes = lanes([(range(1_200, 1_320), "on"), (range(1_190, 1_300), "off")], hours);
        assert_eq!(lanes.len(), 2);
        assert_eq!((lanes[0][1].show, lanes[1][1].show), (Some("on"), Some("off")));
    }
}
