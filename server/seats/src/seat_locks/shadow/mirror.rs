//! Repeats the calls of the first store on the second, and repairs the second after different answers.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use domain::seats::SeatIndex;
use domain::time::Timestamp;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::super::{
    Asked, Attempt, Change, Held, KnownSeats, MapSnapshot, Refusal, ReleasedAll, Renewal, Sale, SeatLocks, StoreError,
    Terms,
};
use super::KnownSource;
use super::tally::{Kind, Tally};

/// An item of a queue.
pub(super) enum Job {
    Call {
        show: Uuid,
        /// True if no other call of the show overlapped with it.
        is_ordered: bool,
        /// The first store's clock after its answer.
        at: Timestamp,
        call: Box<Call>,
    },
    /// Confirms that everything before it is done.
    Barrier(oneshot::Sender<()>),
}

/// A call to the first store with its arguments, and its answer if it has one.
pub(super) enum Call {
    Lock(Terms, Vec<Attempt>, Vec<Result<Held, Refusal>>),
    Change(Terms, Change, Result<Held, Refusal>),
    Extend(Asked, Uuid, String, i64, Result<Held, Refusal>),
    Mine(String, Option<Held>),
    Leave(Uuid, String, i64),
    Release(Uuid, String, Result<(), Refusal>),
    BeginPayment(Sale, i64, Result<Timestamp, Refusal>),
    EndPayment(Sale, i64),
    Renew(Sale, Renewal, Result<Held, Refusal>),
    Book(Sale),
    Free(Sale, Vec<SeatIndex>),
    Block(Vec<SeatIndex>, bool, Result<(), Refusal>),
    Withdraw(Vec<SeatIndex>),
    ReleaseAll(ReleasedAll),
    Adopt(String, Held, Timestamp, Result<(), Refusal>),
    Stamp(Vec<(Uuid, i64)>),
    Sweep,
    Snapshot(MapSnapshot),
    Load(KnownSeats),
    Forget,
}

pub(super) struct Mirror {
    second: Arc<dyn SeatLocks>,
    source: KnownSource,
    tally: Arc<Tally>,
}

/// Does the jobs of a queue until its senders are gone.
pub(super) async fn run_jobs(mirror: Arc<Mirror>, mut jobs: mpsc::Receiver<Job>) {
    while let Some(job) = jobs.recv().await {
        match job {
            Job::Call { show, is_ordered, at, call } => {
                let one = RepeatedCall { mirror: &mirror, show, is_ordered, at };
                if let Err(cause) = one.ask(&call).await {
                    mirror.tally.unreachable(show, &cause);
                }
            }
            // The receiver may be gone.
            Job::Barrier(done) => drop(done.send(())),
        }
    }
}

impl Mirror {
    pub(super) fn new(second: Arc<dyn SeatLocks>, source: KnownSource, tally: Arc<Tally>) -> Self {
        Self { second, source, tally }
    }
}

/// RepeatedCall call to be repeated.
struct RepeatedCall<'a> {
    mirror: &'a Mirror,
    show: Uuid,
    is_ordered: bool,
    at: Timestamp,
}

