//! The state of this crate's endpoints and background work.

use std::sync::Arc;

use crate::AdmissionSettings;
use crate::fairness::Fairness;
use crate::puzzles::Puzzles;
use crate::waiting_room::Rooms;
use http::HttpState;
use identity::IdentityState;
use seats::SeatsState;

/// State of this crate: seats and admission. Cheap to clone.
#[derive(Clone)]
pub struct AdmissionState(Arc<AdmissionParts>);

/// The parts of [`AdmissionState`].
pub struct AdmissionParts {
    /// The state of the crate above.
    pub seats_state: SeatsState,
    /// Shows that are entered through a waiting room.
    pub waiting_rooms: Rooms,
    /// Proof of work in front of seats in demand.
    pub puzzles: Puzzles,
    /// Limits on attempts for seats, and flags of unusual visitors.
    pub fairness: Fairness,
    /// Settings of this crate.
    pub admission_settings: AdmissionSettings,
}

platform::shared_state!(AdmissionState(AdmissionParts), seats_state: SeatsState, HttpState, IdentityState);
