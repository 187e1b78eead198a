//! Areas without seats: so many places, no more, and never fewer than none.

use seats::seat_locks::Refusal;

use super::house::{House, TERMS, attempt, lot, sale};

on_every_store! {
    async fn of_forty_at_once_as_many_get_a_place_as_there_are(house: &House) {
        let wish = |number| attempt(&format!("visitor {number}"), lot(&[], &[(0, 1)]));
        let attempts: Vec<_> = (0..40).map(wish).collect();
        let answers = futures::future::join_all(attempts.iter().map(|attempt| house.try_one(attempt))).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 5);
        assert_eq!(answers.iter().filter(|answer| **answer == Err(Refusal::Full(vec![(0, 0)]))).count(), 35);
        assert_eq!(house.areas().await, [(0, 0), (1, 3)]);
    }

    async fn a_wish_takes_its_places_and_seats_all_or_none(house: &House) {
        house.take_lot("ann", lot(&[1], &[(0, 3), (1, 2)])).await.expect("they are free");
        assert_eq!(house.areas().await, [(0, 2), (1, 1)]);
        let refused = house.take_lot("ben", lot(&[2], &[(0, 3), (1, 2)])).await;
        assert_eq!(refused, Err(Refusal::Full(vec![(0, 2), (1, 1)])));
        assert_eq!((house.areas().await, house.map().await), (vec![(0, 2), (1, 1)], "010000000000".into()));
    }

    async fn places_come_back_when_the_hold_is_let_go_or_ends(house: &House) {
        let held = house.take_lot("ann", lot(&[], &[(0, 3)])).await.expect("they are free");
        house.release("ann", held.hold).await.expect("it is hers");
        assert_eq!(house.areas().await, [(0, 5), (1, 3)]);
        house.take_lot("ben", lot(&[], &[(1, 3)])).await.expect("they are free");
        house.pass(TERMS.length_ms).await;
        assert_eq!(house.areas().await, [(0, 5), (1, 3)]);
    }

    async fn sold_places_stay_sold_and_come_back_once(house: &House) {
        let held = house.take_lot("ann", lot(&[], &[(0, 3)])).await.expect("they are free");
        let sale = sale("ann", &held);
        house.book(&sale).await;
        house.book(&sale).await;
        assert_eq!((house.areas().await, house.holds().await), (vec![(0, 2), (1, 3)], 0));
        house.free(&sale).await;
        house.free(&sale).await;
        assert_eq!(house.areas().await, [(0, 5), (1, 3)]);
    }

    async fn part_of_a_sale_comes_back_and_never_more_than_was_sold(house: &House) {
        let held = house.take_lot("ann", lot(&[], &[(0, 4), (1, 1)])).await.expect("they are free");
        let mut sale = sale("ann", &held);
        house.book(&sale).await;
        sale.lot = lot(&[], &[(0, 1)]);
        house.free(&sale).await;
        assert_eq!(house.areas().await, [(0, 2), (1, 2)]);
        sale.lot = lot(&[], &[(0, 99), (1, 99)]);
        house.free(&sale).await;
        house.free(&sale).await;
        assert_eq!(house.areas().await, [(0, 5), (1, 3)]);
    }

    async fn places_sold_twice_after_a_loss_show_as_none_and_the_debt_is_not_forgotten(house: &House) {
        let lost = house.take_lot("ann", lot(&[], &[(1, 3)])).await.expect("they are free");
        house.release("ann", lost.hold).await.expect("it is hers");
        let other = house.take_lot("ben", lot(&[], &[(1, 2)])).await.expect("they are free");
        house.book(&sale("ann", &lost)).await;
        assert_eq!(house.areas().await, [(0, 5), (1, 0)]);
        assert_eq!(house.take_lot("cat", lot(&[], &[(1, 1)])).await, Err(Refusal::Full(vec![(1, 0)])));
        // Whoever has places may let go of some in a full area.
        let fewer = house.change("ben", other.hold, lot(&[], &[]), lot(&[], &[(1, 1)])).await;
        assert_eq!(fewer.map(|held| held.lot), Ok(lot(&[], &[(1, 1)])));
        house.release("ben", other.hold).await.expect("it is his");
        assert_eq!(house.areas().await, [(0, 5), (1, 0)], "all three are sold");
        house.free(&sale("ann", &lost)).await;
        assert_eq!(house.areas().await, [(0, 5), (1, 3)], "no more than there are");
    }
}
