//! Creates, lists and revokes keys.

use axum::http::StatusCode;
use domain::api::systems::{ApiKeyMade, ApiKeyRequest, ApiKeyView, MAX_NAME_CHARS, ReasonRequest, one_line};
use uuid::Uuid;

use super::caller::{PREFIX, hash_of};
use super::sql::{self, KeyRow};
use crate::IdentityState;
use crate::accounts::{Staff, reason_of};
use crate::audit::{self, AuditEntry};
use http::idempotency::{Answer, Intent};
use http::{Code, Problem};
use platform::clock::to_utc;
use platform::ids;

/// Maximum number of listed keys of a theatre, including revoked ones.
const MAX_LISTED: i64 = 200;
/// Maximum number of valid keys per theatre.
const MAX_VALID: i64 = 50;
/// Number of first characters of a key that are stored to recognise it, including the prefix.
const HINT_CHARS: usize = 10;

/// Returns the keys of a theatre.
pub async fn list(state: &IdentityState, theatre: &str) -> Result<Vec<ApiKeyView>, Problem> {
    let rows = sql::of_theatre(&state.pg, theatre, MAX_LISTED).await?;
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
/// 400 for an invalid name or reason, 409 when the theatre has too many keys.
pub async fn make(
    state: &IdentityState,
    staff: &Staff,
    theatre: &str,
    request: &ApiKeyRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
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
    if sql::lock_count(&mut tx, theatre).await? >= MAX_VALID {
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
    sql::insert(&mut tx, theatre, &row, &hash, staff.session.account).await?;
    let subject = format!("key {} {}", row.id, row.name);
    audit::record(&mut tx, &AuditEntry::by(staff.session.account, "api_key_made", subject, reason).at(theatre), now)
        .await?;
    let answer = Answer::json(StatusCode::CREATED, &row.view())?;
    let answer = intent.commit(tx, answer, now).await?;
    with_key(state, &answer)
}

fn with_key(state: &IdentityState, stored: &Answer) -> Result<Answer, Problem> {
    let about: ApiKeyView = serde_json::from_slice(stored.body()).map_err(|cause| Problem::internal(&cause))?;
    let key = secret_of(state, about.id);
    Answer::json(stored.status(), &ApiKeyMade { about, key })
}

/// Revokes a key. A request for a revoked key writes no audit entry.
///
/// # Errors
/// 404 for an unknown key, 400 for an invalid reason.
pub async fn revoke(
    state: &IdentityState,
    staff: &Staff,
    (theatre, id): (&str, Uuid),
    request: &ReasonRequest,
    intent: &Intent,
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    let reason = reason_of(&request.reason)?;
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    let is_change = sql::revoke(&mut tx, theatre, id, now).await?.ok_or_else(|| Problem::not_found("key"))?;
    if is_change {
        let entry = AuditEntry::by(staff.session.account, "api_key_revoked", format!("key {id}"), reason).at(theatre);
        audit::record(&mut tx, &entry, now).await?;
    }
    let answer = Answer::no_content();
    intent.commit(tx, answer, now).await
}

fn check_name(text: &str) -> Result<&str, Problem> {
    let detail = || format!("Say what the key is for, in up to {MAX_NAME_CHARS} characters.");
    one_line(text, MAX_NAME_CHARS).ok_or_else(|| Problem::new(Code::Malformed, detail()))
}
