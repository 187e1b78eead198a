//! Payments as Stripe's objects: PaymentIntent, Checkout Session, refund, event.

use serde_json::{Value, json};

use crate::clock;
use crate::payment::{Dialect, Payment, RefundStatus, Status, StripeTerms};
use crate::webhooks::{EventKind, Letter};

/// Name of the signature's header.
const SIGNATURE_HEADER: &str = "stripe-signature";

/// What the id would be without its prefix.
fn secret(payment: &Payment) -> &str {
    payment.id.split_once('_').map_or(payment.id.as_str(), |(_, secret)| secret)
}

fn terms(payment: &Payment) -> Option<&StripeTerms> {
    match &payment.asked.dialect {
        Dialect::Stripe(terms) => Some(terms),
        Dialect::Own => None,
    }
}

/// Whether there is a PaymentIntent: of a session only once its payer tried.
pub fn has_intent(payment: &Payment) -> bool {
    let tried = matches!(payment.status, Status::Pending | Status::Succeeded) || payment.failure.is_some();
    terms(payment).is_some_and(|terms| !terms.checkout || tried)
}

fn wants(expand: &[String], what: &str) -> bool {
    expand.iter().any(|path| path == what || path.starts_with(&format!("{what}.")))
}

/// The PaymentIntent of a payment.
pub fn intent(payment: &Payment, expand: &[String]) -> Value {
    let status = match payment.status {
        Status::RequiresPayer | Status::Failed => "requires_payment_method",
        Status::Pending => "processing",
        Status::Succeeded => "succeeded",
        Status::Voided => "canceled",
    };
    let charge = (payment.status == Status::Succeeded).then(|| {
        let id = format!("ch_{}", secret(payment));
        if wants(expand, "latest_charge") {
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
        "amount": payment.asked.amount_minor,
        "amount_received": payment.taken_minor,
        "currency": payment.asked.currency.to_ascii_lowercase(),
        "description": payment.asked.description,
        "last_payment_error": payment.failure.map(|_| last_error(payment)),
        "latest_charge": charge,
        "livemode": false,
        "metadata": terms(payment).map(|terms| &terms.metadata),
        "next_action": null,
        "status": status,
    })
}

/// Why the last try failed.
pub fn last_error(payment: &Payment) -> Value {
    let decline_code = if payment.failure == Some("bank_declined") { "do_not_honor" } else { "generic_decline" };
    json!({
        "type": "card_error", "code": "card_declined", "decline_code": decline_code,
        "message": "Your card was declined.",
    })
}

/// The Checkout Session of a payment.
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
        if wants(expand, "payment_intent") { intent(payment, &inner) } else { json!(format!("pi_{}", secret(payment))) }
    });
    json!({
        "id": payment.id,
        "object": "checkout.session",
        "amount_total": payment.amount_minor(),
        "client_reference_id": payment.asked.reference,
        "currency": payment.asked.currency.to_ascii_lowercase(),
        "expires_at": payment.asked.expires_at_ms / 1_000,
        "livemode": false,
        "metadata": terms(payment).map(|terms| &terms.metadata),
        "mode": "payment",
        "payment_intent": own_intent,
        "payment_status": payment_status,
        "status": status,
        "success_url": payment.asked.return_url,
        "url": (status == "open").then(|| format!("{public_url}/pay/{}", payment.id)),
    })
}

/// True if it was opened through Stripe's API.
pub fn is_stripes(payment: &Payment) -> bool {
    terms(payment).is_some()
}

/// The id of its charge.
pub fn charge_id(payment: &Payment) -> String {
    format!("ch_{}", secret(payment))
}

