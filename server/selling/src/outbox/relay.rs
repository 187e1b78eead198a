//! Performs the effects in the outbox.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use domain::VariantName;
use domain::booking::Effect;
use domain::time::SECOND_MS;
use futures::{FutureExt, StreamExt};
use tokio::sync::Notify;

use super::sql::{self, Job};
use super::{EffectFailure, EffectHandler, FailureKind};
use crate::SellingState;
use platform::background::wait_for_wake;
use platform::ids;

/// Poll interval without a wake: finds postponed effects and those left by other replicas.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// Pause of lanes that batch effects, after they have emptied the queue.
const GATHER: Duration = Duration::from_millis(25);
/// Lease of an effect, milliseconds: longer than the deadlines of everything it calls, with
/// their retries. After it another relay may take the effect.
const LEASE_MS: i64 = 60 * SECOND_MS;
/// Maximum gateway calls leased at once and performed concurrently: no call waits behind a slow one until its lease
/// expires.
const MAX_CONCURRENT_GATEWAY_CALLS: usize = 8;
/// Maximum map effects leased at once. The lock store gets many of them in one call.
const MAX_LEASED_MAP_EFFECTS: usize = 128;
/// Maximum mails leased at once.
const MAX_LEASED_MAILS: usize = 16;
/// Lease of a mail, milliseconds: the leased mails are sent in two rounds, and each round may take its deadline.
const MAIL_LEASE_MS: i64 = 45 * SECOND_MS;
/// Attempts after which an effect is parked. With the pauses below that is an hour and a half on average:
/// a gateway outage of twenty minutes parks nothing.
const MAX_ATTEMPTS: i32 = 200;
/// Attempts during an outage: of a gateway or the lock store about half a day, of the mail server about three days.
const MAX_ATTEMPTS_DURING_OUTAGE: i32 = 9_000;
/// Attempts at a mail whose mailbox is refused, a minute and a half on average: a mail server rarely accepts it later,
/// and may block a sender who does not stop.
const MAX_ATTEMPTS_AT_REFUSED_MAILBOX: i32 = 10;
/// First pause after a failure, milliseconds; doubles, with full jitter.
const FIRST_PAUSE_MS: u64 = 500;
/// Maximum pause, milliseconds.
const LONGEST_PAUSE_MS: u64 = 60_000;
/// Maximum pause while a gateway or the lock store is unavailable: its circuit breaker fails calls at once, so a
/// shorter pause is cheap, and work resumes soon after recovery. Mails have no circuit breaker.
const LONGEST_OUTAGE_PAUSE_MS: u64 = 10_000;

/// Groups of effects that may delay each other. A gateway or a mail server that hangs must not keep sold seats from
/// the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Calls to a payment gateway.
    Gateway,
    /// The lock store, and seats for late money.
    Map,
    /// Mails.
    Mail,
}

impl Lane {
    /// All lanes.
    pub const ALL: [Self; 3] = [Self::Gateway, Self::Map, Self::Mail];

    pub(super) fn of(effect: Effect) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.effects().contains(&effect.as_str()))
    }

    pub(super) fn wake(self, state: &SellingState) -> &Notify {
        match self {
            Self::Gateway => &state.outbox_wake.gateway,
            Self::Map => &state.outbox_wake.map,
            Self::Mail => &state.outbox_wake.mail,
        }
    }

    pub(super) const fn effects(self) -> &'static [&'static str] {
        match self {
            Self::Gateway => &["charge", "void_payment", "refund", "refund_part", "void_left"],
            Self::Map => &["mark_booked", "release_seats", "release_part", "place_late"],
            Self::Mail => &["send_ticket", "send_notice"],
        }
    }

    const fn lease_ms(self) -> i64 {
        match self {
            Self::Gateway | Self::Map => LEASE_MS,
            Self::Mail => MAIL_LEASE_MS,
        }
    }

    /// Returns the maximum number of effects that the lane leases at once.
    const fn max_leased(self) -> usize {
        match self {
            Self::Gateway => MAX_CONCURRENT_GATEWAY_CALLS,
            Self::Map => MAX_LEASED_MAP_EFFECTS,
            Self::Mail => MAX_LEASED_MAILS,
        }
    }
}

