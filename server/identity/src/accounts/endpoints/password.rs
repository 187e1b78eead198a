//! Endpoints to change or reset a password.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::accounts::{AccountView, ForgottenRequest, NextStep, PasswordChange, ResetRequest};
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::accounts::{self, SignedIn};
use crate::{IdentityState, Visitor};
use http::idempotency::{IdempotencyKey, Intent};
use http::problem::ApiResult;
use http::shared_refusals::KeyReused;
use http::{ApiJson, ClientAddress};

pub(super) fn routes() -> OpenApiRouter<IdentityState> {
    OpenApiRouter::new().routes(routes!(change)).routes(routes!(forgotten)).routes(routes!(reset))
}

/// Change your password. Every other session ends; this browser gets another cookie.
///
/// `{"current": …, "new": …}`; all other sessions end.
#[utoipa::path(post, path = "/users/me/password", tag = "accounts", request_body = PasswordChange,
    responses((status = 200, body = AccountView, description = "With a new cookie, for a browser"),
        (status = 400, body = ProblemView, description = "malformed, password_unusable"),
        (status = 401, body = ProblemView, description = "not_signed_in, login_failed: the old password is wrong"),
        (status = 429, body = ProblemView, description = "too_many_attempts"),
        (status = 503, body = ProblemView, description = "overloaded")))]
async fn change(
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
    params(("Idempotency-Key" = String, Header)),
    responses((status = 202, body = NextStep), KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid"),
        (status = 429, body = ProblemView, description = "too_many_attempts")))]
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
    params(("Idempotency-Key" = String, Header)),
    responses((status = 204), KeyReused,
        (status = 400, body = ProblemView, description = "malformed, key_missing, password_unusable"),
        (status = 410, body = ProblemView, description = "link_invalid"),
        (status = 429, body = ProblemView, description = "too_many_attempts"),
        (status = 503, body = ProblemView, description = "overloaded")))]
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
