//! Signing in and out.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponseParts, ResponseParts};
use domain::api::accounts::{AccountView, LoginRequest, LoginView};
use domain::time::{SECOND_MS, Timestamp};
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use super::limits::{self, LOGIN_ADDRESS, LoginLimits};
use super::sessions::{self, CUSTOMER, STAFF, Session, SessionLifetime, TOKEN};
use super::tokens::{TOKEN_LIFE_MS, TokenSubject};
use super::{account, person};
use crate::audit::{self, AuditEntry};
use crate::{IdentityState, Visitor};
use http::{ApiResult, ClientAddress, Code, Problem};
use platform::ids;

/// Maximum number of sessions per account; one more ends the least recently used one.
const MAX_SESSIONS: i64 = 50;
/// Length of a visitor's owner name, as in `http::visitor`.
const OWNER_LENGTH: usize = 32;
/// Makes a browser clear stored data.
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

/// The result of a sign-in. As part of a response it sets the cookies.
pub struct LoggedIn {
    /// The account, and the token if one was requested.
    pub view: LoginView,
    cookies: Vec<HeaderValue>,
    /// The browser's visitor after the session.
    next: Option<Visitor>,
}

impl std::fmt::Debug for LoggedIn {
    /// Omits the secrets of the session.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("LoggedIn").field("account", &self.view.account.id).finish_non_exhaustive()
    }
}

