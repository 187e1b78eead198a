//! `POST /webhooks/payments/{gateway}`: the gateway tells us how a payment ended.
//!
//! Believed only when signed over the raw bytes. No `Idempotency-Key` here: the gateway's event id
//! does that work. An answer outside 2xx makes the gateway send the event again later.

use axum::Json;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use domain::api::ProblemView;
use domain::money::{Currency, Money};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{NewsKind, NewsOutcome, PaymentNews, signature};
use crate::web::problem::ApiResult;
use crate::web::{ApiPath, Code, Problem};
use crate::{AppState, bookings, clock};

/// Largest webhook we read, bytes. Theirs have a few hundred.
const MAX_WEBHOOK_BYTES: usize = 64 * 1024;
/// Longest event id we store, bytes.
const MAX_EVENT_ID_BYTES: usize = 200;

/// The routes of this capability.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(receive_webhook)).layer(DefaultBodyLimit::max(MAX_WEBHOOK_BYTES))
}

/// What became of a webhook.
#[derive(Serialize, ToSchema)]
struct WebhookAnswer {
    /// `applied`, `duplicate` or `ignored`.
    outcome: NewsOutcome,
}

/// The part of the gateway's event that we use; what else it carries is its own affair.
#[derive(Deserialize, ToSchema)]
struct WebhookEvent {
    /// The gateway's id of the event.
    id: String,
    /// `payment.succeeded`, `payment.failed`, `payment.voided` or `refund.succeeded`.
    #[serde(rename = "type")]
    kind: String,
    /// When, milliseconds since 1970.
    created_ms: i64,
    /// The payment it is about.
    payment: WebhookPayment,
}

#[derive(Deserialize, ToSchema)]
struct WebhookPayment {
    /// The booking's id, as we gave it with the charge.
    reference: String,
    /// Minor units charged.
    amount_minor: i64,
    /// ISO 4217 code.
    currency: String,
}

