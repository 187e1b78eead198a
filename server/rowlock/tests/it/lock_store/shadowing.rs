//! A second store beside the first: asked the same, never in the way, and what differs is counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::fairness::{HALF_FROM, NONE_FROM};
use domain::seats::SeatState::{Blocked, Locked};
use domain::time::MINUTE_MS;
use seats::seat_locks::{
    Divergence, Held, Kind, KnownSource, ManualClock, MemoryLocks, Refusal, SeatLocks, ShadowLocks,
};
use uuid::Uuid;

use super::house::{PAYING_MS, TERMS, attempt, clock, known, lot, memory, sale};
use super::redis_house::RedisHouse;

struct Pair {
    shadow: ShadowLocks,
    first: Arc<MemoryLocks>,
    second: Arc<MemoryLocks>,
    show: Uuid,
    clock: ManualClock,
}

impl Pair {
    /// The first has the show, the second has not.
    async fn open() -> Self {
        Self::with_source(Arc::new(|_| Box::pin(async { Some(known()) }) as _)).await
    }

    async fn with_source(source: KnownSource) -> Self {
        let (clock, show) = (clock(), platform::ids::new_id());
        let (first, second) = (Arc::new(memory(&clock)), Arc::new(memory(&clock)));
        first.load(show, &known()).await.expect("it is loaded");
        let shadow = ShadowLocks::new(Arc::clone(&first) as _, Arc::clone(&second) as _, source);
        Self { shadow, first, second, show, clock }
    }

    async fn take(&self, store: &dyn SeatLocks, owner: &str, seat: u32) -> Result<Held, Refusal> {
        let attempts = [attempt(owner, lot(&[seat], &[]))];
        store.lock(self.show, TERMS, &attempts).await.expect("answers").remove(0)
    }

    async fn divergence(&self) -> Divergence {
        self.shadow.caught_up().await;
        self.shadow.divergence()
    }

    async fn mine(&self, store: &MemoryLocks, owner: &str) -> Option<Held> {
        store.mine(self.show, owner).await.expect("an answer")
    }

    async fn map(&self, store: &MemoryLocks) -> Vec<u8> {
        store.snapshot(self.show).await.expect("a snapshot").map.to_vec()
    }
}

fn once(call: &'static str, first: &'static str, second: &'static str) -> BTreeMap<Kind, u64> {
    [(Kind { call, first, second }, 1)].into()
}

#[tokio::test]
async fn a_second_store_without_the_map_gets_it_from_what_postgres_knows() {
    let pair = Pair::open().await;
    pair.take(&pair.shadow, "ann", 1).await.expect("it is free");
    assert!(pair.divergence().await.is_none());
    assert_eq!(pair.map(&pair.first).await, pair.map(&pair.second).await);
}

#[tokio::test]
async fn the_second_store_has_holds_by_the_fences_of_the_first_so_that_it_can_take_its_place() {
    let pair = Pair::open().await;
    // Its own count is elsewhere.
    pair.second.load(pair.show, &known()).await.expect("it is loaded");
    let gone = pair.take(&*pair.second, "zoe", 9).await.expect("it is free");
    pair.second.release(pair.show, gone.hold, "zoe").await.expect("an answer").expect("it is hers");

    let held = pair.take(&pair.shadow, "ann", 1).await.expect("it is free");
    pair.shadow.caught_up().await;
    assert_eq!(pair.mine(&pair.second, "ann").await, Some(held.clone()));
    let sale = sale("ann", &held);
    pair.shadow.begin_payment(pair.show, &sale, PAYING_MS).await.expect("an answer").expect("it is hers");
    pair.shadow.book(pair.show, &sale).await.expect("an answer");
    assert!(pair.divergence().await.is_none());
    // Now the second is the only one.
    let later = pair.take(&*pair.second, "ben", 2).await.expect("it is free");
    assert!(later.fence > held.fence);
    pair.second.free(pair.show, &sale).await.expect("an answer");
    assert_eq!(pair.map(&pair.second).await[..3], [0, 0, 1]);
}

#[tokio::test]
async fn a_hold_from_before_is_brought_over_when_its_owner_looks_at_it_and_counted_apart() {
    let pair = Pair::open().await;
    let held = pair.take(&*pair.first, "ann", 1).await.expect("it is free");
    assert_eq!(pair.shadow.mine(pair.show, "ann").await.expect("an answer"), Some(held.clone()));
    let found = pair.divergence().await;
    assert_eq!((found.unknown_holds, found.kinds), (1, BTreeMap::new()));
    assert_eq!(pair.mine(&pair.second, "ann").await, Some(held.clone()));
    pair.shadow.release(pair.show, held.hold, "ann").await.expect("an answer").expect("it is hers");
    assert_eq!(pair.divergence().await.unknown_holds, 1);
    assert_eq!(pair.map(&pair.second).await, known().map);
}

