//! The JSON of a waiting room.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::waiting_room::{Outlook, Queue};

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// How somebody stands with the waiting room of a show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum QueueState {
    /// They have no ticket.
    Outside,
    /// Their turn is still to come.
    Waiting,
    /// It is their turn: `POST …/queue` lets them in.
    Called,
    /// Their turn was called, and they did not come in time: they are let in as soon as there is room.
    Late,
    /// They are in, until `pass_until_ms`.
    Inside,
    /// They went in on other devices, as many as a ticket is good for.
    Elsewhere,
    /// The ticket is used up, or was given back. Whoever wants to come joins again.
    Over,
    /// Booking is closed: nobody is let in any more.
    Closed,
}

/// The draw of those who came before opening, for whoever wants to check it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DrawView {
    /// Name of the way to draw: `rowlock-draw-1`.
    pub method: String,
    /// SHA-256 of the key, hex; told before anybody joins.
    pub commitment: String,
    /// How many were drawn; told after opening.
    pub people: Option<u64>,
    /// The key, hex; told after opening.
    pub key: Option<String>,
}

/// The waiting room of a show as somebody sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct QueueView {
    /// The show.
    pub show: Uuid,
    /// How they stand.
    pub state: QueueState,
    /// When it opens, RFC 3339.
    pub opens_at: String,
    /// The same in milliseconds since 1970.
    pub opens_at_ms: i64,
    /// How the room stands.
    pub queue: Queue,
    /// The number of their ticket, from 0 in the order of coming.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Their place, from 0; told after opening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
    /// What they can expect while they wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Outlook>,
    /// Their ticket: whoever has it stands at its place. Browsers keep it as a cookie; programs send it as
    /// `Queue-Ticket`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// A link that brings the ticket to another device. Personal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// What lets them take seats. Browsers keep it as a cookie; programs send it as `Queue-Pass`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<String>,
    /// Until when it does, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_until_ms: Option<i64>,
    /// The draw.
    pub draw: DrawView,
}

/// `POST /theatres/{theatre}/shows/{show}/waiting-room`: switch it on, change it, or switch it off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WaitingRoomRequest {
    /// Whether the show is entered through it.
    pub on: bool,
    /// When it opens, RFC 3339; needed to switch it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens_at: Option<String>,
    /// People let in a second at most, 1 to 1,000; needed to switch it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<u32>,
    /// Why, in one line.
    pub reason: String,
}
