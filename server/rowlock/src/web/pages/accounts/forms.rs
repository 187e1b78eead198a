//! Pages without a session: signing in, registering, a new password.

use app::pages::accounts::{LoginPage, Notice, PasswordResetPage, RegisterPage};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use domain::api::accounts::{ForgottenRequest, LinkToken, LoginRequest, Password, RegisterRequest, ResetRequest};
use serde::Deserialize;

use super::{AccountQuery, new_key, once_more, private, see, see_with, way_on};
use crate::AppState;
use crate::web::pages::{PageForm, PageQuery, PageResult};
use http::idempotency::{IdempotencyKey, Intent};
use http::{ClientAddress, Problem};
use identity::Visitor;
use identity::accounts::{self, Registration, ResetIntent};

const HOME: &str = "/account";

pub(super) async fn login(PageQuery(asked): PageQuery<AccountQuery>) -> PageResult {
    let next = way_on(&asked.next).unwrap_or_default().to_owned();
    Ok(private(LoginPage { next, notice: asked.notice(), ..LoginPage::default() }))
}

#[derive(Deserialize)]
pub(super) struct LoginForm {
    email: String,
    password: Password,
    #[serde(default)]
    next: String,
}

pub(super) async fn log_in(
    State(state): State<AppState>,
    visitor: Visitor,
    address: ClientAddress,
    headers: HeaderMap,
    PageForm(form): PageForm<LoginForm>,
) -> PageResult {
    let next = way_on(&form.next).unwrap_or_default();
    let request = LoginRequest { email: form.email.clone(), password: form.password, token: false };
    Ok(match signed_in(&state, &visitor, &headers, &address, &request).await {
        Ok(logged_in) => (logged_in, see(if next.is_empty() { HOME } else { next })).into_response(),
        Err(problem) => once_more(problem, |trouble| {
            private(LoginPage { next: next.to_owned(), email: form.email, notice: None, trouble: Some(trouble) })
        }),
    })
}

async fn signed_in(
    state: &AppState,
    visitor: &Visitor,
    headers: &HeaderMap,
    address: &ClientAddress,
    request: &LoginRequest,
) -> Result<accounts::LoggedIn, Problem> {
    let before = accounts::of_request(state, headers).await?;
    accounts::log_in(state, (visitor, before.as_ref()), address, request).await
}

pub(super) async fn register(PageQuery(asked): PageQuery<AccountQuery>) -> PageResult {
    let next = way_on(&asked.next).unwrap_or_default().to_owned();
    Ok(private(RegisterPage { next, key: new_key(), ..RegisterPage::default() }))
}

#[derive(Deserialize)]
pub(super) struct RegisterForm {
    name: String,
    email: String,
    password: Password,
    key: String,
    #[serde(default)]
    next: String,
}

/// Registers, then signs in with the same password. If the address has an account already, signing in fails like any other
/// failure, and its owner gets a mail.
pub(super) async fn make(
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
    Ok(match signed_in(&state, &visitor, &headers, &address, &login).await {
        Ok(logged_in) => (logged_in, see(if next.is_empty() { HOME } else { next })).into_response(),
        // Too many at it, or the address had an account: the page to sign in on is the way on either way.
        Err(_) => see_with("/login", Notice::Registered),
    })
}

pub(super) async fn reset(PageQuery(asked): PageQuery<AccountQuery>) -> PageResult {
    let (key, trouble) = (new_key(), None);
    Ok(private(if asked.token.is_empty() {
        PasswordResetPage::Ask { email: String::new(), trouble, key }
    } else {
        PasswordResetPage::Choose { token: asked.token, trouble, key }
    }))
}

#[derive(Deserialize)]
pub(super) struct AskForm {
    email: String,
    key: String,
}

pub(super) async fn ask(
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
pub(super) struct SetForm {
    token: LinkToken,
    password: Password,
    key: String,
}

pub(super) async fn set(
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
