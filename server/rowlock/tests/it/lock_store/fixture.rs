//! A store with one show, and calls of its visitors.

use std::sync::Arc;

use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use domain::time::{MINUTE_MS, Timestamp};
use seats::seat_locks::{
    Asked, Attempt, Change, Held, KnownSeats, Lot, ManualClock, MemoryLocks, RedisLocks, Refusal, Renewal, Sale,
    SeatLocks, ShadowLocks, StoreError, Terms,
};
use uuid::Uuid;

use super::redis_fixture::RedisFixture;

/// Seats of the layout.
pub const SEATS: usize = 12;
/// Its areas and their capacities.
pub const AREAS: [(AreaIndex, u32); 2] = [(0, 5), (1, 3)];
/// Above every time in microseconds, so fences are the same in every store.
pub const LOWEST_FENCE: i64 = 5_000_000_000_000_000;
/// Six seats a person, five minutes, eight with extensions.
pub const TERMS: Terms = Terms { per_person: 6, length_ms: 5 * MINUTE_MS, life_ms: 8 * MINUTE_MS };
/// Limits of a flash sale.
pub const FLASH: Terms = Terms { per_person: 6, length_ms: 90_000, life_ms: 90_000 };
/// Extension of a hold during a payment.
pub const PAYING_MS: i64 = 10 * MINUTE_MS;

pub struct StoreFixture {
    pub store: Arc<dyn SeatLocks>,
    pub show: Uuid,
    clock: Option<ManualClock>,
    redis: Option<RedisFixture>,
    shadow: Option<(Arc<ShadowLocks>, Arc<MemoryLocks>)>,
}

impl StoreFixture {
    pub async fn in_memory() -> Self {
        let clock = clock();
        let store = Arc::new(memory(&clock));
        Self { store, show: platform::ids::new_id(), clock: Some(clock), redis: None, shadow: None }.loaded().await
    }

    pub async fn in_redis() -> Self {
        let redis = RedisFixture::open().await;
        let store = Arc::new(redis.store().await);
        Self { store, show: platform::ids::new_id(), clock: None, redis: Some(redis), shadow: None }.loaded().await
    }

    pub async fn in_both() -> Self {
        let (redis, clock) = (RedisFixture::open().await, clock());
        let memory = Arc::new(memory(&clock));
        let first: Arc<RedisLocks> = Arc::new(redis.store().await);
        let source = Arc::new(|_| Box::pin(async { Some(known()) }) as _);
        let shadow = Arc::new(ShadowLocks::new(first, Arc::clone(&memory) as _, source));
        let store = Arc::clone(&shadow) as Arc<dyn SeatLocks>;
        let show = platform::ids::new_id();
        Self { store, show, clock: Some(clock), redis: Some(redis), shadow: Some((shadow, memory)) }.loaded().await
    }

    async fn loaded(self) -> Self {
        self.store.load(self.show, &known()).await.expect("the map is loaded");
        self
    }

    /// Ends the fixture. A shadow must have found no divergence.
    pub async fn close(self) {
        if let Some((shadow, _)) = &self.shadow {
            shadow.caught_up().await;
            let found = shadow.divergence();
            assert!(found.compared > 0 || found == seats::seat_locks::Divergence::default());
            // The order of overlapping calls is unknown, so only their divergences are allowed.
            assert!(seats::seat_locks::Divergence { unordered: 0, ..found.clone() }.is_none(), "{found:?}");
        }
        if let Some(redis) = &self.redis {
            redis.lose(self.show).await;
        }
    }

    /// Lets time pass for every hold.
    pub async fn pass(&self, ms: i64) {
        if let Some((shadow, _)) = &self.shadow {
            shadow.caught_up().await;
        }
        if let Some(redis) = &self.redis {
            redis.pass(self.show, ms).await;
        }
        if let Some(clock) = &self.clock {
            clock.pass(ms);
        }
    }

    /// Makes the store lose the show.
    pub async fn lose(&self) {
        if let Some((shadow, memory)) = &self.shadow {
            shadow.caught_up().await;
            memory.forget(self.show).await.expect("the show is forgotten");
        }
        match &self.redis {
            Some(redis) => redis.lose(self.show).await,
            None => self.store.forget(self.show).await.expect("the show is forgotten"),
        }
    }

    /// Returns whether the store has no data of `show` after it was forgotten.
    pub async fn has_nothing_of(&self, show: Uuid) -> bool {
        let has_keys = match &self.redis {
            Some(redis) => redis.keys_of(show).await > 0,
            None => false,
        };
        !has_keys && matches!(self.store.snapshot(show).await, Err(StoreError::NoMap(lost)) if lost == show)
    }

    /// State of every seat, one digit each, after expired holds are freed.
    pub async fn map(&self) -> String {
        self.holds().await;
        let snapshot = self.store.snapshot(self.show).await.expect("a snapshot");
        snapshot.map.iter().map(|byte| char::from(b'0' + *byte)).collect()
    }

    /// Places left in each area, after expired holds are freed.
    pub async fn areas(&self) -> Vec<(AreaIndex, u32)> {
        self.holds().await;
        self.store.snapshot(self.show).await.expect("a snapshot").areas
    }

