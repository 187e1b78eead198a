//! The commit pipeline: concurrent purchases are committed in one transaction.
//!
//! A sale passes it three times (checkout, submission, payment), or twice where the first two are one request. Each
//! piece of work waits up to two milliseconds for others; one that is alone is a batch of one. The batch locks its
//! bookings in one statement and reads in the next (`load`). Each piece is planned by the pure step of
//! `domain::booking` (`plan`), and all are written in another statement (`flush`), with arrays in key order
//! so that batches queue instead of deadlocking. A durable commit, and each round trip to Postgres, is then paid once
//! for many: `synchronous_commit` stays on for sales; only removals from the outbox do not wait for the disk.
//!
//! A failing piece does not fail its batch. A piece that needs more than the plan has, or whose claim or key belongs
//! to another, is committed in its own transaction by the single-booking functions of `moves` and `claims`, as rarer
//! moves (cancelling, the reconciler, the counter) are; the batch continues without it (`run`).

mod after_sale;
mod flush;
mod load;
mod lock_requests;
mod lookups;
mod plan;
mod run;
mod turns;

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use domain::api::cancelling::LatePaymentHandling;
use domain::booking::BookingState;
use domain::time::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::{Instrument, Span};
use uuid::Uuid;

use self::after_sale::SoldBooking;
use self::lock_requests::LockRequest;
use self::lookups::{Lookup, RecordLookup};
use self::turns::Turns;
use super::checkout::checks::PersonLock;
use super::checkout::instruments::InstrumentDigest;
use super::sql::BookingRow;
use crate::SellingState;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, Code, Problem};
use payments::{PaymentEvent, PaymentEventOutcome, PaymentStatus};
use platform::batcher::{BatchLimits, Batcher};
use platform::recent::RecentCache;
use platform::telemetry::STEP;
use seats::seat_locks::MAX_PER_CALL;

pub(super) use self::load::BookingDetails;
pub(super) use self::lookups::load_current;
pub(super) use self::plan::interpret_status;
pub(super) use self::run::retry_deadlocks;
pub(super) use self::turns::Turn;

/// Maximum pieces in one transaction: beyond, waiting costs more than sharing saves.
const MAX_PER_BATCH: usize = 512;
/// Cores per concurrent transaction of the pipeline: they compose and answer while Postgres writes. More concurrent
/// transactions would split the same work, and each statement would serve fewer pieces. All work of one booking (the
/// answer to a charge, and the webhook with the same outcome) uses one lane: in two concurrent transactions, one
/// would only wait for the other's lock.
const CORES_PER_LANE: usize = 2;
/// Maximum concurrent transactions of the pipeline. The other connections are for all other work.
const MAX_LANES: usize = 4;
/// Maximum bookings, or buyers, in one lookup statement.
const MAX_PER_LOOKUP: usize = 64;
/// Maximum concurrent lookup statements.
const MAX_CONCURRENT_LOOKUPS: usize = 2;
/// Maximum concurrent calls to the lock store for sales.
const MAX_CONCURRENT_LOCK_CALLS: usize = 4;
/// Time the first lookup or lock request of a batch waits for others.
const GATHER: Duration = Duration::from_millis(1);
/// Maximum concurrent pieces that are committed outside batches.
const MAX_CONCURRENT_ALONE: usize = 4;
/// Part of [`MAX_CONCURRENT_ALONE`] that is reserved for charge outcomes and webhooks.
const ALONE_FOR_CHARGED: usize = 1;
/// One part in this many of the queue is reserved for payments: checkouts alone never fill it.
const SHARE_FOR_PAYMENTS: usize = 4;
/// Time the first sale waits for others before the map update, and again before the mails.
const GATHER_SOLD: Duration = Duration::from_millis(3);
/// Maximum mails in one batch, which are sent and then removed from the outbox in one statement.
const MAX_MAILS_PER_BATCH: usize = 64;
/// Maximum concurrent batches of mails: one batch may hang, and the other continues.
const MAX_CONCURRENT_MAIL_BATCHES: usize = 2;
/// Maximum waiting requests of each kind; beyond, the answer is "queue full".
const MAX_LOOKUPS: usize = 8_192;
/// Maximum sales that wait for their map update, and for their mails; the rest are left to the relay.
const MAX_MARKS: usize = 8_192;
const MAX_MAILS: usize = 1_024;

