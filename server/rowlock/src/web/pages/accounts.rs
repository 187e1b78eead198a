//! Pages of accounts: forms without a script, answered by a page or by the way on. First those without a session (signing in,
//! registering, a new password), then the account's own, whose callers without a session are redirected to the sign-in page.
//!
//! They do what the API does, through the same services. Nothing of them is kept by a cache.

use app::pages::accounts::{AccountPage, ConfirmEmailPage, LoginPage, Notice, PasswordResetPage, RegisterPage};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use domain::VariantName;
use domain::api::accounts::{
    ForgottenRequest, LinkToken, LoginRequest, Password, PasswordChange, ProofRequest, RegisterRequest, ResetRequest,
};
use serde::Deserialize;

use super::{Page, PageError, PageForm, PageQuery, PageResult, SignedInPageResult, private, see, signed_in, words};
use crate::AppState;
use crate::web::budget::NEVER;
use http::idempotency::{IdempotencyKey, Intent};
use http::{ClientAddress, Code, Problem};
use identity::Visitor;
use identity::accounts::{self, Registration, ResetIntent, Session, SignedIn};
use platform::ids;
use selling::account_bookings;

/// Largest form, bytes: an address, a name and two passwords are far below.
const MAX_FORM_BYTES: usize = 8 * 1024;
const MAX_NEXT_BYTES: usize = 512;

pub(super) fn pages() -> impl Iterator<Item = Page> {
    let pages = [
        ("/login", get(login).post(log_in)),
        ("/register", get(register).post(make)),
        ("/reset", get(reset).post(ask)),
        ("/reset/new", post(set)),
        ("/confirm-email", get(confirm).post(prove)),
        ("/account", get(account)),
        ("/account/password", post(password)),
        ("/account/email-link", post(send_link)),
        ("/account/logout", post(log_out)),
        ("/account/logout-everywhere", post(log_out_everywhere)),
    ];
    pages.into_iter().map(|(address, handlers)| (address, handlers.layer(DefaultBodyLimit::max(MAX_FORM_BYTES)), NEVER))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AccountQuery {
    next: String,
    notice: String,
    after: String,
    token: String,
}

impl AccountQuery {
    fn notice(&self) -> Option<Notice> {
        self.notice.parse().ok()
    }
}

/// The page to go to afterwards: a path of this site only. A redirection to another site would make us vouch for it.
fn way_on(next: &str) -> Option<&str> {
    let is_ours = next.len() <= MAX_NEXT_BYTES
        && next.starts_with('/')
        && !next.starts_with("//")
        && next.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\\"<>&#".contains(&byte));
    is_ours.then_some(next)
}

/// Redirects to a page with something to say there.
fn see_with(path: &str, notice: Notice) -> Response {
    see(&format!("{path}?notice={}", notice.as_str()))
}

/// The form again, with the problem; internal errors have their own page.
pub(super) fn once_more(problem: Problem, page: impl FnOnce(String) -> Response) -> Response {
    match problem.code() {
        Code::Internal => return PageError::Fault.into_response(),
        Code::DatabaseUnavailable => return PageError::Busy.into_response(),
        _ => {}
    }
    let mut response = page(words(&problem));
    let refusal = problem.into_response();
    *response.status_mut() = refusal.status();
    for (name, value) in refusal.headers() {
        if [header::RETRY_AFTER, header::HeaderName::from_static("ratelimit")].contains(name) {
            response.headers_mut().insert(name.clone(), value.clone());
        }
    }
    response
}

/// A key for a form that is shown.
fn new_key() -> String {
    ids::new_id().to_string()
}

const HOME: &str = "/account";

async fn login(PageQuery(asked): PageQuery<AccountQuery>) -> PageResult {
    let next = way_on(&asked.next).unwrap_or_default().to_owned();
    Ok(private(LoginPage { next, notice: asked.notice(), ..LoginPage::default() }))
}

#[derive(Deserialize)]
struct LoginForm {
    email: String,
    password: Password,
    #[serde(default)]
    next: String,
}

async fn log_in(
    State(state): State<AppState>,
    visitor: Visitor,
    address: ClientAddress,
    headers: HeaderMap,
    PageForm(form): PageForm<LoginForm>,
) -> PageResult {
    let next = way_on(&form.next).unwrap_or_default();
    let request = LoginRequest { email: form.email.clone(), password: form.password, token: false };
    Ok(match sign_in(&state, &visitor, &headers, &address, &request).await {
        Ok(logged_in) => (logged_in, see(if next.is_empty() { HOME } else { next })).into_response(),
        Err(problem) => once_more(problem, |trouble| {
            private(LoginPage { next: next.to_owned(), email: form.email, notice: None, trouble: Some(trouble) })
        }),
    })
}

async fn sign_in(
    state: &AppState,
    visitor: &Visitor,
    headers: &HeaderMap,
    address: &ClientAddress,
    request: &LoginRequest,
) -> Result<accounts::LoggedIn, Problem> {
    let before = accounts::of_request(state, headers).await?;
    accounts::log_in(state, (visitor, before.as_ref()), address, request).await
}