impl RepeatedCall<'_> {
    async fn ask(&self, call: &Call) -> Result<(), StoreError> {
        let (store, show) = (&self.mirror.second, self.show);
        match call {
            Call::Lock(terms, attempts, first) => self.lock(*terms, attempts, first).await,
            Call::Change(terms, change, first) => {
                let second = self.with_map(|| store.change(show, *terms, change)).await?;
                self.compare_known_hold("change", first, &second, is_same_hold);
                Ok(())
            }
            // The second may have counted fewer lapses, and would extend the hold.
            Call::Extend(_, _, _, _, Err(Refusal::Lapsed)) => Ok(()),
            Call::Extend(asked, hold, owner, by_ms, first) => {
                let second = self.with_map(|| store.extend(show, *asked, *hold, owner, *by_ms)).await?;
                self.settle_extension(owner, first, &second).await
            }
            Call::Mine(owner, first) => self.mine(owner, first.as_ref()).await,
            Call::Leave(hold, owner, grace_ms) => self.with_map(|| store.leave(show, *hold, owner, *grace_ms)).await,
            Call::Release(hold, owner, first) => {
                let second = self.with_map(|| store.release(show, *hold, owner)).await?;
                self.compare_known_hold("release", first, &second, |(), ()| true);
                Ok(())
            }
            Call::BeginPayment(sale, extension_ms, first) => self.begin_payment(sale, *extension_ms, first).await,
            Call::EndPayment(sale, extension_ms) => {
                self.with_map(|| store.end_payment(show, sale, *extension_ms)).await
            }
            Call::Renew(party, renewal, first) => self.renew(party, renewal, first).await,
            Call::Book(sale) => self.with_map(|| store.book(show, sale)).await,
            Call::Free(sale, kept) => self.with_map(|| store.free_keeping(show, sale, kept)).await,
            Call::Block(seats, blocked, first) => {
                let second = self.with_map(|| store.block(show, seats, *blocked)).await?;
                self.compare("block", first, &second, |(), ()| true);
                Ok(())
            }
            // The second may not have the payments in progress.
            Call::Withdraw(seats) => self.with_map(|| store.withdraw(show, seats)).await.map(drop),
            Call::ReleaseAll(first) => {
                let second = self.with_map(|| store.release_all(show)).await?;
                self.compare("release_all", &Ok(*first), &Ok(second), |first, second| first == second);
                Ok(())
            }
            Call::Adopt(owner, held, theirs, first) => {
                let second = self.with_map(|| store.adopt(show, owner, held, *theirs)).await?;
                self.compare("adopt", first, &second, |(), ()| true);
                Ok(())
            }
            Call::Stamp(fences) => self.with_map(|| store.stamp(show, fences)).await,
            Call::Sweep => self.with_map(|| store.sweep(show)).await.map(drop),
            Call::Snapshot(first) => {
                let second = self.with_map(|| store.snapshot(show)).await?;
                self.compare("snapshot", &Ok(first.clone()), &Ok(second), is_same_map);
                Ok(())
            }
            Call::Load(known) => store.load(show, known).await,
            Call::Forget => store.forget(show).await,
        }
    }

    /// Calls the second; if it has no map, loads it and retries once.
    async fn with_map<T, F>(&self, ask: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
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
        terms: Terms,
        attempts: &[Attempt],
        first: &[Result<Held, Refusal>],
    ) -> Result<(), StoreError> {
        let (store, show) = (&self.mirror.second, self.show);
        let second = self.with_map(|| store.lock(show, terms, attempts)).await?;
        let mut fences = Vec::new();
        for ((attempt, first), second) in attempts.iter().zip(first).zip(&second) {
            let is_same = self.compare("lock", first, second, is_same_hold);
            match (first, second) {
                // Also for a hold that has ended: stamp skips it.
                (Ok(held), Ok(_)) => fences.push((held.hold, held.fence)),
                (Ok(held), Err(_)) => drop(store.adopt(show, &attempt.owner, held, self.at).await?),
                (Err(_), Ok(held)) if !is_same => drop(store.release(show, held.hold, &attempt.owner).await?),
                _ => {}
            }
        }
        if fences.is_empty() { Ok(()) } else { store.stamp(show, &fences).await }
    }

    /// Lapses are not copied: a store that started later counts fewer, for half an hour.
    /// Differences due to lapses alone are not counted, and the second copies the first's expiry.
    async fn settle_extension(
        &self,
        owner: &str,
        first: &Result<Held, Refusal>,
        second: &Result<Held, Refusal>,
    ) -> Result<(), StoreError> {
        match (first, second) {
            (Ok(held), Err(Refusal::Lapsed)) => {
                self.mirror.second.adopt(self.show, owner, held, self.at).await.map(drop)
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

    /// The second extended a hold by more or less than the first. If its hold has not changed since, it copies the
    /// first's expiry; a replay returns the expiry of its time.
    async fn copy_expiry(&self, owner: &str, first: &Held, second: &Held) -> Result<(), StoreError> {
        let (store, show) = (&self.mirror.second, self.show);
        let now_is = store.mine(show, owner).await?;
        if now_is.is_some_and(|now_is| now_is.hold == second.hold && now_is.expires_at == second.expires_at) {
            drop(store.adopt(show, owner, first, self.at).await?);
        }
        Ok(())
    }

    /// Compares a hold that was read, and makes the second the same as the first.
    async fn mine(&self, owner: &str, first: Option<&Held>) -> Result<(), StoreError> {
        let (store, show) = (&self.mirror.second, self.show);
        let second = self.with_map(|| store.mine(show, owner)).await?;
        let (first, second) = (first.cloned().ok_or(Refusal::Gone), second.ok_or(Refusal::Gone));
        let with_fence = |first: &Held, second: &Held| is_same_hold(first, second) && first.fence == second.fence;
        if self.compare_known_hold("mine", &first, &second, with_fence) {
            return Ok(());
        }
        match (first, second) {
            (Ok(held), _) => store.adopt(show, owner, &held, self.at).await.map(drop),
            (Err(_), Ok(held)) => store.release(show, held.hold, owner).await.map(drop),
            (Err(_), Err(_)) => Ok(()),
        }
    }

    async fn begin_payment(
        &self,
        sale: &Sale,
        extension_ms: i64,
        first: &Result<Timestamp, Refusal>,
    ) -> Result<(), StoreError> {
        let (store, show) = (&self.mirror.second, self.show);
        let second = self.with_map(|| store.begin_payment(show, sale, extension_ms)).await?;
        self.compare_known_hold("begin_payment", first, &second, |_, _| true);
        match (first, second) {
            (Ok(end), Err(_)) => {
                let (expires_at, latest, lot) = (*end, *end, sale.lot.clone());
                let held = Held { hold: sale.hold, expires_at, latest, fence: sale.fence, paying: true, lot };
                store.adopt(show, &sale.owner, &held, self.at).await.map(drop)
            }
            (Err(_), Ok(_)) => store.end_payment(show, sale, extension_ms).await,
            _ => Ok(()),
        }
    }

    async fn renew(&self, party: &Sale, renewal: &Renewal, first: &Result<Held, Refusal>) -> Result<(), StoreError> {
        let (store, show) = (&self.mirror.second, self.show);
        // The same length on the second store's clock.
        let until = store.now().plus_ms(renewal.until.since(self.at));
        let here = Renewal { until, ..renewal.clone() };
        let second = self.with_map(|| store.renew(show, party, &here)).await?;
        self.compare_known_hold("renew", first, &second, is_same_hold);
        match (first, second) {
            (Ok(held), Ok(_)) => store.stamp(show, &[(held.hold, held.fence)]).await,
            (Ok(held), Err(_)) => store.adopt(show, &renewal.owner, held, self.at).await.map(drop),
            (Err(_), Ok(held)) => store.release(show, held.hold, &renewal.owner).await.map(drop),
            (Err(_), Err(_)) => Ok(()),
        }
    }

    /// Compares answers about a hold; one that the second does not have counts apart.
    fn compare_known_hold<T: Debug>(
        &self,
        call: &'static str,
        first: &Result<T, Refusal>,
        second: &Result<T, Refusal>,
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
        first: &Result<T, Refusal>,
        second: &Result<T, Refusal>,
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
            let kind = Kind { call, first: one, second: if one == other { "otherwise" } else { other } };
            tally.differs(self.show, kind, &(first, second));
        } else if !same {
            tally.unordered();
        }
        same
    }
}

fn is_same_hold(first: &Held, second: &Held) -> bool {
    first.hold == second.hold && first.paying == second.paying && first.lot == second.lot
}

/// Time between expiry and limit of a hold, milliseconds, which does not depend on the clock.
fn rest_of_life(held: &Held) -> i64 {
    held.latest.since(held.expires_at)
}

fn is_same_map(first: &MapSnapshot, second: &MapSnapshot) -> bool {
    first.map == second.map && first.areas == second.areas
}

const fn code<T>(answer: &Result<T, Refusal>) -> &'static str {
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
