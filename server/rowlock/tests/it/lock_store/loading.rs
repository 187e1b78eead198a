//! Building a show's map from Postgres' state, forgetting it, adopting another store's holds, and losing the map.

use domain::seats::Places;
use domain::seats::SeatState::{self, Available, Blocked, Booked, Locked};
use domain::time::{MINUTE_MS, Timestamp};
use seats::seat_locks::{FencedSelection, RebuildInput, Refusal, SeatLocks, StoreError, StoredHold};
use uuid::Uuid;

use super::fixture::{LOWEST_FENCE, RedisFixture, StoreFixture, TERMS, asked, attempt, known, sale, selection};

fn partly_sold() -> RebuildInput {
    RebuildInput {
        map: [Available, Booked, Booked, Blocked, Available, Available].map(|state| state as u8).to_vec(),
        sold: vec![(1, 40), (2, 41)],
        areas: vec![(3, 2)],
        sold_places: vec![(41, vec![Places { area: 3, count: 4 }])],
        bought: vec![("ann".into(), 1), ("ben".into(), 5)],
        lowest_fence: LOWEST_FENCE,
        is_past: false,
    }
}

on_every_store! {
    async fn unloaded_show_has_no_map_for_any_call(fixture: &StoreFixture) {
        let (show, id) = (platform::ids::new_id(), platform::ids::new_id());
        let no_map = |answer: Result<(), StoreError>| matches!(answer, Err(StoreError::NoMap(lost)) if lost == show);
        let store = &fixture.store;
        let sale = FencedSelection { hold: id, owner: "ann".into(), fence: 1, selection: selection(&[1], &[]) };
        assert!(no_map(store.lock(show, TERMS, &[attempt("ann", selection(&[1], &[]))]).await.map(drop)));
        assert!(no_map(store.hold_of(show, "ann").await.map(drop)));
        assert!(no_map(store.shorten_hold(show, id, "ann", 1).await));
        assert!(no_map(store.release(show, id, "ann").await.map(drop)));
        assert!(no_map(store.extend(show, asked(), id, "ann", 1).await.map(drop)));
        assert!(no_map(store.begin_payment(show, &sale, 1).await.map(drop)));
        assert!(no_map(store.end_payment(show, &sale, 1).await));
        assert!(no_map(store.book(show, &sale).await));
        assert!(no_map(store.free(show, &sale).await));
        assert!(no_map(store.block(show, &[1], true).await.map(drop)));
        assert!(no_map(store.release_all(show).await.map(drop)));
        assert!(no_map(store.sweep(show).await.map(drop)));
        assert!(no_map(store.snapshot(show).await.map(drop)));
        assert!(no_map(store.copy_fences(show, &[(id, 1)]).await));
        store.forget(show).await.expect("forgetting nothing succeeds");
    }

    async fn map_is_built_from_postgres_and_claimed_seats_stay_taken(fixture: &StoreFixture) {
        let show = platform::ids::new_id();
        fixture.store.load(show, &partly_sold()).await.expect("the map is loaded");
        let snapshot = fixture.store.snapshot(show).await.expect("a snapshot");
        assert_eq!((snapshot.map.to_vec(), snapshot.areas), (partly_sold().map, vec![(3, 2)]));
        let request = attempt("ben", selection(&[4, 5], &[]));
        let answers = fixture.store.lock(show, TERMS, &[request]).await.expect("answers");
        assert_eq!(answers, [Err(Refusal::Limit(1))], "five of his six are sold");
        let ben = FencedSelection { hold: Uuid::nil(), owner: "ben".into(), fence: 41, selection: selection(&[1, 2], &[(3, 4)]) };
        fixture.store.free(show, &ben).await.expect("an answer");
        let snapshot = fixture.store.snapshot(show).await.expect("a snapshot");
        assert_eq!((snapshot.map[1], snapshot.map[2], snapshot.areas), (Booked as u8, Available as u8, vec![(3, 6)]));
        fixture.store.forget(show).await.expect("the show is forgotten");
    }

    async fn existing_map_is_not_rebuilt(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        let before = fixture.store.snapshot(fixture.show).await.expect("a snapshot");
        fixture.store.load(fixture.show, &partly_sold()).await.expect("an answer");
        assert_eq!(fixture.store.snapshot(fixture.show).await.expect("a snapshot"), before);
        assert_eq!(fixture.hold_of("ann").await, Some(held));
    }

    async fn lost_map_is_rebuilt_with_a_later_epoch(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        let before = fixture.store.snapshot(fixture.show).await.expect("a snapshot");
        fixture.lose().await;
        assert!(matches!(fixture.store.snapshot(fixture.show).await, Err(StoreError::NoMap(_))));
        fixture.store.load(fixture.show, &known()).await.expect("the map is loaded");
        let after = fixture.store.snapshot(fixture.show).await.expect("a snapshot");
        assert!(after.epoch > before.epoch);
        assert_eq!((fixture.map().await, fixture.hold_of("ann").await), ("000000000000".into(), None));
        assert_eq!(fixture.begin_payment(&sale("ann", &held)).await, Err(Refusal::Gone));
    }

    async fn fences_continue_above_the_highest_in_postgres(fixture: &StoreFixture) {
        fixture.lose().await;
        let known = RebuildInput { lowest_fence: LOWEST_FENCE + 500, ..known() };
        fixture.store.load(fixture.show, &known).await.expect("the map is loaded");
        assert!(fixture.take("ann", &[1]).await.expect("the seat is free").fence > LOWEST_FENCE + 500);
    }

    async fn forgotten_show_leaves_no_data(fixture: &StoreFixture) {
        let show = platform::ids::new_id();
        fixture.store.load(show, &known()).await.expect("the map is loaded");
        fixture.store.lock(show, TERMS, &[attempt("ann", selection(&[1], &[(0, 1)]))]).await.expect("an answer");
        fixture.store.forget(show).await.expect("the show is forgotten");
        assert!(fixture.has_nothing_of(show).await);
        fixture.store.forget(show).await.expect("a second call changes nothing");
    }

    async fn layout_with_areas_only_has_a_map(fixture: &StoreFixture) {
        let show = platform::ids::new_id();
        let field = RebuildInput { areas: vec![(0, 10)], ..RebuildInput::default() };
        fixture.store.load(show, &field).await.expect("the map is loaded");
        let answers = fixture.store.lock(show, TERMS, &[attempt("ann", selection(&[], &[(0, 4)]))]).await.expect("answers");
        assert!(answers[0].is_ok());
        assert_eq!(fixture.store.snapshot(show).await.expect("a snapshot").areas, [(0, 6)]);
        fixture.store.forget(show).await.expect("the show is forgotten");
    }

    async fn adopted_hold_equals_the_other_stores_hold(fixture: &StoreFixture) {
        let theirs = Timestamp(77_000);
        let held = StoredHold {
            hold: platform::ids::new_id(),
            expires_at: theirs.plus_ms(4 * MINUTE_MS),
            latest: theirs.plus_ms(6 * MINUTE_MS),
            fence: LOWEST_FENCE + 900,
            paying: false,
            selection: selection(&[1, 2], &[(1, 2)]),
        };
        let adopt = |owner, held| async move {
            fixture.store.copy_hold(fixture.show, owner, &held, theirs).await.expect("an answer")
        };
        adopt("ann", held.clone()).await.expect("the seats are free");
        let mine = fixture.hold_of("ann").await.expect("it is her hold");
        assert_eq!((mine.hold, mine.fence, mine.paying, &mine.selection), (held.hold, held.fence, false, &held.selection));
        assert_eq!(mine.latest.since(mine.expires_at), 2 * MINUTE_MS);
        assert_eq!((fixture.map().await, fixture.areas().await), ("011000000000".into(), vec![(0, 5), (1, 1)]));
        assert!(fixture.take("ben", &[5]).await.expect("the seat is free").fence > held.fence, "later fences are higher");
        // Again with other seats: its previous seats are freed.
        adopt("ann", StoredHold { selection: selection(&[2, 3], &[(1, 3)]), ..held.clone() }).await.expect("the seats are hers or free");
        assert_eq!((fixture.map().await, fixture.areas().await), ("001101000000".into(), vec![(0, 5), (1, 0)]));
        // Another hold of hers also replaces it.
        let other = StoredHold { hold: platform::ids::new_id(), selection: selection(&[3], &[]), ..held.clone() };
        adopt("ann", other.clone()).await.expect("it is her hold");
        assert_eq!((fixture.hold_of("ann").await.map(|held| held.hold), fixture.holds().await), (Some(other.hold), 2));
        let taken = StoredHold { hold: platform::ids::new_id(), selection: selection(&[4, 5], &[]), ..held.clone() };
        assert_eq!(adopt("ann", taken).await, Err(Refusal::Taken(vec![(5, Locked)])));
        assert_eq!(adopt("cat", other.clone()).await, Err(Refusal::OtherHold(other.hold)));
        assert_eq!(fixture.map().await, "000101000000");
        fixture.pass(4 * MINUTE_MS).await;
        assert_eq!(fixture.map().await, "000001000000");
    }

    async fn adopted_hold_needs_known_seats_and_areas_and_free_places(fixture: &StoreFixture) {
        let held = |selection| StoredHold {
            hold: platform::ids::new_id(),
            expires_at: Timestamp(MINUTE_MS),
            latest: Timestamp(MINUTE_MS),
            fence: LOWEST_FENCE + 1,
            paying: true,
            selection,
        };
        let adopt = |selection| async move {
            fixture.store.copy_hold(fixture.show, "ann", &held(selection), Timestamp(0)).await.expect("an answer")
        };
        assert_eq!(adopt(selection(&[1, 12], &[])).await, Err(Refusal::Outside(12)));
        assert_eq!(adopt(selection(&[1], &[(9, 1)])).await, Err(Refusal::NoArea(9)));
        assert_eq!(adopt(selection(&[1], &[(0, 6), (1, 4)])).await, Err(Refusal::Full(vec![(0, 5), (1, 3)])));
        assert_eq!(fixture.holds().await, 0);
        adopt(selection(&[1], &[])).await.expect("the seat is free");
        assert!(fixture.hold_of("ann").await.is_some_and(|held| held.paying));
    }

    async fn stamped_hold_uses_the_given_fence(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        let fence = LOWEST_FENCE + 700;
        fixture.store.copy_fences(fixture.show, &[(platform::ids::new_id(), 1), (held.hold, fence)]).await.expect("an answer");
        assert_eq!(fixture.hold_of("ann").await, Some(StoredHold { fence, ..held.clone() }));
        assert_eq!(fixture.begin_payment(&sale("ann", &held)).await, Err(Refusal::Gone));
        fixture.begin_payment(&FencedSelection { fence, ..sale("ann", &held) }).await.expect("it is her hold");
        assert!(fixture.take("ben", &[2]).await.expect("the seat is free").fence > fence);
    }
}

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
