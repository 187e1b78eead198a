//! The JSON of other systems: keys they read with, and webhooks they are told by.
//!
//! Secrets are in the answer that makes them, and in no other.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::Person;
use crate::booking::{BookingState, MoneyState};
use crate::hidden_characters::is_bidi_override;
use crate::money::Money;

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// Longest name of a key, characters.
pub const MAX_NAME_CHARS: usize = 60;
/// Longest reason, characters.
pub const MAX_REASON_CHARS: usize = 300;
/// Longest address of an endpoint, bytes.
pub const MAX_URL_BYTES: usize = 500;

/// A text of one line and `max_chars` characters at most, without the white space around it. `None` also for a text with a
/// bidi override: it would reorder what follows it in lists, mails and tickets.
#[must_use]
pub fn one_line(text: &str, max_chars: usize) -> Option<&str> {
    let line = text.trim();
    let is_good = !line.is_empty()
        && line.chars().count() <= max_chars
        && !line.chars().any(|c| c.is_control() || is_bidi_override(c));
    is_good.then_some(line)
}

/// A key of a theatre's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ApiKeyView {
    /// The key's name here; not the key.
    pub id: Uuid,
    /// What it is for.
    pub name: String,
    /// How it begins, to know it by.
    pub hint: String,
    /// Whether it reads names and addresses of buyers too.
    pub reads_people: bool,
    /// When it was made, RFC 3339.
    pub made_at: String,
    /// When it was last used, to the minute; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// Since when it opens nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

/// `POST /theatres/{theatre}/api-keys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApiKeyRequest {
    /// What it is for, up to 60 characters.
    pub name: String,
    /// Whether it reads names and addresses of buyers too.
    #[serde(default)]
    pub reads_people: bool,
    /// Why, in one line.
    pub reason: String,
}

/// A key that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ApiKeyMade {
    /// About it.
    #[serde(flatten)]
    pub about: ApiKeyView,
    /// The key itself: shown here, and never again.
    pub key: String,
}

/// What is done to a key, an endpoint or a delivery, and nothing else to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReasonRequest {
    /// Why, in one line.
    pub reason: String,
}

/// What other systems are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub enum WebhookEvent {
    /// A booking was paid and became tickets.
    #[serde(rename = "booking.confirmed")]
    BookingConfirmed,
    /// A booking that had become tickets was undone, in whole or in part.
    #[serde(rename = "booking.cancelled")]
    BookingCancelled,
    /// Money of a booking reached its payer.
    #[serde(rename = "booking.refunded")]
    BookingRefunded,
    /// A show was called off.
    #[serde(rename = "show.cancelled")]
    ShowCancelled,
    /// A show was moved to another screen.
    #[serde(rename = "show.moved")]
    ShowMoved,
}

impl WebhookEvent {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::BookingConfirmed, Self::BookingCancelled, Self::BookingRefunded, Self::ShowCancelled, Self::ShowMoved];

    /// As JSON and SQL spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BookingConfirmed => "booking.confirmed",
            Self::BookingCancelled => "booking.cancelled",
            Self::BookingRefunded => "booking.refunded",
            Self::ShowCancelled => "show.cancelled",
            Self::ShowMoved => "show.moved",
        }
    }

    /// Reads what [`WebhookEvent::as_str`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == text)
    }
}

/// How an endpoint stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndpointState {
    /// It is told what happens.
    On,
    /// Somebody switched it off: what happens meanwhile it is not told, then or later.
    Off,
    /// It failed too often, or said that it is gone. What happens meanwhile waits for it, for 30 days.
    Failed,
    /// It is no more.
    Removed,
}

impl EndpointState {
    /// As JSON and SQL spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Failed => "failed",
            Self::Removed => "removed",
        }
    }

    /// Reads what [`EndpointState::as_str`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::On, Self::Off, Self::Failed, Self::Removed].into_iter().find(|state| state.as_str() == text)
    }
}

/// An address of another system that is told what happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct EndpointView {
    /// The endpoint.
    pub id: Uuid,
    /// Where it is.
    pub url: String,
    /// What it is told.
    pub events: Vec<WebhookEvent>,
    /// How it stands.
    pub state: EndpointState,
    /// Tries that failed in a row.
    pub failures: i32,
    /// Why it was switched off by itself, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// Until when what it is told is signed with the secret before this one as well, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_secret_until: Option<String>,
    /// When it was made, RFC 3339.
    pub made_at: String,
}

