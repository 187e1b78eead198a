//! The commit pipeline: what many buyers do at the same moment is committed in one transaction.
//!
//! A sale passes here three times, checked out, submitted, paid; or twice, where the first two are one request. Each
//! piece of work waits up to two milliseconds for others; then their bookings are taken as this replica wrote them last,
//! or loaded in one statement where somebody else may have (`know`, `rivals`), planned one by one by the pure step of
//! `domain::booking` (`plan`), and written in another (`writes`, `flush`), arrays in order of their keys so that batches
//! queue up instead of deadlocking. A durable commit, and each journey to Postgres, is then paid once for many:
//! `synchronous_commit` stays on for sales; only what was done is taken off the outbox without waiting for the disk.
//!
//! A piece that fails does not take others down with it. One that needs more than the plan knows, or whose claim or
//! key belongs to another, is done alone, by `create`, `confirm`, `effects` and `news`; the rest of its batch goes on
//! without it (`run`). Rarer moves (cancelling, the reconciler) never come here.

mod errands;
mod flush;
mod in_doubt;
mod know;
mod line;
mod load;
mod lookups;
mod mails;
mod marks;
mod plan;
mod records;
mod rivals;
mod run;
mod turns;
mod work;
mod writes;

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use domain::api::cancelling::IfLate;
use domain::time::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::{Instrument, Span};
use uuid::Uuid;

use self::errands::Errand;
use self::line::{Line, Terms};
pub(super) use self::load::Found;
use self::lookups::Wanted;
pub(super) use self::lookups::as_they_stand;
use self::marks::Sold;
pub(super) use self::plan::read;
use self::records::Question;
use self::rivals::Rivals;
pub(super) use self::run::retried;
pub(super) use self::turns::Turn;
use self::turns::Turns;
use super::checkout::checks::PersonLock;
use super::checkout::instruments::PaidWith;
use super::sql::BookingRow;
use crate::SellingState;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{Code, Problem};
use payments::{NewsOutcome, PaymentNews, PaymentStatus};
use platform::recent::Recent;
use platform::telemetry::STEP;
use seats::seat_locks::MAX_PER_CALL;

/// Pieces in one transaction at most: beyond, everyone waits longer than the sharing saves.
const MAX_PER_BATCH: usize = 512;
/// Cores that share a transaction of the pipeline at one time: they compose and answer what Postgres writes for them.
/// More transactions at once share what comes, and each statement is paid for fewer pieces. What concerns one booking
/// (the answer to a charge, and the webhook that says the same) goes through the same lane: in two transactions at once,
/// one would only wait for the other's lock.
const CORES_OF_A_LANE: usize = 2;
/// Transactions of the pipeline at one time at most. The other connections are for everybody else.
const MOST_LANES: usize = 4;
/// Bookings, or buyers, looked up in one statement at most.
const MAX_PER_LOOKUP: usize = 64;
/// Such statements at one time.
const LOOKUPS_AT_ONCE: usize = 2;
/// Calls to the lock store for sales at one time.
const ERRANDS_AT_ONCE: usize = 4;
/// How long the first question to Postgres or to the lock store waits for others.
const GATHER: Duration = Duration::from_millis(1);
/// Pieces that go by themselves at one time…
const ALONE_AT_ONCE: usize = 4;
/// …of which so many are reserved for news about money.
const ALONE_FOR_MONEY: usize = 1;
/// One part in so many of the queue is reserved for payments: checkouts alone never fill it.
const SHARE_FOR_PAYMENTS: usize = 4;
/// How long the first sale waits for others before the map is told, and then the mails are sent.
const MARKS_GATHER: Duration = Duration::from_millis(3);
/// Mails sent, and then taken off the outbox, together…
const MAILS_TOGETHER: usize = 64;
/// …and how many such batches at one time: one that hangs leaves another.
const MAILERS: usize = 2;
/// Questions of each kind that may wait; "queue full" is an answer.
const MAX_LOOKUPS: usize = 8_192;

/// Bookings kept as they were committed, for the buyer who pays, the webhook that repeats the gateway's answer, and the
/// mail: some seconds of a rush, some 2 KB each. What moves one is written for its version (`know`).
const MAX_RECENT: usize = 8_192;

/// How bookings are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CommitMode {
    /// Many in a transaction.
    Batched,
    /// Each in transactions of its own: what `cargo xtask bench sale` compares with.
    Interactive,
}