/// Bookings cached as committed, for the buyer who pays, the webhook that repeats the gateway's answer, and the
/// mail: some seconds of peak load, about 2 KB each. A batch uses one only if the locked row has its version
/// (`load`).
const MAX_RECENT: usize = 8_192;

/// The commit pipeline of a replica.
pub struct Commits {
    /// Lanes; a booking, or the hold that will be one, selects the lane.
    work: Vec<Batcher<Piece>>,
    lookups: Batcher<Lookup>,
    records: Batcher<RecordLookup>,
    lock_requests: Batcher<LockRequest>,
    marks: Batcher<SoldBooking>,
    mails: Batcher<SoldBooking>,
    /// Turns of checkouts and payments, by hold or booking.
    turns: Turns,
    /// Slots for pieces before the charge.
    slots: Arc<Semaphore>,
    /// The part of `slots` that checkouts without a payment may take.
    checkout_slots: Arc<Semaphore>,
    /// Slots for charge outcomes and webhooks, which new payments must not block.
    charged_slots: Arc<Semaphore>,
    alone: Arc<Semaphore>,
    /// Permits of `alone` for pieces before the charge.
    alone_uncharged: Arc<Semaphore>,
    recent: RecentCache<BookingDetails>,
}

/// A piece of work and the reply channel of its caller.
struct Piece {
    work: Work,
    reply: oneshot::Sender<ApiResult<Done>>,
    /// Released when the piece is answered.
    _slot: PieceSlot,
    span: Span,
}

/// A slot in the queue, released on drop; a checkout also takes one of the checkout slots.
struct PieceSlot {
    _permits: [Option<OwnedSemaphorePermit>; 2],
}

/// Kinds of work in the pipeline.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Turns a live hold into a booking.
    Create(Box<Checkout>),
    /// Submits a payment whose hold is extended: writes the claims, the payment and the charge effect.
    Submit(Submission),
    /// Records a gateway's answer to a charge, and the booking as the answer of an idempotency key.
    RecordChargeOutcome(Box<ChargeOutcome>),
    /// Applies a webhook that reports a successful payment.
    ApplyWebhook(PaymentEvent),
}

/// A booking to be created, in state CREATED.
#[derive(Clone, Debug)]
pub(super) struct NewBooking {
    pub(super) row: BookingRow,
    pub(super) if_late: LatePaymentHandling,
}

/// A checkout whose payment is another request.
#[derive(Clone, Debug)]
pub(super) struct Checkout {
    pub(super) show: Arc<Show>,
    pub(super) new: NewBooking,
    pub(super) intent: Intent,
}

/// A payment to be submitted.
#[derive(Clone, Debug)]
pub(super) struct Submission {
    pub(super) show: Arc<Show>,
    /// The booking's id; a new id where the hold has no booking yet.
    pub(super) booking: Uuid,
    /// The booking to create in the same step, where checkout and payment are one request.
    pub(super) new: Option<Box<NewBooking>>,
    /// The booking at its last lookup: it is not read again if its version is unchanged.
    pub(super) seen: Option<Box<BookingDetails>>,
    /// The version the booking must still have: the version that was checked, from a read or from this replica's cache.
    /// `None` where the booking is new.
    pub(super) expected_version: Option<i32>,
    pub(super) token: Option<String>,
    /// The payment instrument, where the show has a limit per instrument and it is known.
    pub(super) instrument: Option<InstrumentDigest>,
    /// The buyer's lock, where the seats of all their visitors are counted.
    pub(super) person: Option<PersonLock>,
    pub(super) gateway: &'static str,
    /// The new expiry of the hold.
    pub(super) until: Timestamp,
    pub(super) intent: Intent,
}

/// Progress of a request's idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Not claimed yet, as far as this replica knows.
    New,
    /// Claimed by this request when it submitted; its answer has this status.
    OursSinceSubmit(StatusCode),
}

impl Key {
    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::New => StatusCode::OK,
            Self::OursSinceSubmit(status) => status,
        }
    }
}