/// The charge of a payment that was charged. Stripe copies the notes of the intent when it makes one.
pub fn charge(payment: &Payment) -> Value {
    json!({
        "id": charge_id(payment),
        "object": "charge",
        "amount": payment.taken_minor,
        "amount_captured": payment.taken_minor,
        "amount_refunded": payment.refunded_minor(),
        "currency": payment.asked.currency.to_ascii_lowercase(),
        "livemode": false,
        "metadata": terms(payment).map(|terms| &terms.metadata),
        "paid": payment.status == Status::Succeeded,
        "payment_intent": format!("pi_{}", secret(payment)),
        "status": if payment.status == Status::Succeeded { "succeeded" } else { "failed" },
    })
}

/// The id of the refund at that place.
pub fn refund_id(payment: &Payment, place: usize) -> String {
    format!("re_{}_{}", secret(payment), place + 1)
}

/// The refund at that place, which stands like that.
pub fn refund(payment: &Payment, place: usize, status: RefundStatus) -> Value {
    let refund = &payment.refunds[place];
    let (status, failure) = match status {
        RefundStatus::Pending => ("pending", None),
        RefundStatus::Succeeded => ("succeeded", None),
        RefundStatus::Failed => ("failed", Some("expired_or_canceled_card")),
    };
    json!({
        "id": refund_id(payment, place),
        "object": "refund",
        "amount": refund.amount_minor,
        "currency": payment.asked.currency.to_ascii_lowercase(),
        "failure_reason": failure,
        "metadata": refund.metadata,
        "payment_intent": format!("pi_{}", secret(payment)),
        "status": status,
    })
}

/// Every refund of a payment as it stands, the newest first.
pub fn refunds(payment: &Payment) -> Vec<Value> {
    let each = payment.refunds.iter().enumerate().rev();
    each.map(|(place, known)| refund(payment, place, known.status)).collect()
}

/// The refund made last.
fn last_refund(payment: &Payment) -> Value {
    let last = payment.refunds.len().checked_sub(1);
    last.map_or(Value::Null, |place| refund(payment, place, payment.refunds[place].status))
}

/// What the merchant's endpoint is told of a refund that stands differently now, in this order.
pub(crate) fn refund_letters(payment: &Payment, place: usize, created_ms: i64, url: &str) -> Vec<Letter> {
    let status = payment.refunds[place].status;
    let told = match status {
        RefundStatus::Failed => vec!["charge.refund.updated", "refund.updated", "refund.failed"],
        RefundStatus::Pending | RefundStatus::Succeeded => vec!["charge.refund.updated", "refund.updated"],
    };
    told.into_iter().map(|kind| letter(kind, &refund(payment, place, status), created_ms, url)).collect()
}

fn letter(kind: &str, object: &Value, created_ms: i64, url: &str) -> Letter {
    let id = clock::new_id("evt");
    let event = json!({
        "id": id, "object": "event", "type": kind, "created": created_ms / 1_000, "livemode": false,
        "data": { "object": object },
    });
    Letter { url: url.to_owned(), body: event.to_string(), event_id: id, header: SIGNATURE_HEADER }
}

/// What the merchant's endpoint is told, in this order.
pub(crate) fn letters(
    kind: EventKind,
    payment: &Payment,
    terms: &StripeTerms,
    created_ms: i64,
    url: &str,
) -> Vec<Letter> {
    let of_session = || session(payment, "", &[]);
    let of_intent = || intent(payment, &[]);
    let told = match (kind, terms.checkout) {
        (EventKind::PaymentSucceeded, true) => {
            vec![("checkout.session.completed", of_session()), ("payment_intent.succeeded", of_intent())]
        }
        (EventKind::PaymentSucceeded, false) => vec![("payment_intent.succeeded", of_intent())],
        (EventKind::PaymentFailed, _) => vec![("payment_intent.payment_failed", of_intent())],
        (EventKind::PaymentVoided, true) => vec![("checkout.session.expired", of_session())],
        (EventKind::PaymentVoided, false) => vec![("payment_intent.canceled", of_intent())],
        (EventKind::RefundSucceeded, _) => vec![("refund.created", last_refund(payment))],
    };
    told.into_iter().map(|(kind, object)| letter(kind, &object, created_ms, url)).collect()
}
