//! The simulator's webhooks: `Payment-Signature`, and an event in its own words.

use axum::http::HeaderMap;
use domain::money::{Currency, Money};
use domain::time::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use super::NAME;
use crate::{PaymentEvent, PaymentEventKind, WebhookRefused, signature};

/// Name of the signature's header.
pub(super) const HEADER: &str = "payment-signature";

/// The part of the event that we use.
#[derive(Deserialize)]
struct SimulatorEvent {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    created_ms: i64,
    payment: EventPayment,
}

#[derive(Deserialize)]
struct EventPayment {
    id: String,
    /// The booking's id, as we gave it with the charge.
    reference: String,
    amount_minor: i64,
    currency: String,
    #[serde(default)]
    failure: Option<String>,
}

pub(super) fn read(
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[String],
    now: Timestamp,
) -> Result<Option<PaymentEvent>, WebhookRefused> {
    signature::verify_header(headers, HEADER, body, secrets, now)?;
    let event: SimulatorEvent =
        serde_json::from_slice(body).map_err(|cause| WebhookRefused::Malformed(cause.to_string()))?;
    parse_event(event)
}

/// The event in our words; `None` for a kind that does not concern us.
fn parse_event(event: SimulatorEvent) -> Result<Option<PaymentEvent>, WebhookRefused> {
    let kind = match event.kind.as_str() {
        "payment.succeeded" => {
            let currency = Currency::parse(&event.payment.currency).ok_or_else(|| {
                WebhookRefused::Malformed("the payment's currency is not an ISO 4217 code".to_owned())
            })?;
            PaymentEventKind::Succeeded { amount: Money::new(event.payment.amount_minor, currency) }
        }
        "payment.failed" => PaymentEventKind::Failed { why: event.payment.failure },
        "payment.voided" => PaymentEventKind::Voided,
        "refund.succeeded" => PaymentEventKind::RefundSettled { number: None },
        _ => return Ok(None),
    };
    let booking = Uuid::parse_str(&event.payment.reference).map_err(|_| WebhookRefused::UnknownPayment)?;
    Ok(Some(PaymentEvent {
        gateway: NAME,
        event_id: event.id,
        booking,
        gateway_ref: Some(event.payment.id),
        kind,
        occurred: Timestamp(event.created_ms),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOKING: &str = "0190d1b2-0000-4000-8000-000000000001";

    fn event(kind: &str, reference: &str, currency: &str) -> SimulatorEvent {
        let payment = EventPayment {
            id: "pay_1".to_owned(),
            reference: reference.to_owned(),
            amount_minor: 1250,
            currency: currency.to_owned(),
            failure: Some("card_declined".to_owned()),
        };
        SimulatorEvent { id: "evt_1".to_owned(), kind: kind.to_owned(), created_ms: 7, payment }
    }

    #[test]
    fn a_success_carries_the_amount_and_the_booking() {
        let news = parse_event(event("payment.succeeded", BOOKING, "EUR")).expect("readable").expect("of interest");
        assert_eq!(news.booking.to_string(), BOOKING);
        let amount = Money::new(1250, Currency::parse("EUR").expect("a code"));
        assert_eq!(news.kind, PaymentEventKind::Succeeded { amount });
        assert_eq!((news.event_id.as_str(), news.occurred), ("evt_1", Timestamp(7)));
    }

    #[test]
    fn an_event_of_another_kind_is_ignored_and_not_refused() {
        assert_eq!(parse_event(event("dispute.opened", BOOKING, "EUR")).expect("readable"), None);
    }

    #[test]
    fn a_reference_that_is_no_booking_is_an_unknown_payment() {
        let refused = parse_event(event("payment.failed", "'; DROP TABLE bookings; --", "EUR"));
        assert!(matches!(refused, Err(WebhookRefused::UnknownPayment)), "{refused:?}");
    }

    #[test]
    fn a_currency_that_is_none_is_malformed() {
        let refused = parse_event(event("payment.succeeded", BOOKING, "euro"));
        assert!(matches!(refused, Err(WebhookRefused::Malformed(_))), "{refused:?}");
    }
}
