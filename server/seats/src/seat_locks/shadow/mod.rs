//! A shadow pair of stores: the first answers, the second gets the same calls a moment later, and different
//! answers are counted. A new store is tried with real calls before the service depends on it, and has every hold
//! when it takes over.
//!
//! The second store never affects a caller: it is called in the background, from bounded queues, and calls that find
//! a queue full are not compared. The order per show is that in which the first answered. Calls that
//! overlapped there have no known order: the second gets them as well, but different answers prove
//! nothing and are counted apart. So are the calls of other replicas.
//!
//! Codes, seats, places, ids and payments in progress are compared; for a hold that is read, also its
//! fence, since the second copies the fences of the first. Epochs and versions (each store counts its own) and instants
//! (the second is called later, on another clock) are not compared.
//!
//! `start` chooses the stores; operators decide if the second is good enough.

mod mirror;
mod overlap;
mod tally;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::seats::SeatIndex;
use domain::time::Timestamp;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use self::mirror::{Job, Mirror, MirroredCall};
use self::overlap::Overlaps;
use self::tally::DivergenceCounter;
pub use self::tally::{Divergence, DivergenceKind};
use super::{
    FencedSelection, HoldLimits, HoldUpdate, LockAttempt, MapSnapshot, RebuildInput, ReleasedAll, Renewal,
    RequestIdentity, SeatLocks, SeatResult, StoreError, StoreResult, StoredHold,
};

/// Queues to the second store: each show has a fixed one.
const QUEUES: u128 = 16;
/// Calls per queue; calls beyond are not compared.
const MAX_WAITING: usize = 1_024;
/// Period of the log line with the counts, while they change.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Reads the state of a show in Postgres for a second store without its map. `None`: unavailable now.
pub type RebuildSource = Arc<dyn Fn(Uuid) -> BoxFuture<'static, Option<RebuildInput>> + Send + Sync>;

/// A pair of stores, of which the first answers.
pub struct ShadowLocks {
    first: Arc<dyn SeatLocks>,
    queues: Vec<mpsc::Sender<Job>>,
    overlaps: Arc<Overlaps>,
    tally: Arc<DivergenceCounter>,
}

impl ShadowLocks {
    /// Starts to compare, in tasks that end when it is dropped.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    #[must_use]
    pub fn new(first: Arc<dyn SeatLocks>, second: Arc<dyn SeatLocks>, source: RebuildSource) -> Self {
        let tally = Arc::<DivergenceCounter>::default();
        let mirror = Arc::new(Mirror::new(second, source, Arc::clone(&tally)));
        let queues = (0..QUEUES).map(|_| {
            let (queue, jobs) = mpsc::channel(MAX_WAITING);
            tokio::spawn(mirror::run_jobs(Arc::clone(&mirror), jobs));
            queue
        });
        let queues = queues.collect();
        tokio::spawn(report(Arc::downgrade(&tally)));
        Self { first, queues, overlaps: Arc::default(), tally }
    }

    /// The comparisons so far.
    #[must_use]
    pub fn divergence(&self) -> Divergence {
        self.tally.so_far()
    }

    /// Waits until the second has got all calls that the first has answered.
    pub async fn caught_up(&self) {
        for queue in &self.queues {
            let (done, reached) = oneshot::channel();
            // A closed queue is empty.
            if queue.send(Job::Barrier(done)).await.is_ok() {
                let _ = reached.await;
            }
        }
    }

    /// Calls the first store, and enqueues the call for the second.
    async fn call_first<T>(
        &self,
        show: Uuid,
        answer: impl Future<Output = StoreResult<T>> + Send,
        call: impl FnOnce(&T) -> MirroredCall + Send,
    ) -> StoreResult<T>
    where
        T: Send,
    {
        // If the caller drops this future, it is unknown whether the call was done.
        let running = self.overlaps.begin(show, &self.tally);
        let answer = answer.await;
        let is_ordered = running.end();
        match &answer {
            Ok(said) => {
                let call = Box::new(call(said));
                self.enqueue(Job::Call { show, is_ordered, at: self.first.now(), call }, show);
            }
            Err(StoreError::NoMap(_)) => {}
            Err(_) => self.tally.missed(),
        }
        answer
    }

    fn enqueue(&self, job: Job, show: Uuid) {
        let queue = usize::try_from(show.as_u128() % QUEUES).ok().and_then(|place| self.queues.get(place));
        if queue.is_none_or(|queue| queue.try_send(job).is_err()) {
            self.tally.missed();
        }
    }
}

async fn report(tally: std::sync::Weak<DivergenceCounter>) {
    let mut tick = tokio::time::interval(REPORT_EVERY);
    let mut reported = Divergence::default();
    loop {
        tick.tick().await;
        let Some(now) = tally.upgrade().map(|tally| tally.so_far()) else { return };
        if now != reported {
            tracing::info!(divergence = ?now, "comparison of the two lock stores so far");
            reported = now;
        }
    }
}

#[async_trait]
impl SeatLocks for ShadowLocks {
    async fn lock(
        &self,
        show: Uuid,
        terms: HoldLimits,
        attempts: &[LockAttempt],
    ) -> StoreResult<Vec<SeatResult<StoredHold>>> {
        self.call_first(show, self.first.lock(show, terms, attempts), |answers| {
            MirroredCall::Lock(terms, attempts.to_vec(), answers.clone())
        })
        .await
    }

    async fn change(&self, show: Uuid, terms: HoldLimits, change: &HoldUpdate) -> StoreResult<SeatResult<StoredHold>> {
        let answer = self.first.change(show, terms, change);
        self.call_first(show, answer, |answer| MirroredCall::Change(terms, change.clone(), answer.clone())).await
    }

