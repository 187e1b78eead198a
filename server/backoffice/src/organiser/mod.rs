//! Organisers: layouts, screens, prices, shows and their terms, cancellations, and theatres.
//!
//! A layout is imported whole or refused (`layouts`; `domain::layout::import` validates it), and never changed. A
//! screen gets a new layout for future plans; planned shows keep theirs, so no sold seat disappears. Weeks of shows are
//! planned from a pattern in the theatre's time zone (`shows::pattern`, pure). The lock of the screen prevents
//! overlapping shows. Changed terms reach every replica within a second (`terms_poller`). Standing house seats of a
//! screen are kept off sale in each show from its planning on (`standing`).
//!
//! Elsewhere: the refunds of a cancelled show (`bookings`), the customers' view of shows (`catalogue`), and prices of
//! single bookings.

mod endpoints;
mod films;
mod layouts;
mod screens;
mod shows;
mod standing;
mod tariffs;
mod terms_poller;
mod theatres;

pub use endpoints::routes;
pub use films::{add as add_film, list as films};
pub use layouts::{
    FOCUS_REASON, File, LayoutDetails, MAX_FILE_BYTES, REASON as IMPORT_REASON, import, read_upload, room, set_focus,
    sold_seats,
};
pub use screens::{create as create_screen, list as screens, publish};
pub use shows::{
    WeekOfShows, call_off, change_terms, instant, move_show, own_prices, plan as plan_shows, preview_move, show, week,
    withdraw_seats,
};
pub use standing::{
    ScreenHouseSeat, keep as keep_standing_seats, list as standing_seats, of_room as standing_in,
    unknown as unknown_seats,
};
pub use tariffs::{PriceInput, current as tariff, load_price_input, set as set_tariff};
pub use terms_poller::poll_changed_terms_forever;
pub use theatres::{
    change as change_theatre, create as create_theatre, create_from_command_line as create_theatre_from_command_line,
    one as theatre,
};

use domain::hidden_characters::is_bidi_override;

use http::{ApiResult, Code, Problem};

/// Maximum length of the name of a screen, a film or a language, characters.
const MAX_NAME_CHARS: usize = 120;
/// Maximum length of a film title, characters: the longest real ones have about 150.
const MAX_TITLE_CHARS: usize = 200;
/// Maximum length of a text about a film, characters.
const MAX_TEXT_CHARS: usize = 2_000;

/// Validates and trims a name.
fn name_of<'a>(text: &'a str, what: &str) -> ApiResult<&'a str> {
    named(text, MAX_NAME_CHARS, what)
}

/// Validates and trims a film title.
fn title_of(text: &str) -> ApiResult<&str> {
    named(text, MAX_TITLE_CHARS, "the title")
}

fn named<'a>(text: &'a str, most: usize, what: &str) -> ApiResult<&'a str> {
    match text_of(text, most, what)? {
        "" => Err(Problem::new(Code::Malformed, format!("Write down {what}."))),
        name => Ok(name),
    }
}

/// Validates and trims a text, which may be empty.
fn text_of<'a>(text: &'a str, most: usize, what: &str) -> ApiResult<&'a str> {
    let text = text.trim();
    let is_unreadable = |letter: char| (letter.is_control() && letter != '\n') || is_bidi_override(letter);
    if text.chars().count() > most || text.chars().any(is_unreadable) {
        return Err(Problem::new(
            Code::Malformed,
            format!("{what} is longer than {most} characters, or cannot be read."),
        ));
    }
    Ok(text)
}

/// Makes a unique URL slug from a name, such as `kino-1-3f9c2a7b`: ASCII letters and digits, and a random suffix.
fn slug_of(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars().take(MAX_NAME_CHARS) {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let id = platform::ids::new_id().simple().to_string();
    let slug = slug.trim_matches('-');
    // The last characters of an id are random.
    let tail = &id[id.len() - 8..];
    if slug.is_empty() {
        tail.to_owned()
    } else {
        format!("{}-{tail}", slug.chars().take(40).collect::<String>().trim_matches('-'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalogue::is_slug;

    #[test]
    fn a_slug_is_valid_and_unique_for_any_name() {
        for name in ["Kino 1", "Зал 3", "--", "", "A very long name ".repeat(20).as_str(), "Sala Única"] {
            let (one, other) = (slug_of(name), slug_of(name));
            assert!(is_slug(&one), "{one}");
            assert_ne!(one, other);
        }
        assert!(slug_of("Kino 1").starts_with("kino-1-"));
    }

    #[test]
    fn a_name_must_be_nonempty_short_and_printable() {
        assert_eq!(name_of("  Kino ", "a name").ok(), Some("Kino"));
        assert!(name_of(" ", "a name").is_err() && name_of("a\u{7}", "a name").is_err());
        assert!(name_of(&"x".repeat(MAX_NAME_CHARS + 1), "a name").is_err());
        assert!(title_of(&"ま".repeat(MAX_TITLE_CHARS)).is_ok() && title_of(&"x".repeat(MAX_TITLE_CHARS + 1)).is_err());
        assert!(title_of("Live \u{202E}evil").is_err() && text_of("\u{2067}", MAX_TEXT_CHARS, "A text").is_err());
    }
}
