//! The same payments, cards and page behind a subset of Stripe's API, to test an adapter for Stripe over HTTP.
//!
//! Supported, as in <https://docs.stripe.com/api>: PaymentIntents (create with or without `confirm`, retrieve,
//! cancel, search by one metadata key), Checkout Sessions in mode `payment` (create, retrieve, expire; the page is
//! the simulator's), payment methods (retrieve), refunds (create, list by payment or by time), charges (list by
//! time), webhook endpoints (create: the last one gets all events), `expand[]`, bearer keys, `Idempotency-Key`,
//! errors with `type`, `code` and `decline_code`, events with `Stripe-Signature`. A payment method is `pm_` and a
//! card of [`crate::cards`].
//!
//! Differences to Stripe: a retry is answered with the current state, not with the first answer's bytes, except for
//! a refund; search is consistent at once, not after a minute; idempotency keys are forgotten on request of a test;
//! there is neither delayed capture nor 3-D Secure. Nothing else of Stripe's API is supported.

mod form;
mod objects;

use std::ops::Range;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::cards::{self, Card};
use crate::charging::Simulator;
use crate::clock;
use crate::ledger::{LedgerError, LedgerOutcome, Movement, MovementRecord};
use crate::payment::{NewPayment, Payment, Protocol, Status};
use form::FormFields;
pub(crate) use objects::{refund_webhooks, webhooks};

/// Default number of objects in a list.
const DEFAULT_LIMIT: i64 = 10;
/// Maximum number of objects in a list.
const MAX_LIMIT: usize = 100;
/// Minimum time to the expiry of a session, milliseconds.
const SHORTEST_SESSION_MS: i64 = 30 * 60 * 1_000;

type StripeResult = Result<Json<Value>, StripeError>;

/// An error answer in Stripe's format: `{"error": {"type", "code", "message", …}}`.
#[derive(Debug)]
struct StripeError {
    status: StatusCode,
    body: Value,
}

/// Creates an `invalid_request_error`.
fn invalid(status: StatusCode, message: &str) -> StripeError {
    StripeError { status, body: json!({ "type": "invalid_request_error", "message": message }) }
}

fn bad_request(message: &str) -> StripeError {
    invalid(StatusCode::BAD_REQUEST, message)
}

/// Creates an `invalid_request_error` with a code, answered with 400.
fn coded(code: &str, message: &str) -> StripeError {
    let mut error = bad_request(message);
    error.body["code"] = code.into();
    error
}

impl StripeError {
    /// The object does not exist.
    fn missing(what: &str, id: &str) -> Self {
        let mut body = coded("resource_missing", &format!("No such {what}: '{id}'")).body;
        body["param"] = what.into();
        Self { status: StatusCode::NOT_FOUND, body }
    }

    /// The parameter is unknown.
    fn unknown(name: &str) -> Self {
        let mut error = coded("parameter_unknown", &format!("Received unknown parameter: {name}"));
        error.body["param"] = name.into();
        error
    }

    /// The bank declined the card.
    fn declined(payment: &Payment, intent: Value) -> Self {
        let mut body = objects::last_error(payment);
        body["payment_intent"] = intent;
        Self { status: StatusCode::PAYMENT_REQUIRED, body }
    }

    /// The intent's status does not allow the operation.
    fn unexpected_state(intent: Value) -> Self {
        let message = "You cannot cancel this PaymentIntent because of its status.";
        let mut error = coded("payment_intent_unexpected_state", message);
        error.body["payment_intent"] = intent;
        error
    }
}

impl From<LedgerError> for StripeError {
    fn from(reason: LedgerError) -> Self {
        match reason {
            LedgerError::QueueFull | LedgerError::Full => Self {
                status: StatusCode::SERVICE_UNAVAILABLE,
                body: json!({ "type": "api_error", "message": "Full." }),
            },
            LedgerError::KeyReused => Self {
                status: StatusCode::BAD_REQUEST,
                body: json!({
                    "type": "idempotency_error",
                    "message": "Keys for idempotent requests can only be used with the same parameters they were first used with.",
                }),
            },
            LedgerError::Unknown => Self::missing("payment", ""),
            LedgerError::AlreadyCharged => bad_request("It has been charged."),
            LedgerError::NotCharged => bad_request("This PaymentIntent does not have a successful charge to refund."),
            LedgerError::AboveCharge => {
                bad_request("Refund amount is greater than the unrefunded amount on the charge.")
            }
            LedgerError::TooManyRefunds => bad_request("This charge has too many refunds."),
        }
    }
}

