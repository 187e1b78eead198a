//! The merchant's side: JSON under `/v1`, a bearer key, an `Idempotency-Key` where something is made.
//!
//! Errors are `{"error": {"code", "message"}}`: 400 unreadable · 401 · 404 `unknown_payment`, `unknown_token` ·
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
use crate::charging::{NotNow, Simulator};
use crate::clock;
use crate::ledger::{Line, Outcome, Refused};
use crate::payment::{Dialect, NewPayment, PaymentView, Status};

/// Longest idempotency key, bytes.
const MAX_KEY_BYTES: usize = 255;
/// Lines of the ledger on one page, at most.
const MAX_LEDGER_LINES: usize = 100;
/// How long a merchant should wait when we are full, seconds.
const RETRY_AFTER_S: u32 = 1;

/// An error on its way to the merchant.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

type Answered<T> = Result<T, ApiError>;

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

impl From<NotNow> for ApiError {
    fn from(reason: NotNow) -> Self {
        use StatusCode as S;
        let refused = match reason {
            NotNow::QueueFull => {
                return error(S::SERVICE_UNAVAILABLE, "queue_full", "too many webhooks wait to be delivered");
            }
            NotNow::Refused(refused) => refused,
        };
        match refused {
            Refused::Unknown => error(S::NOT_FOUND, "unknown_payment", "there is no such payment"),
            Refused::KeyReused => error(S::UNPROCESSABLE_ENTITY, "key_reused", "this key was used for another request"),
            Refused::Full => error(S::SERVICE_UNAVAILABLE, "full", "too many payments are under way"),
            Refused::AlreadyCharged => error(S::CONFLICT, "already_charged", "the payment has been charged"),
            Refused::NotCharged => error(S::CONFLICT, "not_charged", "only a charged payment can be refunded"),
            Refused::AboveCharge => {
                error(S::UNPROCESSABLE_ENTITY, "above_charge", "refunds must be positive and within the charge")
            }
            Refused::TooManyRefunds => {
                error(S::UNPROCESSABLE_ENTITY, "too_many_refunds", "the payment was refunded in too many pieces")
            }
        }
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

/// The routes under `/v1`, all behind the key.
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

fn idempotency_key(headers: &HeaderMap) -> Answered<&str> {
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
) -> Answered<(StatusCode, Json<PaymentView>)> {
    let key = idempotency_key(&headers)?;
    let Json(asked) = body?;
    asked.check().map_err(|(code, message)| error(StatusCode::UNPROCESSABLE_ENTITY, code, message))?;
    let card = asked.token.as_deref().and_then(cards::by_token);
    let opened = simulator.ledger.open(key, asked, clock::new_id("pay"), clock::now_ms()).map_err(NotNow::from)?;
    let mut payment = opened.payment;
    // Also on a repeat: the first request may have been turned away between opening and charging.
    if let (Some(card), Status::RequiresPayer) = (card, payment.status) {
        let Outcome { payment: charged, changed } =
            simulator.pay(&payment.id, card, payment.asked.token.as_deref().and_then(cards::fingerprint))?;
        payment = charged;
        if changed && !simulator.answers(card).await {
            return Err(error(StatusCode::GATEWAY_TIMEOUT, "no_answer", "nobody should still be listening"));
        }
    }
    Ok((StatusCode::CREATED, Json(payment.view(&simulator.settings.public_url))))
}

#[derive(Deserialize)]
struct ByKey {
    key: String,
}

async fn find(
    State(simulator): State<Simulator>,
    query: Result<Query<ByKey>, QueryRejection>,
) -> Answered<Json<PaymentView>> {
    let Query(ByKey { key }) = query?;
    let payment = simulator.ledger.get_by_key(&key).map_err(NotNow::from)?;
    Ok(Json(payment.view(&simulator.settings.public_url)))
}

async fn read(State(simulator): State<Simulator>, Path(id): Path<String>) -> Answered<Json<PaymentView>> {
    let payment = simulator.ledger.get(&id).map_err(NotNow::from)?;
    Ok(Json(payment.view(&simulator.settings.public_url)))
}

async fn void(State(simulator): State<Simulator>, Path(id): Path<String>) -> Answered<Json<PaymentView>> {
    Ok(Json(simulator.void(&id)?.view(&simulator.settings.public_url)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerPage {
    /// Milliseconds since 1970.
    from_ms: i64,
    /// The first millisecond that is not asked for.
    until_ms: i64,
    /// `next` of the page before.
    after: Option<u64>,
    limit: usize,
}

/// Payments that were charged or refunded in a window, as they stand now, once for each charge and refund.
async fn ledger(
    State(simulator): State<Simulator>,
    query: Result<Query<LedgerPage>, QueryRejection>,
) -> Answered<Json<serde_json::Value>> {
    let Query(LedgerPage { from_ms, until_ms, after, limit }) = query?;
    if !(1..=MAX_LEDGER_LINES).contains(&limit) {
        let message = format!("limit must be between 1 and {MAX_LEDGER_LINES}");
        return Err(error(StatusCode::UNPROCESSABLE_ENTITY, "limit_invalid", message));
    }
    let is_own = |line: &Line| line.payment.asked.dialect == Dialect::Own;
    let (lines, has_more) = simulator.ledger.movements_after(&(from_ms..until_ms), after, limit, is_own);
    let next = lines.last().filter(|_| has_more).map(|line| line.number);
    let public_url = &simulator.settings.public_url;
    let payments: Vec<PaymentView> = lines.iter().map(|line| line.payment.view(public_url)).collect();
    Ok(Json(json!({ "payments": payments, "next": next })))
}

/// What a token stands for, as far as anybody can tell.
async fn token(Path(token): Path<String>) -> Answered<Json<serde_json::Value>> {
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
) -> Answered<(StatusCode, Json<PaymentView>)> {
    let key = idempotency_key(&headers)?;
    let Json(NewRefund { amount_minor }) = body?;
    let payment = simulator.refund(&id, key, amount_minor, &BTreeMap::new())?;
    Ok((StatusCode::CREATED, Json(payment.view(&simulator.settings.public_url))))
}
