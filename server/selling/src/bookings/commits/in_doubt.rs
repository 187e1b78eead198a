//! Payments of which nobody here knows whether they were written down: Postgres was cut off while it did.
//!
//! Whoever asked is told that it may be tried again, and nobody goes on with the payment. Was it written, the outbox has its
//! charge, with the head start of the replica that would have asked for it: that is given up as soon as Postgres answers.

use std::time::Duration;

use domain::booking::Effect;
use uuid::Uuid;

use super::{Piece, Work};
use crate::{SellingState, outbox};
use platform::ids;

/// Postgres is asked so often; after that the relay waits for the end of the head start.
const TRIES: u32 = 6;
/// A question may take this long.
const WITHIN: Duration = Duration::from_secs(3);
/// First pause, milliseconds; doubles, with full jitter.
const FIRST_PAUSE_MS: u64 = 500;

/// Leaves the charges of these pieces to the relay.
pub(super) fn leave_to_the_relay(state: &SellingState, pieces: &[Piece]) {
    let bookings: Vec<Uuid> = pieces.iter().filter_map(|piece| charged_for(&piece.work)).collect();
    if bookings.is_empty() {
        return;
    }
    let state = state.clone();
    let tasks = state.tasks.clone();
    // Boxed: as elsewhere, what may connect to Postgres is kilobytes.
    tasks.spawn(Box::pin(async move {
        for attempt in 0..TRIES {
            let pause = Duration::from_millis(ids::jitter(FIRST_PAUSE_MS << attempt));
            if state.stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
            let left = outbox::due_now(&state, &bookings, Effect::Charge);
            if let Ok(Ok(())) = tokio::time::timeout(WITHIN, left).await {
                return;
            }
        }
        tracing::debug!(payments = bookings.len(), "the relay asks for charges when their head start is over");
    }));
}

/// The booking it would charge for, or did: the gateway's answer is lost with it, and is asked for again.
const fn charged_for(work: &Work) -> Option<Uuid> {
    match work {
        Work::Submit(submission) => Some(submission.booking),
        Work::Learn(lesson) => Some(lesson.booking),
        // The gateway says it again.
        Work::Create(_) | Work::Hear(_) => None,
    }
}
