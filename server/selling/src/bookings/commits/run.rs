//! Serves the pipeline: commits a batch whole, or without the pieces that block it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use domain::booking::{BookingState, Effect};
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgDatabaseError;
use sqlx::{Connection as _, PgConnection, Postgres};
use tokio::time::Instant;
use tracing::{Instrument, Span};
use uuid::Uuid;

use super::flush::Uniqueness;
use super::load::{LockMode, load_batch};
use super::plan::{Plan, Planned};
use super::{BookingDetails, Done, GatewayAnswer, Piece, Work, after_sale};
use crate::bookings::checkout::instruments::InstrumentDigest;
use crate::bookings::checkout::person_limit::{self, Verdict};
use crate::bookings::checkout::{confirm, create};
use crate::bookings::effects;
use crate::bookings::money::news;
use crate::{SellingState, outbox};
use http::idempotency::{self, Intent};
use http::{ApiResult, Code, Problem};
use platform::telemetry::{self, STEP};
use platform::{database, ids};

/// Begins a batch. A locked booking delays the batch for half a second at most: after that the batch continues
/// without it. After another locked row, each piece is committed alone. Only index scans are allowed: a plan made
/// while the tables were empty must not scan them once they are full.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '500ms'; SET LOCAL statement_timeout = '8s'; \
                     SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; \
                     SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off; \
                     SET LOCAL plan_cache_mode = force_generic_plan";
/// Timeout of a batch, and of a piece that is committed alone.
const DEADLINE: Duration = Duration::from_secs(10);
/// Batches per connection: a second or two of peak load.
pub(super) const BATCHES_ON_A_CONNECTION: u32 = 128;
/// Maximum attempts of a transaction after deadlocks, and maximum times a batch continues without some pieces.
const MAX_TRIES: u32 = 6;
/// First pause after a deadlock, milliseconds; doubles, with full jitter.
const FIRST_PAUSE_MS: u64 = 5;

/// A connection that is kept from batch to batch.
pub(super) type Connection = Option<PoolConnection<Postgres>>;

/// Reasons for which a batch was not committed.
#[derive(Debug)]
pub(super) enum BatchError {
    /// These pieces cannot be committed in this batch.
    NeedOwnTransactions(Vec<usize>),
    /// Aborted by a deadlock or serialisation failure. Nothing was written.
    Retry(sqlx::Error),
    /// The database is unavailable; it may be unknown if the batch was committed.
    Unavailable(Problem),
    /// A row that was assumed new exists. [`Uniqueness::Checked`] reports which.
    UniqueViolation(sqlx::Error),
    /// Another transaction keeps a row locked for longer than a batch waits.
    LockTimeout(sqlx::Error),
    /// Payments for this show are stopped: it was called off, or is being moved.
    SalesStopped(Uuid),
    /// A piece cannot be written, and Postgres does not report which.
    Unclear(String),
}

impl From<sqlx::Error> for BatchError {
    fn from(cause: sqlx::Error) -> Self {
        match &cause {
            sqlx::Error::Database(error) => match error.code().as_deref() {
                Some("40001" | "40P01") => Self::Retry(cause),
                Some("23505") => Self::UniqueViolation(cause),
                Some("55P03") => Self::LockTimeout(cause),
                Some("RL001" | "RL002") => {
                    let detail = error.try_downcast_ref::<PgDatabaseError>().and_then(PgDatabaseError::detail);
                    let show = detail.and_then(|show| Uuid::parse_str(show).ok());
                    show.map_or_else(|| Self::Unclear(cause.to_string()), Self::SalesStopped)
                }
                _ if database::is_temporary(&cause) => Self::Unavailable(cause.into()),
                _ => Self::Unclear(cause.to_string()),
            },
            // `RowNotFound`: the lease of a key of this batch expired, and another request took it over.
            sqlx::Error::RowNotFound
            | sqlx::Error::Decode(_)
            | sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Encode(_) => Self::Unclear(cause.to_string()),
            _ => Self::Unavailable(cause.into()),
        }
    }
}

