//! JSON for integrations: API keys, webhook endpoints and their deliveries, and bookings as other systems read them.
//!
//! A secret appears only in the answer that creates it.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use uuid::Uuid;

use crate::api::Person;
use crate::booking::{BookingState, MoneyState};
use crate::hidden_characters::is_bidi_override;
use crate::money::Money;
use crate::pricing::Breakdown;

/// Maximum length of a key's name, characters.
pub const MAX_NAME_CHARS: usize = 60;
/// The reason in the audit log of an action whose form asks for none: the log has the action, its time and its actor.
pub const NO_REASON: &str = "–";
/// Maximum length of a reason, characters.
pub const MAX_REASON_CHARS: usize = 300;
/// Maximum length of an endpoint's address, bytes.
pub const MAX_URL_BYTES: usize = 500;

/// Returns the text without surrounding white space; `None` unless it is a single line of 1 to `max_chars` characters.
/// A text with a bidi override is also `None`: it would reorder the text after it in lists, mails and tickets.
#[must_use]
pub fn one_line(text: &str, max_chars: usize) -> Option<&str> {
    let line = text.trim();
    let is_good = !line.is_empty()
        && line.chars().count() <= max_chars
        && !line.chars().any(|c| c.is_control() || is_bidi_override(c));
    is_good.then_some(line)
}

/// An API key of a theatre.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApiKeyView {
    /// Id of the key, which is not the secret.
    pub id: Uuid,
    /// Purpose of the key.
    pub name: String,
    /// First characters of the secret, to recognise it.
    pub hint: String,
    /// True if the key may read names and addresses of buyers.
    pub reads_people: bool,
    /// Time of creation, RFC 3339.
    pub made_at: String,
    /// Time of last use, to the minute; absent if unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// Time of revocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

/// `POST /theatres/{theatre}/api-keys`: creates a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApiKeyRequest {
    /// Purpose, up to 60 characters.
    pub name: String,
    /// True if the key may read names and addresses of buyers.
    #[serde(default)]
    pub reads_people: bool,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

/// A new key with its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApiKeyMade {
    /// The key's description.
    #[serde(flatten)]
    pub about: ApiKeyView,
    /// The secret. No other answer contains it.
    pub key: String,
}

/// Request for an action on a key, an endpoint or a delivery that needs only a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReasonRequest {
    /// The reason in one line, for the audit log.
    pub reason: String,
}

/// Kinds of webhook events.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum WebhookEvent {
    /// A booking was paid and its tickets were issued.
    #[serde(rename = "booking.confirmed")]
    #[strum(serialize = "booking.confirmed")]
    BookingConfirmed,
    /// A confirmed booking was cancelled, in whole or in part.
    #[serde(rename = "booking.cancelled")]
    #[strum(serialize = "booking.cancelled")]
    BookingCancelled,
    /// A refund reached its payer.
    #[serde(rename = "booking.refunded")]
    #[strum(serialize = "booking.refunded")]
    BookingRefunded,
    /// A show was cancelled.
    #[serde(rename = "show.cancelled")]
    #[strum(serialize = "show.cancelled")]
    ShowCancelled,
    /// A show was moved to another screen.
    #[serde(rename = "show.moved")]
    #[strum(serialize = "show.moved")]
    ShowMoved,
}

/// State of a webhook endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EndpointState {
    /// It receives events.
    On,
    /// Switched off by staff. Events that occur meanwhile are never delivered.
    Off,
    /// Disabled after too many failures, or because it answered that it is gone. Events that occur meanwhile are queued
    /// for 30 days.
    Failed,
    /// Removed.
    Removed,
}

/// A webhook endpoint of another system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EndpointView {
    /// Id of the endpoint.
    pub id: Uuid,
    /// Its address.
    pub url: String,
    /// Subscribed events.
    pub events: Vec<WebhookEvent>,
    /// Its state.
    pub state: EndpointState,
    /// Number of consecutive failed attempts.
    pub failures: i32,
    /// The reason for which it was disabled automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// End of the period in which deliveries are also signed with the previous secret, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_secret_until: Option<String>,
    /// Time of creation, RFC 3339.
    pub made_at: String,
}

/// `POST /theatres/{theatre}/webhooks`: adds an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EndpointRequest {
    /// Its address: `https://…`.
    pub url: String,
    /// Events to subscribe to, each once.
    pub events: Vec<WebhookEvent>,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