impl IntoResponseParts for LoggedIn {
    type Error = std::convert::Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Self::Error> {
        for cookie in self.cookies {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        match self.next {
            Some(visitor) => visitor.into_response_parts(response),
            None => Ok(response),
        }
    }
}

/// Signs in by address and password: a browser by a cookie, a program by a token. Ends the browser's previous session.
///
/// # Errors
/// 401 for a wrong password and for an unknown address, with the same answer and timing. 429 after too many attempts.
/// 503 when the hashing queue is full.
pub async fn log_in(
    state: &IdentityState,
    (visitor, headers): (&Visitor, &HeaderMap),
    address: &ClientAddress,
    request: &LoginRequest,
) -> ApiResult<LoggedIn> {
    let before = sessions::of_request(state, headers).await?;
    limits::of_address(state, &LOGIN_ADDRESS, address).await?;
    let email = request.email.trim();
    // Before the attempt is counted: a shed request is not a guess.
    state.accounts.hashing.check_capacity()?;
    let (known_browsers, https) = (&state.accounts.known_browsers, state.site.is_https());
    let tries = LoginLimits::of(email, address, known_browsers.is_known(headers, https, email));
    tries.take(state).await?;
    let account = match person::address(email) {
        Some(email) => account::by_email(&mut *state.pg.acquire().await?, email).await?,
        None => None,
    };
    let stored = account.as_ref().map(|account| account.password_hash.as_str());
    let verified = state.accounts.hashing.verify_password(&request.password, stored).await;
    if verified.is_err() {
        tries.give_back(state).await;
    }
    let is_right = verified?;
    let Some(account) = account.filter(|_| is_right) else {
        return Err(login_failed());
    };
    tries.give_back(state).await;

    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    // A concurrent change of password or roles ends all sessions. The lock orders this session before or after it.
    let same = account::lock(&mut tx, account.id).await?.filter(|now| now.password_hash == account.password_hash);
    let view = account::of_account(&mut tx, account.id).await?;
    let Some(view) = view.filter(|_| same.is_some()) else { return Err(login_failed()) };
    let logged_in = if request.token {
        with_token(&mut tx, state, view, now).await?
    } else {
        if let Some(before) = before.filter(|before| before.is_browser) {
            sessions::end(&mut tx, before.id, before.account, now).await?;
        }
        let owner = take_over(&mut tx, &visitor.owner, account.id, now).await?;
        // Immediate on this replica; the others poll (`handed_over`).
        state.idempotency.forget_fingerprints([owner.clone()], now);
        let mut logged_in = with_cookie(&mut tx, state, view, owner, now).await?;
        // An unproven address may be that of another person, whose browser this is not.
        if account.email_proven_at.is_some() {
            logged_in.cookies.push(known_browsers.set_cookie(headers, https, email));
        }
        logged_in
    };
    sessions::end_oldest(&mut tx, account.id, MAX_SESSIONS, now).await?;
    tx.commit().await?;
    tracing::info!(account = %account.id, token = request.token, "account {} signed in", account.id);
    Ok(logged_in)
}

/// Builds the refusal of a sign-in: the same whether the account exists or not.
fn login_failed() -> Problem {
    Problem::new(
        Code::LoginFailed,
        "Address and password do not go together. Check both, or ask for a new password by mail.",
    )
}

/// Hands the visitor over to the account, with its holds and bookings. A visitor of another account stays there, and
/// the session gets a new, empty visitor.
async fn take_over(tx: &mut PgConnection, owner: &str, account: Uuid, now: Timestamp) -> ApiResult<String> {
    if sessions::hand_over(tx, owner, account, now).await? {
        return Ok(owner.to_owned());
    }
    let fresh = hex::encode(ids::random_bits());
    if sessions::hand_over(tx, &fresh, account, now).await? {
        return Ok(fresh);
    }
    Err(Problem::internal(&"128 random bits came twice"))
}

async fn with_cookie(
    tx: &mut PgConnection,
    state: &IdentityState,
    view: AccountView,
    owner: String,
    now: Timestamp,
) -> ApiResult<LoggedIn> {
    let life = lifetime_of(&view);
    let session = Session { id: ids::new_id(), account: view.id, owner, is_browser: true };
    let (secret, hash) = sessions::new_secret();
    sessions::insert(tx, &session, Some(hash), life, now).await?;
    let https = state.site.is_https();
    Ok(LoggedIn {
        view: LoginView { account: view, token: None, expires_in: None },
        cookies: sessions::cookies(&secret, life, https).into(),
        next: Some(Visitor::new_guest(https)),
    })
}

/// Returns the lifetime of a browser's session. Staff sessions are shorter: their browsers are on shared counters.
const fn lifetime_of(view: &AccountView) -> SessionLifetime {
    if view.grants.is_empty() { CUSTOMER } else { STAFF }
}

/// Creates a session with a token. All tokens of an account share one visitor.
async fn with_token(
    tx: &mut PgConnection,
    state: &IdentityState,
    view: AccountView,
    now: Timestamp,
) -> ApiResult<LoggedIn> {
    let mut owner = hex::encode(Sha256::digest(format!("programs of {}", view.id)));
    owner.truncate(OWNER_LENGTH);
    if !sessions::hand_over(tx, &owner, view.id, now).await? {
        return Err(Problem::internal(&"the visitor of an account's programs is another account's"));
    }
    let session = Session { id: ids::new_id(), account: view.id, owner, is_browser: false };
    sessions::insert(tx, &session, None, TOKEN, now).await?;
    let token = state.accounts.tokens.issue(TokenSubject { session: session.id, account: view.id }, now)?;
    let view = LoginView { account: view, token: Some(token), expires_in: Some(TOKEN_LIFE_MS / SECOND_MS) };
    Ok(LoggedIn { view, cookies: Vec::new(), next: None })
}

/// Ends all sessions of an account. A browser's own session is replaced for the same visitor; a program's stays.
pub(super) async fn renew_session(
    tx: &mut PgConnection,
    state: &IdentityState,
    session: &Session,
    now: Timestamp,
) -> ApiResult<LoggedIn> {
    let stays = (!session.is_browser).then_some(session.id);
    sessions::end_all(tx, session.account, stays, now).await?;
    let view = account::of_account(tx, session.account).await?.ok_or_else(|| Problem::not_found("account"))?;
    if session.is_browser {
        return with_cookie(tx, state, view, session.owner.clone(), now).await;
    }
    let view = LoginView { account: view, token: None, expires_in: None };
    Ok(LoggedIn { view, cookies: Vec::new(), next: None })
}

/// Headers of a response that signs a browser out.
pub type SignOutHeaders = [(HeaderName, HeaderValue); 3];

/// Returns headers that remove the cookies and clear the browser's stored tickets and pages.
fn sign_out_headers(state: &IdentityState) -> SignOutHeaders {
    let [session, hint] = sessions::removed_cookies(state.site.is_https()).map(|cookie| (header::SET_COOKIE, cookie));
    [session, hint, (CLEAR_SITE_DATA, HeaderValue::from_static("\"cache\", \"storage\""))]
}

/// Ends this session. The headers of the response remove the cookies; holds stay until they expire.
pub async fn end_session(state: &IdentityState, session: Option<&Session>) -> ApiResult<SignOutHeaders> {
    if let Some(session) = session {
        let mut connection = state.pg.acquire().await?;
        sessions::end(&mut connection, session.id, session.account, state.clock.now()).await?;
        state.accounts.sessions.invalidate_all();
    }
    Ok(sign_out_headers(state))
}

/// Ends all sessions of the account, including tokens.
pub async fn end_all(state: &IdentityState, session: &Session) -> ApiResult<SignOutHeaders> {
    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    let ended = sessions::end_all(&mut tx, session.account, None, now).await?;
    let entry = AuditEntry::by(
        session.account,
        "signed_out_everywhere",
        audit::account(session.account),
        "By the account's owner.",
    );
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    state.accounts.sessions.invalidate_all();
    tracing::info!(account = %session.account, ended, "account {} signed out everywhere", session.account);
    Ok(sign_out_headers(state))
}
