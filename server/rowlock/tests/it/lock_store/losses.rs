//! Redis falls back to an earlier state, as after a failover that lost the last writes.

use domain::seats::SeatState;
use domain::time::MINUTE_MS;
use seats::seat_locks::{RebuildInput, Refusal, SeatLocks, StoreError};
use uuid::Uuid;

use super::fixture::{LOWEST_FENCE, TERMS, attempt, known, sale, selection};
use super::redis_fixture::RedisFixture;

/// A replica's store, and the Redis behind it.
struct RestoredStore {
    redis: RedisFixture,
    store: seats::seat_locks::RedisLocks,
    show: Uuid,
}

impl RestoredStore {
    /// A show in which each of `survivors` has a hold in the restored Redis, and the holds of `forgotten` are lost.
    async fn with_holds(survivors: &[(&str, u32)], forgotten: &[(&str, u32)]) -> Self {
        let redis = RedisFixture::open().await;
        let (store, show) = (redis.store().await, platform::ids::new_id());
        store.load(show, &known()).await.expect("the map is loaded");
        let restored = Self { redis, store, show };
        restored.take(survivors).await;
        let backup = restored.redis.backup(show).await;
        restored.take(forgotten).await;
        restored.redis.fall_back(&backup).await;
        restored
    }

    async fn take(&self, attempts: &[(&str, u32)]) {
        for (owner, seat) in attempts {
            let answers = self.store.lock(self.show, TERMS, &[attempt(owner, selection(&[*seat], &[(0, 1)]))]).await;
            answers.expect("answers").remove(0).expect("the seat is free");
        }
    }

    async fn map(&self) -> String {
        let snapshot = self.store.snapshot(self.show).await.expect("a snapshot");
        snapshot.map.iter().map(|byte| char::from(b'0' + *byte)).collect()
    }
}

#[tokio::test]
async fn store_restored_to_an_earlier_state_has_no_map_until_it_is_rebuilt() {
    let restored = RestoredStore::with_holds(&[("ann", 1)], &[("ben", 2)]).await;
    for _ in 0..2 {
        assert!(matches!(restored.store.snapshot(restored.show).await, Err(StoreError::NoMap(_))));
        assert!(matches!(restored.store.hold_of(restored.show, "ann").await, Err(StoreError::NoMap(_))));
    }
    restored.store.load(restored.show, &known()).await.expect("the map is loaded");
    assert_eq!(restored.map().await, "010000000000");
}

#[tokio::test]
async fn surviving_holds_keep_their_expiry_and_fences_continue_above_lost_ones() {
    let redis = RedisFixture::open().await;
    let (store, show) = (redis.store().await, platform::ids::new_id());
    store.load(show, &known()).await.expect("the map is loaded");
    let try_one = |owner: &'static str, seat| {
        let attempt = attempt(owner, selection(&[seat], &[(0, 2)]));
        let store = &store;
        async move { store.lock(show, TERMS, &[attempt]).await.expect("answers").remove(0) }
    };
    let survivor = try_one("ann", 1).await.expect("the seat is free");
    let before = store.snapshot(show).await.expect("a snapshot");
    let backup = redis.backup(show).await;
    let lost = try_one("ben", 2).await.expect("the seat is free");
    redis.fall_back(&backup).await;
    assert!(matches!(store.snapshot(show).await, Err(StoreError::NoMap(_))));
    store.load(show, &RebuildInput { lowest_fence: lost.fence, ..known() }).await.expect("the map is loaded");

    let after = store.snapshot(show).await.expect("a snapshot");
    assert!(after.epoch > before.epoch);
    assert_eq!((after.map[1], after.map[2], after.areas), (1, 0, vec![(0, 3), (1, 3)]));
    assert_eq!(store.hold_of(show, "ann").await.expect("an answer"), Some(survivor.clone()));
    assert_eq!(store.hold_of(show, "ben").await.expect("an answer"), None);
    assert!(try_one("cat", 2).await.expect("the seat is free").fence > lost.fence);
    let payment = store.begin_payment(show, &sale("ann", &survivor), MINUTE_MS).await.expect("an answer");
    assert!(payment.is_ok());
    let late = store.begin_payment(show, &sale("ben", &lost), MINUTE_MS).await.expect("an answer");
    assert_eq!(late, Err(Refusal::Gone), "the lost hold is over");
    store.forget(show).await.expect("the show is forgotten");
}