/// `POST /theatres/{theatre}/webhooks`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EndpointRequest {
    /// Where it is: `https://…`.
    pub url: String,
    /// What it is to be told; each once.
    pub events: Vec<WebhookEvent>,
    /// Why, in one line.
    pub reason: String,
}

/// An endpoint with a secret that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct EndpointMade {
    /// About it.
    #[serde(flatten)]
    pub about: EndpointView,
    /// What its webhooks are signed with: shown here, and never again.
    pub secret: String,
}

/// `POST /theatres/{theatre}/webhooks/{endpoint}/state`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EndpointChange {
    /// How it is to stand: `on`, `off` or `removed`.
    pub state: EndpointState,
    /// Why, in one line.
    pub reason: String,
}

/// How a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It is on its way, or will be tried again.
    Waiting,
    /// The other system has it.
    Delivered,
    /// It was tried often enough.
    Failed,
}

impl DeliveryState {
    /// As JSON and SQL spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// Reads what [`DeliveryState::as_str`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Waiting, Self::Delivered, Self::Failed].into_iter().find(|state| state.as_str() == text)
    }
}

/// A message on its way to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DeliveryView {
    /// The delivery; they grow.
    pub id: i64,
    /// The message: the same for each time it is sent.
    pub message: Uuid,
    /// What it tells.
    pub event: WebhookEvent,
    /// What about: the reference of a booking, or the id of a show.
    pub subject: String,
    /// How it stands.
    pub state: DeliveryState,
    /// How often it was tried.
    pub tries: i32,
    /// HTTP status of the last try, if there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_status: Option<i32>,
    /// What was wrong with the last try, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_trouble: Option<String>,
    /// When it happened, RFC 3339.
    pub happened_at: String,
    /// When it was last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried_at: Option<String>,
    /// When it is tried again, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<String>,
}

/// A seat or place of a booking, for other systems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct BookedLine {
    /// Its name.
    pub label: String,
    /// Its category.
    pub category: String,
    /// How many: 1 for a seat.
    pub quantity: i32,
    /// What one cost.
    pub price: Money,
    /// Whether it was given back.
    pub given_back: bool,
}

/// Money that went back, for other systems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RefundLine {
    /// Its number within the booking.
    pub number: i32,
    /// What goes back.
    pub amount: Money,
    /// What was kept of the price, minor units.
    pub fee_minor: i64,
    /// When it reached the payer, RFC 3339; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<String>,
}

/// `GET /theatres/{theatre}/bookings/{booking}`: a booking for the theatre's other systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct TheatreBookingView {
    /// The booking.
    pub id: Uuid,
    /// Its name for people.
    pub reference: String,
    /// Its show.
    pub show: Uuid,
    /// The film of the show.
    pub film: String,
    /// When the show starts, on the clocks there: `2026-11-21T20:15:00`.
    pub starts_local: String,
    /// How it stands.
    pub state: BookingState,
    /// How its money stands.
    pub money: MoneyState,
    /// What it costs now.
    pub total: Money,
    /// Its seats and places, those that were given back too.
    pub lines: Vec<BookedLine>,
    /// What went back.
    pub refunds: Vec<RefundLine>,
    /// Counts what happened to it: of two answers the one with more is the later.
    pub version: i32,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// Who bought it; only for managers, and for keys that may read people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buyer: Option<Person>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_states_are_read_back_as_json_and_sql_spell_them() {
        for event in WebhookEvent::ALL {
            assert_eq!(WebhookEvent::parse(event.as_str()), Some(event));
            assert_eq!(serde_json::to_string(&event).expect("JSON"), format!("\"{}\"", event.as_str()));
        }
        for state in ["on", "off", "failed", "removed"] {
            let read = EndpointState::parse(state).expect("a state");
            assert_eq!(serde_json::to_string(&read).expect("JSON"), format!("\"{state}\""));
        }
        for state in ["waiting", "delivered", "failed"] {
            let read = DeliveryState::parse(state).expect("a state");
            assert_eq!(serde_json::to_string(&read).expect("JSON"), format!("\"{state}\""));
        }
        assert_eq!(
            (WebhookEvent::parse("all"), EndpointState::parse(""), DeliveryState::parse("On")),
            (None, None, None)
        );
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(one_line("  Bookkeeping ", 20), Some("Bookkeeping"));
        for bad in ["", "  ", "a\nb", "a\u{7}b", "123456"] {
            assert_eq!(one_line(bad, 5), None, "{bad:?}");
        }
    }
}
