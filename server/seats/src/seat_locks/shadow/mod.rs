//! Two stores at once: the first answers, the second is asked the same a moment later, and where its answer
//! differs is counted. So a store that is to replace another is tried with real calls before anybody
//! depends on it, and has every hold when it takes over.
//!
//! What the second does never reaches a caller: it is asked in the background, from bounded lines, and what
//! finds a line full is not compared. Per show the order is that in which the first answered. Calls that
//! overlapped there have no order anybody could know: they are asked as well, but where answers differ that
//! proves nothing, and it is counted apart. So are the calls of other replicas.
//!
//! Compared are codes, seats, places, ids and whether a payment is in progress; of a hold that is read, its
//! fence too, since the second takes over the fences of the first. Not compared are epochs and versions
//! (each store counts its own) and instants (the second is asked later, by another clock).
//!
//! What is not here: choosing the stores (`start`), and deciding that the second is good enough (people).

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

use self::mirror::{Call, Job, Mirror};
use self::overlap::Overlaps;
use self::tally::Tally;
pub use self::tally::{Divergence, Kind};
use super::{
    Asked, Attempt, Change, Held, KnownSeats, MapSnapshot, Refusal, ReleasedAll, Renewal, Sale, SeatLocks, StoreError,
    Terms,
};

/// Lines to the second store: shows are spread over them, each stays in its own.
const LINES: u128 = 16;
/// Calls that may wait in a line; what comes when it is full is not compared.
const MAX_WAITING: usize = 1_024;
/// How often the counts are written to the log while they grow.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// What Postgres knows of a show, for a second store that has no map of it. `None`: unavailable now.
pub type KnownSource = Arc<dyn Fn(Uuid) -> BoxFuture<'static, Option<KnownSeats>> + Send + Sync>;

/// Two stores, of which the first answers.
pub struct ShadowLocks {
    first: Arc<dyn SeatLocks>,
    lines: Vec<mpsc::Sender<Job>>,
    overlaps: Arc<Overlaps>,
    tally: Arc<Tally>,
}

impl ShadowLocks {
    /// Begins to compare, in tasks of their own that end with it.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    #[must_use]
    pub fn new(first: Arc<dyn SeatLocks>, second: Arc<dyn SeatLocks>, source: KnownSource) -> Self {
        let tally = Arc::<Tally>::default();
        let mirror = Arc::new(Mirror::new(second, source, Arc::clone(&tally)));
        let lines = (0..LINES).map(|_| {
            let (line, jobs) = mpsc::channel(MAX_WAITING);
            tokio::spawn(mirror::follow(Arc::clone(&mirror), jobs));
            line
        });
        let lines = lines.collect();
        tokio::spawn(report(Arc::downgrade(&tally)));
        Self { first, lines, overlaps: Arc::default(), tally }
    }

    /// What came of the comparisons so far.
    #[must_use]
    pub fn divergence(&self) -> Divergence {
        self.tally.so_far()
    }

    /// Waits until everything the first has answered was asked of the second.
    pub async fn caught_up(&self) {
        for line in &self.lines {
            let (done, reached) = oneshot::channel();
            // A line that is gone has nothing left to do.
            if line.send(Job::Mark(done)).await.is_ok() {
                let _ = reached.await;
            }
        }
    }

    /// Asks the first, and hands the call to the line of its show.
    async fn ask<T>(
        &self,
        show: Uuid,
        answer: impl Future<Output = Result<T, StoreError>> + Send,
        call: impl FnOnce(&T) -> Call + Send,
    ) -> Result<T, StoreError>
    where
        T: Send,
    {
        // When a caller hangs up, it is unknown whether the call was done.
        let running = self.overlaps.begin(show, &self.tally);
        let answer = answer.await;
        let is_ordered = running.end();
        match &answer {
            Ok(said) => {
                let call = Box::new(call(said));
                self.hand_over(Job::Call { show, is_ordered, at: self.first.now(), call }, show);
            }
            Err(StoreError::NoMap(_)) => {}
            Err(_) => self.tally.missed(),
        }
        answer
    }

    fn hand_over(&self, job: Job, show: Uuid) {
        let line = usize::try_from(show.as_u128() % LINES).ok().and_then(|place| self.lines.get(place));
        if line.is_none_or(|line| line.try_send(job).is_err()) {
            self.tally.missed();
        }
    }
}

async fn report(tally: std::sync::Weak<Tally>) {
    let mut tick = tokio::time::interval(REPORT_EVERY);
    let mut reported = Divergence::default();
    loop {
        tick.tick().await;
        let Some(now) = tally.upgrade().map(|tally| tally.so_far()) else { return };
        if now != reported {
            tracing::info!(divergence = ?now, "the two lock stores so far");
            reported = now;
        }
    }
}

#[async_trait]
impl SeatLocks for ShadowLocks {
    async fn lock(
        &self,
        show: Uuid,
        terms: Terms,
        attempts: &[Attempt],
    ) -> Result<Vec<Result<Held, Refusal>>, StoreError> {
        self.ask(show, self.first.lock(show, terms, attempts), |answers| {
            Call::Lock(terms, attempts.to_vec(), answers.clone())
        })
        .await
    }