/// Commits batches of a lane until its queue is empty.
pub(super) async fn serve(state: SellingState, lane: usize) {
    // One connection for many batches: Postgres has prepared their statements on it and has cached what they use.
    // It is dropped with a failed batch, and at intervals, so that other waiters for a connection get it in turn.
    let (mut connection, mut batches) = (None, 0_u32);
    let mut worker = state.commits.work[lane].worker();
    while let Some(batch) = worker.next_batch().await {
        batches += 1;
        if batches.is_multiple_of(BATCHES_ON_A_CONNECTION) {
            connection = None;
        }
        // In its own task: a panic fails the pieces of this batch only, and the queue is still served. Boxed, because
        // kilobytes would be moved with it.
        let done = state.tasks.spawn(Box::pin(commit(state.clone(), connection.take(), batch)));
        match done.await {
            Ok(kept) => connection = kept,
            Err(cause) => tracing::error!(%cause, "a commit batch panicked"),
        }
    }
}

/// Commits a batch and returns its connection if it is still usable.
async fn commit(state: SellingState, mut on: Connection, mut batch: Vec<Piece>) -> Connection {
    let (mut fresh, mut locks) = (Uniqueness::Assumed, LockMode::ForUpdate);
    for attempt in 0..MAX_TRIES {
        if batch.is_empty() {
            return on;
        }
        let works: Vec<&Work> = batch.iter().map(|piece| &piece.work).collect();
        let span = transaction_span(&batch);
        let outcome =
            tokio::time::timeout(DEADLINE, commit_batch(&state, &mut on, &works, fresh, locks)).instrument(span).await;
        match outcome.unwrap_or_else(|_| Err(BatchError::Unavailable(too_slow()))) {
            Ok(planned) => {
                answer(&state, batch, planned);
                return on;
            }
            Err(BatchError::NeedOwnTransactions(indexes)) => {
                tracing::debug!(apart = indexes.len(), of = batch.len(), "a batch continues without some pieces");
                let indexes: BTreeSet<usize> = indexes.into_iter().collect();
                let (apart, rest) = split(batch, |index, _| indexes.contains(&index));
                spawn_alone(&state, apart);
                batch = rest;
            }
            Err(BatchError::SalesStopped(show)) => {
                tracing::debug!(%show, of = batch.len(), "a batch continues without payments for {show}");
                let (apart, rest) = split(batch, |_, piece| piece.work.pays_in(show));
                spawn_alone(&state, apart);
                batch = rest;
            }
            Err(BatchError::Retry(cause)) => {
                telemetry::serialization_retry();
                tracing::debug!(%cause, attempt, "a batch deadlocked and is retried");
                pause(attempt).await;
            }
            Err(BatchError::UniqueViolation(cause)) if fresh == Uniqueness::Assumed => {
                tracing::debug!(%cause, of = batch.len(), "a batch is written with conflict checks");
                fresh = Uniqueness::Checked;
            }
            Err(BatchError::LockTimeout(cause)) if locks != LockMode::SkipLocked => {
                tracing::debug!(%cause, of = batch.len(), "a batch continues without locked bookings");
                locks = LockMode::SkipLocked;
            }
            Err(BatchError::Unavailable(problem)) => {
                make_charges_due(&state, &batch);
                batch.into_iter().for_each(|piece| drop(piece.reply.send(Err(problem.clone()))));
                // The connection may have failed in the middle of any exchange.
                on.iter_mut().for_each(PoolConnection::close_on_drop);
                return None;
            }
            Err(BatchError::UniqueViolation(cause) | BatchError::LockTimeout(cause)) => {
                tracing::warn!(%cause, of = batch.len(), "commit a batch failed; each piece is committed alone");
                break;
            }
            Err(BatchError::Unclear(cause)) => {
                tracing::warn!(cause, of = batch.len(), "commit a batch failed; each piece is committed alone");
                break;
            }
        }
    }
    spawn_alone(&state, batch);
    None
}

