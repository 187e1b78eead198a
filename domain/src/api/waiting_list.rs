//! The JSON of a waiting list.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::{PlaceLine, SeatLine};

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// `POST /shows/{show}/waiting-list`: wait for seats or places of a show that is sold out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WaitingRequest {
    /// How many, 1 to 10. An offer is always for all of them.
    pub quantity: u32,
    /// Where the offer is sent.
    pub email: String,
    /// Name of a category as in the plan; without one, any but wheelchair spaces and companion seats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
}

/// How somebody's waiting stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WaitingState {
    /// In line.
    Waiting,
    /// Seats are held for them.
    Offered,
    /// They bought what was offered.
    Taken,
    /// The offer ran out; it went to the next. Whoever still wants to come joins again.
    Lapsed,
    /// Booking closed before their turn came.
    Over,
}

/// What is held for somebody in line. It is a hold of theirs: check out as with any other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct OfferView {
    /// The hold.
    pub hold: Uuid,
    /// Its seats.
    pub seats: Vec<SeatLine>,
    /// Its places in areas without numbered seats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceLine>,
    /// Until when, RFC 3339.
    pub expires_at: String,
    /// The same in milliseconds since 1970.
    pub expires_at_ms: i64,
}

/// Somebody's place in a waiting list, as they see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct WaitingView {
    /// The entry.
    pub id: Uuid,
    /// The show.
    pub show: Uuid,
    /// How many seats or places.
    pub quantity: u32,
    /// Of which category, if they named one.
    pub category: Option<String>,
    /// Where the offer is sent.
    pub email: String,
    /// How it stands.
    pub state: WaitingState,
    /// How many joined before them and still wait. Zero: they are next, if their quantity fits.
    pub ahead: u32,
    /// What is held for them now.
    pub offer: Option<OfferView>,
    /// When they joined, RFC 3339.
    pub joined_at: String,
}
