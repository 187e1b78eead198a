//! Cache tags: the shows, films and theatres that a public answer depends on, by which a CDN purges it.

use std::collections::BTreeSet;

use uuid::Uuid;

/// Of everything that shows more than a few things. Every purge is one of it.
const LISTS: &str = "lists";
/// Tags of one answer at most…
const MAX_TAGS: usize = 32;
/// …and bytes of them: proxies have little room for headers. What shows more is one of [`LISTS`].
const MAX_BYTES: usize = 1_000;

/// The tags of an answer: lower-case letters, digits and dashes, so that no CDN reads two for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheTags(BTreeSet<String>);

impl CacheTags {
    /// Of what shows a little of everything: the front page, a search.
    #[must_use]
    pub fn lists() -> Self {
        Self::default().with(LISTS.to_owned())
    }

    /// It shows this show.
    #[must_use]
    pub fn show(self, id: Uuid) -> Self {
        self.with(format!("show-{id}"))
    }

    /// It shows this theatre.
    #[must_use]
    pub fn theatre(self, id: &str) -> Self {
        self.with(format!("theatre-{id}"))
    }

    /// It shows this film.
    #[must_use]
    pub fn film(self, id: &str) -> Self {
        self.with(format!("film-{id}"))
    }

    /// It shows what is on in this city.
    #[must_use]
    pub fn city(self, id: &str) -> Self {
        self.with(format!("city-{id}"))
    }

    /// It lists shows of these theatres and films (`(theatre, film)`), which a change of any of them names as well.
    #[must_use]
    pub fn listing<'a>(self, shows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        shows.into_iter().fold(self, |tags, (theatre, film)| tags.theatre(theatre).film(film))
    }

    fn with(mut self, tag: String) -> Self {
        self.0.insert(tag);
        self
    }

    /// The tags in alphabetical order, or the one tag of an answer that depends on too many things.
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
    fn an_answer_has_tags_of_few_things_and_a_list_tag_for_many() {
        let id = Uuid::nil();
        let few = CacheTags::default().theatre("aurora").show(id).film("tide").film("tide");
        assert_eq!(few.names(), ["film-tide", &format!("show-{id}"), "theatre-aurora"]);
        let many = (0..=MAX_TAGS).fold(CacheTags::default(), |tags, number| tags.film(&number.to_string()));
        assert_eq!(many.names(), [LISTS]);
        let long =
            (0..20).fold(CacheTags::default(), |tags, number| tags.film(&format!("{number}-{}", "a".repeat(60))));
        assert_eq!(long.names(), [LISTS]);
        assert_eq!(CacheTags::lists().city("lisbon").names(), [LISTS], "every purge is one of it");
        assert!(CacheTags::default().names().is_empty());
    }

    #[test]
    fn the_database_writes_tags_as_pages_carry_them() {
        let migration = include_str!("../../../migrations/0003_catalogue.sql");
        for tag in ["'lists'", "'show-' ||", "'film-' ||", "'theatre-' ||", "'city-' ||"] {
            assert!(migration.contains(tag), "{tag}");
        }
    }
}