#[tokio::test]
async fn a_hold_from_before_is_brought_over_when_its_owner_pays() {
    let pair = Pair::open().await;
    let held = pair.take(&*pair.first, "ann", 1).await.expect("it is free");
    let sale = sale("ann", &held);
    let end = pair.shadow.begin_payment(pair.show, &sale, PAYING_MS).await.expect("an answer").expect("it is hers");
    let found = pair.divergence().await;
    assert_eq!((found.unknown_holds, found.kinds), (1, BTreeMap::new()));
    let there = pair.mine(&pair.second, "ann").await.expect("it is there");
    assert_eq!((there.expires_at, there.paying, there.fence), (end, true, held.fence));
}

#[tokio::test]
async fn what_only_the_second_refuses_is_counted_by_kind_and_the_first_answers_as_if_alone() {
    let pair = Pair::open().await;
    pair.second.load(pair.show, &known()).await.expect("it is loaded");
    pair.second.block(pair.show, &[1], true).await.expect("an answer").expect("it is free");
    pair.take(&pair.shadow, "ann", 1).await.expect("the first decides");
    assert_eq!(pair.divergence().await.kinds, once("lock", "ok", "taken"));
}

#[tokio::test]
async fn what_only_the_second_grants_is_counted_and_taken_back_there() {
    let pair = Pair::open().await;
    pair.first.block(pair.show, &[1], true).await.expect("an answer").expect("it is free");
    let refused = pair.take(&pair.shadow, "ann", 1).await;
    assert_eq!(refused, Err(Refusal::Taken(vec![(1, Blocked)])));
    assert_eq!(pair.divergence().await.kinds, once("lock", "taken", "ok"));
    assert_eq!(pair.map(&pair.second).await, known().map);
}

#[tokio::test]
async fn maps_that_differ_are_counted_whenever_one_is_read() {
    let pair = Pair::open().await;
    pair.second.load(pair.show, &known()).await.expect("it is loaded");
    pair.second.block(pair.show, &[1], true).await.expect("an answer").expect("it is free");
    pair.shadow.snapshot(pair.show).await.expect("a snapshot");
    assert_eq!(pair.divergence().await.kinds, once("snapshot", "ok", "otherwise"));
}

#[tokio::test]
async fn a_hold_that_only_the_second_has_gives_way() {
    let pair = Pair::open().await;
    pair.second.load(pair.show, &known()).await.expect("it is loaded");
    pair.take(&*pair.second, "ann", 1).await.expect("it is free");
    assert_eq!(pair.shadow.mine(pair.show, "ann").await.expect("an answer"), None);
    assert_eq!(pair.divergence().await.kinds, once("mine", "gone", "ok"));
    pair.take(&*pair.second, "ann", 2).await.expect("it is free");
    let held = pair.take(&pair.shadow, "ann", 3).await.expect("the first decides");
    assert_eq!(pair.divergence().await.kinds[&Kind { call: "lock", first: "ok", second: "other_hold" }], 1);
    assert_eq!(pair.mine(&pair.second, "ann").await.map(|there| there.hold), Some(held.hold));
}

#[tokio::test]
async fn a_retry_of_a_hold_that_is_over_brings_nothing_back_in_the_second() {
    let pair = Pair::open().await;
    let wish = [attempt("ann", lot(&[1], &[]))];
    let ask = || async { pair.shadow.lock(pair.show, TERMS, &wish).await.expect("answers") };
    let first = ask().await;
    pair.shadow.caught_up().await;
    pair.clock.pass(TERMS.length_ms);
    assert_eq!(ask().await, first);
    assert!(pair.divergence().await.is_none());
    assert_eq!(pair.map(&pair.second).await, known().map);
}

/// Lets so many holds of somebody run out in one of the two.
async fn let_run_out(pair: &Pair, store: &MemoryLocks, owner: &str, times: u32) {
    for _ in 0..times {
        pair.take(store, owner, 1).await.expect("it is free");
        pair.clock.pass(TERMS.length_ms);
    }
}

/// Asks for a minute more.
async fn extend(pair: &Pair, owner: &str, hold: Uuid) -> Result<Held, Refusal> {
    pair.shadow.extend(pair.show, super::house::asked(), hold, owner, MINUTE_MS).await.expect("an answer")
}

