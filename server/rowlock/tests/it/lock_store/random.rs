//! Any calls in any order: Redis answers as memory does, both announce what their maps become, and no seat
//! is locked for nobody or for two.
//!
//! Both stores get the same calls, answer by answer compared, the smallest sequence shown that tells them
//! apart. Fences are the same in both, since the show's begin above every clock. Instants are compared by
//! the minute: all lengths are whole ones, and Redis' clock goes on by moments only while a case runs.
//! Each case has a show of its own. Holds end in both: see [`RedisHouse::pass`].

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use domain::seats::SeatState;
use domain::time::{MINUTE_MS, Timestamp};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use seats::seat_locks::{
    Held, KnownSeats, ManualClock, MapSnapshot, MemoryLocks, RedisLocks, Refusal, Sale, SeatLocks, ShadowLocks,
};
use uuid::Uuid;

use super::announcements::{Ear, after};
use super::house::{LOWEST_FENCE, clock, lot, memory};
use super::random_calls::{AREAS, Call, PEOPLE, SEATS, Sold, calls, terms};
use super::redis_house::RedisHouse;

/// Cases of each property.
const CASES: u32 = 256;
/// Calls of a case at most.
const MAX_CALLS: usize = 40;

/// Runs a property on so many sequences of calls.
fn of_any_calls<F: Future<Output = Result<(), TestCaseError>>>(property: impl Fn(Vec<Call>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&calls(MAX_CALLS), |calls| runtime.block_on(property(calls)));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

fn known() -> KnownSeats {
    KnownSeats {
        map: vec![SeatState::Available as u8; SEATS],
        areas: AREAS.to_vec(),
        lowest_fence: LOWEST_FENCE,
        ..KnownSeats::default()
    }
}

/// Holds as they were granted last: what bookings know of them.
#[derive(Default)]
struct Ledger(HashMap<Uuid, Held>);

impl Ledger {
    fn fence(&self, hold: Uuid, off: i64) -> i64 {
        self.0.get(&hold).map_or(LOWEST_FENCE, |held| held.fence) + off
    }

    fn sale(&self, sold: &Sold) -> Sale {
        let hold = sold.of.hold();
        let lot = sold.lot.clone().or_else(|| self.0.get(&hold).map(|held| held.lot.clone()));
        let lot = lot.unwrap_or_else(|| lot_of_nobody(&sold.of));
        Sale { hold, owner: sold.of.owner().into(), fence: self.fence(hold, sold.fence_off), lot }
    }

    fn note(&mut self, held: &Held) {
        self.0.insert(held.hold, held.clone());
    }
}

fn lot_of_nobody(of: &super::random_calls::Of) -> seats::seat_locks::Lot {
    lot(&[of.person as u32], &[])
}

/// A store with a show in it.
struct Stage {
    store: Arc<dyn SeatLocks>,
    show: Uuid,
    began: Timestamp,
    clock: Option<ManualClock>,
    redis: Option<RedisHouse>,
    /// How much time passed, milliseconds.
    passed: i64,
}

impl Stage {
    async fn open(
        store: Arc<dyn SeatLocks>,
        show: Uuid,
        clock: Option<ManualClock>,
        redis: Option<RedisHouse>,
    ) -> Self {
        store.load(show, &known()).await.expect("it is loaded");
        let began = store.now();
        Self { store, show, began, clock, redis, passed: 0 }
    }

    async fn snapshot(&self) -> MapSnapshot {
        self.store.snapshot(self.show).await.expect("a snapshot")
    }

    async fn pass(&mut self, ms: i64) {
        if let Some(redis) = &self.redis {
            redis.pass(self.show, ms).await;
            // There, what lies ahead has come nearer instead.
            self.passed += ms;
        }
        if let Some(clock) = &self.clock {
            clock.pass(ms);
        }
    }

    /// Minutes since the show began.
    fn minute(&self, at: Timestamp) -> Timestamp {
        Timestamp((at.since(self.began) + self.passed + MINUTE_MS / 2).div_euclid(MINUTE_MS))
    }

    fn by_the_minute(&self, held: Held) -> Held {
        Held { expires_at: self.minute(held.expires_at), latest: self.minute(held.latest), ..held }
    }

    /// The answer, as both stores must give it, and the holds in it.
    async fn answer(&mut self, call: &Call, ledger: &Ledger) -> (String, Vec<Held>) {
        let (store, show) = (Arc::clone(&self.store), self.show);
        let held = |answer: Result<Held, Refusal>| answer.map(|held| self.by_the_minute(held));
        match call {
            Call::Lock { flash, attempts } => {
                let answers = store.lock(show, terms(*flash), attempts).await.expect("answers");
                let answers: Vec<_> = answers.into_iter().map(held).collect();
                (format!("{answers:?}"), answers.into_iter().flatten().collect())
            }
            Call::Change(change) => {
                let answer = held(store.change(show, terms(false), change).await.expect("an answer"));
                (format!("{answer:?}"), answer.into_iter().collect())
            }
            Call::Extend { asked, of, owner, by_ms } => {
                let answer = held(store.extend(show, *asked, of.hold(), owner, *by_ms).await.expect("an answer"));
                (format!("{answer:?}"), vec![])
            }
            Call::Mine(owner) => {
                let mine = store.mine(show, owner).await.expect("an answer").map(|held| self.by_the_minute(held));
                (format!("{mine:?}"), mine.into_iter().collect())
            }
            Call::BeginPayment(sold) => {
                let sale = ledger.sale(sold);
                let end = store.begin_payment(show, &sale, 2 * MINUTE_MS).await.expect("an answer");
                (format!("{:?}", end.map(|end| self.minute(end))), vec![])
            }
            Call::Snapshot => {
                let MapSnapshot { version, map, areas, .. } = store.snapshot(show).await.expect("a snapshot");
                (format!("{version} {map:?} {areas:?}"), vec![])
            }
            Call::Pass(ms) => {
                self.pass(*ms).await;
                (String::new(), vec![])
            }
            other => (self.plain_answer(other, ledger).await, vec![]),
        }
    }

    /// Of calls whose answers have no instant in them.
    async fn plain_answer(&self, call: &Call, ledger: &Ledger) -> String {
        let (store, show) = (&self.store, self.show);
        match call {
            Call::Leave { of, owner, grace_ms } => {
                format!("{:?}", store.leave(show, of.hold(), owner, *grace_ms).await)
            }
            Call::Release { of, owner } => format!("{:?}", store.release(show, of.hold(), owner).await),
            Call::EndPayment(sold) => {
                format!("{:?}", store.end_payment(show, &ledger.sale(sold), 2 * MINUTE_MS).await)
            }
            Call::Book(sold) => format!("{:?}", store.book(show, &ledger.sale(sold)).await),
            Call::Free(sold) => format!("{:?}", store.free(show, &ledger.sale(sold)).await),
            Call::Block { seats, blocked } => format!("{:?}", store.block(show, seats, *blocked).await),
            Call::ReleaseAll => format!("{:?}", store.release_all(show).await),
            Call::Adopt { of, lot, fence_off, paying, length_ms } => {
                let (hold, end) = (of.hold(), Timestamp(*length_ms));
                let fence = ledger.fence(hold, *fence_off);
                let held = Held { hold, expires_at: end, latest: end, fence, paying: *paying, lot: lot.clone() };
                format!("{:?}", store.adopt(show, of.owner(), &held, Timestamp(0)).await)
            }
            Call::Stamp { of, fence_off } => {
                format!("{:?}", store.stamp(show, &[(of.hold(), ledger.fence(of.hold(), *fence_off))]).await)
            }
            Call::Sweep => format!("{:?}", store.sweep(show).await),
            Call::Load => format!("{:?}", store.load(show, &known()).await),
            other => unreachable!("{other:?} is answered elsewhere"),
        }
    }

    /// Every locked seat is in one hold, and every place is taken once at most.
    async fn check_books(&self) -> Result<(), TestCaseError> {
        self.store.sweep(self.show).await.expect("what is due is freed");
        let snapshot = self.snapshot().await;
        let mut locked: Vec<u32> = Vec::new();
        let mut places: HashMap<u16, u32> = snapshot.areas.iter().copied().collect();
        for owner in PEOPLE {
            let Some(held) = self.store.mine(self.show, owner).await.expect("an answer") else { continue };
            locked.extend(&held.lot.seats);
            for place in &held.lot.places {
                *places.entry(place.area).or_default() += place.count;
            }
        }
        locked.sort_unstable();
        let on_the_map = (0..SEATS as u32).filter(|seat| snapshot.map[*seat as usize] == SeatState::Locked as u8);
        same(locked, on_the_map.collect::<Vec<_>>(), "seats in holds, and locked ones")?;
        same(snapshot.map.len(), SEATS, "seats of the map")?;
        for (area, capacity) in AREAS {
            let has = places[&area];
            proptest::prop_assert!(has <= capacity, "area {area} has {has} places left or held, of {capacity}");
        }
        Ok(())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(one: T, other: T, what: &str) -> Result<(), TestCaseError> {
    if one == other { Ok(()) } else { Err(TestCaseError::fail(format!("{what}:\n  {one:?}\n  {other:?}"))) }
}

#[test]
fn redis_answers_any_calls_as_memory_does_and_both_announce_what_their_maps_become() {
    let opened = tokio::sync::OnceCell::<(RedisHouse, Arc<RedisLocks>)>::new();
    let opened = &opened;
    of_any_calls(|calls| async move {
        let (redis, store) = opened
            .get_or_init(|| async {
                let redis = RedisHouse::open().await;
                let store = Arc::new(redis.store().await);
                (redis, store)
            })
            .await;
        let (show, clock) = (platform::ids::new_id(), clock());
        let in_memory: Arc<MemoryLocks> = Arc::new(memory(&clock));
        let mut ears = [Ear::on_memory(&in_memory, show), Ear::on_redis(redis, show).await];
        let mut one = Stage::open(in_memory, show, Some(clock), None).await;
        let mut other = Stage::open(Arc::clone(store) as _, show, None, Some(redis.clone())).await;
        let starts = [one.snapshot().await, other.snapshot().await];

        let mut ledger = Ledger::default();
        for call in &calls {
            let (said, holds) = one.answer(call, &ledger).await;
            let (also_said, _) = other.answer(call, &ledger).await;
            same(said, also_said, &format!("memory and Redis, asked for {call:?}"))?;
            holds.iter().for_each(|held| ledger.note(held));
        }
        one.check_books().await?;
        other.check_books().await?;
        let mut told = Vec::new();
        for ((stage, ear), start) in [&one, &other].into_iter().zip(&mut ears).zip(starts) {
            let now = stage.snapshot().await;
            let steps = ear.until(now.version).await;
            same(after(start, &steps[1..]), now, "what was announced, and the map")?;
            told.push(steps.into_iter().map(|step| (step.version, step.changes)).collect::<Vec<_>>());
        }
        redis.lose(show).await;
        same(&told[0], &told[1], "announced by memory and by Redis")
    });
}

#[test]
fn a_shadow_of_the_same_kind_never_differs_and_ends_with_the_same_map() {
    of_any_calls(|calls| async move {
        let (show, clock) = (platform::ids::new_id(), clock());
        let (first, second) = (Arc::new(memory(&clock)), Arc::new(memory(&clock)));
        let source = Arc::new(|_| Box::pin(async { None }) as _);
        let shadow = Arc::new(ShadowLocks::new(Arc::clone(&first) as _, Arc::clone(&second) as _, source));
        let mut stage = Stage::open(Arc::clone(&shadow) as _, show, Some(clock), None).await;
        let mut ledger = Ledger::default();
        // Nobody tells a first store of another's holds.
        for call in calls.iter().filter(|call| !matches!(call, Call::Adopt { .. } | Call::Stamp { .. })) {
            let (_, holds) = stage.answer(call, &ledger).await;
            holds.iter().for_each(|held| ledger.note(held));
            shadow.caught_up().await;
        }
        stage.check_books().await?;
        shadow.caught_up().await;
        let found = shadow.divergence();
        proptest::prop_assert!(found.is_none(), "{:?}", found);
        let maps = [first.snapshot(show).await, second.snapshot(show).await].map(|map| map.expect("a snapshot"));
        same((&maps[0].map, &maps[0].areas), (&maps[1].map, &maps[1].areas), "the two maps")
    });
}
