//! JSON of a show's waiting list.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::{PlaceLine, SeatLine};

/// `POST /shows/{show}/waiting-list`: joins the waiting list of a sold-out show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WaitingRequest {
    /// Number of seats or places, 1 to 10. An offer always covers all of them.
    pub quantity: u32,
    /// Address that the offer is mailed to.
    pub email: String,
    /// Category as in the plan; absent: any except wheelchair spaces and companion seats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
}

/// State of an entry in the waiting list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WaitingState {
    /// In line.
    Waiting,
    /// An offer holds seats for this entry.
    Offered,
    /// The offer was bought.
    Taken,
    /// The offer expired and went to the next entry. A new entry is needed to wait again.
    Lapsed,
    /// Booking closed before an offer was made.
    Over,
}

/// Seats offered to an entry. It is an ordinary hold and is checked out like one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OfferView {
    /// The hold.
    pub hold: Uuid,
    /// Its seats.
    pub seats: Vec<SeatLine>,
    /// Its places in areas without numbered seats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceLine>,
    /// Expiry, RFC 3339.
    pub expires_at: String,
    /// The same in milliseconds since 1970.
    pub expires_at_ms: i64,
}

/// An entry in a waiting list, for its owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WaitingView {
    /// The entry.
    pub id: Uuid,
    /// The show.
    pub show: Uuid,
    /// Number of seats or places.
    pub quantity: u32,
    /// The requested category, if any.
    pub category: Option<String>,
    /// Address that the offer is mailed to.
    pub email: String,
    /// State of the entry.
    pub state: WaitingState,
    /// Number of earlier entries that still wait. 0: the next offer goes to this entry if the quantity fits.
    pub ahead: u32,
    /// The current offer.
    pub offer: Option<OfferView>,
    /// Time of joining, RFC 3339.
    pub joined_at: String,
}