/// Creates the transaction's span: a child of the first piece's span, linked to the others.
fn transaction_span(batch: &[Piece]) -> Span {
    let Some((first, others)) = batch.split_first() else { return Span::none() };
    let span = tracing::debug_span!(target: STEP, parent: &first.span, "transaction", pieces = batch.len());
    for piece in others {
        span.follows_from(&piece.span);
    }
    span
}

pub(super) fn too_slow() -> Problem {
    Problem::new(Code::DatabaseUnavailable, "Please try again in a moment; nothing was lost.")
}

/// Answers the pieces whose work is committed; the other pieces are committed alone.
fn answer(state: &SellingState, batch: Vec<Piece>, planned: Vec<Planned>) {
    let mut apart = Vec::new();
    for (piece, planned) in batch.into_iter().zip(planned) {
        // The caller may have gone: a retry with the same key gets the same answer.
        match planned {
            Planned::Done(done) => drop(piece.reply.send(Ok(done))),
            Planned::Refused(problem) => drop(piece.reply.send(Err(problem))),
            Planned::NeedsOwnTransaction => apart.push(piece),
        }
    }
    spawn_alone(state, apart);
}

fn split(batch: Vec<Piece>, is_apart: impl Fn(usize, &Piece) -> bool) -> (Vec<Piece>, Vec<Piece>) {
    let (apart, rest): (Vec<_>, Vec<_>) =
        batch.into_iter().enumerate().partition(|(index, piece)| is_apart(*index, piece));
    let pieces = |numbered: Vec<(usize, Piece)>| numbered.into_iter().map(|(_, piece)| piece).collect();
    (pieces(apart), pieces(rest))
}

/// Runs one transaction for all pieces. Nothing is written unless it returns `Ok`.
async fn commit_batch(
    state: &SellingState,
    on: &mut Connection,
    works: &[&Work],
    fresh: Uniqueness,
    locks: LockMode,
) -> Result<Vec<Planned>, BatchError> {
    let began = Instant::now();
    let connection = match on.take() {
        Some(connection) => on.insert(connection),
        None => on.insert(state.pg.acquire().await?),
    };
    let mut tx = connection.begin_with(BEGIN).await?;
    let (planned, written) = match plan_and_write(state, &mut tx, works, (fresh, locks)).await {
        Ok(written) => written,
        Err(error) => {
            // At once, not when the connection is returned: pieces that are retried alone need these rows.
            if let Err(cause) = tx.rollback().await {
                tracing::debug!(%cause, "roll back a batch failed; its connection is closed");
                on.iter_mut().for_each(PoolConnection::close_on_drop);
                *on = None;
            }
            return Err(error);
        }
    };
    tx.commit().await?;
    written.iter().for_each(|found| state.commits.recent.insert(found.row.id, Arc::clone(found)));
    let is_sold = |found: &Arc<BookingDetails>| found.row.machine.state == BookingState::Confirmed;
    after_sale::enqueue(state, written.into_iter().filter(is_sold).collect(), began);
    Ok(planned)
}

