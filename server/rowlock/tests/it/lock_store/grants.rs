//! Taking a hold, and every reason against it.

use domain::seats::SeatState::{Blocked, Booked, Locked};
use seats::seat_locks::Refusal;

use super::house::{House, LOWEST_FENCE, TERMS, attempt, lot, sale};

on_every_store! {
    async fn two_people_wish_for_the_same_seat_and_exactly_one_gets_it(house: &House) {
        let held = house.take("ann", &[3, 4]).await.expect("they are free");
        assert_eq!(held.lot, lot(&[3, 4], &[]));
        assert!(!held.paying);
        assert_eq!(house.take("ben", &[4, 5]).await, Err(Refusal::Taken(vec![(4, Locked)])));
        assert_eq!(house.map().await, "000110000000");
    }

    async fn of_thirty_at_once_exactly_one_gets_the_seat(house: &House) {
        let attempts: Vec<_> = (0..30).map(|number| attempt(&format!("visitor {number}"), lot(&[7], &[]))).collect();
        let answers = futures::future::join_all(attempts.iter().map(|attempt| house.try_one(attempt))).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        assert!(answers.iter().flatten().all(|held| held.lot.seats == [7]));
        assert_eq!(answers.iter().filter(|answer| **answer == Err(Refusal::Taken(vec![(7, Locked)]))).count(), 29);
        assert_eq!(house.holds().await, 1);
    }

    async fn all_seats_are_taken_or_none_and_every_one_in_the_way_is_named_with_its_state(house: &House) {
        let sold = house.take("ann", &[2]).await.expect("it is free");
        house.book(&sale("ann", &sold)).await;
        house.take("ben", &[4]).await.expect("it is free");
        house.block(&[6], true).await.expect("it is free");
        let in_the_way = vec![(2, Booked), (4, Locked), (6, Blocked)];
        assert_eq!(house.take("cat", &[1, 2, 4, 5, 6]).await, Err(Refusal::Taken(in_the_way)));
        assert_eq!(house.map().await, "002010300000");
        assert_eq!(house.mine("cat").await, None);
    }

    async fn seats_far_apart_in_one_wish_are_looked_at_one_by_one(house: &House) {
        house.take("ann", &[0, 11]).await.expect("they are free");
        assert_eq!(house.take("ben", &[0, 5, 11]).await, Err(Refusal::Taken(vec![(0, Locked), (11, Locked)])));
    }

    async fn a_seat_the_room_has_not_is_named_and_nothing_is_taken(house: &House) {
        assert_eq!(house.take("ann", &[1, 12, 99]).await, Err(Refusal::Outside(99)));
        assert_eq!(house.map().await, "000000000000");
    }

    async fn an_area_the_room_has_not_is_named_and_nothing_is_taken(house: &House) {
        assert_eq!(house.take_lot("ann", lot(&[1], &[(0, 1), (7, 1)])).await, Err(Refusal::NoArea(7)));
        assert_eq!(house.map().await, "000000000000");
        assert_eq!(house.areas().await, [(0, 5), (1, 3)]);
    }

    async fn whoever_holds_seats_already_is_told_their_hold(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        assert_eq!(house.take("ann", &[2]).await, Err(Refusal::OtherHold(held.hold)));
    }

    async fn a_person_has_so_many_seats_and_places_and_no_more(house: &House) {
        let seven = lot(&[0, 1, 2, 3, 4], &[(0, 2)]);
        assert_eq!(house.take_lot("ann", seven).await, Err(Refusal::Limit(6)));
        house.take_lot("ann", lot(&[0, 1, 2, 3], &[(0, 2)])).await.expect("six are allowed");
    }

    async fn bought_seats_and_places_count_towards_the_limit(house: &House) {
        let held = house.take_lot("ann", lot(&[0, 1, 2], &[(1, 1)])).await.expect("they are free");
        house.book(&sale("ann", &held)).await;
        assert_eq!(house.take("ann", &[4, 5, 6]).await, Err(Refusal::Limit(2)));
        house.take("ann", &[4, 5]).await.expect("two more are allowed");
    }

    async fn a_purchase_given_back_makes_room_in_the_limit(house: &House) {
        let held = house.take("ann", &[0, 1, 2, 3, 4, 5]).await.expect("they are free");
        house.book(&sale("ann", &held)).await;
        assert_eq!(house.take("ann", &[6]).await, Err(Refusal::Limit(0)));
        house.free(&sale("ann", &held)).await;
        house.take("ann", &[6]).await.expect("they have none any more");
    }

    async fn reasons_come_in_an_order_other_hold_limit_outside_taken_area(house: &House) {
        house.take("ben", &[3]).await.expect("it is free");
        let all = lot(&[3, 4, 5, 6, 7, 50], &[(1, 9), (9, 1)]);
        let held = house.take("ann", &[0]).await.expect("it is free");
        assert_eq!(house.take_lot("ann", all.clone()).await, Err(Refusal::OtherHold(held.hold)));
        house.release("ann", held.hold).await.expect("it is hers");
        assert_eq!(house.take_lot("ann", all).await, Err(Refusal::Limit(6)));
        assert_eq!(house.take_lot("ann", lot(&[3, 50], &[(9, 1)])).await, Err(Refusal::Outside(50)));
        assert_eq!(house.take_lot("ann", lot(&[3], &[(1, 4), (9, 1)])).await, Err(Refusal::Taken(vec![(3, Locked)])));
        assert_eq!(house.take_lot("ann", lot(&[4], &[(1, 4), (9, 1)])).await, Err(Refusal::NoArea(9)));
        assert_eq!(house.take_lot("ann", lot(&[4], &[(0, 1), (1, 4)])).await, Err(Refusal::Full(vec![(1, 3)])));
    }

    async fn fences_grow_with_every_hold_and_never_come_twice(house: &House) {
        let mut fences = Vec::new();
        for _ in 0..5 {
            let held = house.take("ann", &[1]).await.expect("it is free");
            fences.push(held.fence);
            house.release("ann", held.hold).await.expect("it is hers");
        }
        assert_eq!(fences, (1..=5).map(|step| LOWEST_FENCE + step).collect::<Vec<_>>());
    }

    async fn a_call_is_one_step_of_the_version_and_a_refusal_none(house: &House) {
        let before = house.version().await;
        house.take("ann", &[1, 2, 3]).await.expect("they are free");
        assert_eq!(house.version().await, before + 1);
        house.take("ben", &[3]).await.expect_err("it is taken");
        assert_eq!(house.version().await, before + 1);
    }

    async fn a_hold_says_when_it_ends_and_how_long_it_could_last(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        assert_eq!(held.latest.since(held.expires_at), TERMS.life_ms - TERMS.length_ms);
        assert_eq!(house.mine("ann").await, Some(held));
    }
}
