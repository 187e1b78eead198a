//! JSON of a screen's house seats, which every show planned there starts with.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::seats::SeatIndex;

/// `POST /theatres/{theatre}/screens/{screen}/house-seats`: adds or removes house seats for shows planned from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StandingRequest))]
#[serde(deny_unknown_fields)]
pub struct ScreenHouseSeatsRequest {
    /// The screen's current room, in which the seats were chosen.
    pub layout: Uuid,
    /// Names of the seats, `C7`.
    pub seats: Vec<String>,
    /// True adds them, false removes them.
    pub kept: bool,
    /// The reason in one line: `House`, `Press`.
    pub reason: String,
}

/// House seats of a screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StandingSeats))]
pub struct ScreenHouseSeats {
    /// The screen.
    pub screen: String,
    /// Display name.
    pub name: String,
    /// The screen's current room.
    pub layout: Uuid,
    /// House seats of this room, in seat order.
    pub seats: Vec<ScreenHouseSeatView>,
    /// House seats of the previous room that this room lacks. No show keeps them.
    pub gone: Vec<ScreenHouseSeatView>,
}

/// One house seat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StandingSeat))]
pub struct ScreenHouseSeatView {
    /// Name of the seat, unique in the room.
    pub label: String,
    /// Index of the seat in the room; `None` if the room lacks it.
    pub seat: Option<SeatIndex>,
    /// The reason given.
    pub reason: String,
    /// The member of staff who added it.
    pub by: String,
}