/// Returns the planned outcomes, and the bookings that are created or moved once the transaction commits.
async fn plan_and_write(
    state: &SellingState,
    tx: &mut PgConnection,
    works: &[&Work],
    (fresh, locks): (Uniqueness, LockMode),
) -> Result<(Vec<Planned>, Vec<Arc<BookingDetails>>), BatchError> {
    let now = state.clock.now();
    let claimed: Vec<&Intent> = works.iter().filter_map(|work| work.key_to_claim()).collect();
    let (known, is_answered) = load_batch(state, tx, works, locks, &claimed).await?;
    let answers = if is_answered { idempotency::replay_all(tx, &claimed, now).await? } else { Vec::new() };
    let mut answered = answers.into_iter();
    let mut plan = Plan::new(known, works.len(), now);
    let mut verdicts = person_limit::try_check_batch(tx, &plan.person_checks(works), now).await?;
    let mut planned = Vec::with_capacity(works.len());
    for (index, work) in works.iter().enumerate() {
        let earlier = work.key_to_claim().and_then(|_| answered.next()).unwrap_or(Ok(None));
        planned.push(match earlier {
            Ok(None) => match verdicts.remove(&index) {
                None => plan.piece(index, work),
                Some(Verdict::Busy) => Planned::NeedsOwnTransaction,
                Some(Verdict::Refused(problem)) => Planned::Refused(problem),
            },
            Ok(Some(answer)) => Planned::Done(Done::Answered(answer)),
            Err(problem) => Planned::Refused(problem),
        });
    }
    let (created, moved) = plan.created_and_moved();
    plan.writes.bookings.clone_from(&created);
    plan.writes.flush(tx, fresh, now).await?;
    Ok((planned, created.into_iter().chain(moved).collect()))
}

/// Commits each piece in separate transactions, pieces of one booking in order. Concurrency is limited so that
/// connections are left for other work.
fn spawn_alone(state: &SellingState, pieces: Vec<Piece>) {
    let mut by_booking: BTreeMap<Uuid, Vec<Piece>> = BTreeMap::new();
    for piece in pieces {
        by_booking.entry(piece.work.subject()).or_default().push(piece);
    }
    for pieces in by_booking.into_values() {
        let state = state.clone();
        let tasks = state.tasks.clone();
        tasks.spawn(async move {
            let is_charged = pieces.iter().all(|piece| piece.work.is_charged());
            let mut ready = Vec::with_capacity(pieces.len());
            for piece in pieces {
                // Before the permits: a gateway that hangs must not block other pieces.
                let found = tokio::time::timeout(DEADLINE, find_instrument(&state, &piece.work)).await;
                match found.unwrap_or_else(|_| Err(too_slow())) {
                    Ok(instrument) => ready.push((piece, instrument)),
                    Err(problem) => drop(piece.reply.send(Err(problem))),
                }
            }
            let uncharged = (!is_charged).then(|| Arc::clone(&state.commits.alone_uncharged));
            let _uncharged = match uncharged {
                Some(permits) => permits.acquire_owned().await.ok(),
                None => None,
            };
            let Ok(_turn) = Arc::clone(&state.commits.alone).acquire_owned().await else { return };
            for (Piece { work, reply, _slot, span }, instrument) in ready {
                let span = tracing::debug_span!(target: STEP, parent: &span, "transaction", alone = true);
                let committed = retry_deadlocks(|| commit_alone(&state, &work, instrument.as_ref()));
                let alone = tokio::time::timeout(DEADLINE, committed);
                let done = alone.instrument(span).await.unwrap_or_else(|_| Err(too_slow()));
                drop(reply.send(done));
            }
        });
    }
}

/// Retries `work` after deadlocks, a bounded number of times.
pub(crate) async fn retry_deadlocks<T, F>(work: impl Fn() -> F) -> ApiResult<T>
where
    F: Future<Output = ApiResult<T>>,
{
    let mut attempt = 0;
    loop {
        match work().await {
            Err(problem) if problem.is_serialization_conflict() && attempt + 1 < MAX_TRIES => {
                telemetry::serialization_retry();
                pause(attempt).await;
            }
            outcome => return outcome,
        }
        attempt += 1;
    }
}

async fn pause(attempt: u32) {
    tokio::time::sleep(Duration::from_millis(ids::jitter(FIRST_PAUSE_MS << attempt.min(10)))).await;
}