#[tokio::test]
async fn surviving_hold_of_a_sold_seat_is_dropped() {
    let restored = RestoredStore::with_holds(&[("ann", 1), ("ben", 2)], &[("cat", 3)]).await;
    let mut known = RebuildInput { sold: vec![(1, LOWEST_FENCE + 77)], ..known() };
    known.map[1] = SeatState::Booked as u8;
    restored.store.load(restored.show, &known).await.expect("the map is loaded");
    assert_eq!(restored.map().await, "021000000000");
    assert_eq!(restored.store.hold_of(restored.show, "ann").await.expect("an answer"), None);
    assert!(restored.store.hold_of(restored.show, "ben").await.expect("an answer").is_some());
    let snapshot = restored.store.snapshot(restored.show).await.expect("a snapshot");
    assert_eq!(snapshot.areas, [(0, 4), (1, 3)], "a dropped hold frees its places");
}

#[tokio::test]
async fn surviving_hold_beyond_the_capacity_is_dropped_and_the_earlier_one_kept() {
    let restored = RestoredStore::with_holds(&[("ann", 1), ("ben", 2)], &[("cat", 3)]).await;
    let known = RebuildInput { areas: vec![(0, 1), (1, 3)], ..known() };
    restored.store.load(restored.show, &known).await.expect("the map is loaded");
    assert_eq!(restored.map().await, "010000000000");
    assert_eq!(restored.store.snapshot(restored.show).await.expect("a snapshot").areas, [(0, 0), (1, 3)]);
}

#[tokio::test]
async fn only_the_first_load_after_a_loss_rebuilds_the_map() {
    let restored = RestoredStore::with_holds(&[("ann", 1)], &[("ben", 2)]).await;
    restored.store.load(restored.show, &known()).await.expect("the map is loaded");
    let first = restored.store.snapshot(restored.show).await.expect("a snapshot");
    restored.store.load(restored.show, &known()).await.expect("an answer");
    assert_eq!(restored.store.snapshot(restored.show).await.expect("a snapshot"), first);
}

#[tokio::test]
async fn replica_unaware_of_the_loss_uses_the_rebuilt_map() {
    let restored = RestoredStore::with_holds(&[("ann", 1)], &[("ben", 2)]).await;
    let elsewhere = restored.redis.store().await;
    assert!(elsewhere.snapshot(restored.show).await.is_ok(), "it cannot detect the loss");
    restored.store.load(restored.show, &known()).await.expect("the map is loaded");
    let (here, there) = (restored.store.snapshot(restored.show).await, elsewhere.snapshot(restored.show).await);
    assert_eq!(here.expect("a snapshot"), there.expect("a snapshot"));
}

#[tokio::test]
async fn retry_after_a_loss_finds_the_surviving_hold_without_a_stored_answer() {
    let redis = RedisFixture::open().await;
    let (store, show) = (redis.store().await, platform::ids::new_id());
    store.load(show, &known()).await.expect("the map is loaded");
    let request = attempt("ann", selection(&[1], &[(0, 1)]));
    let first = store.lock(show, TERMS, std::slice::from_ref(&request)).await.expect("answers");
    redis.forget_answers(show).await;
    assert_eq!(store.lock(show, TERMS, std::slice::from_ref(&request)).await.expect("answers"), first);
    let other = seats::seat_locks::LockAttempt { selection: selection(&[1], &[]), ..request };
    assert_eq!(store.lock(show, TERMS, &[other]).await.expect("answers"), [Err(Refusal::Reused)]);
    store.forget(show).await.expect("the show is forgotten");
}
