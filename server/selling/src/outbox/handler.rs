//! The contract between the relay and the modules that perform effects.

use std::future::Future;

use domain::booking::Effect;
use uuid::Uuid;

/// Performs the effects that the relay takes. The relay calls it at least once for each committed effect, so an
/// effect performed twice must do no harm.
pub trait EffectHandler: Sync {
    /// Performs one effect of a booking.
    ///
    /// # Errors
    /// When it is not done.
    fn perform(&self, booking: Uuid, effect: Effect) -> impl Future<Output = Result<(), EffectFailure>> + Send;

    /// Performs effects of different bookings and returns their outcomes in order.
    fn perform_all(&self, effects: &[(Uuid, Effect)]) -> impl Future<Output = Vec<Result<(), EffectFailure>>> + Send;
}

/// An effect that is not done.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct EffectFailure {
    /// Its kind, which decides about retries.
    pub kind: FailureKind,
    /// The cause, shown to the person who decides about a parked effect.
    pub cause: String,
}

/// Kinds of failures, by what a retry can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// A retry may succeed.
    Temporary,
    /// A gateway or the lock store is unavailable; retries go on for longer.
    Unavailable,
    /// A gateway or the database refused; no retry changes that.
    Definite,
}
