//! Expiry of holds: by itself, sooner after a closed tab, later after an extension. An owner's expired holds shorten their
//! next extensions: to half, then to none, until a purchase or some time has passed.

use domain::fairness::{EXPIRY_COUNT_WINDOW_MS, HALF_FROM, NONE_FROM};
use domain::seats::{SeatIndex, SeatState};
use domain::time::MINUTE_MS;
use seats::seat_locks::{HoldLimits, RebuildInput, Refusal, Selection, StoredHold};

use super::fixture::{FLASH, StoreFixture, TERMS, asked, attempt, sale, selection};

/// Longer than a test takes, and much shorter than a hold.
const MOMENT_MS: i64 = 20_000;

on_every_store! {
    async fn hold_expires_at_its_time_and_not_before(fixture: &StoreFixture) {
        fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.pass(TERMS.length_ms - MOMENT_MS).await;
        assert_eq!(fixture.map().await, "010000000000");
        fixture.pass(MOMENT_MS).await;
        assert_eq!((fixture.map().await, fixture.hold_of("ann").await), ("000000000000".into(), None));
    }

    async fn call_that_finds_a_seat_expired_may_take_it(fixture: &StoreFixture) {
        let first = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.pass(TERMS.length_ms).await;
        let version = fixture.version().await;
        let second = fixture.take("ben", &[1]).await.expect("the hold has expired");
        assert!(second.fence > first.fence);
        assert_eq!(fixture.version().await, version + 1);
    }

    async fn reading_the_map_changes_nothing_and_the_next_call_frees_expired_holds(fixture: &StoreFixture) {
        fixture.take_selection("ann", selection(&[1], &[(0, 2)])).await.expect("the seats are free");
        let before = fixture.store.snapshot(fixture.show).await.expect("a snapshot");
        fixture.pass(TERMS.length_ms).await;
        assert_eq!(fixture.store.snapshot(fixture.show).await.expect("a snapshot"), before);
        assert_eq!(fixture.hold_of("ben").await, None);
        let after = fixture.store.snapshot(fixture.show).await.expect("a snapshot");
        assert_eq!((after.version, after.map[1], after.areas), (before.version + 1, 0, vec![(0, 5), (1, 3)]));
    }

    async fn owner_of_an_expired_hold_may_take_another(fixture: &StoreFixture) {
        fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.pass(TERMS.length_ms).await;
        fixture.take("ann", &[2]).await.expect("her hold has expired");
    }

    async fn refused_call_announces_the_holds_that_it_frees(fixture: &StoreFixture) {
        fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.take("ben", &[2]).await.expect("the seat is free");
        let version = fixture.version().await;
        fixture.pass(TERMS.length_ms).await;
        assert_eq!(fixture.take("cat", &[50]).await, Err(Refusal::Outside(50)));
        assert_eq!((fixture.version().await, fixture.map().await), (version + 1, "000000000000".into()));
    }

    async fn closed_tab_shortens_a_hold_and_returning_restores_its_expiry(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.shorten_hold("ann", held.hold, 30_000).await;
        fixture.shorten_hold("ann", held.hold, 3 * MINUTE_MS).await;
        assert_eq!(fixture.hold_of("ann").await, Some(held.clone()));
        fixture.shorten_hold("ann", held.hold, 30_000).await;
        fixture.pass(30_000).await;
        assert_eq!((fixture.hold_of("ann").await, fixture.map().await), (None, "000000000000".into()));
    }

    async fn closed_tab_never_lengthens_a_hold(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.pass(TERMS.length_ms - 30_000).await;
        fixture.shorten_hold("ann", held.hold, 10 * MINUTE_MS).await;
        fixture.pass(30_000).await;
        assert_eq!(fixture.holds().await, 0);
    }

    async fn foreign_hold_cannot_be_shortened_and_leaving_none_is_no_error(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.shorten_hold("ben", held.hold, 0).await;
        fixture.shorten_hold("ann", platform::ids::new_id(), 0).await;
        assert_eq!(fixture.holds().await, 1);
    }

    async fn extension_is_limited_by_the_longest_life(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        let longer = fixture.extend("ann", held.hold, 2 * MINUTE_MS).await.expect("the extension is allowed");
        assert_eq!(longer.expires_at.since(held.expires_at), 2 * MINUTE_MS);
        let longest = fixture.extend("ann", held.hold, 2 * MINUTE_MS).await.expect("the extension is allowed");
        assert_eq!(longest.expires_at, held.latest);
        assert_eq!(fixture.extend("ann", held.hold, 2 * MINUTE_MS).await, Err(Refusal::Capped));
        fixture.pass(TERMS.length_ms).await;
        assert_eq!(fixture.holds().await, 1);
        fixture.pass(TERMS.life_ms - TERMS.length_ms).await;
        assert_eq!(fixture.holds().await, 0);
    }

    async fn flash_sale_holds_cannot_be_extended(fixture: &StoreFixture) {
        let held = fixture.try_with(FLASH, &attempt("ann", selection(&[1], &[]))).await.expect("the seat is free");
        assert_eq!(held.expires_at, held.latest);
        assert_eq!(fixture.extend("ann", held.hold, MINUTE_MS).await, Err(Refusal::Capped));
        fixture.pass(FLASH.length_ms).await;
        assert_eq!(fixture.holds().await, 0);
    }

    async fn extension_after_a_closed_tab_counts_from_the_original_expiry(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.shorten_hold("ann", held.hold, 30_000).await;
        let longer = fixture.extend("ann", held.hold, MINUTE_MS).await.expect("the extension is allowed");
        assert_eq!(longer.expires_at.since(held.expires_at), MINUTE_MS);
    }

    async fn foreign_expired_and_paying_holds_cannot_be_extended(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        assert_eq!(fixture.extend("ben", held.hold, MINUTE_MS).await, Err(Refusal::Gone));
        fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        assert_eq!(fixture.extend("ann", held.hold, MINUTE_MS).await, Err(Refusal::Paying));
        fixture.end_payment(&sale("ann", &held)).await;
        fixture.pass(TERMS.length_ms).await;
        assert_eq!(fixture.extend("ann", held.hold, MINUTE_MS).await, Err(Refusal::Gone));
    }

    async fn release_frees_the_seats_at_once_and_only_for_the_owner(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1, 2]).await.expect("the seats are free");
        assert_eq!(fixture.release("ben", held.hold).await, Err(Refusal::Gone));
        assert_eq!(fixture.map().await, "011000000000");
        assert_eq!(fixture.release("ann", held.hold).await, Ok(()));
        assert_eq!(fixture.map().await, "000000000000");
        assert_eq!(fixture.release("ann", held.hold).await, Err(Refusal::Gone));
    }

    async fn expired_hold_cannot_be_changed(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.pass(TERMS.length_ms).await;
        assert_eq!(fixture.change("ann", held.hold, selection(&[2], &[]), Selection::default()).await, Err(Refusal::Gone));
    }
}

