//! Asking the second store what the first was asked, and making it agree again where it did not.

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

/// What waits in a line.
pub(super) enum Job {
    Call {
        show: Uuid,
        /// Nothing else of the show ran beside it.
        is_ordered: bool,
        /// The first store's clock when it had answered.
        at: Timestamp,
        call: Box<Call>,
    },
    /// Everything before it is done.
    Mark(oneshot::Sender<()>),
}

/// What the first was asked, and its answer where there is one.
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

/// Does the jobs of a line until nobody can send any more.
pub(super) async fn follow(mirror: Arc<Mirror>, mut jobs: mpsc::Receiver<Job>) {
    while let Some(job) = jobs.recv().await {
        match job {
            Job::Call { show, is_ordered, at, call } => {
                let one = One { mirror: &mirror, show, is_ordered, at };
                if let Err(cause) = one.ask(&call).await {
                    mirror.tally.unreachable(show, &cause);
                }
            }
            // Nobody waiting any more is fine.
            Job::Mark(done) => drop(done.send(())),
        }
    }
}

impl Mirror {
    pub(super) fn new(second: Arc<dyn SeatLocks>, source: KnownSource, tally: Arc<Tally>) -> Self {
        Self { second, source, tally }
    }
}

/// One call.
struct One<'a> {
    mirror: &'a Mirror,
    show: Uuid,
    is_ordered: bool,
    at: Timestamp,
}

