//! JSON of what went wrong.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::seats::{AreaIndex, SeatIndex, SeatState};

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// A seat that stood in the way, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SeatProblem {
    /// The seat.
    pub seat: SeatIndex,
    /// Its name for people.
    pub label: String,
    /// Why it could not be had.
    pub state: SeatState,
    /// How long before this request somebody else took it, milliseconds; absent when that was not just now, or
    /// not seen here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_ms_ago: Option<u32>,
}

/// An area with too few places left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct AreaProblem {
    /// The area.
    pub area: AreaIndex,
    /// Its name for people.
    pub label: String,
    /// How many places it has left.
    pub left: u32,
}

/// A puzzle that is to be solved before seats are taken; docs/api.md says how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct PuzzleView {
    /// What a solution begins with.
    pub challenge: String,
    /// Zero bits that the SHA-256 of a solution begins with.
    pub bits: u8,
}

/// RFC 9457 problem details: every error of the API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ProblemView {
    /// A page about this kind of problem.
    #[serde(rename = "type")]
    pub kind: String,
    /// What happened, the same for every occurrence.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// What happened this time and what to do, for a person.
    pub detail: String,
    /// Stable name for programs, for example `seats_taken`.
    pub code: String,
    /// The seats meant, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seats: Vec<SeatProblem>,
    /// The areas meant, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub areas: Vec<AreaProblem>,
    /// Everything that is wrong with a file, if one was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<crate::layout::import::Finding>,
    /// What is to be solved first, where that is what stood in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub puzzle: Option<PuzzleView>,
    /// The caller's own hold, when it is what stood in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Uuid>,
    /// Finds this occurrence in the logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}
