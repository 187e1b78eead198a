//! Building a show's map from what Postgres knows, forgetting it, and taking over another store's holds.

use domain::seats::Places;
use domain::seats::SeatState::{Available, Blocked, Booked, Locked};
use domain::time::{MINUTE_MS, Timestamp};
use seats::seat_locks::{Held, KnownSeats, Refusal, Sale, StoreError};
use uuid::Uuid;

use super::house::{House, LOWEST_FENCE, TERMS, asked, attempt, known, lot, sale};

/// A room of six seats of which some are sold, and an area of which four places are.
fn partly_sold() -> KnownSeats {
    KnownSeats {
        map: [Available, Booked, Booked, Blocked, Available, Available].map(|state| state as u8).to_vec(),
        sold: vec![(1, 40), (2, 41)],
        areas: vec![(3, 2)],
        sold_places: vec![(41, vec![Places { area: 3, count: 4 }])],
        bought: vec![("ann".into(), 1), ("ben".into(), 5)],
        lowest_fence: LOWEST_FENCE,
    }
}

on_every_store! {
    async fn a_show_nobody_loaded_has_no_map_whatever_is_asked(house: &House) {
        let (show, id) = (platform::ids::new_id(), platform::ids::new_id());
        let no_map = |answer: Result<(), StoreError>| matches!(answer, Err(StoreError::NoMap(lost)) if lost == show);
        let store = &house.store;
        let sale = Sale { hold: id, owner: "ann".into(), fence: 1, lot: lot(&[1], &[]) };
        assert!(no_map(store.lock(show, TERMS, &[attempt("ann", lot(&[1], &[]))]).await.map(drop)));
        assert!(no_map(store.mine(show, "ann").await.map(drop)));
        assert!(no_map(store.leave(show, id, "ann", 1).await));
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
        assert!(no_map(store.stamp(show, &[(id, 1)]).await));
        store.forget(show).await.expect("there is nothing to forget");
    }

    async fn a_map_is_what_postgres_knows_and_claims_keep_their_seats(house: &House) {
        let show = platform::ids::new_id();
        house.store.load(show, &partly_sold()).await.expect("the map is loaded");
        let snapshot = house.store.snapshot(show).await.expect("a snapshot");
        assert_eq!((snapshot.map.to_vec(), snapshot.areas), (partly_sold().map, vec![(3, 2)]));
        let wish = attempt("ben", lot(&[4, 5], &[]));
        let answers = house.store.lock(show, TERMS, &[wish]).await.expect("answers");
        assert_eq!(answers, [Err(Refusal::Limit(1))], "he bought five");
        let ben = Sale { hold: Uuid::nil(), owner: "ben".into(), fence: 41, lot: lot(&[1, 2], &[(3, 4)]) };
        house.store.free(show, &ben).await.expect("an answer");
        let snapshot = house.store.snapshot(show).await.expect("a snapshot");
        assert_eq!((snapshot.map[1], snapshot.map[2], snapshot.areas), (Booked as u8, Available as u8, vec![(3, 6)]));
        house.store.forget(show).await.expect("it is forgotten");
    }

    async fn a_map_that_is_there_is_not_built_again(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        let before = house.store.snapshot(house.show).await.expect("a snapshot");
        house.store.load(house.show, &partly_sold()).await.expect("an answer");
        assert_eq!(house.store.snapshot(house.show).await.expect("a snapshot"), before);
        assert_eq!(house.mine("ann").await, Some(held));
    }

    async fn a_map_that_was_lost_is_asked_for_and_built_anew_with_a_later_epoch(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        let before = house.store.snapshot(house.show).await.expect("a snapshot");
        house.lose().await;
        assert!(matches!(house.store.snapshot(house.show).await, Err(StoreError::NoMap(_))));
        house.store.load(house.show, &known()).await.expect("it is loaded");
        let after = house.store.snapshot(house.show).await.expect("a snapshot");
        assert!(after.epoch > before.epoch);
        assert_eq!((house.map().await, house.mine("ann").await), ("000000000000".into(), None));
        assert_eq!(house.begin_payment(&sale("ann", &held)).await, Err(Refusal::Gone));
    }

    async fn fences_go_on_above_every_one_postgres_has_seen(house: &House) {
        house.lose().await;
        let known = KnownSeats { lowest_fence: LOWEST_FENCE + 500, ..known() };
        house.store.load(house.show, &known).await.expect("it is loaded");
        assert!(house.take("ann", &[1]).await.expect("it is free").fence > LOWEST_FENCE + 500);
    }

    async fn a_show_that_is_over_is_forgotten_entirely(house: &House) {
        let show = platform::ids::new_id();
        house.store.load(show, &known()).await.expect("it is loaded");
        house.store.lock(show, TERMS, &[attempt("ann", lot(&[1], &[(0, 1)]))]).await.expect("an answer");
        house.store.forget(show).await.expect("it is forgotten");
        assert!(house.has_nothing_of(show).await);
        house.store.forget(show).await.expect("twice harms nobody");
    }

    async fn a_room_of_areas_alone_is_a_map_too(house: &House) {
        let show = platform::ids::new_id();
        let field = KnownSeats { areas: vec![(0, 10)], ..KnownSeats::default() };
        house.store.load(show, &field).await.expect("it is loaded");
        let answers = house.store.lock(show, TERMS, &[attempt("ann", lot(&[], &[(0, 4)]))]).await.expect("answers");
        assert!(answers[0].is_ok());
        assert_eq!(house.store.snapshot(show).await.expect("a snapshot").areas, [(0, 6)]);
        house.store.forget(show).await.expect("it is forgotten");
    }

    async fn a_hold_of_another_store_stands_here_as_it_stands_there(house: &House) {
        let theirs = Timestamp(77_000);
        let held = Held {
            hold: platform::ids::new_id(),
            expires_at: theirs.plus_ms(4 * MINUTE_MS),
            latest: theirs.plus_ms(6 * MINUTE_MS),
            fence: LOWEST_FENCE + 900,
            paying: false,
            lot: lot(&[1, 2], &[(1, 2)]),
        };
        let adopt = |owner, held| async move {
            house.store.adopt(house.show, owner, &held, theirs).await.expect("an answer")
        };
        adopt("ann", held.clone()).await.expect("nothing stands in the way");
        let mine = house.mine("ann").await.expect("it is hers");
        assert_eq!((mine.hold, mine.fence, mine.paying, &mine.lot), (held.hold, held.fence, false, &held.lot));
        assert_eq!(mine.latest.since(mine.expires_at), 2 * MINUTE_MS);
        assert_eq!((house.map().await, house.areas().await), ("011000000000".into(), vec![(0, 5), (1, 1)]));
        assert!(house.take("ben", &[5]).await.expect("it is free").fence > held.fence, "fences go on above it");
        // Again, with other seats: what it had before gives way.
        adopt("ann", Held { lot: lot(&[2, 3], &[(1, 3)]), ..held.clone() }).await.expect("they are hers or free");
        assert_eq!((house.map().await, house.areas().await), ("001101000000".into(), vec![(0, 5), (1, 0)]));
        // Another of hers: likewise.
        let other = Held { hold: platform::ids::new_id(), lot: lot(&[3], &[]), ..held.clone() };
        adopt("ann", other.clone()).await.expect("it is hers");
        assert_eq!((house.mine("ann").await.map(|held| held.hold), house.holds().await), (Some(other.hold), 2));
        // Somebody else's stand in the way.
        let taken = Held { hold: platform::ids::new_id(), lot: lot(&[4, 5], &[]), ..held.clone() };
        assert_eq!(adopt("ann", taken).await, Err(Refusal::Taken(vec![(5, Locked)])));
        assert_eq!(adopt("cat", other.clone()).await, Err(Refusal::OtherHold(other.hold)));
        assert_eq!(house.map().await, "000101000000");
        house.pass(4 * MINUTE_MS).await;
        assert_eq!(house.map().await, "000001000000");
    }

    async fn a_hold_taken_over_needs_seats_and_areas_that_exist_and_places_that_are_left(house: &House) {
        let held = |lot| Held {
            hold: platform::ids::new_id(),
            expires_at: Timestamp(MINUTE_MS),
            latest: Timestamp(MINUTE_MS),
            fence: LOWEST_FENCE + 1,
            paying: true,
            lot,
        };
        let adopt = |lot| async move {
            house.store.adopt(house.show, "ann", &held(lot), Timestamp(0)).await.expect("an answer")
        };
        assert_eq!(adopt(lot(&[1, 12], &[])).await, Err(Refusal::Outside(12)));
        assert_eq!(adopt(lot(&[1], &[(9, 1)])).await, Err(Refusal::NoArea(9)));
        assert_eq!(adopt(lot(&[1], &[(0, 6), (1, 4)])).await, Err(Refusal::Full(vec![(0, 5), (1, 3)])));
        assert_eq!(house.holds().await, 0);
        adopt(lot(&[1], &[])).await.expect("it is free");
        assert!(house.mine("ann").await.is_some_and(|held| held.paying));
    }

    async fn a_hold_goes_by_the_fence_it_is_stamped_with(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        let fence = LOWEST_FENCE + 700;
        house.store.stamp(house.show, &[(platform::ids::new_id(), 1), (held.hold, fence)]).await.expect("an answer");
        assert_eq!(house.mine("ann").await, Some(Held { fence, ..held.clone() }));
        assert_eq!(house.begin_payment(&sale("ann", &held)).await, Err(Refusal::Gone));
        house.begin_payment(&Sale { fence, ..sale("ann", &held) }).await.expect("it is hers");
        assert!(house.take("ben", &[2]).await.expect("it is free").fence > fence);
    }
}