    async fn change(&self, show: Uuid, terms: Terms, change: &Change) -> Result<Result<Held, Refusal>, StoreError> {
        let answer = self.first.change(show, terms, change);
        self.ask(show, answer, |answer| Call::Change(terms, change.clone(), answer.clone())).await
    }

    async fn extend(
        &self,
        show: Uuid,
        asked: Asked,
        hold: Uuid,
        owner: &str,
        by_ms: i64,
    ) -> Result<Result<Held, Refusal>, StoreError> {
        let answer = self.first.extend(show, asked, hold, owner, by_ms);
        self.ask(show, answer, |answer| Call::Extend(asked, hold, owner.to_owned(), by_ms, answer.clone())).await
    }

    async fn mine(&self, show: Uuid, owner: &str) -> Result<Option<Held>, StoreError> {
        self.ask(show, self.first.mine(show, owner), |answer| Call::Mine(owner.to_owned(), answer.clone())).await
    }

    async fn leave(&self, show: Uuid, hold: Uuid, owner: &str, grace_ms: i64) -> Result<(), StoreError> {
        let answer = self.first.leave(show, hold, owner, grace_ms);
        self.ask(show, answer, |()| Call::Leave(hold, owner.to_owned(), grace_ms)).await
    }

    async fn release(&self, show: Uuid, hold: Uuid, owner: &str) -> Result<Result<(), Refusal>, StoreError> {
        let answer = self.first.release(show, hold, owner);
        self.ask(show, answer, |answer| Call::Release(hold, owner.to_owned(), answer.clone())).await
    }

    async fn begin_payment(
        &self,
        show: Uuid,
        sale: &Sale,
        extension_ms: i64,
    ) -> Result<Result<Timestamp, Refusal>, StoreError> {
        let answer = self.first.begin_payment(show, sale, extension_ms);
        self.ask(show, answer, |answer| Call::BeginPayment(sale.clone(), extension_ms, answer.clone())).await
    }

    async fn end_payment(&self, show: Uuid, sale: &Sale, extension_ms: i64) -> Result<(), StoreError> {
        let answer = self.first.end_payment(show, sale, extension_ms);
        self.ask(show, answer, |()| Call::EndPayment(sale.clone(), extension_ms)).await
    }

    async fn renew(&self, show: Uuid, party: &Sale, renewal: &Renewal) -> Result<Result<Held, Refusal>, StoreError> {
        let answer = self.first.renew(show, party, renewal);
        self.ask(show, answer, |answer| Call::Renew(party.clone(), renewal.clone(), answer.clone())).await
    }

    async fn book(&self, show: Uuid, sale: &Sale) -> Result<(), StoreError> {
        self.ask(show, self.first.book(show, sale), |()| Call::Book(sale.clone())).await
    }

    async fn free_keeping(&self, show: Uuid, sale: &Sale, kept: &[SeatIndex]) -> Result<(), StoreError> {
        let answer = self.first.free_keeping(show, sale, kept);
        self.ask(show, answer, |()| Call::Free(sale.clone(), kept.to_vec())).await
    }

    async fn block(&self, show: Uuid, seats: &[SeatIndex], blocked: bool) -> Result<Result<(), Refusal>, StoreError> {
        let answer = self.first.block(show, seats, blocked);
        self.ask(show, answer, |answer| Call::Block(seats.to_vec(), blocked, answer.clone())).await
    }

    async fn withdraw(&self, show: Uuid, seats: &[SeatIndex]) -> Result<Result<Vec<SeatIndex>, Refusal>, StoreError> {
        let answer = self.first.withdraw(show, seats);
        self.ask(show, answer, |_| Call::Withdraw(seats.to_vec())).await
    }

    async fn release_all(&self, show: Uuid) -> Result<ReleasedAll, StoreError> {
        self.ask(show, self.first.release_all(show), |answer| Call::ReleaseAll(*answer)).await
    }

    async fn adopt(
        &self,
        show: Uuid,
        owner: &str,
        held: &Held,
        theirs: Timestamp,
    ) -> Result<Result<(), Refusal>, StoreError> {
        let answer = self.first.adopt(show, owner, held, theirs);
        self.ask(show, answer, |answer| Call::Adopt(owner.to_owned(), held.clone(), theirs, answer.clone())).await
    }

    async fn stamp(&self, show: Uuid, fences: &[(Uuid, i64)]) -> Result<(), StoreError> {
        self.ask(show, self.first.stamp(show, fences), |()| Call::Stamp(fences.to_vec())).await
    }

    async fn sweep(&self, show: Uuid) -> Result<u64, StoreError> {
        self.ask(show, self.first.sweep(show), |_| Call::Sweep).await
    }

    async fn snapshot(&self, show: Uuid) -> Result<MapSnapshot, StoreError> {
        self.ask(show, self.first.snapshot(show), |answer| Call::Snapshot(answer.clone())).await
    }

    async fn load(&self, show: Uuid, known: &KnownSeats) -> Result<(), StoreError> {
        self.ask(show, self.first.load(show, known), |()| Call::Load(known.clone())).await
    }

    async fn forget(&self, show: Uuid) -> Result<(), StoreError> {
        self.ask(show, self.first.forget(show), |()| Call::Forget).await
    }

    fn now(&self) -> Timestamp {
        self.first.now()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.first.ping().await
    }
}
