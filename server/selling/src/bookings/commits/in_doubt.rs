//! In-doubt payments: the connection to Postgres failed during the commit.
//!
//! The buyer is asked to retry, and this replica stops processing the payment. If it was committed, the outbox has its
//! charge, delayed by the head start of this replica. The head start is cancelled as soon as Postgres answers.

use std::time::Duration;

use domain::booking::Effect;
use uuid::Uuid;

use super::{Piece, Work};
use crate::{SellingState, outbox};
use platform::ids;

/// Attempts to reach Postgres; after them the relay waits for the end of the head start.
const TRIES: u32 = 6;
/// Timeout of one attempt.
const WITHIN: Duration = Duration::from_secs(3);
/// First pause, milliseconds; doubles, with full jitter.
const FIRST_PAUSE_MS: u64 = 500;

/// Makes the charges of these pieces due for the relay.
pub(super) fn leave_to_the_relay(state: &SellingState, pieces: &[Piece]) {
    let bookings: Vec<Uuid> = pieces.iter().filter_map(|piece| charged_for(&piece.work)).collect();
    if bookings.is_empty() {
        return;
    }
    let state = state.clone();
    let tasks = state.tasks.clone();
    // Boxed: a future that may connect to Postgres is kilobytes.
    tasks.spawn(Box::pin(async move {
        for attempt in 0..TRIES {
            let pause = Duration::from_millis(ids::jitter(FIRST_PAUSE_MS << attempt));
            if state.stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
            let left = outbox::make_due(&state, &bookings, Effect::Charge);
            if let Ok(Ok(())) = tokio::time::timeout(WITHIN, left).await {
                return;
            }
        }
        tracing::debug!(payments = bookings.len(), "the relay charges when the head start ends");
    }));
}

/// Returns the booking of a charge that may be pending. A lost gateway answer is requested again.
const fn charged_for(work: &Work) -> Option<Uuid> {
    match work {
        Work::Submit(submission) => Some(submission.booking),
        Work::RecordChargeOutcome(charge) => Some(charge.booking),
        // The gateway repeats its webhook.
        Work::Create(_) | Work::ApplyWebhook(_) => None,
    }
}
