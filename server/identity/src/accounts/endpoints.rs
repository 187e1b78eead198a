//! Endpoints of accounts.
//!
//! Sign-in, sign-out and password changes take no `Idempotency-Key`: their answers set cookies, which must not be
//! stored for a replay, and duplicates are harmless. All other writes take one.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::accounts::{
    AccountView, AuditQuery, AuditView, ForgottenRequest, GrantRequest, LoginRequest, LoginView, NextStep,
    PasswordChange, ProofRequest, RegisterRequest, ResetRequest, StaffView,
};
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Managers, SignedIn, StaffMutation, StaffRequest, grants};
use crate::{IdentityState, Visitor, accounts, audit};
use http::idempotency::{Answer, IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::{ApiJson, ApiQuery, ClientAddress, Problem};

/// The routes of accounts, under `/api/v1`.
pub fn routes() -> OpenApiRouter<IdentityState> {
    OpenApiRouter::new()
        .routes(routes!(register))
        .routes(routes!(login))
        .routes(routes!(logout))
        .routes(routes!(logout_everywhere))
        .routes(routes!(me))
        .routes(routes!(send_proof))
        .routes(routes!(prove))
        .routes(routes!(change_password))
        .routes(routes!(forgotten))
        .routes(routes!(reset))
        .routes(routes!(list_staff, change_role))
        .routes(routes!(acts))
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
    params(("Idempotency-Key" = String, Header)), responses((status = 201, body = NextStep),
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid, password_unusable")))]
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
        (status = 401, body = ProblemView, description = "login_failed")))]
async fn login(
    State(state): State<IdentityState>,
    visitor: Visitor,
    address: ClientAddress,
    headers: HeaderMap,
    ApiJson(request): ApiJson<LoginRequest>,
) -> ApiResult<Response> {
    let logged_in = accounts::log_in(&state, (&visitor, &headers), &address, &request).await?;
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
    Ok(signed_out_response(accounts::end_session(&state, session.as_ref()).await?))
}

/// Sign out everywhere: every browser and every token.
#[utoipa::path(post, path = "/users/logout-everywhere", tag = "accounts", responses((status = 204)))]
async fn logout_everywhere(State(state): State<IdentityState>, SignedIn(session): SignedIn) -> ApiResult<Response> {
    Ok(signed_out_response(accounts::end_all(&state, &session).await?))
}

/// Returns 204 with headers that remove the cookies.
fn signed_out_response(gone: accounts::SignOutHeaders) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    for (name, value) in gone {
        response.headers_mut().append(name, value);
    }
    response
}

/// Your account.
#[utoipa::path(get, path = "/users/me", tag = "accounts", responses((status = 200, body = AccountView)))]
async fn me(State(state): State<IdentityState>, SignedIn(session): SignedIn) -> ApiResult<Json<AccountView>> {
    let account = accounts::of_account(&mut *state.pg.acquire().await?, session.account).await?;
    Ok(Json(account.ok_or_else(|| Problem::not_found("account"))?))
}

/// Mail a link that proves that your address is yours.
#[utoipa::path(post, path = "/users/me/email/link", tag = "accounts", params(("Idempotency-Key" = String, Header)),
    responses((status = 202, body = NextStep), (status = 400, body = ProblemView, description = "key_missing")))]
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
    responses((status = 200, body = AccountView), (status = 410, body = ProblemView, description = "link_invalid")))]
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

/// Change your password. Every other session ends; this browser gets another cookie.
///
/// `{"current": …, "new": …}`; all other sessions end.
#[utoipa::path(post, path = "/users/me/password", tag = "accounts", request_body = PasswordChange,
    responses((status = 200, body = AccountView, description = "With a new cookie, for a browser"),
        (status = 400, body = ProblemView, description = "malformed, password_unusable"),
        (status = 401, body = ProblemView, description = "not_signed_in, login_failed: the old password is wrong")))]
