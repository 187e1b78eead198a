//! A show as an entry for the buyer's calendar, in iCalendar (RFC 5545).
//!
//! Written by hand: the crate `icalendar` (0.17) keeps control characters in texts, sorts the properties, and folds lines by
//! an index that counts bytes in one place and characters in another.

use std::fmt::Write;

use domain::hidden_characters::is_bidi_override;
use domain::time::{MINUTE_MS, Timestamp};
use uuid::Uuid;

use platform::clock::to_utc;

/// Lines are folded at this many bytes, the line break not counted (RFC 5545, section 3.1).
const LINE_BYTES: usize = 75;
/// The calendar reminds this long before.
const REMIND_MINUTES: i64 = 90;

/// A calendar entry. Texts may contain any characters.
#[derive(Clone, Debug)]
pub struct CalendarEntry {
    /// The booking: the same entry when it is imported again.
    pub booking: Uuid,
    /// The film or concert.
    pub title: String,
    /// Theatre, screen and address.
    pub place: String,
    /// Seats and reference, a line each.
    pub notes: Vec<String>,
    /// Address of the tickets.
    pub url: String,
    /// When it starts.
    pub starts_at: Timestamp,
    /// Running time, minutes.
    pub running_minutes: u32,
    /// When this was written.
    pub written_at: Timestamp,
}

/// The entry as a file.
#[must_use]
pub fn file(entry: &CalendarEntry) -> String {
    let ends_at = entry.starts_at.plus_ms(i64::from(entry.running_minutes) * MINUTE_MS);
    let lines = [
        "BEGIN:VCALENDAR".to_owned(),
        "VERSION:2.0".to_owned(),
        "PRODID:-//Rowlock//Tickets//EN".to_owned(),
        "METHOD:PUBLISH".to_owned(),
        "BEGIN:VEVENT".to_owned(),
        format!("UID:booking-{}@rowlock", entry.booking),
        format!("DTSTAMP:{}", instant(entry.written_at)),
        format!("DTSTART:{}", instant(entry.starts_at)),
        format!("DTEND:{}", instant(ends_at)),
        format!("SUMMARY:{}", text(&entry.title)),
        format!("LOCATION:{}", text(&entry.place)),
        format!("DESCRIPTION:{}", text(&entry.notes.join("\n"))),
        format!("URL:{}", entry.url),
        "STATUS:CONFIRMED".to_owned(),
        "BEGIN:VALARM".to_owned(),
        "ACTION:DISPLAY".to_owned(),
        format!("DESCRIPTION:{}", text(&entry.title)),
        format!("TRIGGER:-PT{REMIND_MINUTES}M"),
        "END:VALARM".to_owned(),
        "END:VEVENT".to_owned(),
        "END:VCALENDAR".to_owned(),
    ];
    let mut file = String::with_capacity(1_024);
    for line in lines {
        fold(&line, &mut file);
    }
    file
}

/// `20261121T191500Z`: UTC, so that the entry needs no time zone definition.
fn instant(at: Timestamp) -> String {
    to_utc(at).format("%Y%m%dT%H%M%SZ").to_string()
}

/// A text value (section 3.3.11); control characters go, a line break is written out.
fn text(value: &str) -> String {
    let mut safe = String::with_capacity(value.len() + 8);
    for letter in value.chars() {
        match letter {
            '\\' | ';' | ',' => safe.extend(['\\', letter]),
            '\n' => safe.push_str("\\n"),
            other if other.is_control() || is_bidi_override(other) => {}
            other => safe.push(other),
        }
    }
    safe
}

/// Writes a line in pieces that are short enough, never parting a character.
fn fold(line: &str, file: &mut String) {
    let mut room = LINE_BYTES;
    for letter in line.chars() {
        if letter.len_utf8() > room {
            file.push_str("\r\n ");
            // The space at the start counts.
            room = LINE_BYTES - 1;
        }
        room -= letter.len_utf8();
        let _ = write!(file, "{letter}");
    }
    file.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> CalendarEntry {
        CalendarEntry {
            booking: Uuid::nil(),
            title: "Mondfahrt; oder: Ölçer, der Film 🎬".to_owned(),
            place: "Lichtburg, Saal 1, Kettwiger Straße 36, Essen, und noch ein sehr langer Zusatz dahinter".to_owned(),
            notes: vec!["Seats C7, C8".to_owned(), "K7QM-2XPA\r".to_owned()],
            url: "https://rowlock.example/bookings/0/ticket".to_owned(),
            // 2026-11-21 19:15:00 UTC
            starts_at: Timestamp(1_795_288_500_000),
            running_minutes: 126,
            written_at: Timestamp(1_795_200_000_000),
        }
    }

    #[test]
    fn an_entry_has_time_place_and_title() {
        let file = file(&entry());
        let unfolded = file.replace("\r\n ", "");
        for line in [
            "DTSTART:20261121T191500Z",
            "DTEND:20261121T212100Z",
            "SUMMARY:Mondfahrt\\; oder: Ölçer\\, der Film 🎬",
            "DESCRIPTION:Seats C7\\, C8\\nK7QM-2XPA",
            "UID:booking-00000000-0000-0000-0000-000000000000@rowlock",
        ] {
            assert!(unfolded.lines().any(|other| other == line), "{line} in {unfolded}");
        }
    }

    #[test]
    fn lines_are_folded_and_escaped() {
        let file = file(&CalendarEntry { title: "x\r\nEND:VCALENDAR\r\n".repeat(20), ..entry() });
        assert!(file.ends_with("END:VCALENDAR\r\n"));
        assert_eq!(file.replace("\r\n ", "").matches("\r\nEND:VCALENDAR\r\n").count(), 1);
        for line in file.split("\r\n") {
            assert!(line.len() <= LINE_BYTES && !line.contains(['\r', '\n']), "{line:?}");
        }
    }
}
