//! Characters on printed tickets that no font has.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use metrics::{Unit, counter, describe_counter};

/// Characters drawn as their code points.
const WITHOUT_FONT: &str = "rowlock_ticket_characters_without_font_total";
/// Characters that are logged, each once per process; all are counted. Names are input of strangers: the log has an end.
const MAX_LOGGED: usize = 500;

static LOGGED: Mutex<BTreeSet<char>> = Mutex::new(BTreeSet::new());

pub(super) fn register() {
    describe_counter!(
        WITHOUT_FONT,
        Unit::Count,
        "Characters on PDF tickets that no font has, drawn as their code points."
    );
    counter!(WITHOUT_FONT).increment(0);
}

/// Counts a character that a ticket shows as its code point, and logs it the first time.
pub fn character_without_font(character: char) {
    counter!(WITHOUT_FONT).increment(1);
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.len() < MAX_LOGGED && logged.insert(character) {
        let code_point = format!("U+{:04X}", u32::from(character));
        tracing::warn!(code_point, "no font has a character of a ticket; printing its code point");
    }
}