// Not with a shadow: stores may free many expired holds in different orders, which would count as divergence.
async fn check_expiry_of_very_many_holds(fixture: &StoreFixture) {
    let (show, store) = (platform::ids::new_id(), &fixture.store);
    let known = RebuildInput { map: vec![0; 200], ..RebuildInput::default() };
    store.load(show, &known).await.expect("the map is loaded");
    let attempts: Vec<_> = (0..200).map(|seat| attempt(&format!("visitor {seat}"), selection(&[seat], &[]))).collect();
    let at_once = HoldLimits { length_ms: 0, life_ms: MINUTE_MS, ..TERMS };
    let answers = store.lock(show, at_once, &attempts).await.expect("answers");
    assert!(answers.iter().all(Result::is_ok));
    let locked = || async {
        let map = store.snapshot(show).await.expect("a snapshot").map;
        map.iter().filter(|state| **state == SeatState::Locked as u8).count()
    };
    assert_eq!(store.hold_of(show, "no-owner").await.expect("an answer"), None);
    assert_eq!(locked().await, 200 - 64);
    // Among holds with one expiry, the one with the highest id is freed last.
    let last = attempts.iter().max_by_key(|attempt| attempt.asked.id).expect("an attempt");
    let (hold, owner) = (last.asked.id, last.owner.as_str());
    assert_eq!(store.extend(show, asked(), hold, owner, MINUTE_MS).await.expect("an answer"), Err(Refusal::Gone));
    assert_eq!(store.hold_of(show, owner).await.expect("an answer"), None);
    assert_eq!(locked().await, 200 - 3 * 64);
    assert_eq!(store.release(show, hold, owner).await.expect("an answer"), Err(Refusal::Gone));
    assert_eq!(locked().await, 0);

    let again: Vec<_> = (0..200).map(|seat| attempt(&format!("visitor {seat}"), selection(&[seat], &[]))).collect();
    store.lock(show, at_once, &again).await.expect("answers");
    assert_eq!(store.sweep(show).await.expect("an answer"), 0);
    assert_eq!(locked().await, 0);
    store.forget(show).await.expect("the show is forgotten");
}

