//! Cache tags: the shows, films and theatres that a public answer depends on, by which a CDN purges it.

use std::collections::BTreeSet;

use uuid::Uuid;

/// The tag of answers that depend on many things. Every change purges it.
const LISTS: &str = "lists";
/// Maximum number of tags of an answer…
const MAX_TAGS: usize = 32;
/// …and their maximum size, bytes: proxies limit headers. An answer with more has the tag [`LISTS`] alone.
const MAX_BYTES: usize = 1_000;

/// The tags of an answer: lower-case letters, digits and dashes, which every CDN reads alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheTags(BTreeSet<String>);

impl CacheTags {
    /// The tag of an answer that depends on many things: the front page, a search.
    #[must_use]
    pub fn lists() -> Self {
        Self::default().with(LISTS.to_owned())
    }

    /// Adds the tag of a show.
    #[must_use]
    pub fn show(self, id: Uuid) -> Self {
        self.with(format!("show-{id}"))
    }

    /// Adds the tag of a theatre.
    #[must_use]
    pub fn theatre(self, id: &str) -> Self {
        self.with(format!("theatre-{id}"))
    }

    /// Adds the tag of a film.
    #[must_use]
    pub fn film(self, id: &str) -> Self {
        self.with(format!("film-{id}"))
    }

    /// Adds the tag of a city and its programme.
    #[must_use]
    pub fn city(self, id: &str) -> Self {
        self.with(format!("city-{id}"))
    }

    /// Adds the tags of listed shows, given as `(theatre, film)`: a change of a show purges both.
    #[must_use]
    pub fn listing<'a>(self, shows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        shows.into_iter().fold(self, |tags, (theatre, film)| tags.theatre(theatre).film(film))
    }

    fn with(mut self, tag: String) -> Self {
        self.0.insert(tag);
        self
    }

    /// The tags in alphabetical order, or `lists` alone if there are too many.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let bytes: usize = self.0.iter().map(|tag| tag.len() + 1).sum();
        let is_for_all = self.0.contains(LISTS) || self.0.len() > MAX_TAGS || bytes > MAX_BYTES;
        if is_for_all { vec![LISTS] } else { self.0.iter().map(String::as_str).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_tags_than_the_limit_become_the_lists_tag() {
        let id = Uuid::nil();
        let few = CacheTags::default().theatre("aurora").show(id).film("tide").film("tide");
        assert_eq!(few.names(), ["film-tide", &format!("show-{id}"), "theatre-aurora"]);
        let many = (0..=MAX_TAGS).fold(CacheTags::default(), |tags, number| tags.film(&number.to_string()));
        assert_eq!(many.names(), [LISTS]);
        let long =
            (0..20).fold(CacheTags::default(), |tags, number| tags.film(&format!("{number}-{}", "a".repeat(60))));
        assert_eq!(long.names(), [LISTS]);
        assert_eq!(CacheTags::lists().city("lisbon").names(), [LISTS], "every change purges it");
        assert!(CacheTags::default().names().is_empty());
    }

    #[test]
    fn the_database_writes_the_tags_of_pages() {
        let migration = include_str!("../../../migrations/0003_catalogue.sql");
        for tag in ["'lists'", "'show-' ||", "'film-' ||", "'theatre-' ||", "'city-' ||"] {
            assert!(migration.contains(tag), "{tag}");
        }
    }
}
