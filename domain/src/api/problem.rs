//! JSON of errors.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::seats::{AreaIndex, SeatIndex, SeatState};

/// A seat that caused the error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SeatProblem {
    /// The seat.
    pub seat: SeatIndex,
    /// Display name of the seat.
    pub label: String,
    /// State of the seat.
    pub state: SeatState,
    /// Age of the other customer's hold at the time of this request, milliseconds. Absent if it is older, or unknown to
    /// this replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_ms_ago: Option<u32>,
}

/// An area with too few free places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AreaProblem {
    /// The area.
    pub area: AreaIndex,
    /// Display name of the area.
    pub label: String,
    /// Number of free places.
    pub left: u32,
}

/// A proof-of-work puzzle to solve before seats are taken. `docs/api.md` describes the algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PuzzleView {
    /// Prefix of the solution.
    pub challenge: String,
    /// Number of leading zero bits in the SHA-256 of the solution.
    pub bits: u8,
}

/// RFC 9457 problem details: every error of the API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProblemView {
    /// Address of a page about this kind of problem.
    #[serde(rename = "type")]
    pub kind: String,
    /// Summary, the same for every occurrence.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// Explanation of this occurrence and the next step, for people.
    pub detail: String,
    /// Stable code for programs, for example `seats_taken`.
    pub code: String,
    /// The seats that caused the error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seats: Vec<SeatProblem>,
    /// The areas that caused the error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub areas: Vec<AreaProblem>,
    /// All findings about an uploaded file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<crate::layout::import::Finding>,
    /// The puzzle to solve first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub puzzle: Option<PuzzleView>,
    /// The caller's own hold that caused the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Uuid>,
    /// Id of the request in the logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}
