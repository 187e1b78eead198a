//! JSON of a show's waiting room.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::waiting_room::{ExpectedWait, WaitingRoomStatus};

/// State of a visitor in the waiting room of a show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum QueueState {
    /// Has no ticket.
    Outside,
    /// Waits for its turn.
    Waiting,
    /// May enter now: `POST …/queue` grants admission.
    Called,
    /// Missed its turn. It is admitted as soon as there is room.
    Late,
    /// Admitted until `pass_until_ms`.
    Inside,
    /// The ticket's devices are all admitted already; this device is not one of them. A new ticket is needed to wait
    /// here.
    Elsewhere,
    /// The ticket is used up or was returned. A new ticket is needed to wait again.
    Over,
    /// Booking is closed. Admission has ended.
    Closed,
}

/// Record of the draw among visitors who joined before opening. It allows anyone to verify the draw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DrawView {
    /// Name of the algorithm: `rowlock-draw-1`.
    pub method: String,
    /// SHA-256 of the key, hex. Published before the first visitor joins.
    pub commitment: String,
    /// Number of visitors drawn. Published after opening.
    pub people: Option<u64>,
    /// The key, hex. Published after opening.
    pub key: Option<String>,
}

/// The waiting room of a show, for one visitor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueView {
    /// The show.
    pub show: Uuid,
    /// State of the visitor.
    pub state: QueueState,
    /// Opening time, RFC 3339.
    pub opens_at: String,
    /// The same in milliseconds since 1970.
    pub opens_at_ms: i64,
    /// Progress of the queue.
    pub queue: WaitingRoomStatus,
    /// Number of the ticket, from 0 in the order of joining.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Position in the queue, from 0. Known after opening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
    /// Expected wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlook: Option<ExpectedWait>,
    /// The ticket. It grants its position to any bearer. Browsers keep it as a cookie; programs send it as
    /// `Queue-Ticket`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// Personal link that transfers the ticket to another device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Pass that allows seats to be taken. Browsers keep it as a cookie; programs send it as `Queue-Pass`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<String>,
    /// Expiry of the pass, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_until_ms: Option<i64>,
    /// Record of the draw.
    pub draw: DrawView,
}

/// `POST /theatres/{theatre}/shows/{show}/waiting-room`: turns the waiting room on, changes it, or turns it off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WaitingRoomRequest {
    /// True if the show has a waiting room.
    pub on: bool,
    /// Opening time, RFC 3339; required to turn it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens_at: Option<String>,
    /// Maximum admissions per second, 1 to 1,000; required to turn it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<u32>,
    /// The reason in one line, for the audit log.
    pub reason: String,
}
