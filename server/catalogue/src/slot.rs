//! When a show plays, as its prices go by it. The calendar is chrono's; what a day and an hour cost is the business of
//! `domain::pricing`.

use chrono::{Datelike, NaiveDate, NaiveDateTime, Timelike};
use domain::pricing::{Format, ShowSlot, Weekday};

/// The day of the week.
#[must_use]
pub fn weekday_of(date: NaiveDate) -> Weekday {
    Weekday::after_monday(date.weekday().num_days_from_monday())
}

/// When and how a show plays that starts then on the clocks of its theatre.
#[must_use]
pub fn slot_of(local: NaiveDateTime, format: Format) -> ShowSlot {
    ShowSlot::at(weekday_of(local.date()), local.hour(), local.minute(), format)
}