#[tokio::test]
async fn redis_call_frees_some_of_many_expired_holds_and_a_sweep_the_rest() {
    let fixture = StoreFixture::in_redis().await;
    check_expiry_of_very_many_holds(&fixture).await;
    fixture.close().await;
}

#[tokio::test]
async fn memory_call_frees_some_of_many_expired_holds_and_a_sweep_the_rest() {
    let fixture = StoreFixture::in_memory().await;
    check_expiry_of_very_many_holds(&fixture).await;
    fixture.close().await;
}

#[tokio::test]
async fn redis_frees_an_expired_hold_without_calls() {
    let fixture = StoreFixture::in_redis().await;
    let short = HoldLimits { length_ms: 150, life_ms: 150, ..TERMS };
    let held = fixture.try_with(short, &attempt("ann", selection(&[1], &[]))).await.expect("the seat is free");
    assert_eq!(fixture.map().await, "010000000000");
    crate::world::wait_until("the hold expires", || async { fixture.holds().await == 0 }).await;
    assert!(fixture.store.now() >= held.expires_at);
    assert_eq!(fixture.map().await, "000000000000");
    fixture.close().await;
}

/// Lets this many holds of an owner expire, one after the other.
async fn expire_holds(fixture: &StoreFixture, owner: &str, times: u32) {
    for _ in 0..times {
        fixture.take(owner, &[1]).await.expect("the seat is free");
        fixture.pass(TERMS.length_ms).await;
        assert_eq!(fixture.holds().await, 0);
    }
}

/// Minutes that the owner gets when they request two more minutes.
async fn minutes_more(fixture: &StoreFixture, owner: &str, seat: SeatIndex) -> Result<i64, Refusal> {
    let held = fixture.take(owner, &[seat]).await.expect("the seat is free");
    let longer = fixture.extend(owner, held.hold, 2 * MINUTE_MS).await;
    fixture.release(owner, held.hold).await.expect("it is their hold");
    longer.map(|longer: StoredHold| longer.expires_at.since(held.expires_at) / MINUTE_MS)
}