/// A charge outcome for a caller that waits for the updated booking.
#[derive(Clone, Debug)]
pub(super) struct ChargeOutcome {
    pub(super) show: Arc<Show>,
    pub(super) booking: Uuid,
    /// The booking at its last lookup, as in [`Submission`].
    pub(super) seen: Option<Box<BookingDetails>>,
    /// `None`: the gateway gave no answer, or was not called.
    pub(super) gateway_answer: Option<GatewayAnswer>,
    /// True if the charge is done, and the relay need not repeat it.
    pub(super) charged: bool,
    /// The key whose answer the booking becomes.
    pub(super) answer: Option<(Intent, Key)>,
}

impl ChargeOutcome {
    fn is_paid(&self) -> bool {
        self.gateway_answer.as_ref().is_some_and(|answer| matches!(answer.status, PaymentStatus::Succeeded { .. }))
    }
}

#[derive(Clone, Debug)]
pub(super) struct GatewayAnswer {
    pub(super) status: PaymentStatus,
    pub(super) gateway_ref: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum Done {
    /// The answer of its key.
    Answered(Answer),
    /// Submitted: the booking's current row, to be charged, and its details if they were read.
    Submitted(Box<BookingRow>, Option<Box<BookingDetails>>),
    /// Recorded; the caller wanted no answer.
    Recorded,
    /// The outcome of a webhook.
    WebhookApplied(PaymentEventOutcome),
}

impl Commits {
    /// Creates a pipeline for `limit` pieces before their charge, and as many after it. The first piece of a batch
    /// waits for `linger`.
    #[must_use]
    pub fn new(limit: usize, linger: Duration) -> Self {
        let slots = |count: usize| Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let lanes = (cores / CORES_PER_LANE).clamp(1, MAX_LANES);
        Self {
            // Its length is bounded by the slots of both kinds.
            work: (0..lanes).map(|_| batcher(MAX_PER_BATCH, limit.saturating_mul(2), linger, 1)).collect(),
            lookups: batcher(MAX_PER_LOOKUP, MAX_LOOKUPS, GATHER, MAX_CONCURRENT_LOOKUPS),
            records: batcher(MAX_PER_LOOKUP, MAX_LOOKUPS, GATHER, MAX_CONCURRENT_LOOKUPS),
            lock_requests: batcher(MAX_PER_CALL, MAX_LOOKUPS, GATHER, MAX_CONCURRENT_LOCK_CALLS),
            marks: batcher(MAX_PER_CALL, MAX_MARKS, GATHER_SOLD, 1),
            mails: batcher(MAX_MAILS_PER_BATCH, MAX_MAILS, GATHER_SOLD, MAX_CONCURRENT_MAIL_BATCHES),
            turns: Turns::default(),
            slots: slots(limit),
            checkout_slots: slots(limit - limit / SHARE_FOR_PAYMENTS),
            charged_slots: slots(limit),
            alone: slots(MAX_CONCURRENT_ALONE),
            alone_uncharged: slots(MAX_CONCURRENT_ALONE - ALONE_FOR_CHARGED),
            recent: RecentCache::new(MAX_RECENT),
        }
    }

    /// Returns the number of free slots for pieces before their charge.
    #[must_use]
    pub fn free_slots(&self) -> usize {
        self.slots.available_permits()
    }

    /// Commits a piece of work, in a batch with others.
    ///
    /// # Errors
    /// The refusal of the piece; 503 when the queue is full, or the database is unavailable.
    pub(super) async fn ask(&self, state: &SellingState, work: Work) -> ApiResult<Done> {
        let slot = self.acquire_slot(&work).await?;
        let (reply, answer) = oneshot::channel();
        let lane = (work.subject().as_u128() % self.work.len() as u128) as usize;
        let span = tracing::debug_span!(target: STEP, "commit", step = work.name());
        let piece = Piece { work, reply, _slot: slot, span: span.clone() };
        self.work[lane].add(piece, || drop(state.tasks.spawn(run::serve(state.clone(), lane)))).map_err(|_| full())?;
        answer.instrument(span).await.map_err(|_| Problem::internal(&"a piece of work was left undone"))?
    }

    /// Waits until this owner's request about a hold or booking may begin. One is served and one waits at a time.
    ///
    /// # Errors
    /// 409 for a third, and for one that waits too long.
    pub(super) async fn turn(&self, owner: &str, subject: Uuid) -> ApiResult<Turn> {
        self.turns.take(owner, subject).await
    }