async fn register(PageQuery(asked): PageQuery<AccountQuery>) -> PageResult {
    let next = way_on(&asked.next).unwrap_or_default().to_owned();
    Ok(private(RegisterPage { next, key: new_key(), ..RegisterPage::default() }))
}

#[derive(Deserialize)]
struct RegisterForm {
    name: String,
    email: String,
    password: Password,
    key: String,
    #[serde(default)]
    next: String,
}

/// Registers, then signs in with the same password. If the address has an account already, signing in fails like any other
/// failure, and its owner gets a mail.
async fn make(
    State(state): State<AppState>,
    visitor: Visitor,
    address: ClientAddress,
    headers: HeaderMap,
    PageForm(form): PageForm<RegisterForm>,
) -> PageResult {
    let next = way_on(&form.next).unwrap_or_default();
    let request = RegisterRequest { name: form.name, email: form.email, password: form.password };
    let made = async {
        let key = IdempotencyKey::of_form(&form.key)?;
        let intent = Intent::new(&visitor.owner, key, "form /register", &Registration::of(&state, &request));
        accounts::register(&state, &address, &request, &intent).await
    };
    if let Err(problem) = made.await {
        return Ok(once_more(problem, |trouble| {
            let RegisterRequest { name, email, .. } = request;
            // Another try is another intent: what was refused was not kept.
            private(RegisterPage { next: next.to_owned(), name, email, trouble: Some(trouble), key: new_key() })
        }));
    }
    let login = LoginRequest { email: request.email, password: request.password, token: false };
    Ok(match sign_in(&state, &visitor, &headers, &address, &login).await {
        Ok(logged_in) => (logged_in, see(if next.is_empty() { HOME } else { next })).into_response(),
        // Too many at it, or the address had an account: the page to sign in on is the way on either way.
        Err(_) => see_with("/login", Notice::Registered),
    })
}

async fn reset(PageQuery(asked): PageQuery<AccountQuery>) -> PageResult {
    let (key, trouble) = (new_key(), None);
    Ok(private(if asked.token.is_empty() {
        PasswordResetPage::Ask { email: String::new(), trouble, key }
    } else {
        PasswordResetPage::Choose { token: asked.token, trouble, key }
    }))
}

#[derive(Deserialize)]
struct AskForm {
    email: String,
    key: String,
}

async fn ask(
    State(state): State<AppState>,
    visitor: Visitor,
    address: ClientAddress,
    PageForm(form): PageForm<AskForm>,
) -> PageResult {
    let request = ForgottenRequest { email: form.email };
    let asked = async {
        let intent = Intent::new(&visitor.owner, IdempotencyKey::of_form(&form.key)?, "form /reset", &request);
        accounts::password_forgotten(&state, &address, &request, &intent).await
    };
    Ok(match asked.await {
        Ok(_) => private(PasswordResetPage::Sent),
        Err(problem) => once_more(problem, |trouble| {
            private(PasswordResetPage::Ask { email: request.email, trouble: Some(trouble), key: new_key() })
        }),
    })
}

#[derive(Deserialize)]
struct SetForm {
    token: LinkToken,
    password: Password,
    key: String,
}

async fn set(
    State(state): State<AppState>,
    visitor: Visitor,
    address: ClientAddress,
    PageForm(form): PageForm<SetForm>,
) -> PageResult {
    let request = ResetRequest { token: form.token, password: form.password };
    let done = async {
        let intent = Intent::new(
            &visitor.owner,
            IdempotencyKey::of_form(&form.key)?,
            "form /reset/new",
            &ResetIntent::of(&state, &request),
        );
        accounts::reset_password(&state, &address, &request, &intent).await
    };
    Ok(match done.await {
        Ok(_) => see_with("/login", Notice::PasswordReset),
        Err(problem) => once_more(problem, |trouble| {
            private(PasswordResetPage::Choose { token: request.token.0, trouble: Some(trouble), key: new_key() })
        }),
    })
}

type SignedInResult = Result<SignedIn, Problem>;
type FormResult<T> = Result<PageForm<T>, PageError>;

async fn account(
    State(state): State<AppState>,
    who: SignedInResult,
    PageQuery(asked): PageQuery<AccountQuery>,
) -> SignedInPageResult {
    let SignedIn(session) = signed_in(who, "/account")?;
    account_page(&state, &session, &asked.after, asked.notice(), None).await
}

async fn account_page(
    state: &AppState,
    session: &Session,
    after: &str,
    notice: Option<Notice>,
    trouble: Option<String>,
) -> SignedInPageResult {
    let account = accounts::of_account(&mut *state.pg.acquire().await?, session.account).await?;
    let account = account.ok_or(PageError::NotFound)?;
    let bookings = account_bookings::page(state, session.account, Some(after)).await;
    let bookings = bookings.map_err(|problem| match problem.code() {
        Code::Malformed => PageError::Unreadable(problem.detail().to_owned()),
        _ => problem.into(),
    })?;
    Ok(private(AccountPage { account, bookings, notice, trouble, key: new_key() }))
}

