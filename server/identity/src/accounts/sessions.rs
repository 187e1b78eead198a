//! Sessions: a browser's cookie or a program's token, and the visitor each acts as.
//!
//! A [`Visitor`](crate::Visitor) comes from a cached session, at most a few seconds old, per process ([`of_request`]):
//! for holds, bookings and payments a sign-out on another replica takes effect within that time. Cancelling and requests
//! of accounts and staff read Postgres each time ([`SignedIn`]).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use chrono::{DateTime, Utc};
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use moka::future::Cache;
use sha2::{Digest, Sha256};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::tokens;
use crate::IdentityState;
use http::{ApiResult, Code, Problem};
use platform::clock::{from_utc, to_utc};
use platform::database::BindAll;
use platform::{housekeeping, ids};

/// Name of the cookie without TLS.
const SESSION_COOKIE: &str = "rowlock_session";
/// Name of the cookie with TLS: the `__Host-` prefix prevents other hosts from setting it (`http::visitor`).
const HOST_SESSION_COOKIE: &str = "__Host-rowlock_session";
/// Lets our scripts see that a session may exist; gives no access.
const HINT_COOKIE: &str = "rowlock_signed_in";
/// Length of the cookie's value: 256 bits in hex.
const SECRET_LENGTH: usize = 64;
/// Time to live of a cached session.
const CACHE_TTL: Duration = Duration::from_secs(5);
/// Maximum number of cached sessions.
const MAX_CACHED: u64 = 50_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionLifetime {
    /// Maximum idle time, milliseconds.
    pub(super) idle_ms: i64,
    /// Maximum lifetime, milliseconds.
    pub(super) absolute_ms: i64,
}

/// A customer's browser: two weeks idle, two months in all.
pub(super) const CUSTOMER: SessionLifetime = SessionLifetime { idle_ms: 14 * DAY_MS, absolute_ms: 60 * DAY_MS };
/// A staff browser: two hours idle, a long shift in all.
pub(super) const STAFF: SessionLifetime = SessionLifetime { idle_ms: 2 * HOUR_MS, absolute_ms: 16 * HOUR_MS };
/// A program's session: as long as its token.
pub(super) const TOKEN: SessionLifetime =
    SessionLifetime { idle_ms: tokens::TOKEN_LIFE_MS, absolute_ms: tokens::TOKEN_LIFE_MS };
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// Resolution of the recorded time of last use.
const SEEN_EVERY_MS: i64 = MINUTE_MS;

/// A live session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Id of the session.
    pub id: Uuid,
    /// The account.
    pub account: Uuid,
    /// The visitor it acts as: owner of holds and bookings.
    pub owner: String,
    /// `true` for a browser with a cookie, `false` for a program with a token.
    pub is_browser: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Credential {
    /// The hash of a cookie.
    Cookie([u8; 32]),
    /// The session and the account of a valid token.
    Token(Uuid, Uuid),
}

impl Credential {
    /// Reads the credential from the headers. A token takes precedence over a cookie.
    ///
    /// # Errors
    /// 401 for an invalid or expired token.
    fn of(state: &IdentityState, headers: &HeaderMap) -> ApiResult<Option<Self>> {
        if let Some(token) = bearer(headers) {
            let named = state.accounts.tokens.read(token?, state.clock.now())?;
            return Ok(Some(Self::Token(named.session, named.account)));
        }
        Ok(cookie(headers, state.site.is_https()).map(|secret| Self::Cookie(Sha256::digest(secret).into())))
    }
}

/// Returns the token in `Authorization: Bearer …`; other schemes are ignored.
fn bearer(headers: &HeaderMap) -> Option<ApiResult<&str>> {
    let value = headers.get(AUTHORIZATION)?.to_str().map_err(|_| tokens::invalid());
    let split = value.map(|text| text.trim().split_once(' ').unwrap_or((text.trim(), "")));
    match split {
        Ok((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(Ok(token.trim())),
        Ok(_) => None,
        Err(problem) => Some(Err(problem)),
    }
}

/// Returns the name of the session cookie, which depends on https.
#[must_use]
pub const fn session_cookie_name(https: bool) -> &'static str {
    if https { HOST_SESSION_COOKIE } else { SESSION_COOKIE }
}

/// Returns the secret of the session cookie if it is well-formed.
fn cookie(headers: &HeaderMap, https: bool) -> Option<&[u8]> {
    let name = session_cookie_name(https).as_bytes();
    let cookies = headers.get_all(COOKIE).into_iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    let mut ours = cookies.filter_map(|cookie| cookie.trim_ascii().strip_prefix(name)?.strip_prefix(b"="));
    ours.find(|secret| secret.len() == SECRET_LENGTH && secret.iter().all(u8::is_ascii_hexdigit))
}

pub(super) struct SessionCache(Cache<Credential, Option<Session>>);

impl Default for SessionCache {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MAX_CACHED).time_to_live(CACHE_TTL).build())
    }
}

