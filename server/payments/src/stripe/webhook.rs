//! Stripe's webhooks: `Stripe-Signature` over the raw body, and the events we subscribe to.
//!
//! Events of objects without a booking of ours (another product on the same account) are ignored.

use axum::http::HeaderMap;
use domain::time::{SECOND_MS, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::objects::{CheckoutSession, PaymentIntent, Refund};
use super::{BARRED, BOOKING, NAME, ON_PAGE, REFUND};
use crate::gateway::refund_of_key;
use crate::{GatewayError, PaymentEvent, PaymentEventKind, WebhookRefused, signature};

/// Name of the signature's header.
pub(super) const HEADER: &str = "stripe-signature";

/// Stripe's `Event`.
#[derive(Deserialize)]
struct StripeEvent {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    /// Seconds since 1970.
    created: i64,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Value,
}

/// An event's content: the booking id as text, Stripe's id of the payment, the news.
type ParsedEvent = Option<(String, Option<String>, PaymentEventKind)>;

pub(super) fn read(
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[String],
    now: Timestamp,
) -> Result<Option<PaymentEvent>, WebhookRefused> {
    signature::verify_header(headers, HEADER, body, secrets, now)?;
    let event: StripeEvent = serde_json::from_slice(body).map_err(malformed)?;
    let Some((booking, gateway_ref, kind)) = parse_event(&event.kind, event.data.object)? else { return Ok(None) };
    let booking = Uuid::parse_str(&booking).map_err(|_| WebhookRefused::UnknownPayment)?;
    let occurred = Timestamp(event.created.saturating_mul(SECOND_MS));
    Ok(Some(PaymentEvent { gateway: NAME, event_id: event.id, booking, gateway_ref, kind, occurred }))
}

fn malformed(cause: impl std::fmt::Display) -> WebhookRefused {
    WebhookRefused::Malformed(cause.to_string())
}

fn object<T: DeserializeOwned>(value: Value) -> Result<T, WebhookRefused> {
    serde_json::from_value(value).map_err(malformed)
}

fn parse_event(event: &str, value: Value) -> Result<ParsedEvent, WebhookRefused> {
    match event {
        "payment_intent.succeeded" | "payment_intent.payment_failed" | "payment_intent.canceled" => {
            of_intent(event, &object(value)?)
        }
        "checkout.session.expired" => of_session(object(value)?, PaymentEventKind::Voided),
        "checkout.session.async_payment_failed" => {
            of_session(object(value)?, PaymentEventKind::Failed { why: Some("async_payment_failed".to_owned()) })
        }
        "refund.created" | "refund.updated" | "refund.failed" | "charge.refund.updated" => {
            Ok(of_refund(object(value)?))
        }
        _ => Ok(None),
    }
}

fn of_intent(event: &str, intent: &PaymentIntent) -> Result<ParsedEvent, WebhookRefused> {
    let Some(booking) = intent.booking() else { return Ok(None) };
    let kind = match (event, intent.way()) {
        // Our own bar against a late charge; or a card on a page where the payer may try another.
        (_, Some(BARRED)) | ("payment_intent.payment_failed", Some(ON_PAGE)) => return Ok(None),
        ("payment_intent.succeeded", _) => {
            let amount = intent.received().map_err(|cause: GatewayError| malformed(cause))?;
            PaymentEventKind::Succeeded { amount }
        }
        ("payment_intent.payment_failed", _) => PaymentEventKind::Failed { why: intent.failure() },
        _ => PaymentEventKind::Voided,
    };
    Ok(Some((booking.to_owned(), Some(intent.id.clone()), kind)))
}

fn of_session(session: CheckoutSession, kind: PaymentEventKind) -> Result<ParsedEvent, WebhookRefused> {
    Ok(session.client_reference_id.map(|booking| (booking, Some(session.id), kind)))
}

fn of_refund(refund: Refund) -> ParsedEvent {
    // The key names the booking of the refund; the charge may be of another booking.
    let (booking, number) = match refund.metadata.get(REFUND).and_then(|key| refund_of_key(key)) {
        Some((booking, number)) => (booking.to_string(), Some(number)),
        None => (refund.metadata.get(BOOKING)?.clone(), None),
    };
    let kind = match refund.status.as_deref() {
        Some("succeeded") => PaymentEventKind::RefundSettled { number },
        // Perhaps days later, when the card is closed: we have the money again, and a person must repay it.
        Some("failed" | "canceled") => {
            PaymentEventKind::RefundFailed { why: refund.why_failed(), refund: refund.id.clone(), number }
        }
        _ => return None,
    };
    Some((booking, refund.payment_intent, kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BOOKING_ID: &str = "0190d1b2-0000-4000-8000-000000000001";

    fn intent(status: &str, way: &str) -> Value {
        json!({ "id": "pi_1", "status": status, "currency": "eur", "amount_received": 1250,
                "metadata": { "booking": BOOKING_ID, "way": way },
                "last_payment_error": { "type": "card_error", "code": "card_declined" } })
    }

    fn kind(event: &str, object: Value) -> Option<PaymentEventKind> {
        parse_event(event, object).expect("readable").map(|(_, _, kind)| kind)
    }

    #[test]
    fn a_failed_card_ends_a_payment_by_token_and_not_one_on_a_page() {
        let failed = Some(PaymentEventKind::Failed { why: Some("card_declined".to_owned()) });
        let event = "payment_intent.payment_failed";
        assert_eq!(kind(event, intent("requires_payment_method", "token")), failed);
        assert_eq!(kind(event, intent("requires_payment_method", "page")), None);
    }

    #[test]
    fn the_cancelled_intent_of_a_bar_is_ignored() {
        assert_eq!(kind("payment_intent.canceled", intent("canceled", "barred")), None);
        assert_eq!(kind("payment_intent.canceled", intent("canceled", "token")), Some(PaymentEventKind::Voided));
    }

    #[test]
    fn only_an_arrived_refund_is_settled_and_a_failed_one_is_reported() {
        let of = |status: &str, metadata: Value| json!({ "id": "re_1", "status": status, "metadata": metadata });
        let refund = |status: &str| of(status, json!({ "booking": BOOKING_ID }));
        assert_eq!(kind("refund.created", refund("pending")), None);
        assert_eq!(kind("refund.updated", refund("requires_action")), None);
        assert_eq!(kind("refund.updated", refund("succeeded")), Some(PaymentEventKind::RefundSettled { number: None }));
        let failed = |number, why: &str| {
            Some(PaymentEventKind::RefundFailed { refund: "re_1".to_owned(), number, why: why.to_owned() })
        };
        for event in ["refund.failed", "refund.updated", "charge.refund.updated"] {
            assert_eq!(kind(event, refund("failed")), failed(None, "failed"), "{event}");
        }
        // Money of another booking paid for this one: what is sent back is this one's.
        let other = "0190d1b2-0000-4000-8000-000000000002";
        let named = json!({ "booking": other, "refund": format!("refund:{BOOKING_ID}:3") });
        let mut lost = of("canceled", named.clone());
        lost["failure_reason"] = json!("lost_or_stolen_card");
        let (booking, _, news) = parse_event("refund.updated", lost).expect("readable").expect("of interest");
        assert_eq!((booking.as_str(), Some(news)), (BOOKING_ID, failed(Some(3), "lost_or_stolen_card")));
        let settled = kind("refund.updated", of("succeeded", named));
        assert_eq!(settled, Some(PaymentEventKind::RefundSettled { number: Some(3) }));
    }

    #[test]
    fn events_of_other_objects_or_types_are_ignored() {
        let foreign = json!({ "id": "pi_1", "status": "succeeded", "currency": "eur", "metadata": {} });
        assert_eq!(kind("payment_intent.succeeded", foreign), None);
        assert_eq!(kind("invoice.paid", json!({})), None);
        assert!(parse_event("payment_intent.succeeded", json!("?")).is_err());
    }
}
