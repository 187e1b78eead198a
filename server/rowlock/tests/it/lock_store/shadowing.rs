//! A shadow store beside the first: it gets the same calls, never interferes, and divergences are counted.

use std::collections::BTreeMap;

use domain::fairness::{HALF_FROM, NONE_FROM};
use domain::seats::SeatState::{Blocked, Locked};
use domain::time::MINUTE_MS;
use seats::seat_locks::{
    Divergence, DivergenceKind, ManualClock, MemoryLocks, RebuildSource, Refusal, SeatLocks, ShadowLocks, StoredHold,
};

use super::fixture::{PAYING_MS, RedisFixture, TERMS, attempt, clock, known, memory, sale, selection};
use crate::prelude::*;

struct ShadowPair {
    shadow: ShadowLocks,
    first: Arc<MemoryLocks>,
    second: Arc<MemoryLocks>,
    show: Uuid,
    clock: ManualClock,
}

impl ShadowPair {
    /// The first store has the show, and the second has not.
    async fn open() -> Self {
        Self::with_source(Arc::new(|_| Box::pin(async { Some(known()) }) as _)).await
    }

    async fn with_source(source: RebuildSource) -> Self {
        let (clock, show) = (clock(), platform::ids::new_id());
        let (first, second) = (Arc::new(memory(&clock)), Arc::new(memory(&clock)));
        first.load(show, &known()).await.expect("the map is loaded");
        let shadow = ShadowLocks::new(Arc::clone(&first) as _, Arc::clone(&second) as _, source);
        Self { shadow, first, second, show, clock }
    }

    async fn take(&self, store: &dyn SeatLocks, owner: &str, seat: u32) -> Result<StoredHold, Refusal> {
        let attempts = [attempt(owner, selection(&[seat], &[]))];
        store.lock(self.show, TERMS, &attempts).await.expect("answers").remove(0)
    }

    async fn divergence(&self) -> Divergence {
        self.shadow.caught_up().await;
        self.shadow.divergence()
    }

    async fn hold_of(&self, store: &MemoryLocks, owner: &str) -> Option<StoredHold> {
        store.hold_of(self.show, owner).await.expect("an answer")
    }

    async fn map(&self, store: &MemoryLocks) -> Vec<u8> {
        store.snapshot(self.show).await.expect("a snapshot").map.to_vec()
    }
}

fn once(call: &'static str, first: &'static str, second: &'static str) -> BTreeMap<DivergenceKind, u64> {
    [(DivergenceKind { call, first, second }, 1)].into()
}

#[tokio::test]
async fn shadow_without_the_map_builds_it_from_postgres() {
    let pair = ShadowPair::open().await;
    pair.take(&pair.shadow, "ann", 1).await.expect("the seat is free");
    assert!(pair.divergence().await.is_none());
    assert_eq!(pair.map(&pair.first).await, pair.map(&pair.second).await);
}

#[tokio::test]
async fn shadow_uses_the_fences_of_the_first_store_and_can_replace_it() {
    let pair = ShadowPair::open().await;
    // Its own fences are lower.
    pair.second.load(pair.show, &known()).await.expect("the map is loaded");
    let gone = pair.take(&*pair.second, "zoe", 9).await.expect("the seat is free");
    pair.second.release(pair.show, gone.hold, "zoe").await.expect("an answer").expect("it is her hold");

    let held = pair.take(&pair.shadow, "ann", 1).await.expect("the seat is free");
    pair.shadow.caught_up().await;
    assert_eq!(pair.hold_of(&pair.second, "ann").await, Some(held.clone()));
    let sale = sale("ann", &held);
    pair.shadow.begin_payment(pair.show, &sale, PAYING_MS).await.expect("an answer").expect("it is her hold");
    pair.shadow.book(pair.show, &sale).await.expect("an answer");
    assert!(pair.divergence().await.is_none());
    // Now the second store is the only one.
    let later = pair.take(&*pair.second, "ben", 2).await.expect("the seat is free");
    assert!(later.fence > held.fence);
    pair.second.free(pair.show, &sale).await.expect("an answer");
    assert_eq!(pair.map(&pair.second).await[..3], [0, 0, 1]);
}

#[tokio::test]
async fn earlier_hold_is_adopted_when_its_owner_reads_it_and_counted_separately() {
    let pair = ShadowPair::open().await;
    let held = pair.take(&*pair.first, "ann", 1).await.expect("the seat is free");
    assert_eq!(pair.shadow.hold_of(pair.show, "ann").await.expect("an answer"), Some(held.clone()));
    let found = pair.divergence().await;
    assert_eq!((found.unknown_holds, found.kinds), (1, BTreeMap::new()));
    assert_eq!(pair.hold_of(&pair.second, "ann").await, Some(held.clone()));
    pair.shadow.release(pair.show, held.hold, "ann").await.expect("an answer").expect("it is her hold");
    assert_eq!(pair.divergence().await.unknown_holds, 1);
    assert_eq!(pair.map(&pair.second).await, known().map);
}

