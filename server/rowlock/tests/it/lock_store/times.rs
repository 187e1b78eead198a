//! When holds end: by themselves, sooner after a closed tab, later when extended.

use domain::seats::SeatState;
use domain::time::MINUTE_MS;
use seats::seat_locks::{KnownSeats, Lot, Refusal, Terms};

use super::house::{FLASH, House, TERMS, asked, attempt, lot, sale};

/// Well within what a test takes, far from anything a hold lasts.
const MOMENT_MS: i64 = 20_000;

on_every_store! {
    async fn a_hold_ends_when_its_time_is_over_and_not_before(house: &House) {
        house.take("ann", &[1]).await.expect("it is free");
        house.pass(TERMS.length_ms - MOMENT_MS).await;
        assert_eq!(house.map().await, "010000000000");
        house.pass(MOMENT_MS).await;
        assert_eq!((house.map().await, house.mine("ann").await), ("000000000000".into(), None));
    }

    async fn whoever_comes_next_gets_the_seat_in_the_very_call_that_finds_it_due(house: &House) {
        let first = house.take("ann", &[1]).await.expect("it is free");
        house.pass(TERMS.length_ms).await;
        let version = house.version().await;
        let second = house.take("ben", &[1]).await.expect("it is due");
        assert!(second.fence > first.fence);
        assert_eq!(house.version().await, version + 1);
    }

    async fn reading_the_map_changes_nothing_and_the_next_call_frees_what_is_due(house: &House) {
        house.take_lot("ann", lot(&[1], &[(0, 2)])).await.expect("they are free");
        let before = house.store.snapshot(house.show).await.expect("a snapshot");
        house.pass(TERMS.length_ms).await;
        assert_eq!(house.store.snapshot(house.show).await.expect("a snapshot"), before);
        assert_eq!(house.mine("ben").await, None);
        let after = house.store.snapshot(house.show).await.expect("a snapshot");
        assert_eq!((after.version, after.map[1], after.areas), (before.version + 1, 0, vec![(0, 5), (1, 3)]));
    }

    async fn the_owner_of_a_hold_that_ended_may_take_another(house: &House) {
        house.take("ann", &[1]).await.expect("it is free");
        house.pass(TERMS.length_ms).await;
        house.take("ann", &[2]).await.expect("she has none any more");
    }

    async fn a_call_that_is_refused_announces_what_it_found_due_all_the_same(house: &House) {
        house.take("ann", &[1]).await.expect("it is free");
        house.take("ben", &[2]).await.expect("it is free");
        let version = house.version().await;
        house.pass(TERMS.length_ms).await;
        assert_eq!(house.take("cat", &[50]).await, Err(Refusal::Outside(50)));
        assert_eq!((house.version().await, house.map().await), (version + 1, "000000000000".into()));
    }

    async fn a_closed_tab_shortens_a_hold_and_coming_back_restores_its_original_end(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.leave("ann", held.hold, 30_000).await;
        house.leave("ann", held.hold, 3 * MINUTE_MS).await;
        assert_eq!(house.mine("ann").await, Some(held.clone()));
        house.leave("ann", held.hold, 30_000).await;
        house.pass(30_000).await;
        assert_eq!((house.mine("ann").await, house.map().await), (None, "000000000000".into()));
    }

    async fn a_closed_tab_never_lengthens_a_hold(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.pass(TERMS.length_ms - 30_000).await;
        house.leave("ann", held.hold, 10 * MINUTE_MS).await;
        house.pass(30_000).await;
        assert_eq!(house.holds().await, 0);
    }

    async fn nobody_shortens_anothers_hold_and_leaving_none_is_no_fault(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.leave("ben", held.hold, 0).await;
        house.leave("ann", platform::ids::new_id(), 0).await;
        assert_eq!(house.holds().await, 1);
    }

    async fn an_extension_goes_as_far_as_the_longest_life_and_then_no_further(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        let longer = house.extend("ann", held.hold, 2 * MINUTE_MS).await.expect("it may last longer");
        assert_eq!(longer.expires_at.since(held.expires_at), 2 * MINUTE_MS);
        let longest = house.extend("ann", held.hold, 2 * MINUTE_MS).await.expect("it may last longer");
        assert_eq!(longest.expires_at, held.latest);
        assert_eq!(house.extend("ann", held.hold, 2 * MINUTE_MS).await, Err(Refusal::Capped));
        house.pass(TERMS.length_ms).await;
        assert_eq!(house.holds().await, 1);
        house.pass(TERMS.life_ms - TERMS.length_ms).await;
        assert_eq!(house.holds().await, 0);
    }

    async fn in_a_flash_sale_nothing_is_extended(house: &House) {
        let held = house.try_with(FLASH, &attempt("ann", lot(&[1], &[]))).await.expect("it is free");
        assert_eq!(held.expires_at, held.latest);
        assert_eq!(house.extend("ann", held.hold, MINUTE_MS).await, Err(Refusal::Capped));
        house.pass(FLASH.length_ms).await;
        assert_eq!(house.holds().await, 0);
    }

    async fn extending_after_a_closed_tab_counts_from_the_original_end(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.leave("ann", held.hold, 30_000).await;
        let longer = house.extend("ann", held.hold, MINUTE_MS).await.expect("it may last longer");
        assert_eq!(longer.expires_at.since(held.expires_at), MINUTE_MS);
    }

    async fn nobody_extends_anothers_hold_or_one_that_is_over_or_being_paid_for(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        assert_eq!(house.extend("ben", held.hold, MINUTE_MS).await, Err(Refusal::Gone));
        house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        assert_eq!(house.extend("ann", held.hold, MINUTE_MS).await, Err(Refusal::Paying));
        house.end_payment(&sale("ann", &held)).await;
        house.pass(TERMS.length_ms).await;
        assert_eq!(house.extend("ann", held.hold, MINUTE_MS).await, Err(Refusal::Gone));
    }

    async fn letting_go_frees_the_seats_at_once_and_only_for_the_owner(house: &House) {
        let held = house.take("ann", &[1, 2]).await.expect("they are free");
        assert_eq!(house.release("ben", held.hold).await, Err(Refusal::Gone));
        assert_eq!(house.map().await, "011000000000");
        assert_eq!(house.release("ann", held.hold).await, Ok(()));
        assert_eq!(house.map().await, "000000000000");
        assert_eq!(house.release("ann", held.hold).await, Err(Refusal::Gone));
    }

    async fn changing_a_hold_that_is_due_is_too_late(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.pass(TERMS.length_ms).await;
        assert_eq!(house.change("ann", held.hold, lot(&[2], &[]), Lot::default()).await, Err(Refusal::Gone));
    }
}

