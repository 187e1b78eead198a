//! The audit list: the actor, action, time and reason of each action. Entries are inserted in the transaction of the
//! action and never changed, which the table enforces.
//!
//! Entries name accounts by their ids; their names are looked up when the list is read. Actions on bookings are in
//! their history (`booking_events`).

use std::borrow::Cow;
use std::collections::HashMap;

use domain::api::accounts::{AuditView, THEATRE_ACTIONS};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use platform::clock::{from_utc, rfc3339, to_utc};
use platform::database::BindAll;

/// Entries per page.
pub const PER_PAGE: i64 = 100;

/// An audit entry.
#[derive(Clone, Debug)]
pub struct AuditEntry<'a> {
    /// The acting account; `None` for the server's command line.
    pub actor: Option<Uuid>,
    /// The theatre, for actions in a theatre.
    pub theatre: Option<&'a str>,
    /// The action, a stable name; in a theatre one of [`THEATRE_ACTIONS`].
    pub act: &'static str,
    /// The subject: a kind and an id.
    pub subject: String,
    /// The reason.
    pub reason: &'a str,
}

impl<'a> AuditEntry<'a> {
    /// Creates the entry of an account's action, without a theatre.
    #[must_use]
    pub const fn by(actor: Uuid, act: &'static str, subject: String, reason: &'a str) -> Self {
        Self { actor: Some(actor), theatre: None, act, subject, reason }
    }

    /// Sets the theatre.
    #[must_use]
    pub const fn at(mut self, theatre: &'a str) -> Self {
        self.theatre = Some(theatre);
        self
    }
}

/// Formats an account as a subject.
#[must_use]
pub fn account(id: Uuid) -> String {
    format!("account {id}")
}

/// Inserts an entry, in the transaction of the action.
pub async fn record(tx: &mut PgConnection, entry: &AuditEntry<'_>, now: Timestamp) -> sqlx::Result<()> {
    // Pages need a translation of each action in a theatre.
    debug_assert!(entry.theatre.is_none() || THEATRE_ACTIONS.contains(&entry.act), "{} has no words", entry.act);
    sqlx::query("INSERT INTO audit_list (at, actor, theatre_id, act, subject, reason) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind_all((to_utc(now), entry.actor, entry.theatre, entry.act, &entry.subject, entry.reason))
        .execute(tx)
        .await?;
    Ok(())
}

#[derive(platform::FromRow)]
struct AuditRow {
    number: i64,
    at: chrono::DateTime<chrono::Utc>,
    actor: Option<Uuid>,
    actor_name: Option<String>,
    act: String,
    subject: String,
    reason: String,
}

/// Returns entries of a theatre before number `before`, the newest first.
pub async fn of_theatre(pg: &PgPool, theatre: &str, before: Option<i64>) -> sqlx::Result<Vec<AuditView>> {
    let sql = "SELECT line.number, line.at, line.actor, account.name AS actor_name, line.act, line.subject, line.reason
               FROM audit_list line LEFT JOIN accounts account ON account.id = line.actor
               WHERE line.theatre_id = $1 AND line.number < $2 ORDER BY line.number DESC LIMIT $3";
    let rows: Vec<AuditRow> =
        sqlx::query_as(sql).bind_all((theatre, before.unwrap_or(i64::MAX), PER_PAGE)).fetch_all(pg).await?;
    let texts = rows.iter().flat_map(|row| [row.subject.as_str(), row.reason.as_str()]);
    let names = names_of(pg, theatre, texts).await?;
    let view = |row: AuditRow| AuditView {
        subject_name: with_names(&row.subject, &names),
        reason_name: with_names(&row.reason, &names),
        number: row.number,
        at: rfc3339(from_utc(row.at)),
        actor: row.actor,
        actor_name: row.actor_name,
        act: row.act,
        subject: row.subject,
        reason: row.reason,
    };
    Ok(rows.into_iter().map(view).collect())
}

/// Returns the subjects of one action among the last `entries` of a theatre, the newest first.
pub async fn recent_subjects(
    connection: &mut PgConnection,
    theatre: &str,
    act: &str,
    entries: i64,
) -> sqlx::Result<Vec<String>> {
    let sql = "SELECT subject
               FROM (SELECT number, act, subject FROM audit_list
                     WHERE theatre_id = $1 ORDER BY number DESC LIMIT $3) line
               WHERE act = $2 ORDER BY number DESC";
    sqlx::query_scalar(sql).bind_all((theatre, act, entries)).fetch_all(connection).await
}

/// Words before an id that its name replaces.
const KINDS: [&str; 3] = ["account", "show", "till"];

/// Returns the names of the ids in these texts of a theatre: an account's own name, the name of a till's person, and a
/// show's film and local start.
async fn names_of<'a>(
    pg: &PgPool,
    theatre: &str,
    texts: impl Iterator<Item = &'a str>,
) -> sqlx::Result<HashMap<Uuid, String>> {
    let ids: Vec<Uuid> = texts.flat_map(str::split_whitespace).filter_map(id).collect();
    let sql = "SELECT id, name FROM accounts WHERE id = ANY($1)
         UNION ALL
         SELECT till.id, account.name FROM tills till JOIN accounts account ON account.id = till.account_id
         WHERE till.id = ANY($1) AND till.theatre_id = $2
         UNION ALL
         SELECT show.id, film.title || ', ' || to_char(show.starts_at AT TIME ZONE city.time_zone, 'YYYY-MM-DD HH24:MI')
         FROM shows show JOIN films film ON film.id = show.film_id JOIN screens screen ON screen.id = show.screen_id
         JOIN theatres theatre ON theatre.id = screen.theatre_id JOIN cities city ON city.id = theatre.city_id
         WHERE show.id = ANY($1) AND theatre.id = $2";
    let named: Vec<(Uuid, String)> = sqlx::query_as(sql).bind_all((&ids, theatre)).fetch_all(pg).await?;
    Ok(named.into_iter().collect())
}

/// Replaces ids in a text by names; `None` when the text has no id with a name.
fn with_names(text: &str, names: &HashMap<Uuid, String>) -> Option<String> {
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
        let replace = |subject: String| with_names(&subject, &names);
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
