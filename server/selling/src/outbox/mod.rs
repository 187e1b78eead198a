//! Effects of committed steps, performed at least once, in order within a booking.
//!
//! A step writes its effects here in its own transaction ([`enqueue`]); the relay on every replica performs
//! them and deletes the rows. A failed effect is retried with full jitter, then parked for a person
//! ([`parked`]). An [`EffectHandler`] performs them.

mod parked;
mod relay;
mod sql;

use std::future::Future;

use domain::booking::Effect;
use tokio::sync::Notify;
use uuid::Uuid;

pub use parked::{
    MAX_LISTED, ParkedEffect, count_parked, parked, parked_counts, parked_effect, parked_mails, parked_refunds, retry,
    settle, unpark_refund, with_parked_refund,
};
pub use relay::{Lane, relay_forever};
pub use sql::{add_enqueued, add_removal, contains_effect, enqueue, is_buyer_mailed, mark_buyer_mailed, park, remove};

/// Wakes the relay's lanes; a wake during a busy round is kept.
#[derive(Default)]
pub struct Wake {
    gateway: Notify,
    map: Notify,
    mail: Notify,
}

/// Wakes the relay after a commit; without this it polls every half second.
pub fn wake(state: &crate::SellingState) {
    state.outbox_wake.gateway.notify_one();
    state.outbox_wake.map.notify_one();
    state.outbox_wake.mail.notify_one();
}

/// Removes effects of many bookings that were performed outside the relay, all of them or none.
///
/// # Errors
/// When the database fails; the effects will be repeated.
pub async fn remove_all(state: &crate::SellingState, bookings: &[Uuid], effects: &[Effect]) -> sqlx::Result<()> {
    if bookings.is_empty() {
        return Ok(());
    }
    let mut tx = state.pg.begin_with(sql::BEGIN_INDEX_SCANS_ASYNC_COMMIT).await?;
    sql::delete_all(&mut tx, bookings, effects).await?;
    tx.commit().await
}

/// Makes an effect of many bookings due for the relay at once, because it failed outside it.
///
/// # Errors
/// When the database fails; the relay performs them when their head start is over.
pub async fn make_due(state: &crate::SellingState, bookings: &[Uuid], effect: Effect) -> sqlx::Result<()> {
    if bookings.is_empty() {
        return Ok(());
    }
    let mut tx = state.pg.begin_with(sql::BEGIN_INDEX_SCANS).await?;
    sql::make_due(&mut tx, bookings, effect, state.clock.now()).await?;
    tx.commit().await?;
    if let Some(lane) = Lane::of(effect) {
        lane.wake(state).notify_one();
    }
    Ok(())
}

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
    /// A gateway, the lock store or the mail server is unavailable; it is retried for longer.
    Unavailable,
    /// The mail server refused the mailbox; a retry rarely changes that.
    MailboxRefused,
    /// A gateway or the database refused, or a mail cannot be written; no retry changes that.
    Definite,
}