#[tokio::test]
async fn earlier_hold_is_adopted_when_its_owner_pays() {
    let pair = ShadowPair::open().await;
    let held = pair.take(&*pair.first, "ann", 1).await.expect("the seat is free");
    let sale = sale("ann", &held);
    let end = pair.shadow.begin_payment(pair.show, &sale, PAYING_MS).await.expect("an answer").expect("it is her hold");
    let found = pair.divergence().await;
    assert_eq!((found.unknown_holds, found.kinds), (1, BTreeMap::new()));
    let there = pair.hold_of(&pair.second, "ann").await.expect("the hold is in the shadow");
    assert_eq!((there.expires_at, there.paying, there.fence), (end, true, held.fence));
}

#[tokio::test]
async fn refusal_of_the_shadow_only_is_counted_and_the_first_store_answers() {
    let pair = ShadowPair::open().await;
    pair.second.load(pair.show, &known()).await.expect("the map is loaded");
    pair.second.block(pair.show, &[1], true).await.expect("an answer").expect("the seat is free");
    pair.take(&pair.shadow, "ann", 1).await.expect("the first store decides");
    assert_eq!(pair.divergence().await.kinds, once("lock", "ok", "taken"));
}

#[tokio::test]
async fn grant_of_the_shadow_only_is_counted_and_reverted_there() {
    let pair = ShadowPair::open().await;
    pair.first.block(pair.show, &[1], true).await.expect("an answer").expect("the seat is free");
    let refused = pair.take(&pair.shadow, "ann", 1).await;
    assert_eq!(refused, Err(Refusal::Taken(vec![(1, Blocked)])));
    assert_eq!(pair.divergence().await.kinds, once("lock", "taken", "ok"));
    assert_eq!(pair.map(&pair.second).await, known().map);
}

#[tokio::test]
async fn diverging_maps_are_counted_at_each_read() {
    let pair = ShadowPair::open().await;
    pair.second.load(pair.show, &known()).await.expect("the map is loaded");
    pair.second.block(pair.show, &[1], true).await.expect("an answer").expect("the seat is free");
    pair.shadow.snapshot(pair.show).await.expect("a snapshot");
    assert_eq!(pair.divergence().await.kinds, once("snapshot", "ok", "otherwise"));
}

#[tokio::test]
async fn hold_of_the_shadow_only_is_replaced() {
    let pair = ShadowPair::open().await;
    pair.second.load(pair.show, &known()).await.expect("the map is loaded");
    pair.take(&*pair.second, "ann", 1).await.expect("the seat is free");
    assert_eq!(pair.shadow.hold_of(pair.show, "ann").await.expect("an answer"), None);
    assert_eq!(pair.divergence().await.kinds, once("mine", "gone", "ok"));
    pair.take(&*pair.second, "ann", 2).await.expect("the seat is free");
    let held = pair.take(&pair.shadow, "ann", 3).await.expect("the first store decides");
    assert_eq!(pair.divergence().await.kinds[&DivergenceKind { call: "lock", first: "ok", second: "other_hold" }], 1);
    assert_eq!(pair.hold_of(&pair.second, "ann").await.map(|there| there.hold), Some(held.hold));
}

#[tokio::test]
async fn retry_of_an_ended_hold_restores_nothing_in_the_shadow() {
    let pair = ShadowPair::open().await;
    let request = [attempt("ann", selection(&[1], &[]))];
    let ask = || async { pair.shadow.lock(pair.show, TERMS, &request).await.expect("answers") };
    let first = ask().await;
    pair.shadow.caught_up().await;
    pair.clock.pass(TERMS.length_ms);
    assert_eq!(ask().await, first);
    assert!(pair.divergence().await.is_none());
    assert_eq!(pair.map(&pair.second).await, known().map);
}

/// Lets this many holds of an owner expire in one of the two stores.
async fn expire_holds(pair: &ShadowPair, store: &MemoryLocks, owner: &str, times: u32) {
    for _ in 0..times {
        pair.take(store, owner, 1).await.expect("the seat is free");
        pair.clock.pass(TERMS.length_ms);
    }
}

async fn extend(pair: &ShadowPair, owner: &str, hold: Uuid) -> Result<StoredHold, Refusal> {
    pair.shadow.extend(pair.show, super::fixture::asked(), hold, owner, MINUTE_MS).await.expect("an answer")
}

