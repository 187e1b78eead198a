//! The state of this crate's endpoints and background work.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;

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

impl AdmissionState {
    /// Shares the parts.
    #[must_use]
    pub fn new(parts: AdmissionParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for AdmissionState {
    type Target = AdmissionParts;

    fn deref(&self) -> &AdmissionParts {
        &self.0
    }
}

impl Deref for AdmissionParts {
    type Target = SeatsState;

    fn deref(&self) -> &SeatsState {
        &self.seats_state
    }
}

impl FromRef<AdmissionState> for HttpState {
    fn from_ref(state: &AdmissionState) -> Self {
        let inner: &Self = state;
        inner.clone()
    }
}

impl FromRef<AdmissionState> for IdentityState {
    fn from_ref(state: &AdmissionState) -> Self {
        let inner: &Self = state;
        inner.clone()
    }
}
