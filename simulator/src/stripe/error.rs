//! Errors in Stripe's format: `{"error": {"type", "code", "message", …}}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::charging::ChargingError;
use crate::ledger::LedgerError;
use crate::payment::Payment;

use super::objects;

/// An error answer of Stripe's API.
#[derive(Debug)]
pub struct StripeError {
    status: StatusCode,
    body: Value,
}

/// Creates an `invalid_request_error`.
pub fn invalid(status: StatusCode, message: &str) -> StripeError {
    StripeError { status, body: json!({ "type": "invalid_request_error", "message": message }) }
}

impl StripeError {
    /// The object does not exist.
    pub fn missing(what: &str, id: &str) -> Self {
        let message = format!("No such {what}: '{id}'");
        let body =
            json!({ "type": "invalid_request_error", "code": "resource_missing", "param": what, "message": message });
        Self { status: StatusCode::NOT_FOUND, body }
    }

    /// The parameter is unknown.
    pub fn unknown(name: &str) -> Self {
        let message = format!("Received unknown parameter: {name}");
        let body =
            json!({ "type": "invalid_request_error", "code": "parameter_unknown", "param": name, "message": message });
        Self { status: StatusCode::BAD_REQUEST, body }
    }

    /// The charge was fully refunded before.
    pub fn already_refunded() -> Self {
        let body = json!({
            "type": "invalid_request_error", "code": "charge_already_refunded",
            "message": "Charge has already been refunded.",
        });
        Self { status: StatusCode::BAD_REQUEST, body }
    }

    /// The bank declined the card.
    pub fn declined(payment: &Payment, intent: Value) -> Self {
        let mut body = objects::last_error(payment);
        body["payment_intent"] = intent;
        Self { status: StatusCode::PAYMENT_REQUIRED, body }
    }

    /// The intent's status does not allow the operation.
    pub fn unexpected_state(intent: Value) -> Self {
        let message = "You cannot cancel this PaymentIntent because of its status.";
        let body = json!({
            "type": "invalid_request_error", "code": "payment_intent_unexpected_state", "message": message,
            "payment_intent": intent,
        });
        Self { status: StatusCode::BAD_REQUEST, body }
    }
}

impl From<ChargingError> for StripeError {
    fn from(reason: ChargingError) -> Self {
        let bad = |message| invalid(StatusCode::BAD_REQUEST, message);
        match reason {
            ChargingError::QueueFull | ChargingError::Refused(LedgerError::Full) => Self {
                status: StatusCode::SERVICE_UNAVAILABLE,
                body: json!({ "type": "api_error", "message": "Full." }),
            },
            ChargingError::Refused(LedgerError::KeyReused) => Self {
                status: StatusCode::BAD_REQUEST,
                body: json!({
                    "type": "idempotency_error",
                    "message": "Keys for idempotent requests can only be used with the same parameters they were first used with.",
                }),
            },
            ChargingError::Refused(LedgerError::Unknown) => Self::missing("payment", ""),
            ChargingError::Refused(LedgerError::AlreadyCharged) => bad("It has been charged."),
            ChargingError::Refused(LedgerError::NotCharged) => {
                bad("This PaymentIntent does not have a successful charge to refund.")
            }
            ChargingError::Refused(LedgerError::AboveCharge) => {
                bad("Refund amount is greater than the unrefunded amount on the charge.")
            }
            ChargingError::Refused(LedgerError::TooManyRefunds) => bad("This charge has too many refunds."),
        }
    }
}

impl IntoResponse for StripeError {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.body }))).into_response()
    }
}
