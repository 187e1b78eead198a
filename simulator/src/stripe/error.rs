//! Errors as Stripe words them: `{"error": {"type", "code", "message", …}}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::charging::NotNow;
use crate::ledger::Refused;
use crate::payment::Payment;

use super::objects;

/// An error on its way to the merchant.
#[derive(Debug)]
pub struct Error {
    status: StatusCode,
    body: Value,
}

/// An `invalid_request_error`.
pub fn invalid(status: StatusCode, message: &str) -> Error {
    Error { status, body: json!({ "type": "invalid_request_error", "message": message }) }
}

impl Error {
    /// There is no such object.
    pub fn missing(what: &str, id: &str) -> Self {
        let message = format!("No such {what}: '{id}'");
        let body =
            json!({ "type": "invalid_request_error", "code": "resource_missing", "param": what, "message": message });
        Self { status: StatusCode::NOT_FOUND, body }
    }

    /// A parameter nobody knows.
    pub fn unknown(name: &str) -> Self {
        let message = format!("Received unknown parameter: {name}");
        let body =
            json!({ "type": "invalid_request_error", "code": "parameter_unknown", "param": name, "message": message });
        Self { status: StatusCode::BAD_REQUEST, body }
    }

    /// All of it went back before.
    pub fn already_refunded() -> Self {
        let body = json!({
            "type": "invalid_request_error", "code": "charge_already_refunded",
            "message": "Charge has already been refunded.",
        });
        Self { status: StatusCode::BAD_REQUEST, body }
    }

    /// The bank said no.
    pub fn declined(payment: &Payment, intent: Value) -> Self {
        let mut body = objects::last_error(payment);
        body["payment_intent"] = intent;
        Self { status: StatusCode::PAYMENT_REQUIRED, body }
    }

    /// Not possible from the intent's status.
    pub fn unexpected_state(intent: Value) -> Self {
        let message = "You cannot cancel this PaymentIntent because of its status.";
        let body = json!({
            "type": "invalid_request_error", "code": "payment_intent_unexpected_state", "message": message,
            "payment_intent": intent,
        });
        Self { status: StatusCode::BAD_REQUEST, body }
    }
}

impl From<NotNow> for Error {
    fn from(reason: NotNow) -> Self {
        let bad = |message| invalid(StatusCode::BAD_REQUEST, message);
        match reason {
            NotNow::QueueFull | NotNow::Refused(Refused::Full) => Self {
                status: StatusCode::SERVICE_UNAVAILABLE,
                body: json!({ "type": "api_error", "message": "Full." }),
            },
            NotNow::Refused(Refused::KeyReused) => Self {
                status: StatusCode::BAD_REQUEST,
                body: json!({
                    "type": "idempotency_error",
                    "message": "Keys for idempotent requests can only be used with the same parameters they were first used with.",
                }),
            },
            NotNow::Refused(Refused::Unknown) => Self::missing("payment", ""),
            NotNow::Refused(Refused::AlreadyCharged) => bad("It has been charged."),
            NotNow::Refused(Refused::NotCharged) => {
                bad("This PaymentIntent does not have a successful charge to refund.")
            }
            NotNow::Refused(Refused::AboveCharge) => {
                bad("Refund amount is greater than the unrefunded amount on the charge.")
            }
            NotNow::Refused(Refused::TooManyRefunds) => bad("This charge was refunded in too many pieces."),
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.body }))).into_response()
    }
}
