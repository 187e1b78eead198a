//! The audit list: the actor, action, time and reason of each action. Entries are inserted in the transaction of the
//! action and never changed, which the table enforces.
//!
//! Entries name accounts by their ids; their names are looked up when the list is read. Actions on bookings are in
//! their history (`booking_events`).

mod names;

use domain::api::accounts::{AuditView, THEATRE_ACTIONS};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use platform::clock::{from_utc, rfc3339, to_utc};

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
pub async fn record(tx: &mut PgConnection, entry: &AuditEntry<'_>, now: Timestamp) -> Result<(), sqlx::Error> {
    // Pages need a translation of each action in a theatre.
    debug_assert!(entry.theatre.is_none() || THEATRE_ACTIONS.contains(&entry.act), "{} has no words", entry.act);
    sqlx::query("INSERT INTO audit_list (at, actor, theatre_id, act, subject, reason) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(to_utc(now))
        .bind(entry.actor)
        .bind(entry.theatre)
        .bind(entry.act)
        .bind(&entry.subject)
        .bind(entry.reason)
        .execute(tx)
        .await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
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
pub async fn of_theatre(pg: &PgPool, theatre: &str, before: Option<i64>) -> Result<Vec<AuditView>, sqlx::Error> {
    let rows: Vec<AuditRow> = sqlx::query_as(
        "SELECT line.number, line.at, line.actor, account.name AS actor_name, line.act, line.subject, line.reason
         FROM audit_list line LEFT JOIN accounts account ON account.id = line.actor
         WHERE line.theatre_id = $1 AND line.number < $2 ORDER BY line.number DESC LIMIT $3",
    )
    .bind(theatre)
    .bind(before.unwrap_or(i64::MAX))
    .bind(PER_PAGE)
    .fetch_all(pg)
    .await?;
    let texts = rows.iter().flat_map(|row| [row.subject.as_str(), row.reason.as_str()]);
    let names = names::resolve(pg, theatre, texts).await?;
    let view = |row: AuditRow| AuditView {
        subject_name: names::replace_ids(&row.subject, &names),
        reason_name: names::replace_ids(&row.reason, &names),
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
