//! A store with one show in it, and people who want its seats.

use std::sync::Arc;

use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use domain::time::{MINUTE_MS, Timestamp};
use seats::seat_locks::{
    Asked, Attempt, Change, Held, KnownSeats, Lot, ManualClock, MemoryLocks, RedisLocks, Refusal, Renewal, Sale,
    SeatLocks, ShadowLocks, StoreError, Terms,
};
use uuid::Uuid;

use super::redis_house::RedisHouse;

/// Seats of the room.
pub const SEATS: usize = 12;
/// Its areas and their places.
pub const AREAS: [(AreaIndex, u32); 2] = [(0, 5), (1, 3)];
/// Above every time in microseconds: so fences are the same in every store.
pub const LOWEST_FENCE: i64 = 5_000_000_000_000_000;
/// Six seats a person, five minutes, eight with extensions.
pub const TERMS: Terms = Terms { per_person: 6, length_ms: 5 * MINUTE_MS, life_ms: 8 * MINUTE_MS };
/// A flash sale's.
pub const FLASH: Terms = Terms { per_person: 6, length_ms: 90_000, life_ms: 90_000 };
/// How much longer a hold lasts while its owner pays.
pub const PAYING_MS: i64 = 10 * MINUTE_MS;

pub struct House {
    pub store: Arc<dyn SeatLocks>,
    pub show: Uuid,
    clock: Option<ManualClock>,
    redis: Option<RedisHouse>,
    shadow: Option<(Arc<ShadowLocks>, Arc<MemoryLocks>)>,
}

impl House {
    pub async fn in_memory() -> Self {
        let clock = clock();
        let store = Arc::new(memory(&clock));
        Self { store, show: platform::ids::new_id(), clock: Some(clock), redis: None, shadow: None }.loaded().await
    }

    pub async fn in_redis() -> Self {
        let redis = RedisHouse::open().await;
        let store = Arc::new(redis.store().await);
        Self { store, show: platform::ids::new_id(), clock: None, redis: Some(redis), shadow: None }.loaded().await
    }

    pub async fn in_both() -> Self {
        let (redis, clock) = (RedisHouse::open().await, clock());
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

    /// Ends it. A shadow must have found nothing.
    pub async fn close(self) {
        if let Some((shadow, _)) = &self.shadow {
            shadow.caught_up().await;
            let found = shadow.divergence();
            assert!(found.compared > 0 || found == seats::seat_locks::Divergence::default());
            // Who came first among calls that overlapped, nobody knows: those alone may differ.
            assert!(seats::seat_locks::Divergence { unordered: 0, ..found.clone() }.is_none(), "{found:?}");
        }
        if let Some(redis) = &self.redis {
            redis.lose(self.show).await;
        }
    }

    /// So much time passes, for every hold.
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

    /// The store loses the show.
    pub async fn lose(&self) {
        if let Some((shadow, memory)) = &self.shadow {
            shadow.caught_up().await;
            memory.forget(self.show).await.expect("it is forgotten");
        }
        match &self.redis {
            Some(redis) => redis.lose(self.show).await,
            None => self.store.forget(self.show).await.expect("it is forgotten"),
        }
    }

    /// Whether it loses `show` when told to forget it.
    pub async fn has_nothing_of(&self, show: Uuid) -> bool {
        let has_keys = match &self.redis {
            Some(redis) => redis.keys_of(show).await > 0,
            None => false,
        };
        !has_keys && matches!(self.store.snapshot(show).await, Err(StoreError::NoMap(lost)) if lost == show)
    }

    /// A digit per seat, what is due freed.
    pub async fn map(&self) -> String {
        self.holds().await;
        let snapshot = self.store.snapshot(self.show).await.expect("a snapshot");
        snapshot.map.iter().map(|byte| char::from(b'0' + *byte)).collect()
    }

    /// Places left in each area, what is due freed.
    pub async fn areas(&self) -> Vec<(AreaIndex, u32)> {
        self.holds().await;
        self.store.snapshot(self.show).await.expect("a snapshot").areas
    }

    pub async fn version(&self) -> u64 {
        self.store.snapshot(self.show).await.expect("a snapshot").version
    }

    /// Takes these seats under a fresh id.
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

    /// Holds there are.
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

/// The room, all of it free.
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

/// A request nobody has made before.
pub fn asked() -> Asked {
    Asked { id: platform::ids::new_id(), digest: 1 }
}

pub fn attempt(owner: &str, lot: Lot) -> Attempt {
    Attempt { asked: asked(), owner: owner.into(), lot, takes_kept: false }
}

/// All that a hold has, as a booking has it.
pub fn sale(owner: &str, held: &Held) -> Sale {
    Sale { hold: held.hold, owner: owner.into(), fence: held.fence, lot: held.lot.clone() }
}