impl SessionCache {
    /// Clears the cache: sessions have ended here and must not be served from it.
    pub(super) fn invalidate_all(&self) {
        self.0.invalidate_all();
    }
}

/// Returns the session of a request, at most a few seconds old; `None` for guests and for expired cookies.
///
/// # Errors
/// 401 for an invalid token, 503 when the database is unavailable.
pub async fn of_request(state: &IdentityState, headers: &HeaderMap) -> ApiResult<Option<Session>> {
    let Some(credential) = Credential::of(state, headers)? else { return Ok(None) };
    let sessions = &state.accounts.sessions.0;
    if let Some(found) = sessions.get(&credential).await {
        return reject_ended_token(credential, found);
    }
    let look = find(&state.pg, credential, state.clock.now());
    // Boxed to keep the common future small: every request passes here, and few miss the cache.
    let found = Box::pin(sessions.try_get_with(credential, look)).await;
    reject_ended_token(credential, found.map_err(|cause| lookup_failed(&cause))?)
}

/// Returns the session to be ended; `None` when a valid token's session has already ended: sign-out may be repeated.
///
/// # Errors
/// 401 for an invalid or expired token, 503 when the database is unavailable.
pub async fn session_to_end(state: &IdentityState, headers: &HeaderMap) -> ApiResult<Option<Session>> {
    Credential::of(state, headers)?;
    match of_request(state, headers).await {
        Err(problem) if problem.code() == Code::TokenInvalid => Ok(None),
        found => found,
    }
}

fn lookup_failed(cause: &Arc<sqlx::Error>) -> Problem {
    tracing::warn!(%cause, "read a session failed");
    Problem::new(Code::DatabaseUnavailable, "Please try again in a moment; nothing was lost.")
}

/// Refuses a token without a session. A cookie without one makes its sender a guest.
fn reject_ended_token(credential: Credential, found: Option<Session>) -> ApiResult<Option<Session>> {
    match (credential, found) {
        (Credential::Token(..), None) => Err(tokens::invalid()),
        (_, found) => Ok(found),
    }
}

/// Extracts a live session, read from Postgres. Without one, the answer is 401.
#[derive(Clone, Debug)]
pub struct SignedIn(pub Session);

impl<S> FromRequestParts<S> for SignedIn
where
    S: Send + Sync,
    IdentityState: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let state = IdentityState::from_ref(state);
        let Some(credential) = Credential::of(&state, &parts.headers)? else { return Err(not_signed_in()) };
        let found = find(&state.pg, credential, state.clock.now()).await?;
        reject_ended_token(credential, found)?.map(Self).ok_or_else(not_signed_in)
    }
}

fn not_signed_in() -> Problem {
    Problem::new(Code::NotSignedIn, "This is for people with an account. Sign in, then try again.")
}

/// Creates the secret of a session cookie; returns it with its hash.
pub(super) fn new_secret() -> (String, [u8; 32]) {
    let secret = hex::encode([ids::random_bits(), ids::random_bits()].concat());
    let hash = Sha256::digest(secret.as_bytes()).into();
    (secret, hash)
}

pub(super) fn cookies(secret: &str, life: SessionLifetime, https: bool) -> [HeaderValue; 2] {
    let (secure, age) = (if https { "; Secure" } else { "" }, life.absolute_ms / SECOND_MS);
    let name = session_cookie_name(https);
    [
        value(&format!("{name}={secret}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}")),
        value(&format!("{HINT_COOKIE}=1; Path=/; Max-Age={age}; SameSite=Lax{secure}")),
    ]
}

