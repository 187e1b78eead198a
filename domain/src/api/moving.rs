//! JSON of a show that is moved to another screen: for its organiser, and for buyers who are offered other seats.

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

/// `GET …/programme/{show}/move`: to which screen it would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct MoveQuery {
    /// The screen, of the same theatre.
    pub screen: String,
}

/// `POST …/programme/{show}/move`: it takes place on another screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    /// The screen, of the same theatre.
    pub screen: String,
    /// Why, in one line: buyers are told.
    pub reason: String,
}

/// Bookings, and how many seats and places they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct MoveCount {
    /// Bookings.
    pub bookings: u32,
    /// Their seats and places.
    pub seats: u32,
}

/// A booking that would not keep its places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct MoveLine {
    /// Its name for people.
    pub reference: String,
    /// Its places now.
    pub before: Vec<String>,
    /// Those it would be offered; none: its money goes back.
    pub after: Vec<String>,
}

/// What a move would mean, as things stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct MovePreview {
    /// Slug of the screen it would be on.
    pub screen: String,
    /// Its name.
    pub screen_name: String,
    /// Seats and places there.
    pub seats: u32,
    /// Those who find the same places.
    pub same: MoveCount,
    /// Those who would be offered others that are no worse.
    pub offered: MoveCount,
    /// Those there is no place for: their money goes back.
    pub refunded: MoveCount,
    /// Bookings between their checkout and their payment: they end first.
    pub open: u32,
    /// House seats that have no like there, and would be the house's no more.
    pub house_seats_lost: u32,
    /// Who would not keep their places; the first of them.
    pub lines: Vec<MoveLine>,
    /// How many more there are.
    pub more: u32,
    /// Until when they could answer, on the clocks of the theatre: `2026-12-01T10:00:00`.
    pub answer_until: String,
}

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MoveState {
    /// Nobody begins to pay any more; open payments end.
    Closing,
    /// Everybody sits there; sales go on in a moment.
    Carried,
    /// It is done.
    Done,
    /// It was called off before it was moved.
    Dropped,
}

impl MoveState {
    /// Reads what SQL and JSON spell.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "closing" => Some(Self::Closing),
            "carried" => Some(Self::Carried),
            "done" => Some(Self::Done),
            "dropped" => Some(Self::Dropped),
            _ => None,
        }
    }
}

/// The last move of a show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct MoveView {
    /// Name of the screen it was on.
    pub from: String,
    /// Name of the screen it is on, or will be in a moment.
    pub to: String,
    /// Why, as buyers are told.
    pub reason: String,
    /// How far it is.
    pub state: MoveState,
    /// Bookings that found the same places.
    pub same: u32,
    /// Bookings that were offered others.
    pub offered: u32,
    /// Of those, how many have not answered.
    pub unanswered: u32,
    /// Bookings there was no place for.
    pub refunded: u32,
    /// Until when buyers may answer, on the clocks of the theatre.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_until: Option<String>,
}

/// Other places that a buyer may take or leave, because the show was moved. They are the booking's own meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SeatOffer {
    /// The screen it was on.
    pub from: String,
    /// The screen it is on.
    pub to: String,
    /// Why, as the theatre says.
    pub reason: String,
    /// The places it had.
    pub before: Vec<String>,
    /// The places it may have.
    pub after: Vec<String>,
    /// Until when, milliseconds since 1970. Then the money goes back.
    pub until_ms: i64,
    /// The same on the clocks of the theatre: `2026-12-01T10:00:00`.
    pub until_local: String,
}

/// `POST /bookings/{booking}/seat-offer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SeatOfferAnswer {
    /// Whether they take the places; else all of their money goes back.
    pub take: bool,
}
