//! The languages of the site: messages, numbers, money and dates.
//!
//! Messages are files (`messages/*.json`, ICU MessageFormat). Code names them by key and contains no texts.
//! The server has all languages. The browser has the one of its page, which carries the messages its islands need
//! ([`carried`]). Both sides format messages with the same code, so an island shows what the server rendered.
//!
//! Facts about languages (plural categories, digits, grouping, currency placement) are from the Unicode CLDR, release
//! 48; `messages/README.md` names them.

use std::cell::Cell;

#[cfg(not(any(feature = "ssr", test)))]
mod carried;
#[cfg(any(feature = "ssr", test))]
mod catalogue;
mod languages;
mod message;
#[cfg(any(feature = "ssr", test))]
mod message_folder;
mod moment;
mod number;
mod problems;
#[cfg(test)]
mod tests;
#[cfg(feature = "ssr")]
mod text_language;

#[cfg(not(any(feature = "ssr", test)))]
use carried as known;
#[cfg(any(feature = "ssr", test))]
use catalogue as known;

#[cfg(feature = "ssr")]
pub use catalogue::carried_by;
pub use languages::Language;
pub use message::{Arg, isolated, listed};
#[cfg(any(feature = "ssr", test))]
pub use message_folder::read_messages_from;
pub use moment::{Moment, time_of_day};
pub use number::{clock, money, number, tenths};
pub use problems::{Hindrance, problem_for_staff, problem_in_words};
#[cfg(feature = "ssr")]
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
/// "cart.seats", count = 3)`. Values are numbers, money or texts ([`language::Arg`]).
///
/// [`language::Arg`]: crate::language::Arg
#[macro_export]
macro_rules! say {
    (in $language:expr, $key:expr $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::language::say_in($language, $key, &[$((stringify!($name), $crate::language::Arg::from($value))),*])
    };
    ($key:expr $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::language::say($key, &[$((stringify!($name), $crate::language::Arg::from($value))),*])
    };
}