/// Runs until the server stops; leased effects are finished first.
pub async fn relay_forever(state: SellingState, handler: impl EffectHandler, lane: Lane) {
    while !state.stop.is_cancelled() {
        let now = state.clock.now();
        match sql::take(&state.pg, lane.effects(), now, now.plus_ms(lane.lease_ms()), lane.max_leased() as i64).await {
            Ok(jobs) if !jobs.is_empty() => {
                match lane {
                    Lane::Gateway => {
                        let each = futures::stream::iter(jobs);
                        each.for_each_concurrent(MAX_CONCURRENT_GATEWAY_CALLS, |job| run(&state, &handler, job)).await;
                    }
                    Lane::Map | Lane::Mail => {
                        let has_emptied_queue = jobs.len() < lane.max_leased();
                        run_batch(&state, &handler, lane, jobs).await;
                        if has_emptied_queue {
                            // A larger batch costs less than another query: more effects arrive during the pause.
                            tokio::time::sleep(GATHER).await;
                        }
                    }
                }
                continue;
            }
            Ok(_) => {}
            Err(cause) => tracing::warn!(%cause, "read the outbox failed"),
        }
        if !wait_for_wake(&state.stop, lane.wake(&state), POLL_EVERY).await {
            return;
        }
    }
}

/// Performs effects in one call of the handler, and records each outcome.
async fn run_batch(state: &SellingState, handler: &impl EffectHandler, lane: Lane, jobs: Vec<Job>) {
    let wanted: Vec<_> = jobs.iter().map(|job| (job.booking, job.effect)).collect();
    let Ok(outcomes) = AssertUnwindSafe(handler.perform_all(&wanted)).catch_unwind().await else {
        tracing::error!(effects = jobs.len(), "a batch of effects panicked; they are retried when their lease expires");
        return;
    };
    assert_eq!(outcomes.len(), jobs.len(), "one outcome per effect");
    let mut done = Vec::new();
    for (job, outcome) in jobs.iter().zip(outcomes) {
        match outcome {
            Ok(()) => done.push(job),
            Err(cause) => record_failure(state, job, &cause).await,
        }
    }
    if let Err(cause) = sql::delete(&state.pg, &done).await {
        // Their lease expires, and they are repeated: effects are idempotent.
        tracing::warn!(%cause, effects = done.len(), "record the outcome of effects failed");
    } else if lane == Lane::Map {
        // Effects that waited for these, for example mails, may be due now.
        super::wake(state);
    }
}

async fn run(state: &SellingState, handler: &impl EffectHandler, job: Job) {
    // A panic is a bug in one effect; the lane continues with the others, and retries this one later.
    let performed = AssertUnwindSafe(handler.perform(job.booking, job.effect)).catch_unwind().await;
    let Ok(performed) = performed else {
        tracing::error!(booking = %job.booking, effect = ?job.effect, "an effect of {} panicked; it is retried when its lease expires", job.booking);
        return;
    };
    match performed {
        Ok(()) => {
            if let Err(cause) = sql::delete(&state.pg, &[&job]).await {
                // Its lease expires, and it is repeated: effects are idempotent.
                tracing::warn!(booking = %job.booking, %cause, "record the outcome of an effect of {} failed", job.booking);
            }
        }
        Err(cause) => record_failure(state, &job, &cause).await,
    }
}

/// Schedules a retry of a failed effect, or parks it.
async fn record_failure(state: &SellingState, job: &Job, failure: &EffectFailure) {
    let recorded = if must_park(job, failure.kind) {
        tracing::error!(booking = %job.booking, effect = ?job.effect, cause = %failure, "an effect of {} is parked for a person", job.booking);
        sql::park_job(&state.pg, job, &failure.cause).await
    } else {
        tracing::warn!(booking = %job.booking, effect = ?job.effect, attempts = job.attempts, cause = %failure, "an effect of {} failed and is retried", job.booking);
        let is_mail = Lane::of(job.effect) == Some(Lane::Mail);
        let longest = match failure.kind {
            FailureKind::Unavailable if !is_mail => LONGEST_OUTAGE_PAUSE_MS,
            _ => LONGEST_PAUSE_MS,
        };
        let pause = ids::backoff_ms(FIRST_PAUSE_MS, job.attempts, longest);
        sql::postpone(&state.pg, job, state.clock.now().plus_ms(pause)).await
    };
    if let Err(cause) = recorded {
        tracing::warn!(booking = %job.booking, %cause, "record the failure of an effect of {} failed", job.booking);
    }
}

/// Returns true if the effect must be parked. Map updates need only our own stores and are retried without limit.
fn must_park(job: &Job, kind: FailureKind) -> bool {
    let must_stop = match kind {
        FailureKind::Definite => true,
        FailureKind::Unavailable => job.attempts >= MAX_ATTEMPTS_DURING_OUTAGE,
        FailureKind::MailboxRefused => job.attempts >= MAX_ATTEMPTS_AT_REFUSED_MAILBOX,
        FailureKind::Temporary => job.attempts >= MAX_ATTEMPTS,
    };
    must_stop && !job.is_map_update()
}
