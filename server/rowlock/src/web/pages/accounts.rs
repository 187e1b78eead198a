//! Pages of accounts: forms without a script, answered by a page or a redirect. First those without a session (signing in,
//! registering, a new password), then the account's own, whose callers without a session are redirected to the sign-in page.
//!
//! They do what the API does, through the same services. No cache stores them.

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

use super::{
    Page, PageError, PageForm, PageQuery, PageResult, SignedInPageResult, private_page, redirect_to, signed_in, words,
};
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
        ("/register", get(register).post(create_account)),
        ("/reset", get(reset).post(send_reset_link)),
        ("/reset/new", post(set_new_password)),
        ("/confirm-email", get(confirm).post(confirm_email)),
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

/// The page to redirect to afterwards; `None` unless it is a path of this site. An open redirect would make us vouch for
/// another site.
pub(super) fn safe_next_path(next: &str) -> Option<&str> {
    let is_ours = next.len() <= MAX_NEXT_BYTES
        && next.starts_with('/')
        && !next.starts_with("//")
        && next.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\\"<>#".contains(&byte));
    is_ours.then_some(next)
}

/// Redirects to a page that shows this notice.
fn redirect_with_notice(path: &str, notice: Notice) -> Response {
    redirect_to(&format!("{path}?notice={}", notice.as_str()))
}

/// The form again, with the problem; internal errors have their own page.
pub(super) fn form_with_error(problem: Problem, page: impl FnOnce(String) -> Response) -> Response {
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
pub(super) fn new_key() -> String {
    ids::new_id().to_string()
}

const HOME: &str = "/account";

async fn login(PageQuery(query): PageQuery<AccountQuery>) -> PageResult {
    let next = safe_next_path(&query.next).unwrap_or_default().to_owned();
    Ok(private_page(LoginPage { next, notice: query.notice(), ..LoginPage::default() }))
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
    let next = safe_next_path(&form.next).unwrap_or_default();
    let request = LoginRequest { email: form.email.clone(), password: form.password, token: false };
    Ok(match accounts::log_in(&state, (&visitor, &headers), &address, &request).await {
        Ok(logged_in) => (logged_in, redirect_to(if next.is_empty() { HOME } else { next })).into_response(),
        Err(problem) => form_with_error(problem, |error| {
            private_page(LoginPage { next: next.to_owned(), email: form.email, notice: None, error: Some(error) })
        }),
    })
}

async fn register(PageQuery(query): PageQuery<AccountQuery>) -> PageResult {
    let next = safe_next_path(&query.next).unwrap_or_default().to_owned();
    Ok(private_page(RegisterPage { next, key: new_key(), ..RegisterPage::default() }))
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
async fn create_account(
    State(state): State<AppState>,
    visitor: Visitor,
    address: ClientAddress,
    headers: HeaderMap,
    PageForm(form): PageForm<RegisterForm>,
) -> PageResult {
    let next = safe_next_path(&form.next).unwrap_or_default();
    let request = RegisterRequest { name: form.name, email: form.email, password: form.password };
    let made = async {
        let key = IdempotencyKey::of_form(&form.key)?;
        let intent = Intent::new(&visitor.owner, key, "form /register", &Registration::of(&state, &request));
        accounts::register(&state, &address, &request, &intent).await
    };
    if let Err(problem) = made.await {
        return Ok(form_with_error(problem, |error| {
            let RegisterRequest { name, email, .. } = request;
            // The next attempt is a new intent: a refused one is not stored.
            private_page(RegisterPage { next: next.to_owned(), name, email, error: Some(error), key: new_key() })
        }));
    }
    let login = LoginRequest { email: request.email, password: request.password, token: false };
    Ok(match accounts::log_in(&state, (&visitor, &headers), &address, &login).await {
        Ok(logged_in) => (logged_in, redirect_to(if next.is_empty() { HOME } else { next })).into_response(),
        // After too many attempts, or if the address had an account already, the visitor signs in on the sign-in page.
        Err(_) => redirect_with_notice("/login", Notice::Registered),
    })
}

async fn reset(PageQuery(query): PageQuery<AccountQuery>) -> PageResult {
    let (key, error) = (new_key(), None);
    Ok(private_page(if query.token.is_empty() {
        PasswordResetPage::Ask { email: String::new(), error, key }
    } else {
        PasswordResetPage::Choose { token: query.token, error, key }
    }))
}

#[derive(Deserialize)]
struct ResetLinkForm {
    email: String,
    key: String,
}

async fn send_reset_link(
    State(state): State<AppState>,
    visitor: Visitor,
    address: ClientAddress,
    PageForm(form): PageForm<ResetLinkForm>,
) -> PageResult {
    let request = ForgottenRequest { email: form.email };
    let asked = async {
        let intent = Intent::new(&visitor.owner, IdempotencyKey::of_form(&form.key)?, "form /reset", &request);
        accounts::password_forgotten(&state, &address, &request, &intent).await
    };
    Ok(match asked.await {
        Ok(_) => private_page(PasswordResetPage::Sent),
        Err(problem) => form_with_error(problem, |error| {
            private_page(PasswordResetPage::Ask { email: request.email, error: Some(error), key: new_key() })
        }),
    })
}

#[derive(Deserialize)]
struct NewPasswordForm {
    token: LinkToken,
    password: Password,
    key: String,
}

async fn set_new_password(
    State(state): State<AppState>,
    visitor: Visitor,
    address: ClientAddress,
    PageForm(form): PageForm<NewPasswordForm>,
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
        Ok(_) => redirect_with_notice("/login", Notice::PasswordReset),
        Err(problem) => form_with_error(problem, |error| {
            private_page(PasswordResetPage::Choose { token: request.token.0, error: Some(error), key: new_key() })
        }),
    })
}