    async fn extend(
        &self,
        show: Uuid,
        asked: RequestIdentity,
        hold: Uuid,
        owner: &str,
        by_ms: i64,
    ) -> StoreResult<SeatResult<StoredHold>> {
        let answer = self.first.extend(show, asked, hold, owner, by_ms);
        self.call_first(show, answer, |answer| {
            MirroredCall::Extend(asked, hold, owner.to_owned(), by_ms, answer.clone())
        })
        .await
    }

    async fn hold_of(&self, show: Uuid, owner: &str) -> StoreResult<Option<StoredHold>> {
        self.call_first(show, self.first.hold_of(show, owner), |answer| {
            MirroredCall::HoldOf(owner.to_owned(), answer.clone())
        })
        .await
    }

    async fn shorten_hold(&self, show: Uuid, hold: Uuid, owner: &str, grace_ms: i64) -> StoreResult<()> {
        let answer = self.first.shorten_hold(show, hold, owner, grace_ms);
        self.call_first(show, answer, |()| MirroredCall::ShortenHold(hold, owner.to_owned(), grace_ms)).await
    }

    async fn release(&self, show: Uuid, hold: Uuid, owner: &str) -> StoreResult<SeatResult<()>> {
        let answer = self.first.release(show, hold, owner);
        self.call_first(show, answer, |answer| MirroredCall::Release(hold, owner.to_owned(), answer.clone())).await
    }

    async fn begin_payment(
        &self,
        show: Uuid,
        sale: &FencedSelection,
        extension_ms: i64,
    ) -> StoreResult<SeatResult<Timestamp>> {
        let answer = self.first.begin_payment(show, sale, extension_ms);
        self.call_first(show, answer, |answer| MirroredCall::BeginPayment(sale.clone(), extension_ms, answer.clone()))
            .await
    }

    async fn end_payment(&self, show: Uuid, sale: &FencedSelection, extension_ms: i64) -> StoreResult<()> {
        let answer = self.first.end_payment(show, sale, extension_ms);
        self.call_first(show, answer, |()| MirroredCall::EndPayment(sale.clone(), extension_ms)).await
    }

    async fn renew(
        &self,
        show: Uuid,
        party: &FencedSelection,
        renewal: &Renewal,
    ) -> StoreResult<SeatResult<StoredHold>> {
        let answer = self.first.renew(show, party, renewal);
        self.call_first(show, answer, |answer| MirroredCall::Renew(party.clone(), renewal.clone(), answer.clone()))
            .await
    }

    async fn book(&self, show: Uuid, sale: &FencedSelection) -> StoreResult<()> {
        self.call_first(show, self.first.book(show, sale), |()| MirroredCall::Book(sale.clone())).await
    }

    async fn free_and_block(&self, show: Uuid, sale: &FencedSelection, kept: &[SeatIndex]) -> StoreResult<()> {
        let answer = self.first.free_and_block(show, sale, kept);
        self.call_first(show, answer, |()| MirroredCall::Free(sale.clone(), kept.to_vec())).await
    }

    async fn block(&self, show: Uuid, seats: &[SeatIndex], blocked: bool) -> StoreResult<SeatResult<()>> {
        let answer = self.first.block(show, seats, blocked);
        self.call_first(show, answer, |answer| MirroredCall::Block(seats.to_vec(), blocked, answer.clone())).await
    }

    async fn withdraw(&self, show: Uuid, seats: &[SeatIndex]) -> StoreResult<SeatResult<Vec<SeatIndex>>> {
        let answer = self.first.withdraw(show, seats);
        self.call_first(show, answer, |_| MirroredCall::Withdraw(seats.to_vec())).await
    }

    async fn release_all(&self, show: Uuid) -> StoreResult<ReleasedAll> {
        self.call_first(show, self.first.release_all(show), |answer| MirroredCall::ReleaseAll(*answer)).await
    }

    async fn copy_hold(
        &self,
        show: Uuid,
        owner: &str,
        held: &StoredHold,
        theirs: Timestamp,
    ) -> StoreResult<SeatResult<()>> {
        let answer = self.first.copy_hold(show, owner, held, theirs);
        self.call_first(show, answer, |answer| {
            MirroredCall::Adopt(owner.to_owned(), held.clone(), theirs, answer.clone())
        })
        .await
    }

    async fn copy_fences(&self, show: Uuid, fences: &[(Uuid, i64)]) -> StoreResult<()> {
        self.call_first(show, self.first.copy_fences(show, fences), |()| MirroredCall::Stamp(fences.to_vec())).await
    }

    async fn sweep(&self, show: Uuid) -> StoreResult<u64> {
        self.call_first(show, self.first.sweep(show), |_| MirroredCall::Sweep).await
    }

    async fn snapshot(&self, show: Uuid) -> StoreResult<MapSnapshot> {
        self.call_first(show, self.first.snapshot(show), |answer| MirroredCall::Snapshot(answer.clone())).await
    }

    async fn load(&self, show: Uuid, known: &RebuildInput) -> StoreResult<()> {
        self.call_first(show, self.first.load(show, known), |()| MirroredCall::Load(known.clone())).await
    }

    async fn forget(&self, show: Uuid) -> StoreResult<()> {
        self.call_first(show, self.first.forget(show), |()| MirroredCall::Forget).await
    }

    fn now(&self) -> Timestamp {
        self.first.now()
    }

    async fn ping(&self) -> StoreResult<()> {
        self.first.ping().await
    }
}