/// The pipeline of a replica.
pub struct Commits {
    /// By booking, or by the hold that will be one.
    work: Vec<Line<Piece>>,
    lookups: Line<Wanted>,
    records: Line<Question>,
    errands: Line<Errand>,
    marks: Line<Sold>,
    mails: Line<Sold>,
    /// Turns of checkouts and payments, by hold or booking.
    turns: Turns,
    /// Places of those who have not been charged…
    places: Arc<Semaphore>,
    /// …of which checkouts without a payment may take so many…
    checkout_places: Arc<Semaphore>,
    /// …and of news about money, which must not be kept out by buyers who wish to pay.
    paid_places: Arc<Semaphore>,
    lookup_places: Arc<Semaphore>,
    record_places: Arc<Semaphore>,
    errand_places: Arc<Semaphore>,
    alone: Arc<Semaphore>,
    /// Permits of `alone` for pieces that are not about money.
    alone_uncharged: Arc<Semaphore>,
    recent: Recent<Found>,
    rivals: Rivals,
}

/// A piece of work and the caller that waits for it.
struct Piece {
    work: Work,
    reply: oneshot::Sender<Result<Done, Problem>>,
    /// Given back when the piece is answered.
    _place: Place,
    /// What its request is doing, for those who trace it.
    span: Span,
}

/// A place in the queue; of a checkout also one of those that checkouts may take.
struct Place {
    _permits: [Option<OwnedSemaphorePermit>; 2],
}

/// What a piece of work is.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// A live hold becomes a booking.
    Create(Box<Checkout>),
    /// The buyer pressed Pay, and the hold is extended: claims, payment, the wish to charge.
    Submit(Submission),
    /// What a gateway answered, and the booking as the answer of a key.
    Learn(Box<Lesson>),
    /// A gateway has the money, and says so by webhook.
    Hear(PaymentNews),
}

/// A booking to be made, in state CREATED.
#[derive(Clone, Debug)]
pub(super) struct NewBooking {
    pub(super) row: BookingRow,
    pub(super) if_late: IfLate,
}

/// One that is paid for by another request.
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
    /// The id of a new one, should its hold have none yet.
    pub(super) booking: Uuid,
    /// To be made in the same step, where it is checked out and paid for at once.
    pub(super) new: Option<Box<NewBooking>>,
    /// It as it stood when it was looked up: read no second time if it still does.
    pub(super) seen: Option<Box<Found>>,
    /// The version it must still have: the one that was checked, whether it was read or is what this replica wrote last.
    /// None where the booking is to be made.
    pub(super) only_at: Option<i32>,
    pub(super) token: Option<String>,
    /// What will pay, where the show has a cap and it is known.
    pub(super) instrument: Option<PaidWith>,
    /// The buyer's lock, where the seats of their visitors must be counted together.
    pub(super) person: Option<PersonLock>,
    /// Who will be asked for the money.
    pub(super) gateway: &'static str,
    /// The hold's new end.
    pub(super) until: Timestamp,
    pub(super) intent: Intent,
}

/// How far a request's key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Not claimed yet, as far as we know.
    New,
    /// Claimed for this very request when it submitted; it is answered with this status.
    OursSinceSubmit(StatusCode),
}

impl Key {
    /// The status of its answer.
    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::New => StatusCode::OK,
            Self::OursSinceSubmit(status) => status,
        }
    }
}

/// News of a payment for a caller who asked, and who wants the booking as it is afterwards.
#[derive(Clone, Debug)]
pub(super) struct Lesson {
    pub(super) show: Arc<Show>,
    pub(super) booking: Uuid,
    /// As with a submission.
    pub(super) seen: Option<Box<Found>>,
    /// None: the gateway gave no answer, or was not asked.
    pub(super) said: Option<Said>,
    /// Whether the charge is done, and the relay need not ask for it.
    pub(super) charged: bool,
    /// Whose answer the booking becomes.
    pub(super) answer: Option<(Intent, Key)>,
}

/// What a gateway said.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) status: PaymentStatus,
    pub(super) gateway_ref: Option<String>,
}

/// What became of a piece.
#[derive(Clone, Debug)]
pub(super) enum Done {
    /// The answer of its key.
    Answered(Answer),
    /// Submitted: the booking as it stands now, to be charged, and all of it if that was read.
    Submitted(Box<BookingRow>, Option<Box<Found>>),
    /// Noted, and nobody wanted an answer.
    Noted,
    /// What became of a webhook.
    Heard(NewsOutcome),
}

