//! JSON of holds and of seat suggestions.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::{PlaceLine, SeatLine};
use crate::best_available::Adjacency;
use crate::money::Money;
use crate::pricing::Breakdown;
use crate::seats::{AreaIndex, SeatIndex};

/// `POST /shows/{id}/holds`: holds 1 to 10 seats and places in total, all or none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({ "seats": [46, 47] })))]
#[serde(deny_unknown_fields)]
pub struct HoldRequest {
    /// Seat indices, each once.
    #[cfg_attr(feature = "openapi", schema(max_items = 10))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seats: Vec<SeatIndex>,
    /// An area without numbered seats; requires `quantity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub area: Option<AreaIndex>,
    /// Number of places in `area`.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<u32>,
}

/// A number of places in an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AreaQuantity {
    /// The area.
    pub area: AreaIndex,
    /// Number of places, at least 1.
    pub quantity: u32,
}

/// `PATCH /shows/{show}/holds/{hold}`: adds and releases seats in one step. The expiry stays the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HoldChange {
    /// Seats to add.
    #[serde(default)]
    pub add: Vec<SeatIndex>,
    /// Seats to release.
    #[serde(default)]
    pub remove: Vec<SeatIndex>,
    /// Places to add, each area once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_places: Vec<AreaQuantity>,
    /// Places to release, each area once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_places: Vec<AreaQuantity>,
}

/// An active hold, for its owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldView {
    /// The hold.
    pub id: Uuid,
    /// Its show.
    pub show: Uuid,
    /// Its seats in seat order.
    pub seats: Vec<SeatLine>,
    /// Its places in areas without numbered seats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceLine>,
    /// Sum of the prices.
    pub total: Money,
    /// The parts of the total. Absent only from servers of the previous version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
    /// Expiry on the lock store's clock, RFC 3339.
    pub expires_at: String,
    /// The same in milliseconds since 1970.
    pub expires_at_ms: i64,
    /// Latest expiry that extensions can reach, milliseconds since 1970. Equal to `expires_at_ms` if the hold cannot be
    /// extended.
    pub latest_ms: i64,
    /// True while a payment is in progress. The hold then cannot be changed or shortened.
    pub paying: bool,
    /// The booking made from the hold, if any.
    pub booking: Option<Uuid>,
}

/// `GET /shows/{show}/best`: the best free seats in one version of the map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BestView {
    /// Epoch of the map.
    pub epoch: u64,
    /// Version of the map.
    pub version: u64,
    /// Suggestions without a common seat, best first. Empty if fewer seats are free than requested.
    pub suggestions: Vec<SuggestionView>,
}

/// A suggested group of seats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SuggestionView {
    /// The seats in seat order.
    pub seats: Vec<SeatLine>,
    /// Sum of the prices.
    pub total: Money,
    /// Adjacency of the seats.
    pub together: Adjacency,
    /// Number of single free seats that it would leave between taken seats.
    pub orphans: u32,
}
