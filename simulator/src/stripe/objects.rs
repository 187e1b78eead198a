//! Payments as Stripe's objects: PaymentIntent, Checkout Session, refund, event.

use serde_json::{Value, json};

use crate::clock;
use crate::payment::{Payment, Protocol, RefundStatus, Status, StripeTerms};
use crate::webhooks::{EventKind, WebhookRequest};

/// Name of the signature header.
const SIGNATURE_HEADER: &str = "stripe-signature";

/// Returns the id of a payment without its prefix.
fn secret(payment: &Payment) -> &str {
    payment.id.split_once('_').map_or(payment.id.as_str(), |(_, secret)| secret)
}

fn terms(payment: &Payment) -> Option<&StripeTerms> {
    match &payment.request.protocol {
        Protocol::Stripe(terms) => Some(terms),
        Protocol::Own => None,
    }
}

/// Returns `true` when there is a PaymentIntent; a session has one only after its payer tried to pay.
pub fn has_intent(payment: &Payment) -> bool {
    let tried = matches!(payment.status, Status::Pending | Status::Succeeded) || payment.failure.is_some();
    terms(payment).is_some_and(|terms| !terms.checkout || tried)
}

fn is_expanded(expand: &[String], what: &str) -> bool {
    expand.iter().any(|path| path == what || path.starts_with(&format!("{what}.")))
}

/// Builds the PaymentIntent of a payment.
pub fn intent(payment: &Payment, expand: &[String]) -> Value {
    let status = match payment.status {
        Status::RequiresPayer | Status::Failed => "requires_payment_method",
        Status::Pending => "processing",
        Status::Succeeded => "succeeded",
        Status::Voided => "canceled",
    };
    let charge = (payment.status == Status::Succeeded).then(|| {
        let id = format!("ch_{}", secret(payment));
        if is_expanded(expand, "latest_charge") {
            let card = json!({ "brand": "visa", "fingerprint": payment.fingerprint });
            json!({
                "id": id, "object": "charge", "amount": payment.taken_minor, "amount_refunded": payment.refunded_minor(),
                "payment_method_details": { "type": "card", "card": card },
            })
        } else {
            json!(id)
        }
    });
    json!({
        "id": format!("pi_{}", secret(payment)),
        "object": "payment_intent",
        "amount": payment.request.amount_minor,
        "amount_received": payment.taken_minor,
        "currency": payment.request.currency.to_ascii_lowercase(),
        "description": payment.request.description,
        "last_payment_error": payment.failure.map(|_| last_error(payment)),
        "latest_charge": charge,
        "livemode": false,
        "metadata": terms(payment).map(|terms| &terms.metadata),
        "next_action": null,
        "status": status,
    })
}

/// Builds the error of the last failed try.
pub fn last_error(payment: &Payment) -> Value {
    let decline_code = if payment.failure == Some("bank_declined") { "do_not_honor" } else { "generic_decline" };
    json!({
        "type": "card_error", "code": "card_declined", "decline_code": decline_code,
        "message": "Your card was declined.",
    })
}

/// Builds the Checkout Session of a payment.
pub fn session(payment: &Payment, public_url: &str, expand: &[String]) -> Value {
    let (status, payment_status) = match payment.status {
        Status::RequiresPayer => ("open", "unpaid"),
        Status::Pending => ("complete", "unpaid"),
        Status::Succeeded => ("complete", "paid"),
        Status::Voided | Status::Failed => ("expired", "unpaid"),
    };
    let inner: Vec<String> =
        expand.iter().filter_map(|path| path.strip_prefix("payment_intent.")).map(str::to_owned).collect();
    let own_intent = has_intent(payment).then(|| {
        if is_expanded(expand, "payment_intent") {
            intent(payment, &inner)
        } else {
            json!(format!("pi_{}", secret(payment)))
        }
    });
    json!({
        "id": payment.id,
        "object": "checkout.session",
        "amount_total": payment.amount_minor(),
        "client_reference_id": payment.request.reference,
        "currency": payment.request.currency.to_ascii_lowercase(),
        "expires_at": payment.request.expires_at_ms / 1_000,
        "livemode": false,
        "metadata": terms(payment).map(|terms| &terms.metadata),
        "mode": "payment",
        "payment_intent": own_intent,
        "payment_status": payment_status,
        "status": status,
        "success_url": payment.request.return_url,
        "url": (status == "open").then(|| format!("{public_url}/pay/{}", payment.id)),
    })
}

/// Returns `true` for a payment opened through Stripe's API.
pub fn is_of_stripe(payment: &Payment) -> bool {
    terms(payment).is_some()
}

