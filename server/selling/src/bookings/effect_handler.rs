//! Bookings as the handler of the outbox's effects.

use domain::booking::Effect;
use uuid::Uuid;

use super::effect_batches::perform_all;
use super::effects::{EffectError, perform};
use crate::SellingState;
use crate::outbox::{EffectFailure, EffectHandler, FailureKind};

/// Performs the effects of bookings for the relay.
#[derive(Clone)]
pub struct BookingEffects {
    state: SellingState,
}

impl BookingEffects {
    /// Makes the handler.
    #[must_use]
    pub const fn new(state: SellingState) -> Self {
        Self { state }
    }
}

impl EffectHandler for BookingEffects {
    async fn perform(&self, booking: Uuid, effect: Effect) -> Result<(), EffectFailure> {
        Ok(perform(&self.state, booking, effect).await?)
    }

    async fn perform_all(&self, effects: &[(Uuid, Effect)]) -> Vec<Result<(), EffectFailure>> {
        let outcomes = perform_all(&self.state, effects).await;
        outcomes.into_iter().map(|outcome| outcome.map_err(EffectFailure::from)).collect()
    }
}

impl From<EffectError> for EffectFailure {
    fn from(error: EffectError) -> Self {
        let kind = if error.is_definite() {
            FailureKind::Definite
        } else if error.is_gateway_away() || error.is_lock_store_away() {
            FailureKind::Unavailable
        } else {
            FailureKind::Temporary
        };
        Self { kind, cause: error.to_string() }
    }
}
