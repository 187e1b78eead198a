//! Redis falls back behind what it said, as after a failover that lost the last writes.

use domain::seats::SeatState;
use domain::time::MINUTE_MS;
use seats::seat_locks::{KnownSeats, Refusal, SeatLocks, StoreError};
use uuid::Uuid;

use super::house::{LOWEST_FENCE, TERMS, attempt, known, lot, sale};
use super::redis_house::RedisHouse;

/// One replica's store and the Redis behind it.
struct Fallen {
    redis: RedisHouse,
    store: seats::seat_locks::RedisLocks,
    show: Uuid,
}

impl Fallen {
    /// A show in which `survivors` hold a seat each that Redis still knows of after its fall, and
    /// `forgotten` held one that it does not.
    async fn with_holds(survivors: &[(&str, u32)], forgotten: &[(&str, u32)]) -> Self {
        let redis = RedisHouse::open().await;
        let (store, show) = (redis.store().await, platform::ids::new_id());
        store.load(show, &known()).await.expect("it is loaded");
        let fallen = Self { redis, store, show };
        fallen.take(survivors).await;
        let backup = fallen.redis.backup(show).await;
        fallen.take(forgotten).await;
        fallen.redis.fall_back(&backup).await;
        fallen
    }

    async fn take(&self, wishes: &[(&str, u32)]) {
        for (owner, seat) in wishes {
            let answers = self.store.lock(self.show, TERMS, &[attempt(owner, lot(&[*seat], &[(0, 1)]))]).await;
            answers.expect("answers").remove(0).expect("it is free");
        }
    }

    async fn map(&self) -> String {
        let snapshot = self.store.snapshot(self.show).await.expect("a snapshot");
        snapshot.map.iter().map(|byte| char::from(b'0' + *byte)).collect()
    }
}

#[tokio::test]
async fn a_store_that_fell_back_has_no_map_until_it_is_built_again() {
    let fallen = Fallen::with_holds(&[("ann", 1)], &[("ben", 2)]).await;
    for _ in 0..2 {
        assert!(matches!(fallen.store.snapshot(fallen.show).await, Err(StoreError::NoMap(_))));
        assert!(matches!(fallen.store.mine(fallen.show, "ann").await, Err(StoreError::NoMap(_))));
    }
    fallen.store.load(fallen.show, &known()).await.expect("it is loaded");
    assert_eq!(fallen.map().await, "010000000000");
}

#[tokio::test]
async fn survivors_keep_their_holds_and_their_end_and_fences_go_on_above_the_lost_ones() {
    let redis = RedisHouse::open().await;
    let (store, show) = (redis.store().await, platform::ids::new_id());
    store.load(show, &known()).await.expect("it is loaded");
    let try_one = |owner: &'static str, seat| {
        let attempt = attempt(owner, lot(&[seat], &[(0, 2)]));
        let store = &store;
        async move { store.lock(show, TERMS, &[attempt]).await.expect("answers").remove(0) }
    };
    let survivor = try_one("ann", 1).await.expect("it is free");
    let before = store.snapshot(show).await.expect("a snapshot");
    let backup = redis.backup(show).await;
    let lost = try_one("ben", 2).await.expect("it is free");
    redis.fall_back(&backup).await;
    assert!(matches!(store.snapshot(show).await, Err(StoreError::NoMap(_))));
    store.load(show, &KnownSeats { lowest_fence: lost.fence, ..known() }).await.expect("it is loaded");

    let after = store.snapshot(show).await.expect("a snapshot");
    assert!(after.epoch > before.epoch);
    assert_eq!((after.map[1], after.map[2], after.areas), (1, 0, vec![(0, 3), (1, 3)]));
    assert_eq!(store.mine(show, "ann").await.expect("an answer"), Some(survivor.clone()));
    assert_eq!(store.mine(show, "ben").await.expect("an answer"), None);
    assert!(try_one("cat", 2).await.expect("it is free").fence > lost.fence);
    let payment = store.begin_payment(show, &sale("ann", &survivor), MINUTE_MS).await.expect("an answer");
    assert!(payment.is_ok());
    let late = store.begin_payment(show, &sale("ben", &lost), MINUTE_MS).await.expect("an answer");
    assert_eq!(late, Err(Refusal::Gone), "the lost hold is over");
    store.forget(show).await.expect("it is forgotten");
}