async fn change_password(
    State(state): State<IdentityState>,
    SignedIn(session): SignedIn,
    address: ClientAddress,
    ApiJson(request): ApiJson<PasswordChange>,
) -> ApiResult<Response> {
    let logged_in = accounts::change_password(&state, &session, &address, &request).await?;
    let view = Json(logged_in.view.account.clone());
    Ok((logged_in, view).into_response())
}

/// Mail a link for a new password. The answer is the same whether the address has an account or not.
///
/// Request a mail with a link for a new password, `{"email": …}`; 202, also for an unknown address.
#[utoipa::path(post, path = "/users/password/forgotten", tag = "accounts", request_body = ForgottenRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 202, body = NextStep),
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid")))]
async fn forgotten(
    State(state): State<IdentityState>,
    visitor: Visitor,
    address: ClientAddress,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ForgottenRequest>,
) -> ApiResult<Response> {
    let intent = Intent::new(&visitor.owner, key, "POST /users/password/forgotten", &request);
    let answer = accounts::password_forgotten(&state, &address, &request, &intent).await?;
    Ok((visitor, answer).into_response())
}

/// The fields of a reset that identify a duplicate, with keyed digests of its secrets.
#[derive(Serialize)]
pub struct ResetIntent {
    token: String,
    password: String,
}

impl ResetIntent {
    /// Builds the intent of this request.
    #[must_use]
    pub fn of(state: &IdentityState, request: &ResetRequest) -> Self {
        let tokens = &state.accounts.tokens;
        Self { token: tokens.digest(request.token.0.as_bytes()), password: tokens.digest(request.password.as_bytes()) }
    }
}

/// Set a new password by the link of a mail. All sessions end.
///
/// The link of the mail has the token, `{"token": …, "password": …}`.
#[utoipa::path(post, path = "/users/password/reset", tag = "accounts", request_body = ResetRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 400, body = ProblemView, description = "malformed, key_missing, password_unusable"),
        (status = 410, body = ProblemView, description = "link_invalid")))]
async fn reset(
    State(state): State<IdentityState>,
    visitor: Visitor,
    address: ClientAddress,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<ResetRequest>,
) -> ApiResult<Response> {
    let intent = Intent::new(&visitor.owner, key, "POST /users/password/reset", &ResetIntent::of(&state, &request));
    let answer = accounts::reset_password(&state, &address, &request, &intent).await?;
    Ok((visitor, answer).into_response())
}

/// The staff of your theatre.
#[utoipa::path(get, path = "/theatres/{theatre}/staff", tag = "staff",
    responses((status = 200, body = Vec<StaffView>)))]
async fn list_staff(
    State(state): State<IdentityState>,
    from: StaffRequest<Managers>,
) -> ApiResult<Json<Vec<StaffView>>> {
    grants::list(&state, &from.theatre).await.map(Json)
}

/// Give or take a role in your theatre. The account's sessions end.
///
/// Grant or revoke a role: `{"email": …, "role": "box_office", "granted": true, "reason": …}`.
#[utoipa::path(post, path = "/theatres/{theatre}/staff", tag = "staff", request_body = GrantRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 204),
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid"),
        (status = 404, body = ProblemView, description = "No such account; also for another theatre's staff"),
        (status = 409, body = ProblemView, description = "last_manager, email_unproven, still_running")))]
async fn change_role(
    State(state): State<IdentityState>,
    mutation: StaffMutation<Managers, (), GrantRequest>,
) -> ApiResult<Answer> {
    grants::change(&state, &mutation.from.staff, &mutation.from.theatre, &mutation.body, &mutation.intent).await
}

/// The audit list of your theatre, the newest entries first.
///
/// The audit log of your theatre: actor, action, time, reason; `?before=` a number.
#[utoipa::path(get, path = "/theatres/{theatre}/audit", tag = "staff", params(AuditQuery),
    responses((status = 200, body = Vec<AuditView>)))]
async fn acts(
    State(state): State<IdentityState>,
    from: StaffRequest<Managers>,
    ApiQuery(query): ApiQuery<AuditQuery>,
) -> ApiResult<Json<Vec<AuditView>>> {
    Ok(Json(audit::of_theatre(&state.pg, &from.theatre, query.before).await?))
}