type SignedInResult = Result<SignedIn, Problem>;
type FormResult<T> = Result<PageForm<T>, PageError>;

async fn account(
    State(state): State<AppState>,
    who: SignedInResult,
    PageQuery(query): PageQuery<AccountQuery>,
) -> SignedInPageResult {
    let SignedIn(session) = signed_in(who, "/account")?;
    account_page(&state, &session, &query.after, query.notice(), None).await
}

async fn account_page(
    state: &AppState,
    session: &Session,
    after: &str,
    notice: Option<Notice>,
    error: Option<String>,
) -> SignedInPageResult {
    let account = accounts::of_account(&mut *state.pg.acquire().await?, session.account).await?;
    let account = account.ok_or(PageError::NotFound)?;
    let bookings = account_bookings::page(state, session.account, Some(after)).await;
    let bookings = bookings.map_err(|problem| match problem.code() {
        Code::Malformed => PageError::Unreadable(problem.detail().to_owned()),
        _ => problem.into(),
    })?;
    Ok(private_page(AccountPage { account, bookings, notice, error, key: new_key() }))
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
        Ok(logged_in) => Ok((logged_in, redirect_with_notice("/account", Notice::PasswordChanged)).into_response()),
        Err(problem) => {
            let error = words(&problem);
            let shown = account_page(&state, &session, "", None, Some(error)).await?;
            Ok(form_with_error(problem, |_| shown))
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
        Ok(_) => Ok(redirect_with_notice("/account", Notice::MailSent)),
        Err(problem) => {
            let shown = account_page(&state, &session, "", None, Some(words(&problem))).await?;
            Ok(form_with_error(problem, |_| shown))
        }
    }
}

async fn confirm(
    State(state): State<AppState>,
    who: SignedInResult,
    PageQuery(query): PageQuery<AccountQuery>,
) -> SignedInPageResult {
    // Only well-formed tokens are passed on.
    let token: String = query.token.chars().filter(char::is_ascii_hexdigit).take(64).collect();
    let SignedIn(session) = signed_in(who, &format!("/confirm-email?token={token}"))?;
    confirm_page(&state, &session, query.token, None).await
}

async fn confirm_page(state: &AppState, session: &Session, token: String, error: Option<String>) -> SignedInPageResult {
    let named = accounts::name_and_address(state, Some(session.account)).await?;
    let (_, email) = named.ok_or(PageError::NotFound)?;
    Ok(private_page(ConfirmEmailPage { token, email, error, key: new_key() }))
}

#[derive(Deserialize)]
struct ConfirmEmailForm {
    token: LinkToken,
    key: String,
}

async fn confirm_email(
    State(state): State<AppState>,
    who: SignedInResult,
    address: ClientAddress,
    form: FormResult<ConfirmEmailForm>,
) -> SignedInPageResult {
    let SignedIn(session) = signed_in(who, "/account")?;
    let PageForm(form) = form?;
    let request = ProofRequest { token: form.token };
    let proven = async {
        let intent = Intent::new(&session.owner, IdempotencyKey::of_form(&form.key)?, "form /confirm-email", &request);
        accounts::prove(&state, &session, &address, &request, &intent).await
    };
    match proven.await {
        Ok(_) => Ok(redirect_with_notice("/account", Notice::Proven)),
        Err(problem) => {
            let shown = confirm_page(&state, &session, request.token.0, Some(words(&problem))).await?;
            Ok(form_with_error(problem, |_| shown))
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
    let headers = accounts::end_session(&state, session.as_ref()).await?;
    Ok(with_headers(headers, redirect_to("/")))
}

async fn log_out_everywhere(State(state): State<AppState>, who: SignedInResult) -> SignedInPageResult {
    let SignedIn(session) = signed_in(who, "/account")?;
    let headers = accounts::end_all(&state, &session).await?;
    Ok(with_headers(headers, redirect_with_notice("/login", Notice::SignedOutEverywhere)))
}

fn with_headers(headers: accounts::SignOutHeaders, mut response: Response) -> Response {
    for (name, value) in headers {
        response.headers_mut().append(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_always_on_our_site() {
        let show = "/shows/00000000-0000-0000-0000-000000000007";
        for ours in ["/", "/account", show, "/confirm-email?token=0a", "/search?city=lisbon&q=a%20b"] {
            assert_eq!(safe_next_path(ours), Some(ours));
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
        ] {
            assert_eq!(safe_next_path(others), None, "{others:?}");
        }
        assert_eq!(safe_next_path(&format!("/{}", "x".repeat(MAX_NEXT_BYTES))), None);
    }
}