#[tokio::test]
async fn a_survivor_whose_seat_postgres_gave_to_another_is_dropped() {
    let fallen = Fallen::with_holds(&[("ann", 1), ("ben", 2)], &[("cat", 3)]).await;
    let mut known = KnownSeats { sold: vec![(1, LOWEST_FENCE + 77)], ..known() };
    known.map[1] = SeatState::Booked as u8;
    fallen.store.load(fallen.show, &known).await.expect("it is loaded");
    assert_eq!(fallen.map().await, "021000000000");
    assert_eq!(fallen.store.mine(fallen.show, "ann").await.expect("an answer"), None);
    assert!(fallen.store.mine(fallen.show, "ben").await.expect("an answer").is_some());
    let snapshot = fallen.store.snapshot(fallen.show).await.expect("a snapshot");
    assert_eq!(snapshot.areas, [(0, 4), (1, 3)], "a dropped hold takes its places along");
}

#[tokio::test]
async fn a_survivor_for_whose_places_there_is_no_room_is_dropped_and_the_earlier_one_stays() {
    let fallen = Fallen::with_holds(&[("ann", 1), ("ben", 2)], &[("cat", 3)]).await;
    let known = KnownSeats { areas: vec![(0, 1), (1, 3)], ..known() };
    fallen.store.load(fallen.show, &known).await.expect("it is loaded");
    assert_eq!(fallen.map().await, "010000000000");
    assert_eq!(fallen.store.snapshot(fallen.show).await.expect("a snapshot").areas, [(0, 0), (1, 3)]);
}

#[tokio::test]
async fn only_the_first_to_load_a_store_that_fell_back_builds_the_map() {
    let fallen = Fallen::with_holds(&[("ann", 1)], &[("ben", 2)]).await;
    fallen.store.load(fallen.show, &known()).await.expect("it is loaded");
    let first = fallen.store.snapshot(fallen.show).await.expect("a snapshot");
    fallen.store.load(fallen.show, &known()).await.expect("an answer");
    assert_eq!(fallen.store.snapshot(fallen.show).await.expect("a snapshot"), first);
}

#[tokio::test]
async fn a_replica_that_saw_nothing_of_the_lost_writes_goes_on_with_the_rebuilt_map() {
    let fallen = Fallen::with_holds(&[("ann", 1)], &[("ben", 2)]).await;
    let elsewhere = fallen.redis.store().await;
    assert!(elsewhere.snapshot(fallen.show).await.is_ok(), "it cannot know");
    fallen.store.load(fallen.show, &known()).await.expect("it is loaded");
    let (here, there) = (fallen.store.snapshot(fallen.show).await, elsewhere.snapshot(fallen.show).await);
    assert_eq!(here.expect("a snapshot"), there.expect("a snapshot"));
}

#[tokio::test]
async fn a_retry_after_a_loss_finds_the_hold_that_survived_without_its_answer() {
    let redis = RedisHouse::open().await;
    let (store, show) = (redis.store().await, platform::ids::new_id());
    store.load(show, &known()).await.expect("it is loaded");
    let wish = attempt("ann", lot(&[1], &[(0, 1)]));
    let first = store.lock(show, TERMS, std::slice::from_ref(&wish)).await.expect("answers");
    redis.forget_answers(show).await;
    assert_eq!(store.lock(show, TERMS, std::slice::from_ref(&wish)).await.expect("answers"), first);
    let other = seats::seat_locks::Attempt { lot: lot(&[1], &[]), ..wish };
    assert_eq!(store.lock(show, TERMS, &[other]).await.expect("answers"), [Err(Refusal::Reused)]);
    store.forget(show).await.expect("it is forgotten");
}
