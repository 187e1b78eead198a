//! Endpoints to register, sign in and out, read the account and prove its address.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::accounts::{AccountView, LoginRequest, LoginView, NextStep, ProofRequest, RegisterRequest};
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::accounts::{self, SignedIn};
use crate::{IdentityState, Visitor};
use http::idempotency::{Answer, IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::shared_refusals::KeyReused;
use http::{ApiJson, ClientAddress, Problem};

pub(super) fn routes() -> OpenApiRouter<IdentityState> {
    OpenApiRouter::new()
        .routes(routes!(register))
        .routes(routes!(login))
        .routes(routes!(logout))
        .routes(routes!(logout_everywhere))
        .routes(routes!(me))
        .routes(routes!(send_proof))
        .routes(routes!(prove))
}

/// The fields of a registration that identify a duplicate, with a keyed digest of the password.
#[derive(Serialize)]
pub struct Registration<'a> {
    name: &'a str,
    email: &'a str,
    password: String,
}

impl<'a> Registration<'a> {
    /// Builds the intent of this request.
    #[must_use]
    pub fn of(state: &IdentityState, request: &'a RegisterRequest) -> Self {
        let password = state.accounts.tokens.digest(request.password.as_bytes());
        Self { name: &request.name, email: &request.email, password }
    }
}

/// Create an account. The answer is the same for an address that has one; its owner gets a mail.
///
/// Register, `{"name": …, "email": …, "password": …}`; 201, also for a known address.
#[utoipa::path(post, path = "/users/register", tag = "accounts", request_body = RegisterRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 201, body = NextStep), KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid, password_unusable"),
        (status = 429, body = ProblemView, description = "too_many_attempts"),
        (status = 503, body = ProblemView, description = "overloaded")))]
async fn register(
    State(state): State<IdentityState>,
    visitor: Visitor,
    address: ClientAddress,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<RegisterRequest>,
) -> ApiResult<Response> {
    let intent = Intent::new(&visitor.owner, key, "POST /users/register", &Registration::of(&state, &request));
    let answer = accounts::register(&state, &address, &request, &intent).await?;
    Ok((visitor, answer).into_response())
}

/// Sign in: a browser by a cookie, a program with `"token": true` by a token for `Authorization: Bearer`.
///
/// Sign in, `{"email": …, "password": …}`: a cookie; with `"token": true` a token instead.
#[utoipa::path(post, path = "/users/login", tag = "accounts", request_body = LoginRequest,
    responses((status = 200, body = LoginView, description = "With a cookie, or with `token`"),
        (status = 400, body = ProblemView, description = "malformed"),
        (status = 401, body = ProblemView, description = "login_failed"),
        (status = 429, body = ProblemView, description = "too_many_attempts"),
        (status = 503, body = ProblemView, description = "overloaded")))]
async fn login(
    State(state): State<IdentityState>,
    visitor: Visitor,
    address: ClientAddress,
    headers: HeaderMap,
    ApiJson(request): ApiJson<LoginRequest>,
) -> ApiResult<Response> {
    let before = accounts::of_request(&state, &headers).await?;
    let logged_in = accounts::log_in(&state, (&visitor, before.as_ref()), &address, &request).await?;
    let view = Json(logged_in.view.clone());
    Ok((logged_in, view).into_response())
}

/// Sign out here. It takes no key: a session ends once, and a repeat gets the same answer.
///
/// Sign out here, 204 also when already signed out; `Clear-Site-Data` clears the browser's storage.
#[utoipa::path(post, path = "/users/logout", tag = "accounts",
    responses((status = 204, description = "You are signed out, or were before"),
        (status = 401, body = ProblemView, description = "token_invalid: it is not genuine, or too old")))]
async fn logout(State(state): State<IdentityState>, headers: HeaderMap) -> ApiResult<Response> {
    let session = accounts::session_to_end(&state, &headers).await?;
    Ok(forgetting(accounts::end_session(&state, session.as_ref()).await?))
}

/// Sign out everywhere: every browser and every token.
#[utoipa::path(post, path = "/users/logout-everywhere", tag = "accounts",
    responses((status = 204), (status = 401, body = ProblemView, description = "not_signed_in")))]
async fn logout_everywhere(State(state): State<IdentityState>, SignedIn(session): SignedIn) -> ApiResult<Response> {
    Ok(forgetting(accounts::end_all(&state, &session).await?))
}

/// Returns 204 with headers that remove the cookies.
fn forgetting(gone: accounts::SignOutHeaders) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    for (name, value) in gone {
        response.headers_mut().append(name, value);
    }
    response
}

/// Your account.
#[utoipa::path(get, path = "/users/me", tag = "accounts",
    responses((status = 200, body = AccountView), (status = 401, body = ProblemView, description = "not_signed_in")))]
async fn me(State(state): State<IdentityState>, SignedIn(session): SignedIn) -> ApiResult<Json<AccountView>> {
    let account = accounts::of_account(&mut *state.pg.acquire().await?, session.account).await?;
    Ok(Json(account.ok_or_else(|| Problem::not_found("account"))?))
}

/// Mail a link that proves that your address is yours.
#[utoipa::path(post, path = "/users/me/email/link", tag = "accounts", params(("Idempotency-Key" = String, Header)),
    responses((status = 202, body = NextStep), KeyReused,
        (status = 400, body = ProblemView, description = "key_missing"),
        (status = 401, body = ProblemView, description = "not_signed_in"),
        (status = 429, body = ProblemView, description = "too_many_attempts")))]
async fn send_proof(
    State(state): State<IdentityState>,
    SignedIn(session): SignedIn,
    address: ClientAddress,
    key: IdempotencyKey,
) -> ApiResult<Answer> {
    let intent = Intent::new(&session.owner, key, "POST /users/me/email/link", &());
    accounts::send_proof(&state, &session, &address, &intent).await
}

/// Redeem that link: guest bookings with this address join your account.
///
/// The link of the mail has the token, `{"token": …}`.
#[utoipa::path(post, path = "/users/me/email/proof", tag = "accounts", request_body = ProofRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 200, body = AccountView), KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing"),
        (status = 401, body = ProblemView, description = "not_signed_in"),
        (status = 410, body = ProblemView, description = "link_invalid"),
        (status = 429, body = ProblemView, description = "too_many_attempts")))]
async fn prove(
    State(state): State<IdentityState>,
    SignedIn(session): SignedIn,
    address: ClientAddress,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ProofRequest>,
) -> ApiResult<Answer> {
    let intent = Intent::new(&session.owner, key, "POST /users/me/email/proof", &request);
    accounts::prove(&state, &session, &address, &request, &intent).await
}
