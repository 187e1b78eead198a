//! The languages of the site: which message is said how, in whose numbers, money and dates.
//!
//! Messages are files (`messages/*.json`, ICU MessageFormat); code names them by key and never holds a
//! text of its own. The server knows all languages. The browser knows the one of its page: the page
//! carries the few messages its islands need ([`carried`]), and both sides put them together with the
//! same code, so that what an island shows is what the server rendered.
//!
//! Facts about languages (plural categories, digits, grouping, where the currency stands) are those of
//! the Unicode CLDR, release 48; `messages/README.md` says which.

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

/// A language the site speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// English, for everyone whose language is none of the others.
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
    /// All of them, in the order they are offered.
    pub const ALL: [Self; 5] = [Self::English, Self::German, Self::Spanish, Self::Hindi, Self::Arabic];

    /// The language a tag names (BCP 47): `de`, `de-AT`, `DE`. `None` for any other.
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

    /// What it calls itself: the one text that is the same in all of them.
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

    /// Which way it is written: the `dir` of a document.
    #[must_use]
    pub const fn direction(self) -> &'static str {
        if self.is_right_to_left() { "rtl" } else { "ltr" }
    }

    /// Whether it is written from right to left.
    #[must_use]
    pub const fn is_right_to_left(self) -> bool {
        matches!(self, Self::Arabic)
    }
}

thread_local! {
    /// A document is rendered by one thread without a pause, and a page in the browser has one language.
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

/// Renders something in this language.
pub fn speaking<T>(language: Language, render: impl FnOnce() -> T) -> T {
    /// Puts back what was, even past a panic: the thread renders for others next.
    struct Before(Option<Language>);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _before = Before(CURRENT.replace(Some(language)));
    render()
}

/// A message in the current language. Called through [`crate::say!`].
#[must_use]
pub fn say(key: &str, args: &[(&str, Arg<'_>)]) -> String {
    say_in(current(), key, args)
}

/// A message in a language. One that is missing there is said in English, and one that is nowhere by its
/// key; a test keeps both from happening.
#[must_use]
pub fn say_in(language: Language, key: &str, args: &[(&str, Arg<'_>)]) -> String {
    try_in(language, key, args).unwrap_or_else(|| key.to_owned())
}

/// A message whose key is not known to exist.
fn try_in(language: Language, key: &str, args: &[(&str, Arg<'_>)]) -> Option<String> {
    known::pattern(language, key, |pattern| message::written(pattern, args, language))
}

/// A message by its key: `say!("cart.seats", count = 3)`; of a language that is not the current one:
/// `say!(in language, "cart.seats", count = 3)`. Values are numbers, money, or texts ([`language::Arg`]).
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
