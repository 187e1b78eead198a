//! The languages of the site: messages, numbers, money, dates and API problems in words.
//!
//! Messages are files (`messages/*.json`, ICU MessageFormat). Code names them by key and contains no texts.
//! The server has all languages. The browser has the one of its page, which carries the messages its islands need
//! (`carried.rs`). Both sides format messages with the same code, so an island shows what the server rendered.
//!
//! Facts about languages (plural categories, digits, grouping, currency placement) are from the Unicode CLDR, release
//! 48; `messages/README.md` names them.
//!
//! Pages, mails and the choice of a page's language use this crate, so it is small and knows no Leptos. Of the workspace
//! it may use `domain` only. To add a language: the recipe in CONTRIBUTING.md. To add a text: `messages/*.json`. The
//! tests compare the files with each other and with the keys in the code of all crates.

use std::cell::Cell;

#[cfg(target_arch = "wasm32")]
mod carried;
#[cfg(not(target_arch = "wasm32"))]
mod catalogue;
mod languages;
mod message;
#[cfg(not(target_arch = "wasm32"))]
mod message_folder;
mod moment;
mod number;
mod problems;
#[cfg(test)]
mod tests;
mod text_language;

#[cfg(target_arch = "wasm32")]
use carried as known;
#[cfg(not(target_arch = "wasm32"))]
use catalogue as known;

#[cfg(not(target_arch = "wasm32"))]
pub use catalogue::carried_by;
pub use languages::Language;
pub use message::{Arg, isolated, listed};
#[cfg(not(target_arch = "wasm32"))]
pub use message_folder::read_messages_from;
pub use moment::{Moment, time_of_day};
pub use number::{clock, money, number, tenths};
pub use problems::{StaffError, problem_for_staff, problem_in_words};
pub use text_language::text_language;

thread_local! {
    /// One thread renders a document without interruption, and a page in the browser has one language.
    static CURRENT: Cell<Option<Language>> = const { Cell::new(None) };
}

/// The language of the document being rendered, or of the page.
pub fn current() -> Language {
    CURRENT.get().unwrap_or_else(|| {
        let language = known::of_page();
        CURRENT.set(Some(language));
        language
    })
}

/// Renders in this language.
pub fn with_language<T>(language: Language, render: impl FnOnce() -> T) -> T {
    /// Restores the previous language, also after a panic: the thread renders for other visitors next.
    struct Restore(Option<Language>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _before = Restore(CURRENT.replace(Some(language)));
    render()
}

/// A message in the current language. Called by [`crate::say!`].
pub fn say(key: &str, args: &[(&str, Arg<'_>)]) -> String {
    say_in(current(), key, args)
}

/// A message in a language. Falls back to English, then to the key; a test prevents both.
pub fn say_in(language: Language, key: &str, args: &[(&str, Arg<'_>)]) -> String {
    try_in(language, key, args).unwrap_or_else(|| key.to_owned())
}

/// A message whose key may not exist.
fn try_in(language: Language, key: &str, args: &[(&str, Arg<'_>)]) -> Option<String> {
    known::pattern(language, key, |pattern| message::format_message(pattern, args, language))
}

/// A message by its key: `say!("cart.seats", count = 3)`. In another language than the current one: `say!(in language,
/// "cart.seats", count = 3)`. Values are numbers, money or texts ([`Arg`]).
#[macro_export]
macro_rules! say {
    (in $language:expr, $key:expr $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::say_in($language, $key, &[$((stringify!($name), $crate::Arg::from($value))),*])
    };
    ($key:expr $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::say($key, &[$((stringify!($name), $crate::Arg::from($value))),*])
    };
}