#[tokio::test]
async fn holds_that_ran_out_in_the_first_alone_make_no_hold_of_the_second_last_longer() {
    let pair = Pair::open().await;
    pair.second.load(pair.show, &known()).await.expect("it is loaded");
    let_run_out(&pair, &pair.first, "ann", NONE_FROM).await;
    let held = pair.take(&pair.shadow, "ann", 2).await.expect("it is free");
    assert_eq!(extend(&pair, "ann", held.hold).await, Err(Refusal::Lapsed));
    pair.shadow.caught_up().await;
    pair.clock.pass(TERMS.length_ms);
    pair.take(&pair.shadow, "ben", 2).await.expect("it is free again");
    assert!(pair.divergence().await.is_none());

    let_run_out(&pair, &pair.first, "cat", HALF_FROM).await;
    let held = pair.take(&pair.shadow, "cat", 3).await.expect("it is free");
    let longer = extend(&pair, "cat", held.hold).await.expect("it lasts longer");
    assert_eq!(longer.expires_at.since(held.expires_at), MINUTE_MS / 2);
    pair.shadow.caught_up().await;
    pair.clock.pass(TERMS.length_ms + MINUTE_MS / 2);
    pair.take(&pair.shadow, "dan", 3).await.expect("it is free again");
    assert!(pair.divergence().await.is_none());
}

#[tokio::test]
async fn holds_that_ran_out_in_the_second_alone_make_no_hold_of_it_end_sooner() {
    let pair = Pair::open().await;
    pair.second.load(pair.show, &known()).await.expect("it is loaded");
    for (owner, times) in [("ann", NONE_FROM), ("ben", HALF_FROM)] {
        let_run_out(&pair, &pair.second, owner, times).await;
        let held = pair.take(&pair.shadow, owner, 2).await.expect("it is free");
        let longer = extend(&pair, owner, held.hold).await.expect("the first decides");
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
async fn a_repeated_extension_brings_nothing_back_in_the_second() {
    let pair = Pair::open().await;
    pair.second.load(pair.show, &known()).await.expect("it is loaded");
    let_run_out(&pair, &pair.first, "ann", HALF_FROM).await;
    let held = pair.take(&pair.shadow, "ann", 2).await.expect("it is free");
    let asked = super::house::asked();
    let ask = || async {
        let answer = pair.shadow.extend(pair.show, asked, held.hold, "ann", MINUTE_MS).await;
        answer.expect("an answer").expect("it lasts longer")
    };
    let longer = ask().await;
    pair.shadow.release(pair.show, held.hold, "ann").await.expect("an answer").expect("it is hers");
    assert_eq!(ask().await.expires_at, longer.expires_at);
    assert!(pair.divergence().await.is_none());
    assert_eq!(pair.map(&pair.second).await, known().map);
}

#[tokio::test]
async fn a_second_store_that_does_not_answer_disturbs_nobody() {
    let pair = Pair::with_source(Arc::new(|_| Box::pin(async { None }) as _)).await;
    let held = pair.take(&pair.shadow, "ann", 1).await.expect("it is free");
    pair.shadow
        .extend(pair.show, super::house::asked(), held.hold, "ann", MINUTE_MS)
        .await
        .expect("an answer")
        .expect("it may");
    let found = pair.divergence().await;
    assert_eq!((found.unreachable, found.compared, found.kinds), (2, 0, BTreeMap::new()));
}

#[tokio::test]
async fn a_second_store_that_hangs_slows_nobody_and_what_it_missed_is_counted() {
    const CALLS: u64 = 3_000;
    let pair = Pair::with_source(Arc::new(|_| Box::pin(std::future::pending()) as _)).await;
    for _ in 0..CALLS {
        pair.shadow.sweep(pair.show).await.expect("an answer");
    }
    let found = pair.shadow.divergence();
    assert!(found.missed > CALLS / 2 && found.missed < CALLS, "a bounded line holds some of {CALLS}: {found:?}");
}

#[tokio::test]
async fn differences_between_calls_that_overlapped_prove_nothing_and_are_counted_apart() {
    let (redis, second, show) = (RedisHouse::open().await, Arc::new(memory(&clock())), platform::ids::new_id());
    let source = Arc::new(|_| Box::pin(async { None }) as _);
    let shadow = ShadowLocks::new(Arc::new(redis.store().await), Arc::clone(&second) as _, source);
    shadow.load(show, &known()).await.expect("it is loaded");
    shadow.caught_up().await;
    second.block(show, &[1], true).await.expect("an answer").expect("it is free");
    let wish = [attempt("ann", lot(&[1], &[]))];
    let (answers, _) = tokio::join!(shadow.lock(show, TERMS, &wish), shadow.sweep(show));
    assert!(answers.expect("answers")[0].is_ok());
    shadow.caught_up().await;
    let found = shadow.divergence();
    assert_eq!((found.unordered, found.kinds), (1, BTreeMap::new()));
    redis.lose(show).await;
}