/// A gateway reports a payment
#[utoipa::path(
    post,
    path = "/webhooks/payments/{gateway}",
    tag = "payments",
    params(
        ("gateway" = String, Path, description = "Which gateway, for example `simulator`"),
        ("Payment-Signature" = String, Header, description = "`t=<unix seconds>,v1=<hex HMAC-SHA-256 of t.body>`"),
    ),
    request_body = WebhookEvent,
    responses(
        (status = 200, description = "Noted", body = WebhookAnswer),
        (status = 400, description = "`malformed`", body = ProblemView),
        (status = 401, description = "`webhook_unsigned`, `webhook_stale`, `webhook_signature_mismatch`", body = ProblemView),
        (status = 404, description = "`unknown_payment`; `not_found` for an unknown gateway", body = ProblemView),
        (status = 413, description = "`too_large`", body = ProblemView),
        (status = 503, description = "`database_unavailable`: send it again", body = ProblemView),
    ),
)]
async fn receive_webhook(
    State(state): State<AppState>,
    ApiPath(gateway): ApiPath<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> ApiResult<Json<WebhookAnswer>> {
    if gateway != state.gateway.name() {
        return Err(Problem::not_found("payment gateway"));
    }
    let body = body.map_err(unreadable)?;
    // A header that is not text is as good as none that can be read.
    let header = headers.get(signature::HEADER).map(|value| value.to_str().unwrap_or_default());
    signature::verify(&body, header, &state.config.simulator_webhook_secret, clock::now()).map_err(not_believed)?;
    let event: WebhookEvent =
        serde_json::from_slice(&body).map_err(|error| Problem::new(Code::Malformed, error.to_string()))?;
    let Some(news) = news_of(event, state.gateway.name())? else {
        return Ok(Json(WebhookAnswer { outcome: NewsOutcome::Ignored }));
    };
    let (event_id, booking) = (news.event_id.clone(), news.booking);
    let outcome = bookings::payment_news(&state, news).await?;
    tracing::info!(%event_id, %booking, ?outcome, "payment webhook");
    match outcome {
        NewsOutcome::Unknown => Err(unknown_payment()),
        outcome => Ok(Json(WebhookAnswer { outcome })),
    }
}

fn unreadable(rejection: BytesRejection) -> Problem {
    let too_large = rejection.status() == StatusCode::PAYLOAD_TOO_LARGE;
    Problem::new(if too_large { Code::TooLarge } else { Code::Malformed }, rejection.body_text())
}

fn not_believed(error: signature::SignatureError) -> Problem {
    use signature::SignatureError as E;
    let code = match error {
        E::Missing | E::Malformed => Code::WebhookUnsigned,
        E::Mismatch => Code::WebhookSignatureMismatch,
        E::Stale => Code::WebhookStale,
    };
    Problem::new(code, error.to_string())
}

fn unknown_payment() -> Problem {
    Problem::new(Code::UnknownPayment, "The payment's reference is not a booking of ours.")
}

/// The event in our words; `None` for a kind that does not concern us.
fn news_of(event: WebhookEvent, gateway: &'static str) -> ApiResult<Option<PaymentNews>> {
    if event.id.is_empty() || event.id.len() > MAX_EVENT_ID_BYTES || event.id.contains('\0') {
        return Err(Problem::new(Code::Malformed, "The event's id is empty, too long or unprintable."));
    }
    let kind = match event.kind.as_str() {
        "payment.succeeded" => {
            let currency = Currency::parse(&event.payment.currency)
                .ok_or_else(|| Problem::new(Code::Malformed, "The payment's currency is not an ISO 4217 code."))?;
            NewsKind::Succeeded { amount: Money::new(event.payment.amount_minor, currency) }
        }
        "payment.failed" => NewsKind::Failed,
        "payment.voided" => NewsKind::Voided,
        "refund.succeeded" => NewsKind::RefundSettled,
        _ => return Ok(None),
    };
    let booking = Uuid::parse_str(&event.payment.reference).map_err(|_| unknown_payment())?;
    Ok(Some(PaymentNews { gateway, event_id: event.id, booking, kind, occurred: Timestamp(event.created_ms) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, id: &str, reference: &str, currency: &str) -> WebhookEvent {
        let payment =
            WebhookPayment { reference: reference.to_owned(), amount_minor: 1250, currency: currency.to_owned() };
        WebhookEvent { id: id.to_owned(), kind: kind.to_owned(), created_ms: 7, payment }
    }

    const BOOKING: &str = "0190d1b2-0000-4000-8000-000000000001";

    #[test]
    fn a_success_carries_the_amount_and_the_booking() {
        let news = news_of(event("payment.succeeded", "evt_1", BOOKING, "EUR"), "simulator");
        let news = news.expect("readable").expect("of interest");
        assert_eq!(news.booking.to_string(), BOOKING);
        let amount = Money::new(1250, Currency::parse("EUR").expect("a code"));
        assert_eq!(news.kind, NewsKind::Succeeded { amount });
        assert_eq!((news.event_id.as_str(), news.occurred), ("evt_1", Timestamp(7)));
    }

    #[test]
    fn an_event_of_another_kind_is_ignored_and_not_refused() {
        let news = news_of(event("dispute.opened", "evt_1", BOOKING, "EUR"), "simulator").expect("readable");
        assert_eq!(news, None);
    }

    #[test]
    fn a_reference_that_is_no_booking_is_an_unknown_payment() {
        let refused = news_of(event("payment.failed", "evt_1", "'; DROP TABLE bookings; --", "EUR"), "simulator");
        assert_eq!(refused.expect_err("unknown").code(), Code::UnknownPayment);
    }

    #[test]
    fn ids_and_currencies_that_cannot_be_stored_are_malformed() {
        for bad in [
            event("payment.failed", "", BOOKING, "EUR"),
            event("payment.failed", &"x".repeat(MAX_EVENT_ID_BYTES + 1), BOOKING, "EUR"),
            event("payment.failed", "a\0b", BOOKING, "EUR"),
            event("payment.succeeded", "evt_1", BOOKING, "euro"),
        ] {
            assert_eq!(news_of(bad, "simulator").expect_err("malformed").code(), Code::Malformed);
        }
    }
}