impl IntoResponse for StripeError {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.body }))).into_response()
    }
}

/// Builds the routes of Stripe's API under `/v1`.
pub fn routes(simulator: &Simulator) -> Router<Simulator> {
    Router::new()
        .route("/v1/payment_intents", post(create_intent))
        .route("/v1/payment_intents/search", get(search_intents))
        .route("/v1/payment_intents/{id}", get(read_intent))
        .route("/v1/payment_intents/{id}/cancel", post(cancel_intent))
        .route("/v1/checkout/sessions", post(create_session))
        .route("/v1/checkout/sessions/{id}", get(read_session))
        .route("/v1/checkout/sessions/{id}/expire", post(expire_session))
        .route("/v1/refunds", post(create_refund).get(list_refunds))
        .route("/v1/charges", get(list_charges))
        .route("/v1/payment_methods/{id}", get(read_method))
        .route("/v1/webhook_endpoints", post(create_endpoint))
        .route_layer(middleware::from_fn_with_state(simulator.clone(), require_key))
}

async fn require_key(State(simulator): State<Simulator>, request: Request, next: Next) -> Response {
    if simulator.is_merchant(request.headers()) {
        next.run(request).await
    } else {
        invalid(StatusCode::UNAUTHORIZED, "Invalid API Key provided.").into_response()
    }
}

/// Returns the caller's idempotency key, or a new random one: Stripe does not require it.
fn key_of(headers: &HeaderMap) -> String {
    let given = headers.get("idempotency-key").and_then(|value| value.to_str().ok());
    given.filter(|key| !key.is_empty()).map_or_else(|| clock::new_id("key"), str::to_owned)
}

async fn create_intent(State(simulator): State<Simulator>, headers: HeaderMap, mut fields: FormFields) -> StripeResult {
    let (request, card) = form::intent(&mut fields)?;
    fields.none_left()?;
    let payment = open(&simulator, &key_of(&headers), request, "pi")?;
    let payment = match card {
        Some((card, method)) => confirm(&simulator, payment, card, &method).await?,
        None => payment,
    };
    if payment.status == Status::Failed {
        return Err(StripeError::declined(&payment, objects::intent(&payment, &[])));
    }
    Ok(Json(objects::intent(&payment, &fields.expand)))
}

fn open(simulator: &Simulator, key: &str, request: NewPayment, prefix: &str) -> Result<Payment, StripeError> {
    request.check().map_err(|(_, message)| bad_request(message))?;
    Ok(simulator.ledger.open(key, request, clock::new_id(prefix), clock::now_ms())?.payment)
}

async fn confirm(
    simulator: &Simulator,
    payment: Payment,
    card: &'static Card,
    method: &str,
) -> Result<Payment, StripeError> {
    if payment.status != Status::RequiresPayer {
        return Ok(payment);
    }
    let LedgerOutcome { payment, changed } = simulator.pay(&payment.id, card, cards::fingerprint(method))?;
    if changed && !simulator.wait_for_answer(card).await {
        return Err(invalid(StatusCode::GATEWAY_TIMEOUT, "The client should have timed out."));
    }
    Ok(payment)
}

/// Returns a payment by its PaymentIntent id. A session has an intent once the payer tried to pay.
fn intent_payment(simulator: &Simulator, id: &str) -> Result<Payment, StripeError> {
    let secret = id.strip_prefix("pi_").ok_or_else(|| StripeError::missing("intent", id))?;
    let of_session = || simulator.ledger.get(&format!("cs_{secret}")).ok().filter(objects::has_intent);
    simulator.ledger.get(id).ok().or_else(of_session).ok_or_else(|| StripeError::missing("intent", id))
}

async fn read_intent(State(simulator): State<Simulator>, Path(id): Path<String>, fields: FormFields) -> StripeResult {
    fields.none_left()?;
    Ok(Json(objects::intent(&intent_payment(&simulator, &id)?, &fields.expand)))
}

