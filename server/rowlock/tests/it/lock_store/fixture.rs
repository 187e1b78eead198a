//! A store with one show, calls of its visitors, and direct changes to its Redis: time passes, keys are lost, an earlier
//! state is restored.

use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use domain::time::{MINUTE_MS, Timestamp};
use platform::redis_link::{Link, Subscriber};
use redis::aio::MultiplexedConnection;
use seats::seat_locks::{
    FencedSelection, HoldLimits, HoldUpdate, Keys, LockAttempt, ManualClock, MemoryLocks, RebuildInput, RedisLocks,
    Refusal, Renewal, RequestIdentity, SeatLocks, Selection, ShadowLocks, StoreError, StoredHold, channel_of,
};

use crate::prelude::*;

pub const SEATS: usize = 12;
pub const AREAS: [(AreaIndex, u32); 2] = [(0, 5), (1, 3)];
/// Above every time in microseconds, so fences are the same in every store.
pub const LOWEST_FENCE: i64 = 5_000_000_000_000_000;
/// Six seats a person, five minutes, eight with extensions.
pub const TERMS: HoldLimits = HoldLimits { per_person: 6, length_ms: 5 * MINUTE_MS, life_ms: 8 * MINUTE_MS };
pub const FLASH: HoldLimits = HoldLimits { per_person: 6, length_ms: 90_000, life_ms: 90_000 };
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

    pub async fn take(&self, owner: &str, seats: &[SeatIndex]) -> Result<StoredHold, Refusal> {
        self.take_selection(owner, selection(seats, &[])).await
    }

    pub async fn take_selection(&self, owner: &str, selection: Selection) -> Result<StoredHold, Refusal> {
        self.try_one(&attempt(owner, selection)).await
    }

    pub async fn try_one(&self, attempt: &LockAttempt) -> Result<StoredHold, Refusal> {
        self.try_with(TERMS, attempt).await
    }

    pub async fn try_with(&self, terms: HoldLimits, attempt: &LockAttempt) -> Result<StoredHold, Refusal> {
        let mut answers = self.store.lock(self.show, terms, std::slice::from_ref(attempt)).await.expect("an answer");
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    pub async fn try_all(&self, attempts: &[LockAttempt]) -> Vec<Result<StoredHold, Refusal>> {
        self.store.lock(self.show, TERMS, attempts).await.expect("answers")
    }

    pub async fn change(
        &self,
        owner: &str,
        hold: Uuid,
        add: Selection,
        remove: Selection,
    ) -> Result<StoredHold, Refusal> {
        self.try_change(&HoldUpdate { asked: asked(), hold, owner: owner.into(), add, remove }).await
    }

    pub async fn try_change(&self, change: &HoldUpdate) -> Result<StoredHold, Refusal> {
        self.store.change(self.show, TERMS, change).await.expect("an answer")
    }

    pub async fn extend(&self, owner: &str, hold: Uuid, by_ms: i64) -> Result<StoredHold, Refusal> {
        self.store.extend(self.show, asked(), hold, owner, by_ms).await.expect("an answer")
    }

    pub async fn hold_of(&self, owner: &str) -> Option<StoredHold> {
        self.store.hold_of(self.show, owner).await.expect("an answer")
    }

    pub async fn shorten_hold(&self, owner: &str, hold: Uuid, grace_ms: i64) {
        self.store.shorten_hold(self.show, hold, owner, grace_ms).await.expect("an answer");
    }

    pub async fn release(&self, owner: &str, hold: Uuid) -> Result<(), Refusal> {
        self.store.release(self.show, hold, owner).await.expect("an answer")
    }

    pub async fn begin_payment(&self, sale: &FencedSelection) -> Result<Timestamp, Refusal> {
        self.store.begin_payment(self.show, sale, PAYING_MS).await.expect("an answer")
    }

    pub async fn end_payment(&self, sale: &FencedSelection) {
        self.store.end_payment(self.show, sale, PAYING_MS).await.expect("an answer");
    }

    pub async fn renew(&self, party: &FencedSelection, renewal: &Renewal) -> Result<StoredHold, Refusal> {
        self.store.renew(self.show, party, renewal).await.expect("an answer")
    }

    pub async fn book(&self, sale: &FencedSelection) {
        self.store.book(self.show, sale).await.expect("an answer");
    }

    pub async fn free(&self, sale: &FencedSelection) {
        self.store.free(self.show, sale).await.expect("an answer");
    }

    pub async fn block(&self, seats: &[SeatIndex], blocked: bool) -> Result<(), Refusal> {
        self.store.block(self.show, seats, blocked).await.expect("an answer")
    }

    /// Frees a sale, and keeps these seats of it off sale.
    pub async fn free_and_block(&self, sale: &FencedSelection, kept: &[SeatIndex]) {
        self.store.free_and_block(self.show, sale, kept).await.expect("an answer");
    }

    pub async fn withdraw(&self, seats: &[SeatIndex]) -> Result<Vec<SeatIndex>, Refusal> {
        self.store.withdraw(self.show, seats).await.expect("an answer")
    }

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

pub fn known() -> RebuildInput {
    RebuildInput {
        map: vec![SeatState::Available as u8; SEATS],
        areas: AREAS.to_vec(),
        lowest_fence: LOWEST_FENCE,
        is_past: false,
        ..RebuildInput::default()
    }
}

pub fn selection(seats: &[SeatIndex], places: &[(AreaIndex, u32)]) -> Selection {
    let places = places.iter().map(|(area, count)| Places { area: *area, count: *count }).collect();
    Selection { seats: seats.to_vec(), places }
}

pub fn asked() -> RequestIdentity {
    RequestIdentity { id: platform::ids::new_id(), digest: 1 }
}

pub fn attempt(owner: &str, selection: Selection) -> LockAttempt {
    LockAttempt { asked: asked(), owner: owner.into(), selection, takes_kept: false }
}

pub fn sale(owner: &str, held: &StoredHold) -> FencedSelection {
    FencedSelection { hold: held.hold, owner: owner.into(), fence: held.fence, selection: held.selection.clone() }
}

/// Moves every expiry of a show closer by ARGV[1] milliseconds.
const PASS: &str = "
    local holds, expiry = KEYS[2], KEYS[3]
    local function earlier(at) return string.format('%d', tonumber(at) - tonumber(ARGV[1])) end
    local list = redis.call('HGETALL', holds)
    for at = 1, #list, 2 do
      local expires, original, latest, rest = string.match(list[at + 1], '^(%d+):(%d+):(%d+):(.*)$')
      local moved = { earlier(expires), earlier(original), earlier(latest), rest }
      redis.call('HSET', holds, list[at], table.concat(moved, ':'))
      redis.call('ZADD', expiry, earlier(expires), list[at])
    end
    for key = 10, 11 do
      local stored = redis.call('HGETALL', KEYS[key])
      for at = 1, #stored, 2 do
        local digest, expires, latest, rest = string.match(stored[at + 1], '^(%x+):(%d+):(%d+):(.*)$')
        if digest then
          local moved = { digest, earlier(expires), earlier(latest), rest }
          redis.call('HSET', KEYS[key], stored[at], table.concat(moved, ':'))
        end
      end
    end
    local lapses = redis.call('HGETALL', KEYS[12])
    for at = 1, #lapses, 2 do
      local count, last = string.match(lapses[at + 1], '^(%d+):(%d+)$')
      redis.call('HSET', KEYS[12], lapses[at], count .. ':' .. earlier(last))
    end";

#[derive(Clone)]
pub struct RedisFixture {
    url: String,
    prefix: String,
    link: Link,
    connection: MultiplexedConnection,
}

pub struct Backup(Vec<(String, Option<Vec<u8>>)>);

impl RedisFixture {
    pub async fn open() -> Self {
        let url = std::env::var("REDIS_URL").expect("REDIS_URL; `cargo xtask test` sets it");
        let client = redis::Client::open(url.as_str()).expect("REDIS_URL is an address");
        let connection = client.get_multiplexed_async_connection().await.expect("Redis answers");
        let link = Link::connect(&url).await.expect("Redis answers");
        Self { url, link, prefix: format!("t{}:", platform::ids::new_id().simple()), connection }
    }

    pub async fn store(&self) -> RedisLocks {
        rowlock::start::lock_store(&self.url, &self.prefix).await.expect("Redis answers").1
    }

    pub async fn pass(&self, show: Uuid, ms: i64) {
        let keys = Keys::of(&self.prefix, show).0;
        let mut command = redis::cmd("EVAL");
        command.arg(PASS).arg(keys.len()).arg(&keys).arg(ms);
        command.query_async::<()>(&mut self.connection.clone()).await.expect("time passes");
    }

    pub async fn backup(&self, show: Uuid) -> Backup {
        let mut kept = Vec::new();
        for key in Keys::of(&self.prefix, show).0 {
            let dump: Option<Vec<u8>> = redis::cmd("DUMP")
                .arg(&key)
                .query_async(&mut self.connection.clone())
                .await
                .expect("the key is dumped");
            kept.push((key, dump));
        }
        Backup(kept)
    }

    /// Restores an earlier state, as a failover that lost the last writes does.
    pub async fn fall_back(&self, to: &Backup) {
        for (key, dump) in &to.0 {
            let command = match dump {
                Some(dump) => redis::cmd("RESTORE").arg(key).arg(0).arg(dump).arg("REPLACE").take(),
                None => redis::cmd("DEL").arg(key).take(),
            };
            command.exec_async(&mut self.connection.clone()).await.expect("the key is restored");
        }
    }

    /// Deletes a show, as if Redis had lost its disk.
    pub async fn lose(&self, show: Uuid) {
        let keys = Keys::of(&self.prefix, show).0;
        redis::cmd("DEL").arg(&keys).exec_async(&mut self.connection.clone()).await.expect("keys are deleted");
    }

    pub async fn forget_answers(&self, show: Uuid) {
        let [.., today, before, _] = Keys::of(&self.prefix, show).0;
        let mut command = redis::cmd("DEL");
        command.arg(today).arg(before).exec_async(&mut self.connection.clone()).await.expect("keys are deleted");
    }

    pub async fn keys_of(&self, show: Uuid) -> u64 {
        let keys = Keys::of(&self.prefix, show).0;
        redis::cmd("EXISTS").arg(&keys).query_async(&mut self.connection.clone()).await.expect("keys are counted")
    }

    pub async fn announcements(&self, show: Uuid) -> Subscriber {
        let (done, ready) = tokio::sync::oneshot::channel();
        let mut subscriber = self.link.subscriber();
        subscriber.subscribe(&channel_of(&self.prefix, show), done);
        ready.await.expect("the subscription is ready");
        subscriber
    }
}
