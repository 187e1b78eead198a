//! Repeats the calls of the first store on the second, and repairs the second after different answers.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use domain::seats::SeatIndex;
use domain::time::Timestamp;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::super::{
    FencedSelection, HoldLimits, HoldUpdate, LockAttempt, MapSnapshot, RebuildInput, Refusal, ReleasedAll, Renewal,
    RequestIdentity, SeatLocks, SeatResult, StoreError, StoreResult, StoredHold,
};
use super::RebuildSource;
use super::tally::{DivergenceCounter, DivergenceKind};

/// An item of a queue.
pub(super) enum Job {
    Call {
        show: Uuid,
        /// True if no other call of the show overlapped with it.
        is_ordered: bool,
        /// The first store's clock after its answer.
        at: Timestamp,
        call: Box<MirroredCall>,
    },
    /// Confirms that everything before it is done.
    Barrier(oneshot::Sender<()>),
}

/// A call to the first store with its arguments, and its answer if it has one.
pub(super) enum MirroredCall {
    Lock(HoldLimits, Vec<LockAttempt>, Vec<SeatResult<StoredHold>>),
    Change(HoldLimits, HoldUpdate, SeatResult<StoredHold>),
    Extend(RequestIdentity, Uuid, String, i64, SeatResult<StoredHold>),
    HoldOf(String, Option<StoredHold>),
    ShortenHold(Uuid, String, i64),
    Release(Uuid, String, SeatResult<()>),
    BeginPayment(FencedSelection, i64, SeatResult<Timestamp>),
    EndPayment(FencedSelection, i64),
    Renew(FencedSelection, Renewal, SeatResult<StoredHold>),
    Book(FencedSelection),
    Free(FencedSelection, Vec<SeatIndex>),
    Block(Vec<SeatIndex>, bool, SeatResult<()>),
    Withdraw(Vec<SeatIndex>),
    ReleaseAll(ReleasedAll),
    Adopt(String, StoredHold, Timestamp, SeatResult<()>),
    Stamp(Vec<(Uuid, i64)>),
    Sweep,
    Snapshot(MapSnapshot),
    Load(RebuildInput),
    Forget,
}

pub(super) struct Mirror {
    second: Arc<dyn SeatLocks>,
    source: RebuildSource,
    tally: Arc<DivergenceCounter>,
}

/// Does the jobs of a queue until its senders are gone.
pub(super) async fn run_jobs(mirror: Arc<Mirror>, mut jobs: mpsc::Receiver<Job>) {
    while let Some(job) = jobs.recv().await {
        match job {
            Job::Call { show, is_ordered, at, call } => {
                let one = RepeatedCall { mirror: &mirror, show, is_ordered, at };
                if let Err(cause) = one.repeat(&call).await {
                    mirror.tally.unreachable(show, &cause);
                }
            }
            // The receiver may be gone.
            Job::Barrier(done) => drop(done.send(())),
        }
    }
}

impl Mirror {
    pub(super) fn new(second: Arc<dyn SeatLocks>, source: RebuildSource, tally: Arc<DivergenceCounter>) -> Self {
        Self { second, source, tally }
    }
}

struct RepeatedCall<'a> {
    mirror: &'a Mirror,
    show: Uuid,
    is_ordered: bool,
    at: Timestamp,
}

