//! `POST /webhooks/payments/{gateway}`: a gateway reports the outcome of a payment.
//!
//! A webhook is accepted only with a signature over the raw bytes; each gateway defines the header and the format. It
//! has no `Idempotency-Key`: the gateway's event id has that role. An answer outside 2xx makes the gateway send the
//! event again later. A refused webhook is logged; an accepted one is a row in `webhook_events`, for 90 days.

use axum::Json;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use domain::api::ProblemView;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{SellingState, bookings};
use http::{ApiPath, ApiResult, Code, Problem};
use payments::signature::SignatureError;
use payments::{PaymentEventOutcome, WebhookRefused};
use platform::clock;

/// Maximum size of a webhook, bytes. The simulator's have a few hundred, Stripe's a few thousand.
const MAX_WEBHOOK_BYTES: usize = 64 * 1024;
/// Maximum length of a stored event id, bytes.
const MAX_EVENT_ID_BYTES: usize = 200;

/// The routes of this capability.
pub fn routes() -> OpenApiRouter<SellingState> {
    OpenApiRouter::new().routes(routes!(receive_webhook)).layer(DefaultBodyLimit::max(MAX_WEBHOOK_BYTES))
}

/// The outcome of a webhook.
#[derive(Serialize, ToSchema)]
struct WebhookAnswer {
    /// `applied`, `duplicate`, `ignored` or `sent_back`.
    outcome: PaymentEventOutcome,
}

/// A gateway reports a payment
///
/// For gateways, see [Webhooks](#webhooks).
#[utoipa::path(
    post,
    path = "/webhooks/payments/{gateway}",
    tag = "payments",
    params(
        ("gateway" = String, Path, description = "Which gateway: `simulator` or `stripe`"),
        ("Payment-Signature" = Option<String>, Header, description = "The simulator's: `t=<unix seconds>,v1=<hex HMAC-SHA-256 of t.body>`"),
        ("Stripe-Signature" = Option<String>, Header, description = "Stripe's, of the same form"),
    ),
    request_body(content = String, description = "The gateway's own event", content_type = "application/json"),
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
    State(state): State<SellingState>,
    ApiPath(gateway): ApiPath<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> ApiResult<Json<WebhookAnswer>> {
    let gateway = state.gateways.find(&gateway).ok_or_else(|| Problem::not_found("payment gateway"))?;
    let body = body.map_err(unreadable)?;
    let news = gateway.read_webhook(&headers, &body, clock::now()).map_err(|why| {
        tracing::warn!(gateway = gateway.name(), %why, bytes = body.len(), "a webhook was refused");
        refused(&why)
    })?;
    let Some(news) = news else {
        return Ok(Json(WebhookAnswer { outcome: PaymentEventOutcome::Ignored }));
    };
    check_event_id(&news.event_id)?;
    let (event_id, booking) = (news.event_id.clone(), news.booking);
    let outcome = bookings::apply_webhook(&state, news).await?;
    // A webhook that moves a booking, or repeats one, is in its history; an info line for each would be one per sale.
    match outcome {
        PaymentEventOutcome::Applied | PaymentEventOutcome::Ignored => {
            tracing::debug!(gateway = gateway.name(), %event_id, %booking, ?outcome, "payment webhook");
        }
        PaymentEventOutcome::Duplicate | PaymentEventOutcome::Unknown | PaymentEventOutcome::SentBack => {
            tracing::info!(gateway = gateway.name(), %event_id, %booking, ?outcome, "payment webhook");
        }
    }
    match outcome {
        PaymentEventOutcome::Unknown => Err(refused(&WebhookRefused::UnknownPayment)),
        outcome => Ok(Json(WebhookAnswer { outcome })),
    }
}

fn unreadable(rejection: BytesRejection) -> Problem {
    let too_large = rejection.status() == StatusCode::PAYLOAD_TOO_LARGE;
    Problem::new(if too_large { Code::TooLarge } else { Code::Malformed }, rejection.body_text())
}

fn refused(why: &WebhookRefused) -> Problem {
    let code = match why {
        WebhookRefused::Signature(SignatureError::Missing | SignatureError::Malformed) => Code::WebhookUnsigned,
        WebhookRefused::Signature(SignatureError::Mismatch) => Code::WebhookSignatureMismatch,
        WebhookRefused::Signature(SignatureError::Stale) => Code::WebhookStale,
        WebhookRefused::Malformed(_) => Code::Malformed,
        WebhookRefused::UnknownPayment => Code::UnknownPayment,
    };
    Problem::new(code, why.to_string())
}

fn check_event_id(id: &str) -> ApiResult<()> {
    if id.is_empty() || id.len() > MAX_EVENT_ID_BYTES || id.contains('\0') {
        return Err(Problem::new(Code::Malformed, "The event's id is empty, too long or unprintable."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_cannot_be_stored_are_malformed() {
        for bad in ["", &"x".repeat(MAX_EVENT_ID_BYTES + 1), "a\0b"] {
            assert_eq!(check_event_id(bad).expect_err("malformed").code(), Code::Malformed, "{bad:?}");
        }
        assert!(check_event_id("evt_1").is_ok());
    }
}
