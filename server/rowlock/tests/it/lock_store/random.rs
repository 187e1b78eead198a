//! Random calls in random order: Redis answers like memory, both announce the changes of their maps, and every locked
//! seat is in exactly one hold.
//!
//! Both stores get the same calls, and every answer is compared; proptest shrinks a failing sequence. Fences are equal
//! in both, because the show's lowest fence is above every clock. Instants are compared by the minute: all lengths are
//! whole minutes, and Redis' clock advances only by moments during a case. Each case has its own show. Holds expire in
//! both: see [`RedisFixture::pass`].

use std::collections::HashMap;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use domain::seats::{AreaIndex, SeatIndex, SeatState};
use domain::time::{MINUTE_MS, Timestamp};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use seats::seat_locks::{
    FencedSelection, HoldLimits, HoldUpdate, LockAttempt, ManualClock, MapSnapshot, MemoryLocks, RebuildInput,
    RedisLocks, Refusal, RequestIdentity, SeatLocks, Selection, ShadowLocks, StoredHold,
};
use uuid::Uuid;

use super::announcements::{AnnouncementListener, after};
use super::fixture::{LOWEST_FENCE, RedisFixture, clock, memory, selection};

const CASES: u32 = 256;
const MAX_CALLS: usize = 40;

fn of_any_calls<F: Future<Output = Result<(), TestCaseError>>>(property: impl Fn(Vec<StoreCall>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&calls(MAX_CALLS), |calls| runtime.block_on(property(calls)));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

fn known() -> RebuildInput {
    RebuildInput {
        map: vec![SeatState::Available as u8; SEATS],
        areas: AREAS.to_vec(),
        lowest_fence: LOWEST_FENCE,
        is_past: false,
        ..RebuildInput::default()
    }
}

/// Holds as they were last granted: the bookings' view.
#[derive(Default)]
struct GrantedHolds(HashMap<Uuid, StoredHold>);

impl GrantedHolds {
    fn fence(&self, hold: Uuid, off: i64) -> i64 {
        self.0.get(&hold).map_or(LOWEST_FENCE, |held| held.fence) + off
    }

    fn sale(&self, sold: &SaleSpec) -> FencedSelection {
        let hold = sold.of.hold();
        let selection = sold.selection.clone().or_else(|| self.0.get(&hold).map(|held| held.selection.clone()));
        let selection = selection.unwrap_or_else(|| unknown_lot(&sold.of));
        FencedSelection { hold, owner: sold.of.owner().into(), fence: self.fence(hold, sold.fence_off), selection }
    }

    fn note(&mut self, held: &StoredHold) {
        self.0.insert(held.hold, held.clone());
    }
}

fn unknown_lot(of: &HoldRef) -> seats::seat_locks::Selection {
    selection(&[of.person as u32], &[])
}

struct StoreUnderTest {
    store: Arc<dyn SeatLocks>,
    show: Uuid,
    began: Timestamp,
    clock: Option<ManualClock>,
    redis: Option<RedisFixture>,
    passed: i64,
}

impl StoreUnderTest {
    async fn open(
        store: Arc<dyn SeatLocks>,
        show: Uuid,
        clock: Option<ManualClock>,
        redis: Option<RedisFixture>,
    ) -> Self {
        store.load(show, &known()).await.expect("the map is loaded");
        let began = store.now();
        Self { store, show, began, clock, redis, passed: 0 }
    }

    async fn snapshot(&self) -> MapSnapshot {
        self.store.snapshot(self.show).await.expect("a snapshot")
    }

    async fn pass(&mut self, ms: i64) {
        if let Some(redis) = &self.redis {
            redis.pass(self.show, ms).await;
            // In Redis, expiries were moved closer instead.
            self.passed += ms;
        }
        if let Some(clock) = &self.clock {
            clock.pass(ms);
        }
    }

    /// Minutes since the show's start.
    fn minute(&self, at: Timestamp) -> Timestamp {
        Timestamp((at.since(self.began) + self.passed + MINUTE_MS / 2).div_euclid(MINUTE_MS))
    }

    fn by_the_minute(&self, held: StoredHold) -> StoredHold {
        StoredHold { expires_at: self.minute(held.expires_at), latest: self.minute(held.latest), ..held }
    }

    /// Performs a call. Returns the answer in comparable form, and the holds in it.
    async fn answer(&mut self, call: &StoreCall, ledger: &GrantedHolds) -> (String, Vec<StoredHold>) {
        let (store, show) = (Arc::clone(&self.store), self.show);
        let held = |answer: Result<StoredHold, Refusal>| answer.map(|held| self.by_the_minute(held));
        match call {
            StoreCall::Lock { flash, attempts } => {
                let answers = store.lock(show, terms(*flash), attempts).await.expect("answers");
                let answers: Vec<_> = answers.into_iter().map(held).collect();
                (format!("{answers:?}"), answers.into_iter().flatten().collect())
            }
            StoreCall::Change(change) => {
                let answer = held(store.change(show, terms(false), change).await.expect("an answer"));
                (format!("{answer:?}"), answer.into_iter().collect())
            }
            StoreCall::Extend { asked, of, owner, by_ms } => {
                let answer = held(store.extend(show, *asked, of.hold(), owner, *by_ms).await.expect("an answer"));
                (format!("{answer:?}"), vec![])
            }
            StoreCall::Mine(owner) => {
                let mine = store.hold_of(show, owner).await.expect("an answer").map(|held| self.by_the_minute(held));
                (format!("{mine:?}"), mine.into_iter().collect())
            }
            StoreCall::BeginPayment(sold) => {
                let sale = ledger.sale(sold);
                let end = store.begin_payment(show, &sale, 2 * MINUTE_MS).await.expect("an answer");
                (format!("{:?}", end.map(|end| self.minute(end))), vec![])
            }
            StoreCall::Snapshot => {
                let MapSnapshot { version, map, areas, .. } = store.snapshot(show).await.expect("a snapshot");
                (format!("{version} {map:?} {areas:?}"), vec![])
            }
            StoreCall::Pass(ms) => {
                self.pass(*ms).await;
                (String::new(), vec![])
            }
            other => (self.plain_answer(other, ledger).await, vec![]),
        }
    }

    /// Answers of calls without instants.
    async fn plain_answer(&self, call: &StoreCall, ledger: &GrantedHolds) -> String {
        let (store, show) = (&self.store, self.show);
        match call {
            StoreCall::Leave { of, owner, grace_ms } => {
                format!("{:?}", store.shorten_hold(show, of.hold(), owner, *grace_ms).await)
            }
            StoreCall::Release { of, owner } => format!("{:?}", store.release(show, of.hold(), owner).await),
            StoreCall::EndPayment(sold) => {
                format!("{:?}", store.end_payment(show, &ledger.sale(sold), 2 * MINUTE_MS).await)
            }
            StoreCall::Book(sold) => format!("{:?}", store.book(show, &ledger.sale(sold)).await),
            StoreCall::Free(sold) => format!("{:?}", store.free(show, &ledger.sale(sold)).await),
            StoreCall::Block { seats, blocked } => format!("{:?}", store.block(show, seats, *blocked).await),
            StoreCall::ReleaseAll => format!("{:?}", store.release_all(show).await),
            StoreCall::Adopt { of, selection, fence_off, paying, length_ms } => {
                let (hold, end) = (of.hold(), Timestamp(*length_ms));
                let fence = ledger.fence(hold, *fence_off);
                let held = StoredHold {
                    hold,
                    expires_at: end,
                    latest: end,
                    fence,
                    paying: *paying,
                    selection: selection.clone(),
                };
                format!("{:?}", store.copy_hold(show, of.owner(), &held, Timestamp(0)).await)
            }
            StoreCall::Stamp { of, fence_off } => {
                format!("{:?}", store.copy_fences(show, &[(of.hold(), ledger.fence(of.hold(), *fence_off))]).await)
            }
            StoreCall::Sweep => format!("{:?}", store.sweep(show).await),
            StoreCall::Load => format!("{:?}", store.load(show, &known()).await),
            other => unreachable!("{other:?} is answered elsewhere"),
        }
    }

    /// Checks that every locked seat is in one hold, and that no place is taken twice.
    async fn check_books(&self) -> Result<(), TestCaseError> {
        self.store.sweep(self.show).await.expect("what is due is freed");
        let snapshot = self.snapshot().await;
        let mut locked: Vec<u32> = Vec::new();
        let mut places: HashMap<u16, u32> = snapshot.areas.iter().copied().collect();
        for owner in PEOPLE {
            let Some(held) = self.store.hold_of(self.show, owner).await.expect("an answer") else { continue };
            locked.extend(&held.selection.seats);
            for place in &held.selection.places {
                *places.entry(place.area).or_default() += place.count;
            }
        }
        locked.sort_unstable();
        let on_the_map = (0..SEATS as u32).filter(|seat| snapshot.map[*seat as usize] == SeatState::Locked as u8);
        prop_assert_same(locked, on_the_map.collect::<Vec<_>>(), "seats in holds, and locked ones")?;
        prop_assert_same(snapshot.map.len(), SEATS, "seats of the map")?;
        for (area, capacity) in AREAS {
            let has = places[&area];
            proptest::prop_assert!(has <= capacity, "area {area} has {has} places left or held, of {capacity}");
        }
        Ok(())
    }
}

fn prop_assert_same<T: PartialEq + std::fmt::Debug>(one: T, other: T, what: &str) -> Result<(), TestCaseError> {
    if one == other { Ok(()) } else { Err(TestCaseError::fail(format!("{what}:\n  {one:?}\n  {other:?}"))) }
}

#[test]
fn redis_and_memory_answer_and_announce_random_calls_alike() {
    let opened = tokio::sync::OnceCell::<(RedisFixture, Arc<RedisLocks>)>::new();
    let opened = &opened;
    of_any_calls(|calls| async move {
        let (redis, store) = opened
            .get_or_init(|| async {
                let redis = RedisFixture::open().await;
                let store = Arc::new(redis.store().await);
                (redis, store)
            })
            .await;
        let (show, clock) = (platform::ids::new_id(), clock());
        let in_memory: Arc<MemoryLocks> = Arc::new(memory(&clock));
        let mut ears =
            [AnnouncementListener::on_memory(&in_memory, show), AnnouncementListener::on_redis(redis, show).await];
        let mut one = StoreUnderTest::open(in_memory, show, Some(clock), None).await;
        let mut other = StoreUnderTest::open(Arc::clone(store) as _, show, None, Some(redis.clone())).await;
        let starts = [one.snapshot().await, other.snapshot().await];

        let mut ledger = GrantedHolds::default();
        for call in &calls {
            let (said, holds) = one.answer(call, &ledger).await;
            let (also_said, _) = other.answer(call, &ledger).await;
            prop_assert_same(said, also_said, &format!("memory and Redis, after {call:?}"))?;
            holds.iter().for_each(|held| ledger.note(held));
        }
        one.check_books().await?;
        other.check_books().await?;
        let mut announced = Vec::new();
        for ((stage, listener), start) in [&one, &other].into_iter().zip(&mut ears).zip(starts) {
            let now = stage.snapshot().await;
            let steps = listener.until(now.version).await;
            prop_assert_same(after(start, &steps[1..]), now, "what was announced, and the map")?;
            announced.push(steps.into_iter().map(|step| (step.version, step.changes)).collect::<Vec<_>>());
        }
        redis.lose(show).await;
        prop_assert_same(&announced[0], &announced[1], "announced by memory and by Redis")
    });
}

#[test]
fn shadow_of_the_same_kind_never_diverges() {
    of_any_calls(|calls| async move {
        let (show, clock) = (platform::ids::new_id(), clock());
        let (first, second) = (Arc::new(memory(&clock)), Arc::new(memory(&clock)));
        let source = Arc::new(|_| Box::pin(async { None }) as _);
        let shadow = Arc::new(ShadowLocks::new(Arc::clone(&first) as _, Arc::clone(&second) as _, source));
        let mut stage = StoreUnderTest::open(Arc::clone(&shadow) as _, show, Some(clock), None).await;
        let mut ledger = GrantedHolds::default();
        // The first store gets no holds from another one.
        for call in calls.iter().filter(|call| !matches!(call, StoreCall::Adopt { .. } | StoreCall::Stamp { .. })) {
            let (_, holds) = stage.answer(call, &ledger).await;
            holds.iter().for_each(|held| ledger.note(held));
            shadow.caught_up().await;
        }
        stage.check_books().await?;
        shadow.caught_up().await;
        let found = shadow.divergence();
        proptest::prop_assert!(found.is_none(), "{:?}", found);
        let maps = [first.snapshot(show).await, second.snapshot(show).await].map(|map| map.expect("a snapshot"));
        prop_assert_same((&maps[0].map, &maps[0].areas), (&maps[1].map, &maps[1].areas), "the two maps")
    });
}

/// Seats of the layout; calls may also name the next number.
pub const SEATS: usize = 8;
/// Areas and their capacities; calls may also name the next number.
pub const AREAS: [(AreaIndex, u32); 2] = [(0, 4), (1, 2)];
pub const PEOPLE: [&str; 4] = ["ann", "ben", "cat", "dan"];
/// Keys of each owner, which repeat.
const KEYS: u128 = 3;

/// A hold, by its owner and request key.
#[derive(Clone, Copy, Debug)]
pub struct HoldRef {
    pub person: usize,
    pub key: u128,
}

impl HoldRef {
    pub fn owner(self) -> &'static str {
        PEOPLE[self.person]
    }

    pub const fn hold(self) -> Uuid {
        Uuid::from_u128(1_000 + 100 * self.person as u128 + self.key)
    }
}