pub(super) fn removed_cookies(https: bool) -> [HeaderValue; 2] {
    let (name, secure) = (session_cookie_name(https), if https { "; Secure" } else { "" });
    [
        value(&format!("{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax{secure}")),
        value(&format!("{HINT_COOKIE}=; Path=/; Max-Age=0; SameSite=Lax{secure}")),
    ]
}

fn value(cookie: &str) -> HeaderValue {
    HeaderValue::try_from(cookie).expect("names of ours, hex and numbers are a header's value")
}

macro_rules! live_session {
    ($condition:literal) => {
        concat!(
            "SELECT session.id, session.account_id, session.owner, session.kind, session.last_seen_at
             FROM sessions session JOIN accounts account ON account.id = session.account_id
             WHERE session.ended_at IS NULL AND session.expires_at > $1
               AND session.last_seen_at + session.idle_ms * interval '1 millisecond' > $1
               AND account.closed_at IS NULL AND ",
            $condition
        )
    };
}

/// Returns the live session of a credential; records its use at most once a minute.
async fn find(pg: &PgPool, credential: Credential, now: Timestamp) -> sqlx::Result<Option<Session>> {
    let (by_cookie, by_token) = (
        live_session!("session.secret_hash = $2"),
        live_session!("session.id = $2 AND session.account_id = $3 AND session.kind = 'token'"),
    );
    let row: Option<(Uuid, Uuid, String, String, DateTime<Utc>)> = match credential {
        Credential::Cookie(hash) => {
            sqlx::query_as(by_cookie).bind(to_utc(now)).bind(&hash[..]).fetch_optional(pg).await?
        }
        Credential::Token(session, account) => {
            sqlx::query_as(by_token).bind(to_utc(now)).bind(session).bind(account).fetch_optional(pg).await?
        }
    };
    let Some((id, account, owner, kind, last_seen_at)) = row else { return Ok(None) };
    if now.since(from_utc(last_seen_at)) >= SEEN_EVERY_MS {
        record_use(pg, id, last_seen_at, now).await?;
    }
    let is_browser = match kind.as_str() {
        "browser" => true,
        "token" => false,
        other => return Err(sqlx::Error::Decode(format!("sessions({id}).kind is {other:?}").into())),
    };
    Ok(Some(Session { id, account, owner, is_browser }))
}

async fn record_use(pg: &PgPool, id: Uuid, seen_at: DateTime<Utc>, now: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE sessions SET last_seen_at = $3 WHERE id = $1 AND last_seen_at = $2 AND ended_at IS NULL";
    sqlx::query(sql).bind_all((id, seen_at, to_utc(now))).execute(pg).await.map(drop)
}

/// Assigns a visitor to an account permanently; `false` when it belongs to another account.
pub(super) async fn hand_over(tx: &mut PgConnection, owner: &str, account: Uuid, now: Timestamp) -> sqlx::Result<bool> {
    let sql = "INSERT INTO account_visitors (owner, account_id, joined_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    sqlx::query(sql).bind_all((owner, account, to_utc(now))).execute(&mut *tx).await?;
    let sql = "SELECT account_id FROM account_visitors WHERE owner = $1";
    let whose: Uuid = sqlx::query_scalar(sql).bind(owner).fetch_one(tx).await?;
    Ok(whose == account)
}

/// Inserts a session; a browser's with the hash of its cookie.
pub(super) async fn insert(
    tx: &mut PgConnection,
    session: &Session,
    secret_hash: Option<[u8; 32]>,
    life: SessionLifetime,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO sessions (id, account_id, kind, secret_hash, owner, idle_ms, created_at, last_seen_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8)",
    )
    .bind_all((session.id, session.account, if session.is_browser { "browser" } else { "token" }))
    .bind_all((secret_hash.map(Vec::from), &session.owner, life.idle_ms))
    .bind_all((to_utc(now), to_utc(now.plus_ms(life.absolute_ms))))
    .execute(tx)
    .await?;
    Ok(())
}

pub(super) async fn end(tx: &mut PgConnection, id: Uuid, account: Uuid, now: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE sessions SET ended_at = $3 WHERE id = $1 AND account_id = $2 AND ended_at IS NULL";
    sqlx::query(sql).bind_all((id, account, to_utc(now))).execute(tx).await.map(drop)
}

