//! Signing in and out.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponseParts, ResponseParts};
use domain::api::accounts::{AccountView, LoginRequest, LoginView};
use domain::time::{SECOND_MS, Timestamp};
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use super::limits::{self, LOGIN_ADDRESS, Login};
use super::sessions::{self, CUSTOMER, Life, STAFF, Session, TOKEN};
use super::tokens::{Named, TOKEN_LIFE_MS};
use super::{person, sql, view};
use crate::audit::{self, Entry};
use crate::{IdentityState, Visitor};
use http::{ClientAddress, Code, Problem};
use platform::ids;

/// Sessions one account may have at a time; one more ends the one that was used longest ago.
const MAX_SESSIONS: i64 = 50;
/// Length of a visitor's name, as `web::visitor` makes them.
const OWNER_LENGTH: usize = 32;
/// Tells a browser what to forget.
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

/// Somebody who has signed in. Returned in front of a body it sets their cookies.
pub struct LoggedIn {
    /// Who they are, and their token if they asked for one.
    pub view: LoginView,
    cookies: Vec<HeaderValue>,
    /// The visitor their browser is when the session is over.
    next: Option<Visitor>,
}

impl std::fmt::Debug for LoggedIn {
    /// Without what opens the session.
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

/// Signs in by address and password: a browser by a cookie, a program by a token. The session the browser had
/// before is over.
///
/// # Errors
/// 401 when they do not go together, or there is no such account: the answer and its time are the same. 429 after too
/// many tries, 503 when too many are at it.
pub async fn log_in(
    state: &IdentityState,
    (visitor, before): (&Visitor, Option<&Session>),
    address: &ClientAddress,
    request: &LoginRequest,
) -> Result<LoggedIn, Problem> {
    limits::of_address(state, &LOGIN_ADDRESS, address).await?;
    let email = request.email.trim();
    // Before a try is counted: who is sent away because others are at it has not guessed.
    state.accounts.hashing.has_room()?;
    let tries = Login::of(email, address);
    tries.take(state).await?;
    let account = match person::address(email) {
        Some(email) => sql::by_email(&mut *state.pg.acquire().await?, email).await?,
        None => None,
    };
    let stored = account.as_ref().map(|account| account.password_hash.as_str());
    let looked_at = state.accounts.hashing.is_right(&request.password, stored).await;
    if looked_at.is_err() {
        tries.give_back(state).await;
    }
    let is_right = looked_at?;
    let Some(account) = account.filter(|_| is_right) else {
        return Err(failed());
    };
    tries.give_back(state).await;

    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    // A password or a role that is changed at this moment ends all sessions: this one must come before or after.
    let same = sql::lock(&mut tx, account.id).await?.filter(|now| now.password_hash == account.password_hash);
    let view = view::of_account(&mut tx, account.id).await?;
    let Some(view) = view.filter(|_| same.is_some()) else { return Err(failed()) };
    let logged_in = if request.token {
        with_token(&mut tx, state, view, now).await?
    } else {
        if let Some(before) = before.filter(|before| before.is_browser) {
            sql::sessions::end(&mut tx, before.id, before.account, now).await?;
        }
        let owner = take_over(&mut tx, &visitor.owner, account.id, now).await?;
        // Here at once; other replicas ask (`handed_over`).
        state.idempotency.hand_over([owner.clone()], now);
        with_cookie(&mut tx, state, view, owner, now).await?
    };
    sql::sessions::end_oldest(&mut tx, account.id, MAX_SESSIONS, now).await?;
    tx.commit().await?;
    tracing::info!(account = %account.id, token = request.token, "account {} signed in", account.id);
    Ok(logged_in)
}

/// The same whether there is such an account.
fn failed() -> Problem {
    Problem::new(
        Code::LoginFailed,
        "Address and password do not go together. Check both, or ask for a new password by mail.",
    )
}

/// The visitor becomes the account's, with all they hold and bought. One who is another account's stays that one's:
/// then there is a new, empty one.
async fn take_over(tx: &mut PgConnection, owner: &str, account: Uuid, now: Timestamp) -> Result<String, Problem> {
    if sql::sessions::hand_over(tx, owner, account, now).await? {
        return Ok(owner.to_owned());
    }
    let fresh = hex::encode(ids::random_bits());
    if sql::sessions::hand_over(tx, &fresh, account, now).await? {
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
) -> Result<LoggedIn, Problem> {
    let life = life_of(&view);
    let session = Session { id: ids::new_id(), account: view.id, owner, is_browser: true };
    let (secret, hash) = sessions::new_secret();
    sql::sessions::insert(tx, &session, Some(hash), life, now).await?;
    let https = state.site.is_https();
    Ok(LoggedIn {
        view: LoginView { account: view, token: None, expires_in: None },
        cookies: sessions::cookies(&secret, life, https).into(),
        next: Some(Visitor::unseen(https)),
    })
}

/// Who works in a theatre is signed out sooner: their browsers stand on counters.
const fn life_of(view: &AccountView) -> Life {
    if view.grants.is_empty() { CUSTOMER } else { STAFF }
}

/// Programs of an account all act as one visitor, whichever of its tokens they have.
async fn with_token(
    tx: &mut PgConnection,
    state: &IdentityState,
    view: AccountView,
    now: Timestamp,
) -> Result<LoggedIn, Problem> {
    let mut owner = hex::encode(Sha256::digest(format!("programs of {}", view.id)));
    owner.truncate(OWNER_LENGTH);
    if !sql::sessions::hand_over(tx, &owner, view.id, now).await? {
        return Err(Problem::internal(&"the visitor of an account's programs is another account's"));
    }
    let session = Session { id: ids::new_id(), account: view.id, owner, is_browser: false };
    sql::sessions::insert(tx, &session, None, TOKEN, now).await?;
    let token = state.accounts.tokens.issue(Named { session: session.id, account: view.id }, now)?;
    let view = LoginView { account: view, token: Some(token), expires_in: Some(TOKEN_LIFE_MS / SECOND_MS) };
    Ok(LoggedIn { view, cookies: Vec::new(), next: None })
}

/// Ends every session of an account; a browser's own begins anew for the same visitor, a program's stays.
pub(super) async fn begin_again(
    tx: &mut PgConnection,
    state: &IdentityState,
    session: &Session,
    now: Timestamp,
) -> Result<LoggedIn, Problem> {
    let stays = (!session.is_browser).then_some(session.id);
    sql::sessions::end_all(tx, session.account, stays, now).await?;
    let view = view::of_account(tx, session.account).await?.ok_or_else(|| Problem::not_found("account"))?;
    if session.is_browser {
        return with_cookie(tx, state, view, session.owner.clone(), now).await;
    }
    let view = LoginView { account: view, token: None, expires_in: None };
    Ok(LoggedIn { view, cookies: Vec::new(), next: None })
}

/// Headers of an answer that leaves a browser as nobody's.
pub type Gone = [(HeaderName, HeaderValue); 3];

/// Cookies of nobody; and the browser forgets the tickets and pages it kept.
fn gone(state: &IdentityState) -> Gone {
    let [session, hint] = sessions::no_cookies(state.site.is_https()).map(|cookie| (header::SET_COOKIE, cookie));
    [session, hint, (CLEAR_SITE_DATA, HeaderValue::from_static("\"cache\", \"storage\""))]
}

/// Signs out here. The answer's headers forget the cookies; what was held stays held until its time is over.
///
/// # Errors
/// When the database fails.
pub async fn end_session(state: &IdentityState, session: Option<&Session>) -> Result<Gone, Problem> {
    if let Some(session) = session {
        let mut connection = state.pg.acquire().await?;
        sql::sessions::end(&mut connection, session.id, session.account, state.clock.now()).await?;
        state.accounts.sessions.forget();
    }
    Ok(gone(state))
}

/// Signs out everywhere, tokens included.
///
/// # Errors
/// When the database fails.
pub async fn end_all(state: &IdentityState, session: &Session) -> Result<Gone, Problem> {
    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    let ended = sql::sessions::end_all(&mut tx, session.account, None, now).await?;
    let entry =
        Entry::by(session.account, "signed_out_everywhere", audit::account(session.account), "By the account's owner.");
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    state.accounts.sessions.forget();
    tracing::info!(account = %session.account, ended, "account {} signed out everywhere", session.account);
    Ok(gone(state))
}