impl RepeatedCall<'_> {
    /// Sends the call to the second store, and compares the answers.
    async fn repeat(&self, call: &MirroredCall) -> StoreResult<()> {
        let (store, show) = (&self.mirror.second, self.show);
        match call {
            MirroredCall::Lock(terms, attempts, first) => self.lock(*terms, attempts, first).await,
            MirroredCall::Change(terms, change, first) => {
                let second = self.with_map(|| store.change(show, *terms, change)).await?;
                self.compare_known_hold("change", first, &second, is_same_hold);
                Ok(())
            }
            // The second may have counted fewer lapses, and would extend the hold.
            MirroredCall::Extend(_, _, _, _, Err(Refusal::Lapsed)) => Ok(()),
            MirroredCall::Extend(asked, hold, owner, by_ms, first) => {
                let second = self.with_map(|| store.extend(show, *asked, *hold, owner, *by_ms)).await?;
                self.settle_extension(owner, first, &second).await
            }
            MirroredCall::HoldOf(owner, first) => self.hold_of(owner, first.as_ref()).await,
            MirroredCall::ShortenHold(hold, owner, grace_ms) => {
                self.with_map(|| store.shorten_hold(show, *hold, owner, *grace_ms)).await
            }
            MirroredCall::Release(hold, owner, first) => {
                let second = self.with_map(|| store.release(show, *hold, owner)).await?;
                self.compare_known_hold("release", first, &second, |(), ()| true);
                Ok(())
            }
            MirroredCall::BeginPayment(sale, extension_ms, first) => {
                self.begin_payment(sale, *extension_ms, first).await
            }
            MirroredCall::EndPayment(sale, extension_ms) => {
                self.with_map(|| store.end_payment(show, sale, *extension_ms)).await
            }
            MirroredCall::Renew(party, renewal, first) => self.renew(party, renewal, first).await,
            MirroredCall::Book(sale) => self.with_map(|| store.book(show, sale)).await,
            MirroredCall::Free(sale, kept) => self.with_map(|| store.free_and_block(show, sale, kept)).await,
            MirroredCall::Block(seats, blocked, first) => {
                let second = self.with_map(|| store.block(show, seats, *blocked)).await?;
                self.compare("block", first, &second, |(), ()| true);
                Ok(())
            }
            // The second may not have the payments in progress.
            MirroredCall::Withdraw(seats) => self.with_map(|| store.withdraw(show, seats)).await.map(drop),
            MirroredCall::ReleaseAll(first) => {
                let second = self.with_map(|| store.release_all(show)).await?;
                self.compare("release_all", &Ok(*first), &Ok(second), |first, second| first == second);
                Ok(())
            }
            MirroredCall::Adopt(owner, held, theirs, first) => {
                let second = self.with_map(|| store.copy_hold(show, owner, held, *theirs)).await?;
                self.compare("adopt", first, &second, |(), ()| true);
                Ok(())
            }
            MirroredCall::Stamp(fences) => self.with_map(|| store.copy_fences(show, fences)).await,
            MirroredCall::Sweep => self.with_map(|| store.sweep(show)).await.map(drop),
            MirroredCall::Snapshot(first) => {
                let second = self.with_map(|| store.snapshot(show)).await?;
                self.compare("snapshot", &Ok(first.clone()), &Ok(second), is_same_map);
                Ok(())
            }
            MirroredCall::Load(known) => store.load(show, known).await,
            MirroredCall::Forget => store.forget(show).await,
        }
    }

    /// Calls the second; if it has no map, loads it and retries once.
    async fn with_map<T, F>(&self, ask: impl Fn() -> F) -> StoreResult<T>
    where
        F: Future<Output = StoreResult<T>>,
    {
        let answer = ask().await;
        if !matches!(answer, Err(StoreError::NoMap(_))) {
            return answer;
        }
        let Some(known) = (self.mirror.source)(self.show).await else { return answer };
        self.mirror.second.load(self.show, &known).await?;
        ask().await
    }

    async fn lock(
        &self,
        terms: HoldLimits,
        attempts: &[LockAttempt],
        first: &[SeatResult<StoredHold>],
    ) -> StoreResult<()> {
        let (store, show) = (&self.mirror.second, self.show);
        let second = self.with_map(|| store.lock(show, terms, attempts)).await?;
        let mut fences = Vec::new();
        for ((attempt, first), second) in attempts.iter().zip(first).zip(&second) {
            let is_same = self.compare("lock", first, second, is_same_hold);
            match (first, second) {
                // Also for a hold that has ended: stamp skips it.
                (Ok(held), Ok(_)) => fences.push((held.hold, held.fence)),
                (Ok(held), Err(_)) => drop(store.copy_hold(show, &attempt.owner, held, self.at).await?),
                (Err(_), Ok(held)) if !is_same => drop(store.release(show, held.hold, &attempt.owner).await?),
                _ => {}
            }
        }
        if fences.is_empty() { Ok(()) } else { store.copy_fences(show, &fences).await }
    }

    /// Compares the answers to an extension. Lapses are not copied: a store that started later counts fewer, for half
    /// an hour. Differences due to lapses alone are not counted, and the second copies the first's expiry.
    async fn settle_extension(
        &self,
        owner: &str,
        first: &SeatResult<StoredHold>,
        second: &SeatResult<StoredHold>,
    ) -> StoreResult<()> {
        match (first, second) {
            (Ok(held), Err(Refusal::Lapsed)) => {
                self.mirror.second.copy_hold(self.show, owner, held, self.at).await.map(drop)
            }
            _ => {
                let is_same = self.compare_known_hold("extend", first, second, is_same_hold);
                match (first, second) {
                    (Ok(first), Ok(second)) if is_same && rest_of_life(first) != rest_of_life(second) => {
                        self.copy_expiry(owner, first, second).await
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Copies the first's expiry of a hold that the second extended by more or less. A hold that has changed since
    /// stays as it is: a replay returns the expiry of its time.
    async fn copy_expiry(&self, owner: &str, first: &StoredHold, second: &StoredHold) -> StoreResult<()> {
        let (store, show) = (&self.mirror.second, self.show);
        let now_is = store.hold_of(show, owner).await?;
        if now_is.is_some_and(|now_is| now_is.hold == second.hold && now_is.expires_at == second.expires_at) {
            drop(store.copy_hold(show, owner, first, self.at).await?);
        }
        Ok(())
    }

    /// Compares a hold that was read, and makes the second the same as the first.
    async fn hold_of(&self, owner: &str, first: Option<&StoredHold>) -> StoreResult<()> {
        let (store, show) = (&self.mirror.second, self.show);
        let second = self.with_map(|| store.hold_of(show, owner)).await?;
        let (first, second) = (first.cloned().ok_or(Refusal::Gone), second.ok_or(Refusal::Gone));
        let with_fence =
            |first: &StoredHold, second: &StoredHold| is_same_hold(first, second) && first.fence == second.fence;
        if self.compare_known_hold("mine", &first, &second, with_fence) {
            return Ok(());
        }
        match (first, second) {
            (Ok(held), _) => store.copy_hold(show, owner, &held, self.at).await.map(drop),
            (Err(_), Ok(held)) => store.release(show, held.hold, owner).await.map(drop),
            (Err(_), Err(_)) => Ok(()),
        }
    }

    async fn begin_payment(
        &self,
        sale: &FencedSelection,
        extension_ms: i64,
        first: &SeatResult<Timestamp>,
    ) -> StoreResult<()> {
        let (store, show) = (&self.mirror.second, self.show);
        let second = self.with_map(|| store.begin_payment(show, sale, extension_ms)).await?;
        self.compare_known_hold("begin_payment", first, &second, |_, _| true);
        match (first, second) {
            (Ok(end), Err(_)) => {
                let (expires_at, latest, selection) = (*end, *end, sale.selection.clone());
                let held =
                    StoredHold { hold: sale.hold, expires_at, latest, fence: sale.fence, paying: true, selection };
                store.copy_hold(show, &sale.owner, &held, self.at).await.map(drop)
            }
            (Err(_), Ok(_)) => store.end_payment(show, sale, extension_ms).await,
            _ => Ok(()),
        }
    }

    async fn renew(
        &self,
        party: &FencedSelection,
        renewal: &Renewal,
        first: &SeatResult<StoredHold>,
    ) -> StoreResult<()> {
        let (store, show) = (&self.mirror.second, self.show);
        // The same length on the second store's clock.
        let until = store.now().plus_ms(renewal.until.since(self.at));
        let here = Renewal { until, ..renewal.clone() };
        let second = self.with_map(|| store.renew(show, party, &here)).await?;
        self.compare_known_hold("renew", first, &second, is_same_hold);
        match (first, second) {
            (Ok(held), Ok(_)) => store.copy_fences(show, &[(held.hold, held.fence)]).await,
            (Ok(held), Err(_)) => store.copy_hold(show, &renewal.owner, held, self.at).await.map(drop),
            (Err(_), Ok(held)) => store.release(show, held.hold, &renewal.owner).await.map(drop),
            (Err(_), Err(_)) => Ok(()),
        }
    }

    /// Compares answers about a hold; one that the second does not have counts apart.
    fn compare_known_hold<T: Debug>(
        &self,
        call: &'static str,
        first: &SeatResult<T>,
        second: &SeatResult<T>,
        is_same: impl Fn(&T, &T) -> bool,
    ) -> bool {
        if matches!((first, second), (Ok(_) | Err(Refusal::Paying), Err(Refusal::Gone))) && self.is_ordered {
            self.mirror.tally.compared();
            self.mirror.tally.unknown_hold();
            return false;
        }
        self.compare(call, first, second, is_same)
    }

    /// Compares two answers, and counts a difference.
    fn compare<T: Debug>(
        &self,
        call: &'static str,
        first: &SeatResult<T>,
        second: &SeatResult<T>,
        is_same: impl Fn(&T, &T) -> bool,
    ) -> bool {
        let tally = &self.mirror.tally;
        tally.compared();
        let same = match (first, second) {
            (Ok(first), Ok(second)) => is_same(first, second),
            (Err(first), Err(second)) => first == second,
            _ => false,
        };
        if !same && self.is_ordered {
            let (one, other) = (code(first), code(second));
            let kind = DivergenceKind { call, first: one, second: if one == other { "otherwise" } else { other } };
            tally.differs(self.show, kind, &(first, second));
        } else if !same {
            tally.unordered();
        }
        same
    }
}

fn is_same_hold(first: &StoredHold, second: &StoredHold) -> bool {
    first.hold == second.hold && first.paying == second.paying && first.selection == second.selection
}

/// Time between expiry and limit of a hold, milliseconds, which does not depend on the clock.
fn rest_of_life(held: &StoredHold) -> i64 {
    held.latest.since(held.expires_at)
}

fn is_same_map(first: &MapSnapshot, second: &MapSnapshot) -> bool {
    first.map == second.map && first.areas == second.areas
}

const fn code<T>(answer: &SeatResult<T>) -> &'static str {
    match answer {
        Ok(_) => "ok",
        Err(Refusal::Taken(_)) => "taken",
        Err(Refusal::Full(_)) => "full",
        Err(Refusal::OtherHold(_)) => "other_hold",
        Err(Refusal::Limit(_)) => "limit",
        Err(Refusal::Reused) => "reused",
        Err(Refusal::Outside(_)) => "outside",
        Err(Refusal::NoArea(_)) => "no_area",
        Err(Refusal::Gone) => "gone",
        Err(Refusal::Paying) => "paying",
        Err(Refusal::Changed) => "changed",
        Err(Refusal::Capped) => "capped",
        Err(Refusal::Lapsed) => "lapsed",
    }
}