/// Ends all sessions of an account except `but`; returns their number.
pub(super) async fn end_all(
    tx: &mut PgConnection,
    account: Uuid,
    but: Option<Uuid>,
    now: Timestamp,
) -> sqlx::Result<u64> {
    let sql = "UPDATE sessions SET ended_at = $3
               WHERE account_id = $1 AND ended_at IS NULL AND id IS DISTINCT FROM $2";
    let ended = sqlx::query(sql).bind_all((account, but, to_utc(now))).execute(tx).await?;
    Ok(ended.rows_affected())
}

/// Ends the sessions of an account except the `keep` most recently used.
pub(super) async fn end_oldest(tx: &mut PgConnection, account: Uuid, keep: i64, now: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE sessions SET ended_at = $3
               WHERE ended_at IS NULL AND id IN (SELECT id FROM sessions WHERE account_id = $1 AND ended_at IS NULL
                                                 ORDER BY last_seen_at DESC, id OFFSET $2)";
    sqlx::query(sql).bind_all((account, keep, to_utc(now))).execute(tx).await.map(drop)
}

/// Deletes sessions and links that expired before `before`, at most `limit` of each; returns the total.
async fn delete_expired(pg: &PgPool, before: Timestamp, limit: i64) -> sqlx::Result<u64> {
    let sessions = sqlx::query(
        "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
    );
    let links = sqlx::query(
        "DELETE FROM account_links WHERE token_hash IN
             (SELECT token_hash FROM account_links WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
    );
    let mut deleted = 0;
    for query in [sessions, links] {
        deleted += query.bind(to_utc(before)).bind(limit).execute(pg).await?.rows_affected();
    }
    Ok(deleted)
}

/// Interval of purges.
const PURGE_EVERY: Duration = Duration::from_secs(300);
/// Retention for investigations, milliseconds.
const KEPT_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Maximum number of rows per statement, so that its locks are short.
const MAX_AT_ONCE: i64 = 5_000;

/// Purges until the server stops.
pub async fn purge_forever(state: IdentityState) {
    let delete = |limit| delete_expired(&state.pg, state.clock.now().plus_ms(-KEPT_MS), limit);
    housekeeping::clear_forever(&state.stop, PURGE_EVERY, "sessions and links of mails", MAX_AT_ONCE, delete).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a header value"));
        }
        headers
    }

    #[test]
    fn only_a_well_formed_session_cookie_is_read() {
        let (secret, hash) = new_secret();
        assert_eq!(secret.len(), SECRET_LENGTH);
        let ours = format!("a=1; {SESSION_COOKIE}={secret}; b=2");
        let found = headers(&[("cookie", &ours)]);
        assert_eq!(cookie(&found, false), Some(secret.as_bytes()));
        assert_eq!(<[u8; 32]>::from(Sha256::digest(cookie(&found, false).expect("found"))), hash);
        for odd in ["", "rowlock_session=", "rowlock_session=abc", &format!("x{SESSION_COOKIE}={secret}")] {
            assert_eq!(cookie(&headers(&[("cookie", odd)]), false), None, "{odd}");
        }
    }

    #[test]
    fn only_bearer_tokens_are_read() {
        let token =
            |value: &str| bearer(&headers(&[("authorization", value)])).map(|token| token.map(str::to_owned).ok());
        assert_eq!(token("Bearer abc"), Some(Some("abc".to_owned())));
        assert_eq!(token("bearer  abc "), Some(Some("abc".to_owned())));
        assert_eq!(token("Bearer"), Some(Some(String::new())));
        assert_eq!(token("Basic YTpi"), None);
        assert!(bearer(&HeaderMap::new()).is_none());
    }

    #[test]
    fn the_cookie_is_host_only_and_secure_with_tls() {
        let [session, hint] = cookies("abc", STAFF, true);
        assert_eq!(session, "__Host-rowlock_session=abc; Path=/; Max-Age=57600; HttpOnly; SameSite=Lax; Secure");
        let planted = format!("rowlock_session={}", "a".repeat(SECRET_LENGTH));
        assert_eq!(cookie(&headers(&[("cookie", &planted)]), true), None, "another host may have set it");
        assert!(!hint.to_str().expect("text").contains("abc"));
        let [session, _] = removed_cookies(false);
        assert_eq!(session, "rowlock_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
    }
}