/// Returns the id of a payment's charge.
pub fn charge_id(payment: &Payment) -> String {
    format!("ch_{}", secret(payment))
}

/// Builds the charge of a charged payment. Stripe copies the metadata of the intent to its charge.
pub fn charge(payment: &Payment) -> Value {
    json!({
        "id": charge_id(payment),
        "object": "charge",
        "amount": payment.taken_minor,
        "amount_captured": payment.taken_minor,
        "amount_refunded": payment.refunded_minor(),
        "currency": payment.request.currency.to_ascii_lowercase(),
        "livemode": false,
        "metadata": terms(payment).map(|terms| &terms.metadata),
        "paid": payment.status == Status::Succeeded,
        "payment_intent": format!("pi_{}", secret(payment)),
        "status": if payment.status == Status::Succeeded { "succeeded" } else { "failed" },
    })
}

/// Returns the id of the refund at `index`.
pub fn refund_id(payment: &Payment, index: usize) -> String {
    format!("re_{}_{}", secret(payment), index + 1)
}

/// Builds the refund at `index` with the given status.
pub fn refund(payment: &Payment, index: usize, status: RefundStatus) -> Value {
    let refund = &payment.refunds[index];
    let (status, failure) = match status {
        RefundStatus::Pending => ("pending", None),
        RefundStatus::Succeeded => ("succeeded", None),
        RefundStatus::Failed => ("failed", Some("expired_or_canceled_card")),
    };
    json!({
        "id": refund_id(payment, index),
        "object": "refund",
        "amount": refund.amount_minor,
        "currency": payment.request.currency.to_ascii_lowercase(),
        "failure_reason": failure,
        "metadata": refund.metadata,
        "payment_intent": format!("pi_{}", secret(payment)),
        "status": status,
    })
}

/// Builds every refund of a payment with its current status, the newest first.
pub fn refunds(payment: &Payment) -> Vec<Value> {
    let each = payment.refunds.iter().enumerate().rev();
    each.map(|(index, known)| refund(payment, index, known.status)).collect()
}

/// Builds the last refund.
fn last_refund(payment: &Payment) -> Value {
    let last = payment.refunds.len().checked_sub(1);
    last.map_or(Value::Null, |index| refund(payment, index, payment.refunds[index].status))
}

/// Builds the events of a refund whose status changed, in order of delivery.
pub(crate) fn refund_webhooks(payment: &Payment, index: usize, created_ms: i64, url: &str) -> Vec<WebhookRequest> {
    let status = payment.refunds[index].status;
    let events = match status {
        RefundStatus::Failed => vec!["charge.refund.updated", "refund.updated", "refund.failed"],
        RefundStatus::Pending | RefundStatus::Succeeded => vec!["charge.refund.updated", "refund.updated"],
    };
    events.into_iter().map(|kind| webhook(kind, &refund(payment, index, status), created_ms, url)).collect()
}

fn webhook(kind: &str, object: &Value, created_ms: i64, url: &str) -> WebhookRequest {
    let id = clock::new_id("evt");
    let event = json!({
        "id": id, "object": "event", "type": kind, "created": created_ms / 1_000, "livemode": false,
        "data": { "object": object },
    });
    WebhookRequest { url: url.to_owned(), body: event.to_string(), event_id: id, header: SIGNATURE_HEADER }
}

/// Builds the events of a payment, in order of delivery.
pub(crate) fn webhooks(
    kind: EventKind,
    payment: &Payment,
    terms: &StripeTerms,
    created_ms: i64,
    url: &str,
) -> Vec<WebhookRequest> {
    let of_session = || session(payment, "", &[]);
    let of_intent = || intent(payment, &[]);
    let events = match (kind, terms.checkout) {
        (EventKind::PaymentSucceeded, true) => {
            vec![("checkout.session.completed", of_session()), ("payment_intent.succeeded", of_intent())]
        }
        (EventKind::PaymentSucceeded, false) => vec![("payment_intent.succeeded", of_intent())],
        (EventKind::PaymentFailed, _) => vec![("payment_intent.payment_failed", of_intent())],
        (EventKind::PaymentVoided, true) => vec![("checkout.session.expired", of_session())],
        (EventKind::PaymentVoided, false) => vec![("payment_intent.canceled", of_intent())],
        (EventKind::RefundSucceeded, _) => vec![("refund.created", last_refund(payment))],
    };
    events.into_iter().map(|(kind, object)| webhook(kind, &object, created_ms, url)).collect()
}
