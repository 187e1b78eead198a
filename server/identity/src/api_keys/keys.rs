//! Creates, lists and revokes keys.

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::api::systems::{ApiKeyMade, ApiKeyRequest, ApiKeyView, MAX_NAME_CHARS, one_line};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::caller::{PREFIX, hash_of};
use crate::IdentityState;
use crate::accounts::{Staff, StaffAction, reason_of};
use crate::audit::{self, AuditEntry};
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use platform::clock::{from_utc, rfc3339, to_utc};
use platform::database::BindAll;
use platform::ids;

/// Maximum number of listed keys of a theatre, including revoked ones.
const MAX_LISTED: i64 = 200;
/// Maximum number of valid keys per theatre.
const MAX_VALID: i64 = 50;
/// Number of first characters of a key that are stored to recognise it, including the prefix.
const HINT_CHARS: usize = 10;

/// Returns the keys of a theatre.
pub async fn list(state: &IdentityState, theatre: &str) -> ApiResult<Vec<ApiKeyView>> {
    let rows = of_theatre(&state.pg, theatre, MAX_LISTED).await?;
    Ok(rows.into_iter().map(KeyRow::view).collect())
}

/// Derives a key from its id and a server secret. Each creation has a new id, whatever the request's idempotency key.
fn secret_of(state: &IdentityState, id: Uuid) -> String {
    format!("{PREFIX}{}", state.accounts.derived_secret(&format!("api key\0{id}")))
}

/// Creates a key. Only this answer contains it. The stored answer omits it; a replay derives it again from the stored
/// id.
///
/// # Errors
/// 400 for an invalid name or reason, 409 when the theatre has too many keys, or for a replay after `TOKEN_SECRET` was
/// replaced.
pub async fn make(
    state: &IdentityState,
    staff: &Staff,
    theatre: &str,
    request: &ApiKeyRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return with_key(state, &answer);
    }
    let name = check_name(&request.name)?;
    let reason = reason_of(&request.reason)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return with_key(state, &answer);
    }
    if lock_count(&mut tx, theatre).await? >= MAX_VALID {
        let detail = format!("A theatre has {MAX_VALID} keys at most. Revoke one that is no longer used.");
        return Err(Problem::new(Code::WrongState, detail));
    }
    let id = ids::new_id();
    let secret = secret_of(state, id);
    let row = KeyRow {
        id,
        name: name.to_owned(),
        hint: secret.chars().take(HINT_CHARS).collect(),
        reads_people: request.reads_people,
        made_at: to_utc(now),
        last_used_at: None,
        revoked_at: None,
    };
    let hash = hash_of(&secret).ok_or_else(|| Problem::internal(&"a key that was made cannot be one"))?;
    insert(&mut tx, theatre, &row, &hash, staff.session.account).await?;
    let subject = format!("key {} {}", row.id, row.name);
    audit::record(&mut tx, &AuditEntry::by(staff.session.account, "api_key_made", subject, reason).at(theatre), now)
        .await?;
    let answer = Answer::json(StatusCode::CREATED, &row.view())?;
    let answer = intent.commit(tx, answer, now).await?;
    with_key(state, &answer)
}

fn with_key(state: &IdentityState, stored: &Answer) -> ApiResult<Answer> {
    let about: ApiKeyView = serde_json::from_slice(stored.body()).map_err(|cause| Problem::internal(&cause))?;
    let key = secret_of(state, about.id);
    // Derived with another server secret, it would be another key.
    if !key.starts_with(&about.hint) {
        let detail = "This key was created with an earlier secret of the server. It cannot be shown again; revoke it \
                      and create another.";
        return Err(Problem::new(Code::WrongState, detail));
    }
    Answer::json(stored.status(), &ApiKeyMade { about, key })
}

