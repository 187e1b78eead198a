//! Expired holds shorten the owner's next extensions: to half, then to none, until a purchase or some time has passed.

use domain::fairness::{EXPIRY_COUNT_WINDOW_MS, HALF_FROM, NONE_FROM};
use domain::seats::SeatIndex;
use domain::time::MINUTE_MS;
use seats::seat_locks::{Refusal, StoredHold};

use super::fixture::{StoreFixture, TERMS, asked, attempt, sale, selection};

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