/// An endpoint with a new secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EndpointMade {
    /// The endpoint's description.
    #[serde(flatten)]
    pub about: EndpointView,
    /// The signing secret. No other answer contains it.
    pub secret: String,
}

/// `POST /theatres/{theatre}/webhooks/{endpoint}/state`: changes the state of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EndpointChange {
    /// New state: `on`, `off` or `removed`.
    pub state: EndpointState,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

/// State of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DeliveryState {
    /// Queued, or waiting for a retry.
    Waiting,
    /// Acknowledged by the endpoint.
    Delivered,
    /// Given up after the last retry.
    Failed,
}

/// Delivery of a message to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveryView {
    /// Id of the delivery, increasing.
    pub id: i64,
    /// Id of the message, the same in every attempt.
    pub message: Uuid,
    /// Its event.
    pub event: WebhookEvent,
    /// Its subject: the reference of a booking, or the id of a show.
    pub subject: String,
    /// Its state.
    pub state: DeliveryState,
    /// Number of attempts.
    pub tries: i32,
    /// HTTP status of the last attempt, if there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_status: Option<i32>,
    /// Error of the last attempt, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_trouble: Option<String>,
    /// Time of the event, RFC 3339.
    pub happened_at: String,
    /// Time of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried_at: Option<String>,
    /// Time of the next attempt, while the delivery waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<String>,
}

/// A seat or place of a booking, for other systems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BookedLine {
    /// Its name.
    pub label: String,
    /// Its category.
    pub category: String,
    /// Number of places; 1 for a seat.
    pub quantity: i32,
    /// Price of one.
    pub price: Money,
    /// True if it was returned.
    pub given_back: bool,
}

/// A refund, for other systems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefundLine {
    /// Number within the booking.
    pub number: i32,
    /// Refunded amount.
    pub amount: Money,
    /// Fee kept, minor units.
    pub fee_minor: i64,
    /// Time at which it reached the payer, RFC 3339; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<String>,
}

/// `GET /theatres/{theatre}/bookings/{booking}`: a booking for the theatre's other systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TheatreBookingView {
    /// The booking.
    pub id: Uuid,
    /// Reference of the booking.
    pub reference: String,
    /// Its show.
    pub show: Uuid,
    /// Title of the film.
    pub film: String,
    /// Start of the show in the theatre's time zone: `2026-11-21T20:15:00`.
    pub starts_local: String,
    /// State of the booking.
    pub state: BookingState,
    /// State of its money.
    pub money: MoneyState,
    /// Current price.
    pub total: Money,
    /// The parts of the current price.
    pub breakdown: Breakdown,
    /// Its seats and places, including returned ones.
    pub lines: Vec<BookedLine>,
    /// Its refunds.
    pub refunds: Vec<RefundLine>,
    /// Version of the booking, increasing: of two answers the one with the higher version is newer.
    pub version: i32,
    /// Time of creation, RFC 3339.
    pub created_at: String,
    /// The buyer. Present only for managers and for keys that may read people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buyer: Option<Person>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VariantName;

    #[test]
    fn event_and_state_names_parse_back_and_equal_their_json() {
        for &event in WebhookEvent::VARIANTS {
            assert_eq!(event.as_str().parse(), Ok(event));
            assert_eq!(serde_json::to_string(&event).expect("JSON"), format!("\"{}\"", event.as_str()));
        }
        for state in ["on", "off", "failed", "removed"] {
            let read = state.parse::<EndpointState>().expect("a state");
            assert_eq!(serde_json::to_string(&read).expect("JSON"), format!("\"{state}\""));
        }
        for state in ["waiting", "delivered", "failed"] {
            let read = state.parse::<DeliveryState>().expect("a state");
            assert_eq!(serde_json::to_string(&read).expect("JSON"), format!("\"{state}\""));
        }
        assert_eq!(
            ("all".parse::<WebhookEvent>().ok(), "".parse::<EndpointState>().ok(), "On".parse::<DeliveryState>().ok()),
            (None, None, None)
        );
    }

    #[test]
    fn one_line_trims_and_refuses_line_breaks_control_characters_and_long_texts() {
        assert_eq!(one_line("  Bookkeeping ", 20), Some("Bookkeeping"));
        for bad in ["", "  ", "a\nb", "a\u{7}b", "123456"] {
            assert_eq!(one_line(bad, 5), None, "{bad:?}");
        }
    }
}
