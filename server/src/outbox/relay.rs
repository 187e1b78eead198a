//! Does what the outbox holds.

use std::time::Duration;

use domain::time::SECOND_MS;
use futures::StreamExt;
use tokio::sync::Notify;

use super::sql::{self, Job};
use crate::{AppState, bookings, ids};

/// Looked at this often even if nobody says so: other replicas' leftovers and postponed effects.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// An effect taken by a relay that died is free for another after this long, milliseconds: longer than
/// the deadlines of everything an effect calls, with their retries.
const LEASE_MS: i64 = 60 * SECOND_MS;
/// Effects a lane takes at once and does side by side: no effect waits, taken, behind a slow one until
/// its lease is over.
const SIDE_BY_SIDE: usize = 8;
/// After this many tries a person must look.
const MAX_ATTEMPTS: i32 = 40;
/// After this many, if it is only that the gateway is away: about half a day.
const MAX_ATTEMPTS_WHILE_AWAY: i32 = 1_500;
/// First pause after a failure, milliseconds; doubles, with full jitter.
const FIRST_PAUSE_MS: u64 = 500;
/// Longest pause, milliseconds.
const LONGEST_PAUSE_MS: u64 = 60_000;

/// Effects that may hold each other up. A gateway that hangs must not keep sold seats from the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Calls to a payment gateway.
    Gateway,
    /// Everything else: the lock store, mail.
    House,
}

impl Lane {
    fn wake(self, state: &AppState) -> &Notify {
        match self {
            Self::Gateway => &state.outbox_wake.gateway,
            Self::House => &state.outbox_wake.house,
        }
    }

    const fn effects(self) -> &'static [&'static str] {
        match self {
            Self::Gateway => &["charge", "void_payment", "refund", "void_left"],
            Self::House => &["mark_booked", "release_seats", "send_ticket"],
        }
    }
}

/// Runs until the server stops; what it has taken it finishes.
pub async fn relay_forever(state: AppState, lane: Lane) {
    while !state.stop.is_cancelled() {
        let now = state.locks.now();
        match sql::take(&state.pg, lane.effects(), now, now.plus_ms(LEASE_MS), SIDE_BY_SIDE as i64).await {
            Ok(jobs) if !jobs.is_empty() => {
                futures::stream::iter(jobs).for_each_concurrent(SIDE_BY_SIDE, |job| run(&state, job)).await;
                continue;
            }
            Ok(_) => {}
            Err(cause) => tracing::warn!(%cause, "the outbox could not be read"),
        }
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = lane.wake(&state).notified() => {}
            () = tokio::time::sleep(POLL_EVERY) => {}
        }
    }
}

async fn run(state: &AppState, job: Job) {
    let noted = match bookings::perform(state, job.booking, job.effect).await {
        Ok(()) => sql::delete(&state.pg, job.id).await,
        // The map is ours to mend, however long it takes; what needs others may need a person.
        Err(cause) if is_hopeless(&job, &cause) => {
            tracing::error!(booking = %job.booking, effect = ?job.effect, %cause, "an effect of {} is parked for a person", job.booking);
            sql::park(&state.pg, job.id, &cause.to_string()).await
        }
        Err(cause) => {
            tracing::warn!(booking = %job.booking, effect = ?job.effect, attempts = job.attempts, %cause, "an effect of {} will be tried again", job.booking);
            let doubled = FIRST_PAUSE_MS << job.attempts.clamp(0, 10);
            let pause = ids::jitter(doubled.min(LONGEST_PAUSE_MS)).cast_signed();
            sql::postpone(&state.pg, job.id, state.locks.now().plus_ms(pause)).await
        }
    };
    if let Err(cause) = noted {
        // Its lease ends, and it is done again: effects may be.
        tracing::warn!(booking = %job.booking, %cause, "the outcome of an effect of {} could not be noted", job.booking);
    }
}

/// Whether a person must look. A definite no of a gateway will not become a yes.
fn is_hopeless(job: &Job, cause: &bookings::EffectError) -> bool {
    let patience = if cause.is_gateway_away() { MAX_ATTEMPTS_WHILE_AWAY } else { MAX_ATTEMPTS };
    !job.is_for_the_map() && (cause.is_definite() || job.attempts >= patience)
}