// Not with a shadow: which of very many go first is each store's own affair, and it would be counted.
async fn a_call_frees_some_of_very_many_that_are_due_a_sweep_all_and_those_left_are_over_too(house: &House) {
    let (show, store) = (platform::ids::new_id(), &house.store);
    let known = KnownSeats { map: vec![0; 200], ..KnownSeats::default() };
    store.load(show, &known).await.expect("the map is loaded");
    let attempts: Vec<_> = (0..200).map(|seat| attempt(&format!("visitor {seat}"), lot(&[seat], &[]))).collect();
    let at_once = Terms { length_ms: 0, life_ms: MINUTE_MS, ..TERMS };
    let answers = store.lock(show, at_once, &attempts).await.expect("answers");
    assert!(answers.iter().all(Result::is_ok));
    let locked = || async {
        let map = store.snapshot(show).await.expect("a snapshot").map;
        map.iter().filter(|state| **state == SeatState::Locked as u8).count()
    };
    assert_eq!(store.mine(show, "nobody").await.expect("an answer"), None);
    assert_eq!(locked().await, 200 - 64);
    // Of those that end together the one of the highest id is freed last.
    let last = attempts.iter().max_by_key(|attempt| attempt.asked.id).expect("one of them");
    let (hold, owner) = (last.asked.id, last.owner.as_str());
    assert_eq!(store.extend(show, asked(), hold, owner, MINUTE_MS).await.expect("an answer"), Err(Refusal::Gone));
    assert_eq!(store.mine(show, owner).await.expect("an answer"), None);
    assert_eq!(locked().await, 200 - 3 * 64);
    assert_eq!(store.release(show, hold, owner).await.expect("an answer"), Err(Refusal::Gone));
    assert_eq!(locked().await, 0);

    let again: Vec<_> = (0..200).map(|seat| attempt(&format!("visitor {seat}"), lot(&[seat], &[]))).collect();
    store.lock(show, at_once, &again).await.expect("answers");
    assert_eq!(store.sweep(show).await.expect("an answer"), 0);
    assert_eq!(locked().await, 0);
    store.forget(show).await.expect("it is forgotten");
}

#[tokio::test]
async fn in_redis_a_call_frees_some_of_very_many_that_are_due_a_sweep_all_and_those_left_are_over_too() {
    let house = House::in_redis().await;
    a_call_frees_some_of_very_many_that_are_due_a_sweep_all_and_those_left_are_over_too(&house).await;
    house.close().await;
}

#[tokio::test]
async fn in_memory_a_call_frees_some_of_very_many_that_are_due_a_sweep_all_and_those_left_are_over_too() {
    let house = House::in_memory().await;
    a_call_frees_some_of_very_many_that_are_due_a_sweep_all_and_those_left_are_over_too(&house).await;
    house.close().await;
}

#[tokio::test]
async fn redis_left_alone_frees_a_hold_when_its_time_is_over() {
    let house = House::in_redis().await;
    let short = Terms { length_ms: 150, life_ms: 150, ..TERMS };
    let held = house.try_with(short, &attempt("ann", lot(&[1], &[]))).await.expect("it is free");
    assert_eq!(house.map().await, "010000000000");
    crate::world::until("the hold is over", || async { house.holds().await == 0 }).await;
    assert!(house.store.now() >= held.expires_at);
    assert_eq!(house.map().await, "000000000000");
    house.close().await;
}