#[tokio::test]
async fn holds_expired_in_the_first_store_only_do_not_lengthen_shadow_holds() {
    let pair = ShadowPair::open().await;
    pair.second.load(pair.show, &known()).await.expect("the map is loaded");
    expire_holds(&pair, &pair.first, "ann", NONE_FROM).await;
    let held = pair.take(&pair.shadow, "ann", 2).await.expect("the seat is free");
    assert_eq!(extend(&pair, "ann", held.hold).await, Err(Refusal::Lapsed));
    pair.shadow.caught_up().await;
    pair.clock.pass(TERMS.length_ms);
    pair.take(&pair.shadow, "ben", 2).await.expect("the seat is free again");
    assert!(pair.divergence().await.is_none());

    expire_holds(&pair, &pair.first, "cat", HALF_FROM).await;
    let held = pair.take(&pair.shadow, "cat", 3).await.expect("the seat is free");
    let longer = extend(&pair, "cat", held.hold).await.expect("the hold is extended");
    assert_eq!(longer.expires_at.since(held.expires_at), MINUTE_MS / 2);
    pair.shadow.caught_up().await;
    pair.clock.pass(TERMS.length_ms + MINUTE_MS / 2);
    pair.take(&pair.shadow, "dan", 3).await.expect("the seat is free again");
    assert!(pair.divergence().await.is_none());
}

#[tokio::test]
async fn holds_expired_in_the_shadow_only_do_not_shorten_shadow_holds() {
    let pair = ShadowPair::open().await;
    pair.second.load(pair.show, &known()).await.expect("the map is loaded");
    for (owner, times) in [("ann", NONE_FROM), ("ben", HALF_FROM)] {
        expire_holds(&pair, &pair.second, owner, times).await;
        let held = pair.take(&pair.shadow, owner, 2).await.expect("the seat is free");
        let longer = extend(&pair, owner, held.hold).await.expect("the first store decides");
        assert_eq!(longer.expires_at.since(held.expires_at), MINUTE_MS);
        pair.shadow.caught_up().await;
        pair.clock.pass(TERMS.length_ms + MINUTE_MS / 2);
        let other = pair.take(&pair.shadow, "cat", 2).await;
        assert_eq!(other, Err(Refusal::Taken(vec![(2, Locked)])));
        assert!(pair.divergence().await.is_none());
        pair.clock.pass(MINUTE_MS);
    }
}

#[tokio::test]
async fn repeated_extension_restores_nothing_in_the_shadow() {
    let pair = ShadowPair::open().await;
    pair.second.load(pair.show, &known()).await.expect("the map is loaded");
    expire_holds(&pair, &pair.first, "ann", HALF_FROM).await;
    let held = pair.take(&pair.shadow, "ann", 2).await.expect("the seat is free");
    let asked = super::fixture::asked();
    let ask = || async {
        let answer = pair.shadow.extend(pair.show, asked, held.hold, "ann", MINUTE_MS).await;
        answer.expect("an answer").expect("the hold is extended")
    };
    let longer = ask().await;
    pair.shadow.release(pair.show, held.hold, "ann").await.expect("an answer").expect("it is her hold");
    assert_eq!(ask().await.expires_at, longer.expires_at);
    assert!(pair.divergence().await.is_none());
    assert_eq!(pair.map(&pair.second).await, known().map);
}

#[tokio::test]
async fn failing_shadow_does_not_affect_calls() {
    let pair = ShadowPair::with_source(Arc::new(|_| Box::pin(async { None }) as _)).await;
    let held = pair.take(&pair.shadow, "ann", 1).await.expect("the seat is free");
    pair.shadow
        .extend(pair.show, super::fixture::asked(), held.hold, "ann", MINUTE_MS)
        .await
        .expect("an answer")
        .expect("it is allowed");
    let found = pair.divergence().await;
    assert_eq!((found.unreachable, found.compared, found.kinds), (2, 0, BTreeMap::new()));
}

#[tokio::test]
async fn hanging_shadow_does_not_slow_calls_and_missed_calls_are_counted() {
    const CALLS: u64 = 3_000;
    let pair = ShadowPair::with_source(Arc::new(|_| Box::pin(std::future::pending()) as _)).await;
    for _ in 0..CALLS {
        pair.shadow.sweep(pair.show).await.expect("an answer");
    }
    let found = pair.shadow.divergence();
    assert!(found.missed > CALLS / 2 && found.missed < CALLS, "a bounded queue holds some of {CALLS}: {found:?}");
}

#[tokio::test]
async fn divergences_of_overlapping_calls_are_counted_separately() {
    let (redis, second, show) = (RedisFixture::open().await, Arc::new(memory(&clock())), platform::ids::new_id());
    let source = Arc::new(|_| Box::pin(async { None }) as _);
    let shadow = ShadowLocks::new(Arc::new(redis.store().await), Arc::clone(&second) as _, source);
    shadow.load(show, &known()).await.expect("the map is loaded");
    shadow.caught_up().await;
    second.block(show, &[1], true).await.expect("an answer").expect("the seat is free");
    let request = [attempt("ann", selection(&[1], &[]))];
    let (answers, _) = tokio::join!(shadow.lock(show, TERMS, &request), shadow.sweep(show));
    assert!(answers.expect("answers")[0].is_ok());
    shadow.caught_up().await;
    let found = shadow.divergence();
    assert_eq!((found.unordered, found.kinds), (1, BTreeMap::new()));
    redis.lose(show).await;
}
