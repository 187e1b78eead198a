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
mod lists;
mod message;
mod moment;
mod number;
mod plural;
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
pub use lists::listed;
pub use message::{Arg, isolated};
pub use moment::{Moment, time_of_day};
pub use number::{clock, money, number, tenths};
pub use problems::{Hindrance, problem_for_staff, problem_in_words};
#[cfg(feature = "ssr")]
pub use text_language::text_language;

/// A language of the site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// English, the default.
    #[default]
    English,
    /// German.
    German,
    /// Spanish.
    Spanish,
    /// Hindi.
    Hindi,
    /// Arabic, written from right to left.
    Arabic,
}

impl Language {
    /// All languages, in the order of the chooser.
    pub const ALL: [Self; 5] = [Self::English, Self::German, Self::Spanish, Self::Hindi, Self::Arabic];

    /// The language of a tag (BCP 47): `de`, `de-AT`, `DE`. `None` for other languages.
    #[must_use]
    pub fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', '_']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| language.tag().eq_ignore_ascii_case(primary))
    }

    /// Its tag (BCP 47).
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::Spanish => "es",
            Self::Hindi => "hi",
            Self::Arabic => "ar",
        }
    }

    /// Its name in itself, the same in every language.
    #[must_use]
    pub const fn own_name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::German => "Deutsch",
            Self::Spanish => "Español",
            Self::Hindi => "हिन्दी",
            Self::Arabic => "العربية",
        }
    }

    /// Its direction: the `dir` of a document.
    #[must_use]
    pub const fn direction(self) -> &'static str {
        if self.is_right_to_left() { "rtl" } else { "ltr" }
    }

    /// Returns true if it is written from right to left.
    #[must_use]
    pub const fn is_right_to_left(self) -> bool {
        matches!(self, Self::Arabic)
    }
}

thread_local! {
    /// One thread renders a document without interruption, and a page in the browser has one language.
    static CURRENT: Cell<Option<Language>> = const { Cell::new(None) };
}

/// The language of the document being rendered, or of the page.
#[must_use]
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
#[must_use]
pub fn say(key: &str, args: &[(&str, Arg<'_>)]) -> String {
    say_in(current(), key, args)
}

/// A message in a language. Falls back to English, then to the key; a test prevents both.
#[must_use]
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