#[derive(Clone, Debug)]
pub struct SaleSpec {
    pub of: HoldRef,
    pub fence_off: i64,
    /// `None`: everything in the hold.
    pub selection: Option<Selection>,
}

#[derive(Clone, Debug)]
pub enum StoreCall {
    Lock { flash: bool, attempts: Vec<LockAttempt> },
    Change(HoldUpdate),
    Extend { asked: RequestIdentity, of: HoldRef, owner: &'static str, by_ms: i64 },
    Mine(&'static str),
    Leave { of: HoldRef, owner: &'static str, grace_ms: i64 },
    Release { of: HoldRef, owner: &'static str },
    BeginPayment(SaleSpec),
    EndPayment(SaleSpec),
    Book(SaleSpec),
    Free(SaleSpec),
    Block { seats: Vec<SeatIndex>, blocked: bool },
    ReleaseAll,
    Adopt { of: HoldRef, selection: Selection, fence_off: i64, paying: bool, length_ms: i64 },
    Stamp { of: HoldRef, fence_off: i64 },
    Sweep,
    Snapshot,
    Load,
    Pass(i64),
}

/// Limits of a show, in whole minutes: two stores whose clocks differ by moments are compared by the minute.
pub const fn terms(flash: bool) -> HoldLimits {
    HoldLimits { per_person: 4, length_ms: 5 * MINUTE_MS, life_ms: if flash { 5 } else { 8 } * MINUTE_MS }
}

pub fn calls(most: usize) -> impl Strategy<Value = Vec<StoreCall>> {
    vec(call(), 1..most)
}

fn call() -> impl Strategy<Value = StoreCall> {
    prop_oneof![
        10 => lock(),
        5 => change(),
        2 => (of(), mostly_owner(), 0..KEYS, minutes()).prop_map(|(of, owner, key, by_ms)| {
            let owner = owner.unwrap_or(of.owner());
            // Half of it is whole minutes as well.
            let by_ms = 2 * by_ms;
            let digest = digest(&(of.hold(), by_ms));
            StoreCall::Extend { asked: RequestIdentity { id: key_of(3_000, of, key), digest }, of, owner, by_ms }
        }),
        2 => person().prop_map(StoreCall::Mine),
        2 => (of(), mostly_owner(), minutes()).prop_map(|(of, owner, grace_ms)| {
            StoreCall::Leave { of, owner: owner.unwrap_or(of.owner()), grace_ms }
        }),
        2 => (of(), mostly_owner()).prop_map(|(of, owner)| StoreCall::Release { of, owner: owner.unwrap_or(of.owner()) }),
        3 => sold().prop_map(StoreCall::BeginPayment),
        2 => sold().prop_map(StoreCall::EndPayment),
        4 => sold().prop_map(StoreCall::Book),
        3 => sold().prop_map(StoreCall::Free),
        2 => (seats(0..3), any::<bool>()).prop_map(|(seats, blocked)| StoreCall::Block { seats, blocked }),
        1 => Just(StoreCall::ReleaseAll),
        2 => (of(), some_lot(), fence_off(), any::<bool>(), minutes()).prop_map(
            |(of, selection, fence_off, paying, length_ms)| StoreCall::Adopt { of, selection, fence_off, paying, length_ms }
        ),
        1 => (of(), fence_off()).prop_map(|(of, fence_off)| StoreCall::Stamp { of, fence_off }),
        1 => Just(StoreCall::Sweep),
        1 => Just(StoreCall::Snapshot),
        1 => Just(StoreCall::Load),
        3 => minutes().prop_map(StoreCall::Pass),
    ]
}

fn lock() -> impl Strategy<Value = StoreCall> {
    let attempt = (of(), some_lot(), any::<bool>()).prop_map(|(of, selection, takes_kept)| {
        let asked = RequestIdentity { id: of.hold(), digest: digest(&format!("{selection:?} {takes_kept}")) };
        LockAttempt { asked, owner: of.owner().into(), selection, takes_kept }
    });
    (any::<bool>(), vec(attempt, 1..5)).prop_map(|(flash, attempts)| StoreCall::Lock { flash, attempts })
}

fn change() -> impl Strategy<Value = StoreCall> {
    (of(), mostly_owner(), 0..KEYS, any_lot(), any_lot()).prop_map(|(of, owner, key, add, remove)| {
        let digest = digest(&format!("{of:?} {add:?} {remove:?}"));
        let owner = owner.unwrap_or(of.owner()).into();
        StoreCall::Change(HoldUpdate {
            asked: RequestIdentity { id: key_of(2_000, of, key), digest },
            hold: of.hold(),
            owner,
            add,
            remove,
        })
    })
}

fn key_of(kind: u128, of: HoldRef, key: u128) -> Uuid {
    Uuid::from_u128(kind + 100 * of.person as u128 + key)
}

fn digest(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

fn person() -> impl Strategy<Value = &'static str> {
    select(PEOPLE.to_vec())
}

fn of() -> impl Strategy<Value = HoldRef> {
    (0..PEOPLE.len(), 0..KEYS).prop_map(|(person, key)| HoldRef { person, key })
}

/// `None`: the owner; rarely another person.
fn mostly_owner() -> impl Strategy<Value = Option<&'static str>> {
    option::weighted(0.1, person())
}

fn minutes() -> impl Strategy<Value = i64> {
    (0..=6_i64).prop_map(|minutes| minutes * MINUTE_MS)
}

fn fence_off() -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(0), 1 => -2..=2_i64]
}

fn sold() -> impl Strategy<Value = SaleSpec> {
    let part = (seats(0..4), areas(2)).prop_map(|(seats, places)| selection(&seats, &places));
    (of(), fence_off(), option::weighted(0.3, part)).prop_map(|(of, fence_off, selection)| SaleSpec {
        of,
        fence_off,
        selection,
    })
}

fn seats(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<SeatIndex>> {
    let any_seat = prop_oneof![20 => 0..SEATS as SeatIndex, 1 => Just(SEATS as SeatIndex)];
    btree_set(any_seat, count).prop_map(|seats| seats.into_iter().collect())
}

fn areas(below: AreaIndex) -> impl Strategy<Value = Vec<(AreaIndex, u32)>> {
    let any_area = prop_oneof![15 => 0..2.min(below), 1 => 0..below];
    btree_map(any_area, 1..4_u32, 0..3).prop_map(|places| places.into_iter().collect())
}

fn any_lot() -> impl Strategy<Value = Selection> {
    (seats(0..4), option::weighted(0.3, areas(3)))
        .prop_map(|(seats, places)| selection(&seats, &places.unwrap_or_default()))
}

fn some_lot() -> impl Strategy<Value = Selection> {
    any_lot().prop_map(|any| if any.is_empty() { selection(&[0], &[]) } else { any })
}
