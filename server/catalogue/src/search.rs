//! Parses the search of shows, with the same rules for pages and API.

use chrono::NaiveDate;
use domain::api::catalogue::ShowQuery;

/// Longest text one may search for, characters.
const TEXT_LIMIT: usize = 80;
/// Longest slug, language or format, bytes.
const NAME_LIMIT: usize = 64;

/// A question to the catalogue; each field that is there narrows the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShowSearch {
    /// Slug of a film.
    pub film: Option<String>,
    /// Slug of a city.
    pub city: Option<String>,
    /// Day in the theatre's zone.
    pub date: Option<NaiveDate>,
    /// Slug of a theatre.
    pub theatre: Option<String>,
    /// Language, any case.
    pub language: Option<String>,
    /// Format, any case.
    pub format: Option<String>,
    /// Text in title, genre or theatre, any case.
    pub text: Option<String>,
}

/// An invalid search, as a sentence for the person who sent it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSearch(String);

impl ShowSearch {
    /// Reads the parameters of an address. Empty ones count as absent.
    ///
    /// # Errors
    /// Names the parameter that cannot be meant.
    pub fn read(query: &ShowQuery) -> Result<Self, InvalidSearch> {
        Ok(Self {
            film: slug("movie", query.movie.as_deref())?,
            city: slug("city", query.city.as_deref())?,
            date: date(query.date.as_deref())?,
            theatre: slug("theatre", query.theatre.as_deref())?,
            language: text("language", query.language.as_deref(), NAME_LIMIT)?,
            format: text("format", query.format.as_deref(), NAME_LIMIT)?,
            text: text("q", query.q.as_deref(), TEXT_LIMIT)?,
        })
    }

    /// True if it has no condition.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads a day, `YYYY-MM-DD`.
///
/// # Errors
/// When it is not a day; the message describes the format.
pub fn date(given: Option<&str>) -> Result<Option<NaiveDate>, InvalidSearch> {
    let Some(given) = present(given) else { return Ok(None) };
    let read = day(given);
    read.map(Some).ok_or_else(|| InvalidSearch("A date is written like 2026-11-21 and must exist.".to_owned()))
}

/// The day that is written `YYYY-MM-DD`, if there is such a day. chrono would also take "+2026-1-1", and "-9999-01-1",
/// which is no day in Postgres: only digits count, and hyphens between them.
#[must_use]
pub fn day(text: &str) -> Option<NaiveDate> {
    let is_written = |(at, byte): (usize, u8)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    let is_day = text.len() == 10 && text.bytes().enumerate().all(is_written);
    if is_day { NaiveDate::parse_from_str(text, "%Y-%m-%d").ok() } else { None }
}

/// True if `id` may be a slug: any other text cannot be in the database either.
#[must_use]
pub fn is_slug(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= NAME_LIMIT
        && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn present(given: Option<&str>) -> Option<&str> {
    given.map(str::trim).filter(|text| !text.is_empty())
}

fn slug(name: &str, given: Option<&str>) -> Result<Option<String>, InvalidSearch> {
    match present(given) {
        None => Ok(None),
        Some(id) if is_slug(id) => Ok(Some(id.to_owned())),
        Some(_) => Err(InvalidSearch(format!("{name} is made of small letters, digits and hyphens."))),
    }
}

/// Control characters mean nothing in a search, and Postgres refuses some of them.
fn text(name: &str, given: Option<&str>, limit: usize) -> Result<Option<String>, InvalidSearch> {
    match present(given) {
        None => Ok(None),
        Some(text) if text.chars().count() > limit => {
            Err(InvalidSearch(format!("{name} is longer than {limit} characters.")))
        }
        Some(text) if text.chars().any(char::is_control) => {
            Err(InvalidSearch(format!("{name} contains a control character.")))
        }
        Some(text) => Ok(Some(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(change: impl FnOnce(&mut ShowQuery)) -> Result<ShowSearch, InvalidSearch> {
        let mut query = ShowQuery::default();
        change(&mut query);
        ShowSearch::read(&query)
    }

    #[test]
    fn an_empty_field_counts_as_absent() {
        let search = read(|query| {
            query.q = Some("  ".to_owned());
            query.date = Some(String::new());
        });
        assert!(search.expect("readable").is_open());
    }

    #[test]
    fn an_invalid_field_is_refused_by_name() {
        let refusals = [
            read(|query| query.date = Some("2026-02-30".to_owned())),
            read(|query| query.date = Some("+2026-1-1".to_owned())),
            read(|query| query.date = Some("-9999-01-1".to_owned())),
            read(|query| query.city = Some("'; DROP TABLE shows".to_owned())),
            read(|query| query.q = Some("a\0b".to_owned())),
            read(|query| query.q = Some("x".repeat(TEXT_LIMIT + 1))),
        ];
        for refusal in refusals {
            assert!(refusal.is_err(), "{refusal:?}");
        }
    }

    #[test]
    fn a_day_is_four_digits_two_and_two() {
        for valid in ["2026-11-21", "0001-01-01", "9999-12-31"] {
            assert_eq!(day(valid).map(|day| day.to_string()).as_deref(), Some(valid));
        }
        for bad in [
            "-9999-01-1",
            "+2026-1-01",
            "2026-1-001",
            "2026-+1-01",
            "2026 11-21",
            "20261-1-21",
            "2026-02-30",
            "２０２６-1",
        ] {
            assert_eq!(day(bad), None, "{bad}");
        }
    }

    #[test]
    fn any_script_may_be_searched_in() {
        let search = read(|query| query.q = Some(" Ночь 夜 🌙 <b> ".to_owned())).expect("readable");
        assert_eq!(search.text.as_deref(), Some("Ночь 夜 🌙 <b>"));
    }
}