    async fn acquire_slot(&self, work: &Work) -> ApiResult<PieceSlot> {
        let acquire = |slots: &Arc<Semaphore>| Arc::clone(slots).try_acquire_owned().map_err(|_| full());
        let permits = match work {
            Work::Create(_) => [Some(acquire(&self.checkout_slots)?), Some(acquire(&self.slots)?)],
            Work::Submit(_) => [Some(acquire(&self.slots)?), None],
            // The gateway repeats its webhook.
            Work::ApplyWebhook(_) => [Some(acquire(&self.charged_slots)?), None],
            // Each of these was submitted before, so there are hardly more of them than slots.
            Work::RecordChargeOutcome(_) => {
                [Some(Arc::clone(&self.charged_slots).acquire_owned().await.map_err(|_| full())?), None]
            }
        };
        Ok(PieceSlot { _permits: permits })
    }

    /// Returns this owner's booking from the cache, as this replica wrote it last. It may be stale: the caller must
    /// have its version compared.
    pub(super) fn recent_booking(&self, id: Uuid, owner: &str) -> Option<BookingDetails> {
        self.recent.get(id).filter(|found| found.row.owner == owner).map(|found| BookingDetails::clone(&found))
    }
}

fn full() -> Problem {
    Problem::new(Code::Overloaded, "Very many people are buying right now. Nothing was lost; please try again.")
}

fn batcher<T>(max_batch: usize, max_queue: usize, linger: Duration, workers: usize) -> Batcher<T> {
    Batcher::new(BatchLimits { max_batch, max_queue, linger, workers })
}

impl Work {
    /// Returns the name of the step in traces.
    const fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Submit(_) => "submit",
            Self::RecordChargeOutcome(_) => "record_charge_outcome",
            Self::ApplyWebhook(_) => "apply_webhook",
        }
    }

    fn booking(&self) -> Option<Uuid> {
        match self {
            Self::Create(_) => None,
            Self::Submit(submission) => submission.new.is_none().then_some(submission.booking),
            Self::RecordChargeOutcome(charge) => Some(charge.booking),
            Self::ApplyWebhook(news) => Some(news.booking),
        }
    }

    fn pays_in(&self, show: Uuid) -> bool {
        matches!(self, Self::Submit(submission) if submission.show.id == show)
    }

    /// Returns true if a gateway was called already: its answer is written before other payments begin.
    const fn is_charged(&self) -> bool {
        matches!(self, Self::RecordChargeOutcome(_) | Self::ApplyWebhook(_))
    }

    /// Returns the booking as the caller saw it, unless its answer may name a page for paying: that of the gateway is
    /// noted without a new version of the booking.
    fn seen(&self) -> Option<&BookingDetails> {
        match self {
            Self::Submit(submission) => {
                submission.seen.as_deref().filter(|seen| seen.row.machine.state != BookingState::PaymentPending)
            }
            Self::RecordChargeOutcome(charge) if charge.is_paid() => charge.seen.as_deref(),
            Self::Create(_) | Self::RecordChargeOutcome(_) | Self::ApplyWebhook(_) => None,
        }
    }

    /// Returns the booking, or the hold that will be one.
    fn subject(&self) -> Uuid {
        self.hold().or_else(|| self.booking()).unwrap_or_default()
    }

    fn hold(&self) -> Option<Uuid> {
        match self {
            Self::Create(checkout) => Some(checkout.new.row.hold_id),
            Self::Submit(submission) => submission.new.as_ref().map(|new| new.row.hold_id),
            Self::RecordChargeOutcome(_) | Self::ApplyWebhook(_) => None,
        }
    }

    fn news(&self) -> Option<&PaymentEvent> {
        match self {
            Self::ApplyWebhook(news) => Some(news),
            Self::Create(_) | Self::Submit(_) | Self::RecordChargeOutcome(_) => None,
        }
    }

    /// Returns the key to claim, if it is not claimed yet.
    fn key_to_claim(&self) -> Option<&Intent> {
        match self {
            Self::Create(checkout) => Some(&checkout.intent),
            Self::Submit(submission) => Some(&submission.intent),
            Self::RecordChargeOutcome(charge) => charge.new_key(),
            Self::ApplyWebhook(_) => None,
        }
    }
}

impl ChargeOutcome {
    fn new_key(&self) -> Option<&Intent> {
        self.answer.as_ref().filter(|(_, key)| *key == Key::New).map(|(intent, _)| intent)
    }
}
