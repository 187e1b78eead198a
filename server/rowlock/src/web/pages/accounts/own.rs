//! The account's own pages. Callers without a session are redirected to the sign-in page.

use app::pages::accounts::{AccountPage, ConfirmEmailPage, Notice};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use domain::api::accounts::{LinkToken, Password, PasswordChange, ProofRequest};
use serde::Deserialize;

use super::super::{PageError, PageForm, PageQuery, SignedInPageResult, signed_in};
use super::{AccountQuery, new_key, once_more, private, see, see_with};
use crate::AppState;
use http::idempotency::{IdempotencyKey, Intent};
use http::{ClientAddress, Code, Problem};
use identity::accounts::{self, Session, SignedIn};
use selling::account_bookings;

type SignedInResult = Result<SignedIn, Problem>;
type FormResult<T> = Result<PageForm<T>, PageError>;

pub(super) async fn account(
    State(state): State<AppState>,
    who: SignedInResult,
    PageQuery(asked): PageQuery<AccountQuery>,
) -> SignedInPageResult {
    let SignedIn(session) = signed_in(who, "/account")?;
    page(&state, &session, &asked.after, asked.notice(), None).await
}

async fn page(
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
pub(super) struct PasswordForm {
    current: Password,
    new: Password,
}

pub(super) async fn password(
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
            let trouble = super::words(&problem);
            let shown = page(&state, &session, "", None, Some(trouble)).await?;
            Ok(once_more(problem, |_| shown))
        }
    }
}

#[derive(Deserialize)]
pub(super) struct KeyForm {
    key: String,
}

pub(super) async fn send_link(
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
            let shown = page(&state, &session, "", None, Some(super::words(&problem))).await?;
            Ok(once_more(problem, |_| shown))
        }
    }
}

pub(super) async fn confirm(
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
pub(super) struct ProofForm {
    token: LinkToken,
    key: String,
}

pub(super) async fn prove(
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
            let shown = confirm_page(&state, &session, request.token.0, Some(super::words(&problem))).await?;
            Ok(once_more(problem, |_| shown))
        }
    }
}

pub(super) async fn log_out(State(state): State<AppState>, headers: HeaderMap) -> SignedInPageResult {
    let session = match accounts::of_request(&state, &headers).await {
        Ok(session) => session,
        // A token that opens nothing is no session to end.
        Err(problem) if problem.code() == Code::TokenInvalid => None,
        Err(problem) => return Err(problem.into()),
    };
    let gone = accounts::end_session(&state, session.as_ref()).await?;
    Ok(with(gone, see("/")))
}

pub(super) async fn log_out_everywhere(State(state): State<AppState>, who: SignedInResult) -> SignedInPageResult {
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