/// Asks the gateway which card has paid, where the show limits cards and it was not known before the charge.
async fn find_instrument(state: &SellingState, work: &Work) -> ApiResult<Option<InstrumentDigest>> {
    match work {
        Work::RecordChargeOutcome(charge) if charge.is_paid() => {
            InstrumentDigest::of_payment(state, &charge.show, charge.booking).await
        }
        Work::ApplyWebhook(news) => match effects::load_show_of(state, news.booking).await? {
            Some(show) => InstrumentDigest::of_payment(state, &show, news.booking).await,
            None => Ok(None),
        },
        Work::Create(_) | Work::Submit(_) | Work::RecordChargeOutcome(_) => Ok(None),
    }
}

async fn commit_alone(state: &SellingState, work: &Work, instrument: Option<&InstrumentDigest>) -> ApiResult<Done> {
    match work {
        Work::Create(checkout) => create::create_alone(state, checkout).await.map(Done::Answered),
        Work::Submit(submission) => confirm::submit_alone(state, submission).await,
        Work::ApplyWebhook(news) => news::apply_alone(state, news, instrument).await.map(Done::WebhookApplied),
        Work::RecordChargeOutcome(charge) => {
            if let Some(GatewayAnswer { status, gateway_ref }) = &charge.gateway_answer {
                // Into the cache: the transaction must not wait for another connection.
                state.catalogue.find_show(charge.show.id).await?;
                let status = (status, gateway_ref.as_deref());
                effects::record_status_with(state, charge.booking, status, "gateway", instrument).await?;
            }
            if charge.charged {
                outbox::remove(&state.pg, charge.booking, Effect::Charge).await?;
            }
            match &charge.answer {
                Some((intent, key)) => {
                    let answered = confirm::answer_current(state, &charge.show, charge.booking, intent, *key).await;
                    answered.map(Done::Answered)
                }
                None => Ok(Done::Recorded),
            }
        }
    }
}

/// Attempts to reach Postgres; after them the relay waits for the end of the head start.
const IN_DOUBT_TRIES: u32 = 6;
/// Timeout of one attempt.
const IN_DOUBT_TIMEOUT: Duration = Duration::from_secs(3);
/// First pause, milliseconds; doubles, with full jitter.
const IN_DOUBT_PAUSE_MS: u64 = 500;

/// Makes the charges of these pieces due for the relay: the connection to Postgres failed during the commit. The buyer is
/// asked to retry, and this replica stops processing the payment. If it was committed, the outbox has its charge, delayed
/// by the head start of this replica, which is cancelled as soon as Postgres answers.
fn make_charges_due(state: &SellingState, pieces: &[Piece]) {
    let bookings: Vec<Uuid> = pieces.iter().filter_map(|piece| booking_to_charge(&piece.work)).collect();
    if bookings.is_empty() {
        return;
    }
    let state = state.clone();
    let tasks = state.tasks.clone();
    // Boxed: a future that may connect to Postgres is kilobytes.
    tasks.spawn(Box::pin(async move {
        for attempt in 0..IN_DOUBT_TRIES {
            let pause = Duration::from_millis(ids::jitter(IN_DOUBT_PAUSE_MS << attempt));
            if state.stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
            let made_due = outbox::make_due(&state, &bookings, Effect::Charge);
            if let Ok(Ok(())) = tokio::time::timeout(IN_DOUBT_TIMEOUT, made_due).await {
                return;
            }
        }
        tracing::debug!(
            payments = bookings.len(),
            "make charges due failed; the relay charges when the head start ends"
        );
    }));
}

/// Returns the booking of a charge that may be pending. A lost gateway answer is requested again.
const fn booking_to_charge(work: &Work) -> Option<Uuid> {
    match work {
        Work::Submit(submission) => Some(submission.booking),
        Work::RecordChargeOutcome(charge) => Some(charge.booking),
        // The gateway repeats its webhook.
        Work::Create(_) | Work::ApplyWebhook(_) => None,
    }
}