impl Commits {
    /// A pipeline for `limit` pieces that were not charged for, and as many that were. The first of a batch
    /// waits for `patience`.
    #[must_use]
    pub fn new(limit: usize, patience: Duration) -> Self {
        let places = |count: usize| Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let lanes = (cores / CORES_OF_A_LANE).clamp(1, MOST_LANES);
        Self {
            work: (0..lanes).map(|_| Line::new(Terms { batch: MAX_PER_BATCH, patience, servers: 1 })).collect(),
            lookups: Line::new(Terms { batch: MAX_PER_LOOKUP, patience: GATHER, servers: LOOKUPS_AT_ONCE }),
            records: Line::new(Terms { batch: MAX_PER_LOOKUP, patience: GATHER, servers: LOOKUPS_AT_ONCE }),
            errands: Line::new(Terms { batch: MAX_PER_CALL, patience: GATHER, servers: ERRANDS_AT_ONCE }),
            marks: Line::new(Terms { batch: MAX_PER_CALL, patience: MARKS_GATHER, servers: 1 }),
            mails: Line::new(Terms { batch: MAILS_TOGETHER, patience: MARKS_GATHER, servers: MAILERS }),
            turns: Turns::default(),
            places: places(limit),
            checkout_places: places(limit - limit / SHARE_FOR_PAYMENTS),
            paid_places: places(limit),
            lookup_places: places(MAX_LOOKUPS),
            record_places: places(MAX_LOOKUPS),
            errand_places: places(MAX_LOOKUPS),
            alone: places(ALONE_AT_ONCE),
            alone_uncharged: places(ALONE_AT_ONCE - ALONE_FOR_MONEY),
            recent: Recent::new(MAX_RECENT),
            rivals: Rivals::default(),
        }
    }

    /// How many more pieces that were not charged for are let in just now.
    #[must_use]
    pub fn free_places(&self) -> usize {
        self.places.available_permits()
    }

    /// Has a piece of work committed, together with whatever else is.
    ///
    /// # Errors
    /// Its own refusal; 503 when too much waits already, or the database is unavailable.
    pub(super) async fn ask(&self, state: &SellingState, work: Work) -> Result<Done, Problem> {
        let place = self.place_for(&work).await?;
        let (reply, answer) = oneshot::channel();
        let lane = (work.subject().as_u128() % self.work.len() as u128) as usize;
        let span = tracing::debug_span!(target: STEP, "commit", step = work.name());
        if self.work[lane].join(Piece { work, reply, _place: place, span: span.clone() }) {
            state.tasks.spawn(run::serve(state.clone(), lane));
        }
        answer.instrument(span).await.map_err(|_| Problem::internal(&"a piece of work was left undone"))?
    }

    /// Waits until this owner's request about a hold or booking may begin. One is served and one waits at a time.
    ///
    /// # Errors
    /// 409 for a third, and for one that waits too long.
    pub(super) async fn turn(&self, owner: &str, subject: Uuid) -> Result<Turn, Problem> {
        self.turns.take(owner, subject).await
    }

    async fn place_for(&self, work: &Work) -> Result<Place, Problem> {
        let now = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_owned().map_err(|_| full());
        let permits = match work {
            Work::Create(_) => [Some(now(&self.checkout_places)?), Some(now(&self.places)?)],
            Work::Submit(_) => [Some(now(&self.places)?), None],
            // The gateway sends it again.
            Work::Hear(_) => [Some(now(&self.paid_places)?), None],
            // Each of these was submitted before, so there are hardly more of them than places.
            Work::Learn(_) => [Some(Arc::clone(&self.paid_places).acquire_owned().await.map_err(|_| full())?), None],
        };
        Ok(Place { _permits: permits })
    }

    /// The booking of that id as this replica wrote it last, if that was not long ago and it is this owner's. It may
    /// have moved on since: the caller must have its version compared.
    pub(super) fn lately(&self, id: Uuid, owner: &str) -> Option<Found> {
        self.recent.of(id).filter(|found| found.row.owner == owner).map(|found| Found::clone(&found))
    }
}

fn full() -> Problem {
    Problem::new(Code::Overloaded, "Very many people are buying right now. Nothing was lost; please try again.")
}
