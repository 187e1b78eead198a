//! Organisers: rooms from files and from the drawing board, weeks of shows, prices, how shows are sold, and shows that will not take place.
//!
//! A room is imported whole or not at all (`layouts`; what is read and refused decides `domain::layout::import`), and
//! never changed: a screen gets another one for shows planned from then on, while those that are planned keep theirs,
//! so no seat that was sold can vanish. Weeks are planned by a pattern on the theatre's clocks (`shows::pattern`, pure)
//! under the lock of the screen, so that no two shows overlap there. How a show is sold is told to every replica
//! within a second (`told`). Seats a screen keeps for the house are kept in every show from its planning on (`standing`).
//!
//! What is not here: undoing the bookings of a show that was called off (`bookings`), what customers see of all this
//! (`catalogue`), and prices of single bookings.

mod endpoints;
mod films;
mod layouts;
mod screens;
mod shows;
mod sql;
mod standing;
mod tariffs;
mod theatres;
mod told;

pub use endpoints::routes;
pub use films::{add as add_film, list as films};
pub use layouts::{File, MAX_FILE_BYTES, REASON as IMPORT_REASON, Room, import, room, sold_seats};
pub use screens::{create as create_screen, list as screens, publish};
pub use shows::{
    call_off, change_terms, instant, move_show, plan as plan_shows, preview_move, show, week, withdraw_seats,
};
pub use standing::{
    ScreenHouseSeat, keep as keep_standing_seats, list as standing_seats, of_room as standing_in,
    unknown as unknown_seats,
};
pub use tariffs::{PriceGround, current as tariff, price_ground, set as set_tariff};
pub use theatres::{change as change_theatre, create as create_theatre, found as found_theatre, one as theatre};
pub use told::follow_forever;

use domain::hidden_characters::is_bidi_override;
use domain::roles::Role;
use domain::time::Timestamp;
use sqlx::{Postgres, Transaction};

use crate::BackofficeState;
use http::idempotency::{Answer, Intent};
use http::{Code, Problem};
use identity::accounts::Staff;
use identity::audit::{self, Entry};

/// Who may do all of this.
pub const ROLES: &[Role] = &[Role::Manager, Role::Organiser];
/// Longest name of a screen, a film or a language, characters.
const MAX_NAME_CHARS: usize = 120;
/// Longest title of a film, characters: the longest real ones have about 150.
const MAX_TITLE_CHARS: usize = 200;
/// Longest text about a film, characters.
const MAX_TEXT_CHARS: usize = 2_000;

/// An act of an organiser: who, where, with which key, and why.
pub struct Act<'a> {
    /// Whoever does it; that they may was asked before.
    pub staff: &'a Staff,
    /// The theatre.
    pub theatre: &'a str,
    /// The key and the request.
    pub intent: &'a Intent,
    /// As it was written, not checked yet.
    pub reason: &'a str,
}

/// An act under way: its transaction, with the key claimed in it.
pub(crate) struct Begun<'a> {
    act: &'a Act<'a>,
    reason: &'a str,
    /// Everything is written here.
    tx: Transaction<'static, Postgres>,
    /// When it began, on the lock store's clock.
    now: Timestamp,
}

impl<'a> Act<'a> {
    /// Begins it; the other side is the answer that was given before.
    async fn begin(&'a self, state: &BackofficeState) -> Result<Result<Begun<'a>, Answer>, Problem> {
        let now = state.clock.now();
        if let Some(answer) = self.intent.replay(&state.pg, now).await? {
            return Ok(Err(answer));
        }
        let reason = identity::accounts::reason_of(self.reason)?;
        let mut tx = state.pg.begin().await?;
        if let Some(answer) = self.intent.begin(&mut tx, now).await? {
            return Ok(Err(answer));
        }
        Ok(Ok(Begun { act: self, reason, tx, now }))
    }
}

impl Begun<'_> {
    /// Writes the line in the audit list and the answer down, and commits.
    async fn done(mut self, name: &'static str, subject: String, answer: Answer) -> Result<Answer, Problem> {
        let entry = Entry::by(self.act.staff.session.account, name, subject, self.reason).at(self.act.theatre);
        audit::record(&mut self.tx, &entry, self.now).await?;
        self.act.intent.commit(self.tx, answer, self.now).await
    }
}

/// A name people read, without the white space around it.
fn name_of<'a>(text: &'a str, what: &str) -> Result<&'a str, Problem> {
    named(text, MAX_NAME_CHARS, what)
}

/// A film's title, likewise.
fn title_of(text: &str) -> Result<&str, Problem> {
    named(text, MAX_TITLE_CHARS, "the title")
}

fn named<'a>(text: &'a str, most: usize, what: &str) -> Result<&'a str, Problem> {
    match text_of(text, most, what)? {
        "" => Err(Problem::new(Code::Malformed, format!("Write down {what}."))),
        name => Ok(name),
    }
}

/// A text people read; may be empty.
fn text_of<'a>(text: &'a str, most: usize, what: &str) -> Result<&'a str, Problem> {
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

/// A name in addresses made from one for people: `kino-1`; what is no Latin letter or digit is left out. Never
/// another's: some of an id follows.
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
    // The end of an id is its random part.
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
    fn any_name_becomes_one_for_addresses_that_is_nobody_elses() {
        for name in ["Kino 1", "Зал 3", "--", "", "A very long name ".repeat(20).as_str(), "Sala Única"] {
            let (one, other) = (slug_of(name), slug_of(name));
            assert!(is_slug(&one), "{one}");
            assert_ne!(one, other);
        }
        assert!(slug_of("Kino 1").starts_with("kino-1-"));
    }

    #[test]
    fn names_are_there_short_and_readable() {
        assert_eq!(name_of("  Kino ", "a name").ok(), Some("Kino"));
        assert!(name_of(" ", "a name").is_err() && name_of("a\u{7}", "a name").is_err());
        assert!(name_of(&"x".repeat(MAX_NAME_CHARS + 1), "a name").is_err());
        assert!(title_of(&"ま".repeat(MAX_TITLE_CHARS)).is_ok() && title_of(&"x".repeat(MAX_TITLE_CHARS + 1)).is_err());
        assert!(title_of("Live \u{202E}evil").is_err() && text_of("\u{2067}", MAX_TEXT_CHARS, "A text").is_err());
    }
}