async fn search_intents(State(simulator): State<Simulator>, mut fields: FormFields) -> StripeResult {
    let (key, value) = form::metadata_query(&fields.required("query")?)?;
    let limit = fields.number("limit")?.unwrap_or(10);
    fields.none_left()?;
    let expand: Vec<String> =
        fields.expand.iter().filter_map(|path| path.strip_prefix("data.")).map(str::to_owned).collect();
    let has = |payment: &Payment| match &payment.request.protocol {
        Protocol::Stripe(terms) => terms.metadata.get(&key) == Some(&value) && objects::has_intent(payment),
        Protocol::Own => false,
    };
    let found = simulator.ledger.with_reference(&value).into_iter().filter(has);
    let found = found.take(usize::try_from(limit).unwrap_or(0));
    let data: Vec<Value> = found.map(|payment| objects::intent(&payment, &expand)).collect();
    Ok(Json(json!({ "object": "search_result", "url": "/v1/payment_intents/search", "has_more": false, "data": data })))
}

async fn cancel_intent(
    State(simulator): State<Simulator>,
    Path(id): Path<String>,
    mut fields: FormFields,
) -> StripeResult {
    fields.take("cancellation_reason");
    fields.none_left()?;
    let payment = intent_payment(&simulator, &id)?;
    let refused = |payment: &Payment| StripeError::unexpected_state(objects::intent(payment, &[]));
    if payment.allows_retry() || payment.status == Status::Voided {
        return Err(refused(&payment));
    }
    match simulator.void(&payment.id) {
        Ok(voided) => Ok(Json(objects::intent(&voided, &fields.expand))),
        Err(LedgerError::AlreadyCharged) => Err(refused(&payment)),
        Err(other) => Err(other.into()),
    }
}

async fn create_session(
    State(simulator): State<Simulator>,
    headers: HeaderMap,
    mut fields: FormFields,
) -> StripeResult {
    let request = form::session(&mut fields)?;
    fields.none_left()?;
    let key = key_of(&headers);
    let is_new = simulator.ledger.get_by_key(&key).is_err();
    if is_new && request.expires_at_ms < clock::now_ms() + SHORTEST_SESSION_MS {
        return Err(bad_request("expires_at must be at least 30 minutes from now."));
    }
    let payment = open(&simulator, &key, request, "cs")?;
    Ok(Json(objects::session(&payment, &simulator.settings.public_url, &fields.expand)))
}

fn session_payment(simulator: &Simulator, id: &str) -> Result<Payment, StripeError> {
    let found = simulator.ledger.get(id).ok().filter(Payment::allows_retry);
    found.ok_or_else(|| StripeError::missing("session", id))
}

async fn read_session(State(simulator): State<Simulator>, Path(id): Path<String>, fields: FormFields) -> StripeResult {
    fields.none_left()?;
    let payment = session_payment(&simulator, &id)?;
    Ok(Json(objects::session(&payment, &simulator.settings.public_url, &fields.expand)))
}

async fn expire_session(
    State(simulator): State<Simulator>,
    Path(id): Path<String>,
    fields: FormFields,
) -> StripeResult {
    fields.none_left()?;
    let payment = session_payment(&simulator, &id)?;
    if payment.status != Status::RequiresPayer {
        let message = "Only Checkout Sessions with a status in [\"open\"] can be expired.";
        return Err(bad_request(message));
    }
    let voided = simulator.void(&payment.id)?;
    Ok(Json(objects::session(&voided, &simulator.settings.public_url, &fields.expand)))
}

async fn create_refund(State(simulator): State<Simulator>, headers: HeaderMap, mut fields: FormFields) -> StripeResult {
    let intent = fields.required("payment_intent")?;
    let amount = fields.number("amount")?;
    let metadata = fields.metadata("metadata");
    fields.take("reason");
    fields.none_left()?;
    let payment = intent_payment(&simulator, &intent)?;
    let (left, key) = (payment.taken_minor - payment.refunded_minor(), key_of(&headers));
    if left == 0 && payment.status == Status::Succeeded && payment.refund_under(&key).is_none() {
        return Err(coded("charge_already_refunded", "Charge has already been refunded."));
    }
    let refunded = simulator.refund(&payment.id, &key, amount.unwrap_or(left), &metadata)?;
    let index = refunded.refund_under(&key).ok_or_else(|| StripeError::missing("refund", &key))?;
    Ok(Json(objects::refund(&refunded, index, refunded.refunds[index].answered)))
}

