//! The JSON of holds, and of seats worth holding.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::{PlaceLine, SeatLine};
use crate::best_available::Together;
use crate::money::Money;
use crate::seats::{AreaIndex, SeatIndex};

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// `POST /shows/{id}/holds`: 1 to 10 seats and places in all, all or none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = json!({ "seats": [46, 47] })))]
#[serde(deny_unknown_fields)]
pub struct HoldRequest {
    /// Seat indices, each once.
    #[cfg_attr(feature = "openapi", schema(max_items = 10))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seats: Vec<SeatIndex>,
    /// An area without numbered seats; with `quantity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub area: Option<AreaIndex>,
    /// How many places in `area`.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<u32>,
}

/// So many places in an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AreaQuantity {
    /// The area.
    pub area: AreaIndex,
    /// How many; at least one.
    pub quantity: u32,
}

/// `PATCH /shows/{show}/holds/{hold}`: seats to add and to let go, in one step. Never moves the expiry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HoldChange {
    /// Seats to take as well.
    #[serde(default)]
    pub add: Vec<SeatIndex>,
    /// Seats to let go.
    #[serde(default)]
    pub remove: Vec<SeatIndex>,
    /// Places to take as well, each area once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_places: Vec<AreaQuantity>,
    /// Places to let go, each area once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_places: Vec<AreaQuantity>,
}

/// A live hold, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct HoldView {
    /// The hold.
    pub id: Uuid,
    /// Its show.
    pub show: Uuid,
    /// Its seats in the order of the room.
    pub seats: Vec<SeatLine>,
    /// Its places in areas without numbered seats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceLine>,
    /// Sum of the prices.
    pub total: Money,
    /// When it ends, on the lock store's clock, RFC 3339.
    pub expires_at: String,
    /// The same instant in milliseconds since 1970.
    pub expires_at_ms: i64,
    /// No extension goes beyond this instant, milliseconds since 1970; equal to `expires_at_ms` when there
    /// is none to be had.
    pub latest_ms: i64,
    /// Whether a payment is in progress: then it is neither changed nor shortened.
    pub paying: bool,
    /// The booking made from it, once there is one.
    pub booking: Option<Uuid>,
}

/// `GET /shows/{show}/best`: the best seats that were free at one version of the map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct BestView {
    /// Epoch of the map that was asked.
    pub epoch: u64,
    /// Its version.
    pub version: u64,
    /// The best first; they have no seat in common. Empty: fewer seats than wished for are free.
    pub suggestions: Vec<SuggestionView>,
}

/// Seats worth taking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SuggestionView {
    /// The seats in the order of the room.
    pub seats: Vec<SeatLine>,
    /// Sum of the prices.
    pub total: Money,
    /// How close they are to each other.
    pub together: Together,
    /// Single free seats it would leave between strangers.
    pub orphans: u32,
}
