//! Seats of a screen that the house keeps in every show planned there.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::seats::SeatIndex;

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// `POST /theatres/{theatre}/screens/{screen}/house-seats`: seats are kept from now on, or are not any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StandingRequest {
    /// The room they were chosen in: the screen's own.
    pub layout: Uuid,
    /// Their names, `C7`.
    pub seats: Vec<String>,
    /// Whether the house keeps them.
    pub kept: bool,
    /// Why, in one line: `House`, `Press`.
    pub reason: String,
}

/// The seats a screen keeps for the house in every show planned there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct StandingSeats {
    /// The screen.
    pub screen: String,
    /// Its name for people.
    pub name: String,
    /// Its room.
    pub layout: Uuid,
    /// Those of this room, in their order.
    pub seats: Vec<StandingSeat>,
    /// Those of the room before that this one has not: no show keeps them.
    pub gone: Vec<StandingSeat>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct StandingSeat {
    /// Its name, unique in the room.
    pub label: String,
    /// Its number in the room; none where the room has no such seat.
    pub seat: Option<SeatIndex>,
    /// Why.
    pub reason: String,
    /// Who said so.
    pub by: String,
}
