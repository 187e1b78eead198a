//! JSON of moving a show to another screen, for its organiser and for buyers with a seat offer.

use serde::{Deserialize, Serialize};
use strum::EnumString;
use uuid::Uuid;

/// `GET …/programme/{show}/move`: previews a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct MoveQuery {
    /// Slug of the target screen in the same theatre.
    pub screen: String,
}

/// The new start of a draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DraftStart {
    /// Start in the theatre's time zone, `2026-12-07T20:15`.
    pub at: String,
    /// Version of the show that the move was made from.
    pub version: u32,
}

/// `POST …/programme/{show}/move`: moves the show to another screen, or a draft to another start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    /// Slug of the target screen in the same theatre. With a start it may be the screen of the show, or empty for that.
    pub screen: String,
    /// New start, for drafts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<DraftStart>,
    /// Version of the show in the preview. The move is refused if it has another one now. Not used with a start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Layout of the target screen in the preview. The move is refused if the screen has another one now. Not used with
    /// a start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Uuid>,
    /// The reason in one line. Buyers read it.
    pub reason: String,
}

/// Number of bookings and of their seats and places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MoveCount {
    /// Number of bookings.
    pub bookings: u32,
    /// Number of their seats and places.
    pub seats: u32,
}

/// A booking that would not keep its places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MoveLine {
    /// Reference of the booking.
    pub reference: String,
    /// Its current places.
    pub before: Vec<String>,
    /// Places that it would be offered; empty: it would be refunded.
    pub after: Vec<String>,
}

/// Effects of a move, computed from the current bookings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MovePreview {
    /// Slug of the target screen.
    pub screen: String,
    /// Name of the target screen.
    pub screen_name: String,
    /// Version of the show.
    pub version: u32,
    /// Layout of the target screen.
    pub layout: Uuid,
    /// Number of seats and places there.
    pub seats: u32,
    /// Bookings that keep the same places.
    pub same: MoveCount,
    /// Bookings that would be offered other places that are no worse.
    pub offered: MoveCount,
    /// Bookings without suitable places. They would be refunded.
    pub refunded: MoveCount,
    /// Bookings with an open payment. They end before the move.
    pub open: u32,
    /// House seats without a counterpart in the target room. The house would lose them.
    pub house_seats_lost: u32,
    /// The first bookings that would not keep their places.
    pub lines: Vec<MoveLine>,
    /// Number of further such bookings.
    pub more: u32,
    /// Deadline for buyers' answers in the theatre's time zone: `2026-12-01T10:00:00`.
    pub answer_until: String,
}

/// State of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumString)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MoveState {
    /// New payments are refused; open payments end.
    Closing,
    /// Bookings have moved; sales resume shortly.
    Carried,
    /// The move is complete.
    Done,
    /// The move was cancelled before bookings moved.
    Dropped,
}

/// The last move of a show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MoveView {
    /// Name of the original screen.
    pub from: String,
    /// Name of the target screen.
    pub to: String,
    /// The reason that buyers are given.
    pub reason: String,
    /// State of the move.
    pub state: MoveState,
    /// Bookings that kept the same places.
    pub same: u32,
    /// Bookings that were offered other places.
    pub offered: u32,
    /// Offers without an answer so far.
    pub unanswered: u32,
    /// Bookings without suitable places.
    pub refunded: u32,
    /// Deadline for buyers' answers in the theatre's time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_until: Option<String>,
}

/// Offer of other places after a show has moved. The booking owns them until the buyer answers or the deadline passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SeatOffer {
    /// Name of the original screen.
    pub from: String,
    /// Name of the new screen.
    pub to: String,
    /// The theatre's reason.
    pub reason: String,
    /// Original places of the booking.
    pub before: Vec<String>,
    /// Offered places.
    pub after: Vec<String>,
    /// Deadline, milliseconds since 1970. After it the booking is refunded.
    pub until_ms: i64,
    /// The same in the theatre's time zone: `2026-12-01T10:00:00`.
    pub until_local: String,
}

/// `POST /bookings/{booking}/seat-offer`: answers a seat offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SeatOfferAnswer {
    /// True accepts the places. False refunds the booking in full.
    pub take: bool,
}
