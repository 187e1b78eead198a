//! The merchant API: JSON under `/v1`, a bearer key, and an `Idempotency-Key` for requests that create something.
//!
//! Errors are `{"error": {"code", "message"}}`: 400 malformed · 401 · 404 `unknown_payment`, `unknown_token` ·
//! 409 `already_charged`, `not_charged` · 422 `key_reused`, `above_charge`, `…_invalid` · 503 full.

use std::collections::BTreeMap;

use axum::Json;
use axum::Router;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::json;

use crate::cards;
use crate::charging::Simulator;
use crate::clock;
use crate::ledger::{LedgerError, LedgerOutcome, MovementRecord};
use crate::payment::{NewPayment, PaymentView, Protocol, Status};

/// Maximum length of an idempotency key, bytes.
const MAX_KEY_BYTES: usize = 255;
/// Maximum number of ledger lines on one page.
const MAX_LEDGER_LINES: usize = 100;
/// `Retry-After` when the queue or the ledger is full, seconds.
const RETRY_AFTER_S: u32 = 1;

/// An error answer of the merchant API.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

type ApiResult<T> = Result<T, ApiError>;

fn error(status: StatusCode, code: &'static str, message: impl Into<String>) -> ApiError {
    ApiError { status, code, message: message.into() }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = Json(json!({ "error": { "code": self.code, "message": self.message } }));
        let mut response = (self.status, body).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER_S.into());
        }
        response
    }
}

impl From<LedgerError> for ApiError {
    fn from(reason: LedgerError) -> Self {
        use StatusCode as S;
        let (status, code, message) = match reason {
            LedgerError::QueueFull => (S::SERVICE_UNAVAILABLE, "queue_full", "too many webhooks wait to be delivered"),
            LedgerError::Unknown => (S::NOT_FOUND, "unknown_payment", "there is no such payment"),
            LedgerError::KeyReused => (S::UNPROCESSABLE_ENTITY, "key_reused", "this key was used for another request"),
            LedgerError::Full => (S::SERVICE_UNAVAILABLE, "full", "too many payments are unfinished"),
            LedgerError::AlreadyCharged => (S::CONFLICT, "already_charged", "the payment has been charged"),
            LedgerError::NotCharged => (S::CONFLICT, "not_charged", "only a charged payment can be refunded"),
            LedgerError::AboveCharge => {
                (S::UNPROCESSABLE_ENTITY, "above_charge", "refunds must be positive and within the charge")
            }
            LedgerError::TooManyRefunds => {
                (S::UNPROCESSABLE_ENTITY, "too_many_refunds", "the payment has too many refunds")
            }
        };
        error(status, code, message)
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        error(rejection.status(), "malformed", rejection.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        error(StatusCode::BAD_REQUEST, "malformed", rejection.body_text())
    }
}

/// Builds the routes under `/v1`, all of which require the key.
pub fn routes(simulator: &Simulator) -> Router<Simulator> {
    Router::new()
        .route("/v1/payments", post(open).get(find))
        .route("/v1/payments/{id}", get(read))
        .route("/v1/payments/{id}/void", post(void))
        .route("/v1/payments/{id}/refunds", post(refund))
        .route("/v1/tokens/{token}", get(token))
        .route("/v1/ledger", get(ledger))
        .route_layer(middleware::from_fn_with_state(simulator.clone(), require_key))
}

async fn require_key(State(simulator): State<Simulator>, request: Request, next: Next) -> Response {
    if simulator.is_merchant(request.headers()) {
        next.run(request).await
    } else {
        error(StatusCode::UNAUTHORIZED, "unauthorized", "send the API key as a bearer token").into_response()
    }
}

fn idempotency_key(headers: &HeaderMap) -> ApiResult<&str> {
    let key = headers.get("idempotency-key").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if key.is_empty() || key.len() > MAX_KEY_BYTES || !key.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(error(StatusCode::BAD_REQUEST, "key_missing", "send an Idempotency-Key of 1 to 255 characters"));
    }
    Ok(key)
}