/// Revokes a key. A request for a revoked key writes no audit entry.
///
/// # Errors
/// 404 for an unknown key, 400 for an invalid reason.
pub async fn revoke(state: &IdentityState, action: &StaffAction<'_>, id: Uuid) -> ApiResult<Answer> {
    let mut begun = match action.begin(state).await? {
        Ok(begun) => begun,
        Err(answer) => return Ok(answer),
    };
    let is_change =
        mark_revoked(&mut begun.tx, action.theatre, id, begun.now).await?.ok_or_else(|| Problem::not_found("key"))?;
    if is_change {
        begun.record("api_key_revoked", format!("key {id}")).await?;
    }
    begun.commit(Answer::no_content()).await
}

fn check_name(text: &str) -> ApiResult<&str> {
    let detail = || format!("Say what the key is for, in up to {MAX_NAME_CHARS} characters.");
    one_line(text, MAX_NAME_CHARS).ok_or_else(|| Problem::new(Code::Malformed, detail()))
}

/// A key as shown to its theatre.
#[derive(platform::FromRow)]
pub(super) struct KeyRow {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) hint: String,
    pub(super) reads_people: bool,
    pub(super) made_at: DateTime<Utc>,
    pub(super) last_used_at: Option<DateTime<Utc>>,
    pub(super) revoked_at: Option<DateTime<Utc>>,
}

impl KeyRow {
    pub(super) fn view(self) -> ApiKeyView {
        let text = |at: DateTime<Utc>| rfc3339(from_utc(at));
        ApiKeyView {
            id: self.id,
            name: self.name,
            hint: self.hint,
            reads_people: self.reads_people,
            made_at: text(self.made_at),
            last_used_at: self.last_used_at.map(text),
            revoked_at: self.revoked_at.map(text),
        }
    }
}

/// Returns the keys of a theatre, valid ones first, then the newest.
async fn of_theatre(pg: &PgPool, theatre: &str, limit: i64) -> sqlx::Result<Vec<KeyRow>> {
    let sql = "SELECT id, name, hint, reads_people, made_at, last_used_at, revoked_at FROM api_keys
               WHERE theatre_id = $1 ORDER BY revoked_at IS NOT NULL, made_at DESC, id LIMIT $2";
    sqlx::query_as(sql).bind_all((theatre, limit)).fetch_all(pg).await
}

/// Counts the valid keys of a theatre, and blocks new ones until the transaction ends.
async fn lock_count(tx: &mut PgConnection, theatre: &str) -> sqlx::Result<i64> {
    sqlx::query("SELECT 1 FROM theatres WHERE id = $1 FOR NO KEY UPDATE").bind(theatre).execute(&mut *tx).await?;
    let sql = "SELECT count(*) FROM api_keys WHERE theatre_id = $1 AND revoked_at IS NULL";
    sqlx::query_scalar(sql).bind(theatre).fetch_one(tx).await
}

async fn insert(
    tx: &mut PgConnection,
    theatre: &str,
    row: &KeyRow,
    hash: &[u8; 32],
    made_by: Uuid,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO api_keys (id, theatre_id, name, hint, secret_hash, reads_people, made_by, made_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind_all((row.id, theatre, &row.name, &row.hint, &hash[..], row.reads_people, made_by, row.made_at))
    .execute(tx)
    .await?;
    Ok(())
}

/// Revokes a key. `None`: the theatre has no such key; `false`: it was already revoked.
async fn mark_revoked(tx: &mut PgConnection, theatre: &str, id: Uuid, now: Timestamp) -> sqlx::Result<Option<bool>> {
    let sql = "UPDATE api_keys SET revoked_at = $3 WHERE id = $1 AND theatre_id = $2 AND revoked_at IS NULL";
    let revoked = sqlx::query(sql).bind_all((id, theatre, to_utc(now))).execute(&mut *tx).await?;
    if revoked.rows_affected() == 1 {
        return Ok(Some(true));
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM api_keys WHERE id = $1 AND theatre_id = $2)";
    let there: bool = sqlx::query_scalar(sql).bind_all((id, theatre)).fetch_one(tx).await?;
    Ok(there.then_some(false))
}
