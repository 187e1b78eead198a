//! Endpoints of codes before checkout.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::api::ProblemView;
use domain::api::email_codes::{EmailCodeRequest, EmailCodeView, EmailProofRequest, EmailProofView};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::service;
use crate::SellingState;
use http::idempotency::{IdempotencyKey, Intent};
use http::{ApiJson, ApiPath, ApiResult, ClientAddress};
use identity::Visitor;

/// The routes of codes, under `/api/v1`.
pub fn routes() -> OpenApiRouter<SellingState> {
    OpenApiRouter::new().routes(routes!(ask)).routes(routes!(prove))
}

/// Have a code mailed to your address, where a show requires one before checkout.
///
/// Request a code by mail, if the show requires one before checkout: `{"email": …, "language": "de"}`.
#[utoipa::path(post, path = "/shows/{show}/email-code", tag = "bookings", request_body = EmailCodeRequest,
    params(("Idempotency-Key" = String, Header)),
    responses((status = 202, body = EmailCodeView, description = "It is being sent; an earlier code no longer works"),
        (status = 400, body = ProblemView, description = "malformed, key_missing, person_invalid"),
        (status = 409, body = ProblemView, description = "wrong_state: this show asks for none; sales_closed, still_running")))]
async fn ask(
    State(state): State<SellingState>,
    visitor: Visitor,
    address: ClientAddress,
    ApiPath(show): ApiPath<Uuid>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<EmailCodeRequest>,
) -> ApiResult<Response> {
    let show = state.catalogue.find_show(show).await?;
    let intent = Intent::new(&visitor.owner, key, &format!("POST /shows/{}/email-code", show.id), &request);
    let answer = service::ask(&state, &show, (&visitor, &address), &request, &intent).await?;
    Ok((visitor, answer).into_response())
}

/// Enter the code. From then on, and for an hour, you may check out with that address.
///
/// The body is `{"email": …, "code": "012345"}`.
#[utoipa::path(post, path = "/shows/{show}/email-code/proof", tag = "bookings", request_body = EmailProofRequest,
    params(("Idempotency-Key" = String, Header)), responses((status = 200, body = EmailProofView),
        (status = 409, body = ProblemView, description = "wrong_state: this show asks for none; still_running"),
        (status = 410, body = ProblemView, description = "email_code_over: ask for another one"),
        (status = 422, body = ProblemView, description = "email_code_wrong; key_reused")))]
async fn prove(
    State(state): State<SellingState>,
    visitor: Visitor,
    ApiPath(show): ApiPath<Uuid>,
    key: IdempotencyKey,
    ApiJson(request): ApiJson<EmailProofRequest>,
) -> ApiResult<Response> {
    let show = state.catalogue.find_show(show).await?;
    let replay_fingerprint = service::replay_fingerprint(&state, &request);
    let intent =
        Intent::new(&visitor.owner, key, &format!("POST /shows/{}/email-code/proof", show.id), &replay_fingerprint);
    let answer = service::prove(&state, &show, &visitor, &request, &intent).await?;
    Ok((visitor, answer).into_response())
}