async fn open(
    State(simulator): State<Simulator>,
    headers: HeaderMap,
    body: Result<Json<NewPayment>, JsonRejection>,
) -> ApiResult<(StatusCode, Json<PaymentView>)> {
    let key = idempotency_key(&headers)?;
    let Json(request) = body?;
    request.check().map_err(|(code, message)| error(StatusCode::UNPROCESSABLE_ENTITY, code, message))?;
    let card = request.token.as_deref().and_then(cards::by_token);
    let mut payment = simulator.ledger.open(key, request, clock::new_id("pay"), clock::now_ms())?.payment;
    // Also for a retry: the first request may have failed between opening and charging.
    if let (Some(card), Status::RequiresPayer) = (card, payment.status) {
        let LedgerOutcome { payment: charged, changed } =
            simulator.pay(&payment.id, card, payment.request.token.as_deref().and_then(cards::fingerprint))?;
        payment = charged;
        if changed && !simulator.wait_for_answer(card).await {
            return Err(error(StatusCode::GATEWAY_TIMEOUT, "no_answer", "the client should have timed out"));
        }
    }
    Ok((StatusCode::CREATED, Json(payment.view(&simulator.settings.public_url))))
}

#[derive(Deserialize)]
struct KeyQuery {
    key: String,
}

async fn find(
    State(simulator): State<Simulator>,
    query: Result<Query<KeyQuery>, QueryRejection>,
) -> ApiResult<Json<PaymentView>> {
    let Query(KeyQuery { key }) = query?;
    let payment = simulator.ledger.get_by_key(&key)?;
    Ok(Json(payment.view(&simulator.settings.public_url)))
}

async fn read(State(simulator): State<Simulator>, Path(id): Path<String>) -> ApiResult<Json<PaymentView>> {
    let payment = simulator.ledger.get(&id)?;
    Ok(Json(payment.view(&simulator.settings.public_url)))
}

async fn void(State(simulator): State<Simulator>, Path(id): Path<String>) -> ApiResult<Json<PaymentView>> {
    Ok(Json(simulator.void(&id)?.view(&simulator.settings.public_url)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerPage {
    /// Start of the window, milliseconds since 1970.
    from_ms: i64,
    /// End of the window, exclusive, milliseconds since 1970.
    until_ms: i64,
    /// `next` of the previous page.
    after: Option<u64>,
    limit: usize,
}

/// Lists payments that were charged or refunded in a window, in their current state, once per charge and refund.
async fn ledger(
    State(simulator): State<Simulator>,
    query: Result<Query<LedgerPage>, QueryRejection>,
) -> ApiResult<Json<serde_json::Value>> {
    let Query(LedgerPage { from_ms, until_ms, after, limit }) = query?;
    if !(1..=MAX_LEDGER_LINES).contains(&limit) {
        let message = format!("limit must be between 1 and {MAX_LEDGER_LINES}");
        return Err(error(StatusCode::UNPROCESSABLE_ENTITY, "limit_invalid", message));
    }
    let is_own = |movement: &MovementRecord| movement.payment.request.protocol == Protocol::Own;
    let (movements, has_more) = simulator.ledger.movements_after(&(from_ms..until_ms), after, limit, is_own);
    let next = movements.last().filter(|_| has_more).map(|movement| movement.number);
    let public_url = &simulator.settings.public_url;
    let payments: Vec<PaymentView> = movements.iter().map(|movement| movement.payment.view(public_url)).collect();
    Ok(Json(json!({ "payments": payments, "next": next })))
}

/// Describes a token: the fingerprint of its card, or null when it is unknown.
async fn token(Path(token): Path<String>) -> ApiResult<Json<serde_json::Value>> {
    if cards::by_token(&token).is_none() {
        return Err(error(StatusCode::NOT_FOUND, "unknown_token", "there is no such token"));
    }
    Ok(Json(json!({ "fingerprint": cards::fingerprint(&token) })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewRefund {
    amount_minor: i64,
}

async fn refund(
    State(simulator): State<Simulator>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Result<Json<NewRefund>, JsonRejection>,
) -> ApiResult<(StatusCode, Json<PaymentView>)> {
    let key = idempotency_key(&headers)?;
    let Json(NewRefund { amount_minor }) = body?;
    let payment = simulator.refund(&id, key, amount_minor, &BTreeMap::new())?;
    Ok((StatusCode::CREATED, Json(payment.view(&simulator.settings.public_url))))
}