#[derive(Deserialize)]
struct PasswordForm {
    current: Password,
    new: Password,
}

async fn password(
    State(state): State<AppState>,
    who: SignedInResult,
    address: ClientAddress,
    form: FormResult<PasswordForm>,
) -> SignedInPageResult {
    let SignedIn(session) = signed_in(who, "/account")?;
    let PageForm(form) = form?;
    let request = PasswordChange { current: form.current, new: form.new };
    match accounts::change_password(&state, &session, &address, &request).await {
        Ok(logged_in) => Ok((logged_in, see_with("/account", Notice::PasswordChanged)).into_response()),
        Err(problem) => {
            let trouble = words(&problem);
            let shown = account_page(&state, &session, "", None, Some(trouble)).await?;
            Ok(once_more(problem, |_| shown))
        }
    }
}

#[derive(Deserialize)]
struct KeyForm {
    key: String,
}

async fn send_link(
    State(state): State<AppState>,
    who: SignedInResult,
    address: ClientAddress,
    form: FormResult<KeyForm>,
) -> SignedInPageResult {
    let SignedIn(session) = signed_in(who, "/account")?;
    let PageForm(form) = form?;
    let sent = async {
        let intent = Intent::new(&session.owner, IdempotencyKey::of_form(&form.key)?, "form /account/email-link", &());
        accounts::send_proof(&state, &session, &address, &intent).await
    };
    match sent.await {
        Ok(_) => Ok(see_with("/account", Notice::MailSent)),
        Err(problem) => {
            let shown = account_page(&state, &session, "", None, Some(words(&problem))).await?;
            Ok(once_more(problem, |_| shown))
        }
    }
}

async fn confirm(
    State(state): State<AppState>,
    who: SignedInResult,
    PageQuery(asked): PageQuery<AccountQuery>,
) -> SignedInPageResult {
    // Only well-formed tokens are passed on.
    let token: String = asked.token.chars().filter(char::is_ascii_hexdigit).take(64).collect();
    let SignedIn(session) = signed_in(who, &format!("/confirm-email?token={token}"))?;
    confirm_page(&state, &session, asked.token, None).await
}

async fn confirm_page(
    state: &AppState,
    session: &Session,
    token: String,
    trouble: Option<String>,
) -> SignedInPageResult {
    let named = accounts::name_and_address(state, Some(session.account)).await?;
    let (_, email) = named.ok_or(PageError::NotFound)?;
    Ok(private(ConfirmEmailPage { token, email, trouble, key: new_key() }))
}

#[derive(Deserialize)]
struct ProofForm {
    token: LinkToken,
    key: String,
}

async fn prove(
    State(state): State<AppState>,
    who: SignedInResult,
    address: ClientAddress,
    form: FormResult<ProofForm>,
) -> SignedInPageResult {
    let SignedIn(session) = signed_in(who, "/account")?;
    let PageForm(form) = form?;
    let request = ProofRequest { token: form.token };
    let proven = async {
        let intent = Intent::new(&session.owner, IdempotencyKey::of_form(&form.key)?, "form /confirm-email", &request);
        accounts::prove(&state, &session, &address, &request, &intent).await
    };
    match proven.await {
        Ok(_) => Ok(see_with("/account", Notice::Proven)),
        Err(problem) => {
            let shown = confirm_page(&state, &session, request.token.0, Some(words(&problem))).await?;
            Ok(once_more(problem, |_| shown))
        }
    }
}

async fn log_out(State(state): State<AppState>, headers: HeaderMap) -> SignedInPageResult {
    let session = match accounts::of_request(&state, &headers).await {
        Ok(session) => session,
        // A token that opens nothing is no session to end.
        Err(problem) if problem.code() == Code::TokenInvalid => None,
        Err(problem) => return Err(problem.into()),
    };
    let gone = accounts::end_session(&state, session.as_ref()).await?;
    Ok(with(gone, see("/")))
}

async fn log_out_everywhere(State(state): State<AppState>, who: SignedInResult) -> SignedInPageResult {
    let SignedIn(session) = signed_in(who, "/account")?;
    let gone = accounts::end_all(&state, &session).await?;
    Ok(with(gone, see_with("/login", Notice::SignedOutEverywhere)))
}

fn with(gone: accounts::SignOutHeaders, mut response: Response) -> Response {
    for (name, value) in gone {
        response.headers_mut().append(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_always_on_our_site() {
        for ours in ["/", "/account", "/shows/00000000-0000-0000-0000-000000000007", "/confirm-email?token=0a"] {
            assert_eq!(way_on(ours), Some(ours));
        }
        for others in [
            "",
            "account",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "/a b",
            "/a\r\nset-cookie: x=y",
            "/\u{202E}",
            "/a&b=c",
        ] {
            assert_eq!(way_on(others), None, "{others:?}");
        }
        assert_eq!(way_on(&format!("/{}", "x".repeat(MAX_NEXT_BYTES))), None);
    }
}