impl One<'_> {
    async fn ask(&self, call: &Call) -> Result<(), StoreError> {
        let (store, show) = (&self.mirror.second, self.show);
        match call {
            Call::Lock(terms, attempts, first) => self.lock(*terms, attempts, first).await,
            Call::Change(terms, change, first) => {
                let second = self.loaded(|| store.change(show, *terms, change)).await?;
                self.of_known("change", first, &second, is_same_hold);
                Ok(())
            }
            // The second may know of fewer holds that ran out, and would have the hold last longer than it does.
            Call::Extend(_, _, _, _, Err(Refusal::Lapsed)) => Ok(()),
            Call::Extend(asked, hold, owner, by_ms, first) => {
                let second = self.loaded(|| store.extend(show, *asked, *hold, owner, *by_ms)).await?;
                self.extended(owner, first, &second).await
            }
            Call::Mine(owner, first) => self.mine(owner, first.as_ref()).await,
            Call::Leave(hold, owner, grace_ms) => self.loaded(|| store.leave(show, *hold, owner, *grace_ms)).await,
            Call::Release(hold, owner, first) => {
                let second = self.loaded(|| store.release(show, *hold, owner)).await?;
                self.of_known("release", first, &second, |(), ()| true);
                Ok(())
            }
            Call::BeginPayment(sale, extension_ms, first) => self.begin_payment(sale, *extension_ms, first).await,
            Call::EndPayment(sale, extension_ms) => self.loaded(|| store.end_payment(show, sale, *extension_ms)).await,
            Call::Renew(party, renewal, first) => self.renew(party, renewal, first).await,
            Call::Book(sale) => self.loaded(|| store.book(show, sale)).await,
            Call::Free(sale, kept) => self.loaded(|| store.free_keeping(show, sale, kept)).await,
            Call::Block(seats, blocked, first) => {
                let second = self.loaded(|| store.block(show, seats, *blocked)).await?;
                self.compare("block", first, &second, |(), ()| true);
                Ok(())
            }
            // The second may not know of holds that are being paid for.
            Call::Withdraw(seats) => self.loaded(|| store.withdraw(show, seats)).await.map(drop),
            Call::ReleaseAll(first) => {
                let second = self.loaded(|| store.release_all(show)).await?;
                self.compare("release_all", &Ok(*first), &Ok(second), |first, second| first == second);
                Ok(())
            }
            Call::Adopt(owner, held, theirs, first) => {
                let second = self.loaded(|| store.adopt(show, owner, held, *theirs)).await?;
                self.compare("adopt", first, &second, |(), ()| true);
                Ok(())
            }
            Call::Stamp(fences) => self.loaded(|| store.stamp(show, fences)).await,
            Call::Sweep => self.loaded(|| store.sweep(show)).await.map(drop),
            Call::Snapshot(first) => {
                let second = self.loaded(|| store.snapshot(show)).await?;
                self.compare("snapshot", &Ok(first.clone()), &Ok(second), is_same_map);
                Ok(())
            }
            Call::Load(known) => store.load(show, known).await,
            Call::Forget => store.forget(show).await,
        }
    }

    /// Asks; if there is no map, loads it and asks once more.
    async fn loaded<T, F>(&self, ask: impl Fn() -> F) -> Result<T, StoreError>
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
        let second = self.loaded(|| store.lock(show, terms, attempts)).await?;
        let mut fences = Vec::new();
        for ((attempt, first), second) in attempts.iter().zip(first).zip(&second) {
            let is_same = self.compare("lock", first, second, is_same_hold);
            match (first, second) {
                // Also for a hold that is over: then there is nothing to stamp.
                (Ok(held), Ok(_)) => fences.push((held.hold, held.fence)),
                (Ok(held), Err(_)) => drop(store.adopt(show, &attempt.owner, held, self.at).await?),
                (Err(_), Ok(held)) if !is_same => drop(store.release(show, held.hold, &attempt.owner).await?),
                _ => {}
            }
        }
        if fences.is_empty() { Ok(()) } else { store.stamp(show, &fences).await }
    }

    /// How many holds of somebody ran out is not brought over: a store that began later knows of fewer, for half an hour.
    /// Where only that tells the two apart nothing is counted, and the second has the hold last as long as the first.
    async fn extended(
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
                let is_same = self.of_known("extend", first, second, is_same_hold);
                match (first, second) {
                    (Ok(first), Ok(second)) if is_same && left_of(first) != left_of(second) => {
                        self.last_as_long(owner, first, second).await
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// The second extended a hold by more than the first, or by less. Not where it has moved on since: a repeat is told what
    /// was granted then.
    async fn last_as_long(&self, owner: &str, first: &Held, second: &Held) -> Result<(), StoreError> {
        let (store, show) = (&self.mirror.second, self.show);
        let now_is = store.mine(show, owner).await?;
        if now_is.is_some_and(|now_is| now_is.hold == second.hold && now_is.expires_at == second.expires_at) {
            drop(store.adopt(show, owner, first, self.at).await?);
        }
        Ok(())
    }

    /// Reading a hold tells all about it: whatever the second has instead gives way to it.
    async fn mine(&self, owner: &str, first: Option<&Held>) -> Result<(), StoreError> {
        let (store, show) = (&self.mirror.second, self.show);
        let second = self.loaded(|| store.mine(show, owner)).await?;
        let (first, second) = (first.cloned().ok_or(Refusal::Gone), second.ok_or(Refusal::Gone));
        let with_fence = |first: &Held, second: &Held| is_same_hold(first, second) && first.fence == second.fence;
        if self.of_known("mine", &first, &second, with_fence) {
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
        let second = self.loaded(|| store.begin_payment(show, sale, extension_ms)).await?;
        self.of_known("begin_payment", first, &second, |_, _| true);
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
        // As long by its own clock.
        let until = store.now().plus_ms(renewal.until.since(self.at));
        let here = Renewal { until, ..renewal.clone() };
        let second = self.loaded(|| store.renew(show, party, &here)).await?;
        self.of_known("renew", first, &second, is_same_hold);
        match (first, second) {
            (Ok(held), Ok(_)) => store.stamp(show, &[(held.hold, held.fence)]).await,
            (Ok(held), Err(_)) => store.adopt(show, &renewal.owner, held, self.at).await.map(drop),
            (Err(_), Ok(held)) => store.release(show, held.hold, &renewal.owner).await.map(drop),
            (Err(_), Err(_)) => Ok(()),
        }
    }

    /// Compares answers about a hold: one the second does not know is no fault of its.
    fn of_known<T: Debug>(
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

    /// Compares two answers, and counts what differs.
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

/// How much longer a hold may last than it does, milliseconds: the same by any clock.
fn left_of(held: &Held) -> i64 {
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
