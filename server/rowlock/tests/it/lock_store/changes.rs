//! Adding to a hold and letting go, in one step.

use domain::seats::SeatState::{Blocked, Locked};
use domain::time::MINUTE_MS;
use seats::seat_locks::{Change, Lot, Refusal, Terms};

use super::house::{House, TERMS, asked, lot, sale};

on_every_store! {
    async fn seats_are_exchanged_in_one_step_and_the_end_stays(house: &House) {
        let held = house.take("ann", &[5, 7]).await.expect("they are free");
        let version = house.version().await;
        house.pass(MINUTE_MS).await;
        let before = house.mine("ann").await.expect("it is hers");
        let after = house.change("ann", held.hold, lot(&[2], &[]), lot(&[7], &[])).await.expect("it is free");
        assert_eq!(after.lot, lot(&[2, 5], &[]));
        assert_eq!((after.expires_at, after.latest, after.fence), (before.expires_at, before.latest, held.fence));
        assert_eq!((house.map().await, house.version().await), ("001001000000".into(), version + 1));
    }

    async fn adding_never_extends_a_hold_that_a_closed_tab_had_shortened(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.leave("ann", held.hold, 30_000).await;
        house.change("ann", held.hold, lot(&[2], &[]), Lot::default()).await.expect("it is free");
        house.pass(30_000).await;
        assert_eq!(house.map().await, "000000000000");
    }

    async fn what_the_hold_has_already_is_no_obstacle_and_what_it_has_not_is_let_go_in_vain(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.take("ben", &[4]).await.expect("it is free");
        let version = house.version().await;
        let after = house.change("ann", held.hold, lot(&[1], &[]), lot(&[4, 9], &[(0, 2)])).await;
        assert_eq!(after.map(|held| held.lot), Ok(lot(&[1], &[])));
        assert_eq!(house.map().await, "010010000000");
        assert_eq!((house.areas().await, house.version().await), (vec![(0, 5), (1, 3)], version));
    }

    async fn a_change_happens_all_or_not_at_all(house: &House) {
        let held = house.take("ann", &[1, 2]).await.expect("they are free");
        house.take("ben", &[4]).await.expect("it is free");
        house.block(&[5], true).await.expect("it is free");
        let refused = house.change("ann", held.hold, lot(&[3, 4, 5], &[]), lot(&[1], &[])).await;
        assert_eq!(refused, Err(Refusal::Taken(vec![(4, Locked), (5, Blocked)])));
        assert_eq!(house.map().await, "011013000000");
    }

    async fn a_hold_with_nothing_left_is_over(house: &House) {
        let held = house.take_lot("ann", lot(&[1], &[(0, 2)])).await.expect("they are free");
        let over = house.change("ann", held.hold, Lot::default(), lot(&[1], &[(0, 2)])).await.expect("it is hers");
        assert!(over.lot.is_empty());
        assert_eq!((house.mine("ann").await, house.holds().await), (None, 0));
        house.take("ann", &[1]).await.expect("she may take another");
    }

    async fn places_are_added_and_let_go_and_never_more_than_there_are(house: &House) {
        let held = house.take_lot("ann", lot(&[], &[(1, 2)])).await.expect("they are free");
        let more = house.change("ann", held.hold, lot(&[], &[(0, 1)]), lot(&[], &[(1, 1)])).await;
        assert_eq!(more.map(|held| held.lot), Ok(lot(&[], &[(0, 1), (1, 1)])));
        assert_eq!(house.areas().await, [(0, 4), (1, 2)]);
        let too_many = house.change("ann", held.hold, lot(&[], &[(0, 5), (1, 3)]), Lot::default()).await;
        assert_eq!(too_many, Err(Refusal::Full(vec![(0, 4), (1, 2)])));
        let fewer = house.change("ann", held.hold, Lot::default(), lot(&[], &[(0, 99)])).await;
        assert_eq!(fewer.map(|held| held.lot), Ok(lot(&[], &[(1, 1)])));
        assert_eq!(house.areas().await, [(0, 5), (1, 2)]);
    }

    async fn places_let_go_count_for_those_added_in_the_same_area(house: &House) {
        let held = house.take_lot("ann", lot(&[], &[(1, 3)])).await.expect("they are free");
        let same = house.change("ann", held.hold, lot(&[], &[(1, 2)]), lot(&[], &[(1, 2)])).await;
        assert_eq!(same.map(|held| held.lot), Ok(lot(&[], &[(1, 3)])));
        assert_eq!(house.areas().await, [(0, 5), (1, 0)]);
    }

    async fn the_limit_counts_what_is_left_afterwards_with_what_was_bought(house: &House) {
        let bought = house.take("ann", &[0, 1]).await.expect("they are free");
        house.book(&sale("ann", &bought)).await;
        let held = house.take("ann", &[2, 3]).await.expect("they are free");
        let add = lot(&[4, 5, 6], &[]);
        assert_eq!(house.change("ann", held.hold, add.clone(), Lot::default()).await, Err(Refusal::Limit(4)));
        let swapped = house.change("ann", held.hold, add, lot(&[2], &[])).await;
        assert_eq!(swapped.map(|held| held.lot), Ok(lot(&[3, 4, 5, 6], &[])));
    }

    async fn letting_go_is_never_too_much(house: &House) {
        let held = house.take("ann", &[0, 1, 2]).await.expect("they are free");
        let strict = Terms { per_person: 1, ..TERMS };
        let change = Change {
            asked: asked(),
            hold: held.hold,
            owner: "ann".into(),
            add: Lot::default(),
            remove: lot(&[0], &[]),
        };
        let answer = house.store.change(house.show, strict, &change).await.expect("an answer");
        assert_eq!(answer.map(|held| held.lot), Ok(lot(&[1, 2], &[])));
    }

    async fn nobody_changes_anothers_hold_or_one_that_is_over_or_being_paid_for(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        let add = || lot(&[2], &[]);
        assert_eq!(house.change("ben", held.hold, add(), Lot::default()).await, Err(Refusal::Gone));
        house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        assert_eq!(house.change("ann", held.hold, add(), Lot::default()).await, Err(Refusal::Paying));
        house.end_payment(&sale("ann", &held)).await;
        house.release("ann", held.hold).await.expect("it is hers");
        assert_eq!(house.change("ann", held.hold, add(), Lot::default()).await, Err(Refusal::Gone));
    }

    async fn reasons_come_in_an_order_outside_taken_area_limit(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.take("ben", &[4]).await.expect("it is free");
        let try_adding = |add| house.change("ann", held.hold, add, Lot::default());
        assert_eq!(try_adding(lot(&[4, 40, 41], &[(9, 1)])).await, Err(Refusal::Outside(40)));
        assert_eq!(try_adding(lot(&[4], &[(9, 1)])).await, Err(Refusal::Taken(vec![(4, Locked)])));
        assert_eq!(try_adding(lot(&[], &[(1, 9), (9, 1)])).await, Err(Refusal::NoArea(9)));
        assert_eq!(try_adding(lot(&[2, 3, 5, 6, 7], &[(1, 9)])).await, Err(Refusal::Full(vec![(1, 3)])));
        assert_eq!(try_adding(lot(&[2, 3, 5, 6, 7, 8], &[])).await, Err(Refusal::Limit(6)));
    }
}