async fn list_refunds(State(simulator): State<Simulator>, mut fields: FormFields) -> StripeResult {
    let Some(intent) = fields.take("payment_intent") else { return list_refunds_by_time(&simulator, fields) };
    let limit = limit(&mut fields)?;
    fields.none_left()?;
    let mut data = objects::refunds(&intent_payment(&simulator, &intent)?);
    let has_more = data.len() > limit;
    data.truncate(limit);
    Ok(list("/v1/refunds", has_more, data))
}

fn list(url: &str, has_more: bool, data: Vec<Value>) -> Json<Value> {
    Json(json!({ "object": "list", "url": url, "has_more": has_more, "data": data }))
}

fn limit(fields: &mut FormFields) -> Result<usize, StripeError> {
    let limit = fields.number("limit")?.unwrap_or(DEFAULT_LIMIT);
    let limit = usize::try_from(limit).ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
    limit.ok_or_else(|| bad_request("limit must be between 1 and 100."))
}

/// Parses `created[gte]` and `created[lt]`, in seconds, to a range in milliseconds.
fn created(fields: &mut FormFields) -> Result<Range<i64>, StripeError> {
    let from_s = fields.number("created[gte]")?.unwrap_or(0);
    let until_s = fields.number("created[lt]")?.unwrap_or(i64::MAX);
    Ok(from_s.saturating_mul(1_000)..until_s.saturating_mul(1_000))
}

async fn list_charges(State(simulator): State<Simulator>, mut fields: FormFields) -> StripeResult {
    let (window_ms, limit, last) = (created(&mut fields)?, limit(&mut fields)?, fields.take("starting_after"));
    fields.none_left()?;
    let is_charge =
        |record: &MovementRecord| record.movement == Movement::Charge && objects::is_of_stripe(&record.payment);
    let is_last = last.map(|last| move |record: &MovementRecord| objects::charge_id(&record.payment) == last);
    let (movements, has_more) = simulator.ledger.movements_before(&window_ms, is_last, limit, is_charge);
    let data: Vec<Value> = movements.iter().map(|record| objects::charge(&record.payment)).collect();
    Ok(list("/v1/charges", has_more, data))
}

fn list_refunds_by_time(simulator: &Simulator, mut fields: FormFields) -> StripeResult {
    let (window_ms, limit, last) = (created(&mut fields)?, limit(&mut fields)?, fields.take("starting_after"));
    fields.none_left()?;
    let expands = fields.expand.iter().any(|path| path == "data.charge");
    let refund_index = |record: &MovementRecord| match record.movement {
        Movement::Refund(index) if objects::is_of_stripe(&record.payment) => Some(index),
        _ => None,
    };
    let is_last = last.map(|last| {
        move |record: &MovementRecord| {
            refund_index(record).is_some_and(|at| objects::refund_id(&record.payment, at) == last)
        }
    });
    let (movements, has_more) =
        simulator.ledger.movements_before(&window_ms, is_last, limit, |record| refund_index(record).is_some());
    let refund = |record: &MovementRecord| {
        let index = refund_index(record)?;
        let mut refund = objects::refund(&record.payment, index, record.payment.refunds.get(index)?.status);
        refund["charge"] =
            if expands { objects::charge(&record.payment) } else { json!(objects::charge_id(&record.payment)) };
        Some(refund)
    };
    let data: Vec<Value> = movements.iter().filter_map(refund).collect();
    Ok(list("/v1/refunds", has_more, data))
}

async fn read_method(Path(id): Path<String>, fields: FormFields) -> StripeResult {
    fields.none_left()?;
    let card = cards::by_payment_method(&id).ok_or_else(|| StripeError::missing("PaymentMethod", &id))?;
    let details = json!({ "brand": "visa", "last4": card.ending, "fingerprint": cards::fingerprint(&id) });
    Ok(Json(json!({ "id": id, "object": "payment_method", "type": "card", "livemode": false, "card": details })))
}

async fn create_endpoint(State(simulator): State<Simulator>, mut fields: FormFields) -> StripeResult {
    let url = fields.required("url")?;
    fields.drop_list("enabled_events");
    fields.none_left()?;
    simulator.set_stripe_endpoint(url.clone());
    let secret = &simulator.settings.webhook_secret;
    Ok(Json(json!({
        "id": clock::new_id("we"), "object": "webhook_endpoint", "url": url, "status": "enabled", "secret": secret,
    })))
}