on_every_store! {
    async fn each_expired_hold_shortens_extensions_of_its_owner_only(fixture: &StoreFixture) {
        expire_holds(fixture, "ann", HALF_FROM - 1).await;
        assert_eq!(minutes_more(fixture, "ann", 2).await, Ok(2));
        expire_holds(fixture, "ann", 1).await;
        assert_eq!(minutes_more(fixture, "ann", 2).await, Ok(1));
        expire_holds(fixture, "ann", NONE_FROM - HALF_FROM).await;
        assert_eq!(minutes_more(fixture, "ann", 2).await, Err(Refusal::Lapsed));
        assert_eq!(minutes_more(fixture, "ben", 2).await, Ok(2));
    }

    async fn expired_holds_do_not_shorten_new_holds(fixture: &StoreFixture) {
        expire_holds(fixture, "ann", NONE_FROM).await;
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.pass(TERMS.length_ms - 20_000).await;
        assert_eq!(fixture.hold_of("ann").await.map(|mine| mine.hold), Some(held.hold));
    }

    async fn purchase_resets_the_expired_holds(fixture: &StoreFixture) {
        expire_holds(fixture, "ann", NONE_FROM).await;
        let held = fixture.take("ann", &[3]).await.expect("the seat is free");
        fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        fixture.book(&sale("ann", &held)).await;
        assert_eq!(minutes_more(fixture, "ann", 2).await, Ok(2));
    }

    async fn expired_holds_are_forgotten_after_some_time(fixture: &StoreFixture) {
        expire_holds(fixture, "ann", NONE_FROM).await;
        fixture.pass(EXPIRY_COUNT_WINDOW_MS - MINUTE_MS).await;
        assert_eq!(minutes_more(fixture, "ann", 2).await, Err(Refusal::Lapsed));
        fixture.pass(MINUTE_MS).await;
        assert_eq!(minutes_more(fixture, "ann", 2).await, Ok(2));
    }

    async fn released_left_and_paying_holds_do_not_count_as_expired(fixture: &StoreFixture) {
        for _ in 0..NONE_FROM {
            let held = fixture.take("ann", &[1]).await.expect("the seat is free");
            fixture.release("ann", held.hold).await.expect("it is her hold");
            let held = fixture.take("ann", &[1]).await.expect("the seat is free");
            fixture.shorten_hold("ann", held.hold, MINUTE_MS).await;
            fixture.pass(MINUTE_MS).await;
            let held = fixture.take("ann", &[1]).await.expect("the seat is free");
            let end = fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
            fixture.pass(end.since(held.expires_at) + TERMS.length_ms).await;
            assert_eq!(fixture.holds().await, 0);
        }
        assert_eq!(minutes_more(fixture, "ann", 2).await, Ok(2));
    }

    async fn tab_closed_near_the_expiry_does_not_count_as_expired(fixture: &StoreFixture) {
        for _ in 0..NONE_FROM {
            let held = fixture.take("ann", &[1]).await.expect("the seat is free");
            fixture.pass(TERMS.length_ms - 20_000).await;
            fixture.shorten_hold("ann", held.hold, MINUTE_MS).await;
            assert_eq!(fixture.holds().await, 1);
            fixture.pass(20_000).await;
            assert_eq!(fixture.holds().await, 0);
        }
        assert_eq!(minutes_more(fixture, "ann", 2).await, Ok(2));
    }

    async fn sale_to_a_buyer_resets_the_sellers_expired_holds(fixture: &StoreFixture) {
        expire_holds(fixture, "seller", NONE_FROM).await;
        let held = fixture.take("seller", &[3]).await.expect("the seat is free");
        fixture.begin_payment(&sale("seller", &held)).await.expect("it is their hold");
        fixture.book(&sale("counter-1", &held)).await;
        assert_eq!(fixture.map().await.chars().nth(3), Some('2'));
        assert_eq!(minutes_more(fixture, "seller", 2).await, Ok(2));
    }

    async fn expired_waiting_list_offer_does_not_count(fixture: &StoreFixture) {
        for number in 0..u128::from(NONE_FROM) {
            let mut offer = attempt("ann", selection(&[1], &[]));
            offer.asked.id = uuid::Builder::from_sha1_bytes(number.to_be_bytes()).into_uuid();
            fixture.try_one(&offer).await.expect("the seat is free");
            fixture.pass(TERMS.length_ms).await;
            assert_eq!(fixture.holds().await, 0);
        }
        assert_eq!(minutes_more(fixture, "ann", 2).await, Ok(2));
    }

    async fn repeated_extension_is_replayed_despite_expired_holds(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        let asked = asked();
        let extend = || fixture.store.extend(fixture.show, asked, held.hold, "ann", 2 * MINUTE_MS);
        let first = extend().await.expect("an answer").expect("the hold is extended");
        fixture.pass(TERMS.length_ms + 2 * MINUTE_MS).await;
        expire_holds(fixture, "ann", NONE_FROM).await;
        let again = extend().await.expect("an answer").expect("the answer is stored");
        assert_eq!((again.hold, again.fence, again.selection), (first.hold, first.fence, first.selection));
    }

    async fn hold_at_its_longest_life_cannot_be_extended(fixture: &StoreFixture) {
        expire_holds(fixture, "ann", NONE_FROM).await;
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        assert_eq!(fixture.extend("ann", held.hold, 0).await, Err(Refusal::Capped));
        assert_eq!(fixture.extend("ben", held.hold, 2 * MINUTE_MS).await, Err(Refusal::Gone));
    }
}
