//! Callers of reading endpoints: staff, or a program with an API key of the theatre.

use axum::extract::{FromRef, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use domain::roles::Role;
use domain::time::{MINUTE_MS, Timestamp};
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

use crate::IdentityState;
use crate::accounts::Staff;
use http::{ApiResult, Code, Problem};
use platform::clock::{self, to_utc};
use platform::database::BindAll;
use platform::rate_limits::Allowance;

/// Prefix of all keys, which makes a leaked key recognisable.
pub(super) const PREFIX: &str = "rlk_";
/// Length of a key: the prefix, and 256 bits in hex.
const KEY_LENGTH: usize = PREFIX.len() + 64;
/// Resolution of the recorded time of last use.
const SEEN_EVERY_MS: i64 = MINUTE_MS;
/// Requests per key.
const REQUESTS_PER_KEY: Allowance = Allowance { name: "api-key", burst: 120, each_ms: 500 };

/// The caller of a reading endpoint. Without valid credentials, the answer is 401. [`Caller::at`] checks the access.
#[derive(Clone, Debug)]
pub enum Caller {
    /// A signed-in account.
    Staff(Staff),
    /// A program with a valid key.
    Program(ApiKey),
}

/// A valid key.
#[derive(Clone, Debug, platform::FromRow)]
pub struct ApiKey {
    pub(super) id: Uuid,
    pub(super) theatre_id: String,
    pub(super) reads_people: bool,
    pub(super) last_used_at: Option<chrono::DateTime<chrono::Utc>>,
}

impl<S> FromRequestParts<S> for Caller
where
    S: Send + Sync,
    IdentityState: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let state = IdentityState::from_ref(state);
        let Some(key) = key_of(&parts.headers) else {
            return <Staff as FromRequestParts<IdentityState>>::from_request_parts(parts, &state)
                .await
                .map(Self::Staff);
        };
        let now = state.clock.now();
        let known = match hash_of(key) {
            Some(hash) => by_hash(&state.pg, &hash).await?,
            None => None,
        };
        let known =
            known.ok_or_else(|| Problem::new(Code::TokenInvalid, "This key opens nothing, or not any more."))?;
        state.rate_limits.take(&REQUESTS_PER_KEY, &known.id.to_string()).await?;
        let is_noted = known.last_used_at.is_some_and(|at| now.since(clock::from_utc(at)) < SEEN_EVERY_MS);
        if !is_noted {
            record_use(&state.pg, known.id, now).await?;
        }
        Ok(Self::Program(known))
    }
}

impl Caller {
    /// Fails unless the caller may read in this theatre. Staff need one of the `wanted` roles; a key of the theatre
    /// needs none.
    ///
    /// # Errors
    /// 404 without access to the theatre, so that nothing is revealed; 403 for staff with another role.
    pub fn at(&self, theatre: &str, wanted: &[Role]) -> ApiResult<()> {
        match self {
            Self::Staff(staff) => staff.at(theatre, wanted),
            Self::Program(key) if key.theatre_id == theatre => Ok(()),
            Self::Program(_) => Err(Problem::not_found("theatre")),
        }
    }

    /// Returns `true` when the caller may see buyers.
    #[must_use]
    pub const fn sees_people(&self) -> bool {
        match self {
            Self::Staff(_) => true,
            Self::Program(key) => key.reads_people,
        }
    }
}

/// Returns the API key in the headers; tokens of accounts are not keys.
fn key_of(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let key = key.trim();
    (scheme.eq_ignore_ascii_case("bearer") && key.starts_with(PREFIX)).then_some(key)
}

/// Returns the stored hash of a key; `None` for a malformed one.
pub(super) fn hash_of(key: &str) -> Option<[u8; 32]> {
    (key.len() == KEY_LENGTH && key.starts_with(PREFIX)).then(|| Sha256::digest(key.as_bytes()).into())
}

/// Returns the key of a hash, unless it is revoked.
async fn by_hash(pg: &PgPool, hash: &[u8; 32]) -> sqlx::Result<Option<ApiKey>> {
    sqlx::query_as(
        "SELECT id, theatre_id, reads_people, last_used_at FROM api_keys WHERE secret_hash = $1 AND revoked_at IS NULL",
    )
    .bind(&hash[..])
    .fetch_optional(pg)
    .await
}

async fn record_use(pg: &PgPool, id: Uuid, now: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE api_keys SET last_used_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    sqlx::query(sql).bind_all((id, to_utc(now))).execute(pg).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_well_formed_key_is_read() {
        let key = format!("{PREFIX}{}", "0a".repeat(32));
        let sent = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().expect("a header value"));
            key_of(&headers).map(str::to_owned)
        };
        assert_eq!(sent(&format!("Bearer {key}")), Some(key.clone()));
        assert_eq!(sent(&format!("bearer  {key} ")), Some(key.clone()));
        assert_eq!(sent("Bearer eyJhbGciOi"), None, "an account's token");
        assert_eq!(sent(&format!("Basic {key}")), None);
        assert!(hash_of(&key).is_some());
        for odd in [&key[1..], &key[..KEY_LENGTH - 1], "", PREFIX, &format!("{key}0")] {
            assert_eq!(hash_of(odd), None, "{odd}");
        }
    }
}
