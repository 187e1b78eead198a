//! Resolves ids of accounts, shows and tills in audit entries to names. Names may change, so they are resolved when the
//! list is read.

use std::borrow::Cow;
use std::collections::HashMap;

use sqlx::PgPool;
use uuid::Uuid;

/// Words before an id that its name replaces.
const KINDS: [&str; 3] = ["account", "show", "till"];

/// Returns the names of the ids in these texts of a theatre: an account's own name, the name of a till's person, and a
/// show's film and local start.
pub(super) async fn resolve<'a>(
    pg: &PgPool,
    theatre: &str,
    texts: impl Iterator<Item = &'a str>,
) -> Result<HashMap<Uuid, String>, sqlx::Error> {
    let ids: Vec<Uuid> = texts.flat_map(str::split_whitespace).filter_map(id).collect();
    let named: Vec<(Uuid, String)> = sqlx::query_as(
        "SELECT id, name FROM accounts WHERE id = ANY($1)
         UNION ALL
         SELECT till.id, account.name FROM tills till JOIN accounts account ON account.id = till.account_id
         WHERE till.id = ANY($1) AND till.theatre_id = $2
         UNION ALL
         SELECT show.id, film.title || ', ' || to_char(show.starts_at AT TIME ZONE city.time_zone, 'YYYY-MM-DD HH24:MI')
         FROM shows show JOIN films film ON film.id = show.film_id JOIN screens screen ON screen.id = show.screen_id
         JOIN theatres theatre ON theatre.id = screen.theatre_id JOIN cities city ON city.id = theatre.city_id
         WHERE show.id = ANY($1) AND theatre.id = $2",
    )
    .bind(&ids)
    .bind(theatre)
    .fetch_all(pg)
    .await?;
    Ok(named.into_iter().collect())
}

/// Replaces ids in a text by names; `None` when the text has no id with a name.
pub(super) fn replace_ids(text: &str, names: &HashMap<Uuid, String>) -> Option<String> {
    let mut words: Vec<Cow<'_, str>> = Vec::new();
    let mut has_name = false;
    for word in text.split(' ') {
        let end = word.len() - bare(word).len();
        match id(word).and_then(|id| names.get(&id)) {
            Some(name) => {
                has_name = true;
                // The name makes the kind obvious.
                words.pop_if(|kind| KINDS.contains(&&**kind));
                words.push(Cow::Owned(format!("{name}{}", &word[word.len() - end..])));
            }
            None => words.push(Cow::Borrowed(word)),
        }
    }
    has_name.then(|| words.join(" "))
}

/// Returns a word without trailing punctuation.
fn bare(word: &str) -> &str {
    word.trim_end_matches([':', ',', '.', ';'])
}

/// Parses a hyphenated id.
fn id(word: &str) -> Option<Uuid> {
    let word = bare(word);
    Uuid::try_parse(word).ok().filter(|_| word.len() == uuid::fmt::Hyphenated::LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_replaced_by_names_and_other_text_stays() {
        let (max, show) = (Uuid::from_u128(7), Uuid::from_u128(8));
        let names =
            HashMap::from([(max, "Max Manager".to_owned()), (show, "Glass Orbit, 2026-11-24 20:15".to_owned())]);
        let replace = |subject: String| replace_ids(&subject, &names);
        assert_eq!(replace(format!("account {max} as manager")).as_deref(), Some("Max Manager as manager"));
        let door = format!("tickets AB12, CD34 of show {show}");
        assert_eq!(replace(door).as_deref(), Some("tickets AB12, CD34 of Glass Orbit, 2026-11-24 20:15"));
        let pin = format!("€ 12.50, by the PIN of account {max}:  twice");
        assert_eq!(replace(pin).as_deref(), Some("€ 12.50, by the PIN of Max Manager:  twice"));
        assert_eq!(replace(format!("show {}", Uuid::from_u128(9))), None, "one that is gone");
        assert_eq!(replace("booking K7QM-2XPA".to_owned()), None);
        assert_eq!(replace(format!("account {}", max.simple())), None, "not as it is written here");
    }
}