    pub async fn version(&self) -> u64 {
        self.store.snapshot(self.show).await.expect("a snapshot").version
    }

    /// Holds these seats with a new request id.
    pub async fn take(&self, owner: &str, seats: &[SeatIndex]) -> Result<Held, Refusal> {
        self.take_lot(owner, lot(seats, &[])).await
    }

    pub async fn take_lot(&self, owner: &str, lot: Lot) -> Result<Held, Refusal> {
        self.try_one(&attempt(owner, lot)).await
    }

    pub async fn try_one(&self, attempt: &Attempt) -> Result<Held, Refusal> {
        self.try_with(TERMS, attempt).await
    }

    pub async fn try_with(&self, terms: Terms, attempt: &Attempt) -> Result<Held, Refusal> {
        let mut answers = self.store.lock(self.show, terms, std::slice::from_ref(attempt)).await.expect("an answer");
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    pub async fn try_all(&self, attempts: &[Attempt]) -> Vec<Result<Held, Refusal>> {
        self.store.lock(self.show, TERMS, attempts).await.expect("answers")
    }

    pub async fn change(&self, owner: &str, hold: Uuid, add: Lot, remove: Lot) -> Result<Held, Refusal> {
        self.try_change(&Change { asked: asked(), hold, owner: owner.into(), add, remove }).await
    }

    pub async fn try_change(&self, change: &Change) -> Result<Held, Refusal> {
        self.store.change(self.show, TERMS, change).await.expect("an answer")
    }

    pub async fn extend(&self, owner: &str, hold: Uuid, by_ms: i64) -> Result<Held, Refusal> {
        self.store.extend(self.show, asked(), hold, owner, by_ms).await.expect("an answer")
    }

    pub async fn mine(&self, owner: &str) -> Option<Held> {
        self.store.mine(self.show, owner).await.expect("an answer")
    }

    pub async fn leave(&self, owner: &str, hold: Uuid, grace_ms: i64) {
        self.store.leave(self.show, hold, owner, grace_ms).await.expect("an answer");
    }

    pub async fn release(&self, owner: &str, hold: Uuid) -> Result<(), Refusal> {
        self.store.release(self.show, hold, owner).await.expect("an answer")
    }

    pub async fn begin_payment(&self, sale: &Sale) -> Result<Timestamp, Refusal> {
        self.store.begin_payment(self.show, sale, PAYING_MS).await.expect("an answer")
    }

    pub async fn end_payment(&self, sale: &Sale) {
        self.store.end_payment(self.show, sale, PAYING_MS).await.expect("an answer");
    }

    pub async fn renew(&self, party: &Sale, renewal: &Renewal) -> Result<Held, Refusal> {
        self.store.renew(self.show, party, renewal).await.expect("an answer")
    }

    pub async fn book(&self, sale: &Sale) {
        self.store.book(self.show, sale).await.expect("an answer");
    }

    pub async fn free(&self, sale: &Sale) {
        self.store.free(self.show, sale).await.expect("an answer");
    }

    pub async fn block(&self, seats: &[SeatIndex], blocked: bool) -> Result<(), Refusal> {
        self.store.block(self.show, seats, blocked).await.expect("an answer")
    }

    /// Frees a sale, and keeps these seats of it off sale.
    pub async fn free_keeping(&self, sale: &Sale, kept: &[SeatIndex]) {
        self.store.free_keeping(self.show, sale, kept).await.expect("an answer");
    }

    pub async fn withdraw(&self, seats: &[SeatIndex]) -> Result<Vec<SeatIndex>, Refusal> {
        self.store.withdraw(self.show, seats).await.expect("an answer")
    }

    /// Number of holds.
    pub async fn holds(&self) -> u64 {
        self.store.sweep(self.show).await.expect("an answer")
    }
}

pub fn clock() -> ManualClock {
    ManualClock::at(Timestamp(1_800_000_000_000))
}

pub fn memory(clock: &ManualClock) -> MemoryLocks {
    let clock = clock.clone();
    MemoryLocks::new(move || clock.now())
}

/// The layout with every seat free.
pub fn known() -> KnownSeats {
    KnownSeats {
        map: vec![SeatState::Available as u8; SEATS],
        areas: AREAS.to_vec(),
        lowest_fence: LOWEST_FENCE,
        ..KnownSeats::default()
    }
}

pub fn lot(seats: &[SeatIndex], places: &[(AreaIndex, u32)]) -> Lot {
    let places = places.iter().map(|(area, count)| Places { area: *area, count: *count }).collect();
    Lot { seats: seats.to_vec(), places }
}

/// A new request.
pub fn asked() -> Asked {
    Asked { id: platform::ids::new_id(), digest: 1 }
}

pub fn attempt(owner: &str, lot: Lot) -> Attempt {
    Attempt { asked: asked(), owner: owner.into(), lot, takes_kept: false }
}

/// The sale of everything in a hold.
pub fn sale(owner: &str, held: &Held) -> Sale {
    Sale { hold: held.hold, owner: owner.into(), fence: held.fence, lot: held.lot.clone() }
}
