//! Grants of holds, and every reason for a refusal.

use domain::seats::SeatState::{Blocked, Booked, Locked};
use seats::seat_locks::Refusal;

use super::fixture::{LOWEST_FENCE, StoreFixture, TERMS, attempt, sale, selection};

on_every_store! {
    async fn one_of_two_owners_gets_a_contested_seat(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[3, 4]).await.expect("the seats are free");
        assert_eq!(held.selection, selection(&[3, 4], &[]));
        assert!(!held.paying);
        assert_eq!(fixture.take("ben", &[4, 5]).await, Err(Refusal::Taken(vec![(4, Locked)])));
        assert_eq!(fixture.map().await, "000110000000");
    }

    async fn one_of_thirty_concurrent_owners_gets_the_seat(fixture: &StoreFixture) {
        let attempts: Vec<_> = (0..30).map(|number| attempt(&format!("visitor {number}"), selection(&[7], &[]))).collect();
        let answers = futures::future::join_all(attempts.iter().map(|attempt| fixture.try_one(attempt))).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        assert!(answers.iter().flatten().all(|held| held.selection.seats == [7]));
        assert_eq!(answers.iter().filter(|answer| **answer == Err(Refusal::Taken(vec![(7, Locked)]))).count(), 29);
        assert_eq!(fixture.holds().await, 1);
    }

    async fn hold_takes_all_seats_or_none_and_the_refusal_names_every_taken_seat(fixture: &StoreFixture) {
        let sold = fixture.take("ann", &[2]).await.expect("the seat is free");
        fixture.book(&sale("ann", &sold)).await;
        fixture.take("ben", &[4]).await.expect("the seat is free");
        fixture.block(&[6], true).await.expect("the seat is free");
        let in_the_way = vec![(2, Booked), (4, Locked), (6, Blocked)];
        assert_eq!(fixture.take("cat", &[1, 2, 4, 5, 6]).await, Err(Refusal::Taken(in_the_way)));
        assert_eq!(fixture.map().await, "002010300000");
        assert_eq!(fixture.hold_of("cat").await, None);
    }

    async fn distant_seats_of_one_hold_are_checked_individually(fixture: &StoreFixture) {
        fixture.take("ann", &[0, 11]).await.expect("the seats are free");
        assert_eq!(fixture.take("ben", &[0, 5, 11]).await, Err(Refusal::Taken(vec![(0, Locked), (11, Locked)])));
    }

    async fn unknown_seat_is_refused_and_nothing_is_taken(fixture: &StoreFixture) {
        assert_eq!(fixture.take("ann", &[1, 12, 99]).await, Err(Refusal::Outside(99)));
        assert_eq!(fixture.map().await, "000000000000");
    }

    async fn unknown_area_is_refused_and_nothing_is_taken(fixture: &StoreFixture) {
        assert_eq!(fixture.take_selection("ann", selection(&[1], &[(0, 1), (7, 1)])).await, Err(Refusal::NoArea(7)));
        assert_eq!(fixture.map().await, "000000000000");
        assert_eq!(fixture.areas().await, [(0, 5), (1, 3)]);
    }

    async fn owner_with_a_hold_is_refused_with_that_hold(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        assert_eq!(fixture.take("ann", &[2]).await, Err(Refusal::OtherHold(held.hold)));
    }

    async fn owner_holds_at_most_the_limit_of_seats_and_places(fixture: &StoreFixture) {
        let seven = selection(&[0, 1, 2, 3, 4], &[(0, 2)]);
        assert_eq!(fixture.take_selection("ann", seven).await, Err(Refusal::Limit(6)));
        fixture.take_selection("ann", selection(&[0, 1, 2, 3], &[(0, 2)])).await.expect("six are allowed");
    }

    async fn bought_seats_and_places_count_towards_the_limit(fixture: &StoreFixture) {
        let held = fixture.take_selection("ann", selection(&[0, 1, 2], &[(1, 1)])).await.expect("the seats are free");
        fixture.book(&sale("ann", &held)).await;
        assert_eq!(fixture.take("ann", &[4, 5, 6]).await, Err(Refusal::Limit(2)));
        fixture.take("ann", &[4, 5]).await.expect("two more are allowed");
    }

    async fn refunded_purchase_no_longer_counts_towards_the_limit(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[0, 1, 2, 3, 4, 5]).await.expect("the seats are free");
        fixture.book(&sale("ann", &held)).await;
        assert_eq!(fixture.take("ann", &[6]).await, Err(Refusal::Limit(0)));
        fixture.free(&sale("ann", &held)).await;
        fixture.take("ann", &[6]).await.expect("the limit has room");
    }

    async fn grant_refusals_have_the_order_other_hold_limit_unknown_taken_area(fixture: &StoreFixture) {
        fixture.take("ben", &[3]).await.expect("the seat is free");
        let all = selection(&[3, 4, 5, 6, 7, 50], &[(1, 9), (9, 1)]);
        let held = fixture.take("ann", &[0]).await.expect("the seat is free");
        assert_eq!(fixture.take_selection("ann", all.clone()).await, Err(Refusal::OtherHold(held.hold)));
        fixture.release("ann", held.hold).await.expect("it is her hold");
        assert_eq!(fixture.take_selection("ann", all).await, Err(Refusal::Limit(6)));
        assert_eq!(fixture.take_selection("ann", selection(&[3, 50], &[(9, 1)])).await, Err(Refusal::Outside(50)));
        assert_eq!(fixture.take_selection("ann", selection(&[3], &[(1, 4), (9, 1)])).await, Err(Refusal::Taken(vec![(3, Locked)])));
        assert_eq!(fixture.take_selection("ann", selection(&[4], &[(1, 4), (9, 1)])).await, Err(Refusal::NoArea(9)));
        assert_eq!(fixture.take_selection("ann", selection(&[4], &[(0, 1), (1, 4)])).await, Err(Refusal::Full(vec![(1, 3)])));
    }

    async fn fences_increase_with_every_hold(fixture: &StoreFixture) {
        let mut fences = Vec::new();
        for _ in 0..5 {
            let held = fixture.take("ann", &[1]).await.expect("the seat is free");
            fences.push(held.fence);
            fixture.release("ann", held.hold).await.expect("it is her hold");
        }
        assert_eq!(fences, (1..=5).map(|step| LOWEST_FENCE + step).collect::<Vec<_>>());
    }

    async fn grant_increments_the_version_once_and_a_refusal_does_not(fixture: &StoreFixture) {
        let before = fixture.version().await;
        fixture.take("ann", &[1, 2, 3]).await.expect("the seats are free");
        assert_eq!(fixture.version().await, before + 1);
        fixture.take("ben", &[3]).await.expect_err("the seat is taken");
        assert_eq!(fixture.version().await, before + 1);
    }

    async fn hold_has_its_expiry_and_latest_possible_expiry(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        assert_eq!(held.latest.since(held.expires_at), TERMS.life_ms - TERMS.length_ms);
        assert_eq!(fixture.hold_of("ann").await, Some(held));
    }
}
