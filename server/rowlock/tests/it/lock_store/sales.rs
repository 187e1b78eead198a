//! Seats sold, and given back: by fence, late, twice, and after the hold was lost.

use domain::seats::SeatState::{Available, Booked, Locked};
use seats::seat_locks::{Lot, Refusal};

use super::house::{House, TERMS, lot, sale};

on_every_store! {
    async fn a_sold_seat_stays_sold_and_its_hold_is_over(house: &House) {
        let held = house.take("ann", &[1, 2]).await.expect("they are free");
        house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        house.book(&sale("ann", &held)).await;
        assert_eq!((house.map().await, house.holds().await), ("022000000000".into(), 0));
        house.pass(10 * TERMS.life_ms).await;
        assert_eq!(house.map().await, "022000000000");
        assert_eq!(house.take("ben", &[2]).await, Err(Refusal::Taken(vec![(2, Booked)])));
        house.take("ann", &[5]).await.expect("she may take another");
    }

    async fn a_sale_told_twice_counts_once(house: &House) {
        let held = house.take("ann", &[1, 2, 3, 4]).await.expect("they are free");
        house.book(&sale("ann", &held)).await;
        let version = house.version().await;
        house.book(&sale("ann", &held)).await;
        assert_eq!(house.version().await, version);
        house.take("ann", &[5, 6]).await.expect("four and two are six");
    }

    async fn a_sale_told_late_takes_the_seat_from_whoever_holds_it_and_leaves_them_the_rest(house: &House) {
        let lost = house.take("ann", &[1]).await.expect("it is free");
        house.pass(TERMS.length_ms).await;
        let other = house.take("ben", &[1, 2]).await.expect("they are free");
        house.begin_payment(&sale("ben", &other)).await.expect("it is his");
        house.book(&sale("ann", &lost)).await;
        assert_eq!(house.map().await, "021000000000");
        let rest = house.mine("ben").await.expect("he keeps the rest");
        assert_eq!((rest.lot, rest.paying), (lot(&[2], &[]), false));
        assert_eq!(house.begin_payment(&sale("ben", &other)).await, Err(Refusal::Changed));
    }

    async fn a_sale_told_late_ends_a_hold_of_which_nothing_is_left(house: &House) {
        let lost = house.take("ann", &[1]).await.expect("it is free");
        house.release("ann", lost.hold).await.expect("it is hers");
        house.take("ben", &[1]).await.expect("it is free");
        house.book(&sale("ann", &lost)).await;
        assert_eq!((house.mine("ben").await, house.holds().await), (None, 0));
        house.take("ben", &[2]).await.expect("he may take another");
    }

    async fn sales_told_in_one_call_are_as_if_told_one_after_the_other(house: &House) {
        let ann = house.take_lot("ann", lot(&[1, 2], &[(0, 2)])).await.expect("they are free");
        let ben = house.take("ben", &[3, 4]).await.expect("they are free");
        let lost = house.take("eve", &[5]).await.expect("it is free");
        house.release("eve", lost.hold).await.expect("it is hers");
        let cal = house.take("cal", &[5, 6]).await.expect("they are free");
        let mut part = sale("ben", &ben);
        part.lot = lot(&[3], &[]);
        let told = [sale("ann", &ann), part, sale("eve", &lost), sale("ann", &ann)];
        house.store.book_all(house.show, &told).await.expect("they are told");
        assert_eq!((house.map().await, house.areas().await), ("022202100000".into(), vec![(0, 3), (1, 3)]));
        assert_eq!(house.mine("cal").await.map(|rest| (rest.hold, rest.lot)), Some((cal.hold, lot(&[6], &[]))));
        assert_eq!(house.take("ann", &[7, 8, 9]).await, Err(Refusal::Limit(2)), "each sale counts once");
    }

    async fn sales_of_all_their_holds_have_count_each_in_one_call_and_not_again_in_the_next(house: &House) {
        let ann = house.take_lot("ann", lot(&[0, 2, 3], &[(0, 1)])).await.expect("they are free");
        let ben = house.take("ben", &[4, 5, 6]).await.expect("they are free");
        house.store.book_all(house.show, &[sale("ann", &ann), sale("ben", &ben)]).await.expect("they are told");
        assert_eq!((house.map().await, house.areas().await), ("202222200000".into(), vec![(0, 4), (1, 3)]));
        assert_eq!(house.holds().await, 0);
        let more = house.take("ben", &[7, 8]).await.expect("three and two are five");
        let cal = house.take("cal", &[9]).await.expect("it is free");
        let told = [sale("ben", &more), sale("ann", &ann), sale("cal", &cal)];
        house.store.book_all(house.show, &told).await.expect("they are told");
        assert_eq!((house.map().await, house.areas().await), ("202222222200".into(), vec![(0, 4), (1, 3)]));
        assert_eq!(house.holds().await, 0);
        assert_eq!(house.take("ann", &[1, 10, 11]).await, Err(Refusal::Limit(2)));
        assert_eq!(house.take("ben", &[1, 10]).await, Err(Refusal::Limit(1)));
    }

    async fn a_sale_of_a_later_fence_is_the_truth(house: &House) {
        let earlier = house.take("ann", &[1, 3]).await.expect("they are free");
        house.release("ann", earlier.hold).await.expect("it is hers");
        let later = house.take("ben", &[1]).await.expect("it is free");
        house.book(&sale("ben", &later)).await;
        house.book(&sale("ann", &earlier)).await;
        assert_eq!(house.map().await, "020200000000");
        house.free(&sale("ann", &earlier)).await;
        assert_eq!(house.map().await, "020000000000", "the seat is Ben's");
        house.free(&sale("ben", &later)).await;
        assert_eq!(house.map().await, "000000000000");
    }

    async fn what_the_hold_had_besides_the_sale_goes_back(house: &House) {
        let held = house.take_lot("ann", lot(&[1, 2], &[(0, 3), (1, 1)])).await.expect("they are free");
        let mut part = sale("ann", &held);
        part.lot = lot(&[1], &[(0, 2)]);
        house.book(&part).await;
        assert_eq!((house.map().await, house.areas().await), ("020000000000".into(), vec![(0, 3), (1, 3)]));
    }

    async fn a_seat_that_left_the_hold_before_it_was_sold_is_taken_from_its_new_holder(house: &House) {
        let held = house.take("ann", &[1, 2]).await.expect("they are free");
        house.change("ann", held.hold, Lot::default(), lot(&[2], &[])).await.expect("it is hers");
        house.take("ben", &[2, 3]).await.expect("they are free");
        house.book(&sale("ann", &held)).await;
        assert_eq!(house.mine("ben").await.map(|held| held.lot), Some(lot(&[3], &[])));
        house.pass(TERMS.length_ms).await;
        assert_eq!(house.map().await, "022000000000", "the end of Ben's hold frees what he had, and no more");
    }

    async fn a_blocked_seat_that_was_sold_is_sold(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.release("ann", held.hold).await.expect("it is hers");
        house.block(&[1], true).await.expect("it is free");
        house.book(&sale("ann", &held)).await;
        assert_eq!(house.map().await, "020000000000");
    }

    async fn a_seat_the_room_has_not_cannot_be_sold_and_the_map_does_not_grow(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        let mut outside = sale("ann", &held);
        outside.lot = lot(&[1, 12, 70], &[]);
        house.book(&outside).await;
        house.free(&outside).await;
        assert_eq!(house.map().await, "000000000000");
    }

    async fn giving_back_ends_the_hold_of_a_booking_that_was_not_paid_for(house: &House) {
        let held = house.take_lot("ann", lot(&[1, 2], &[(0, 1)])).await.expect("they are free");
        house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        house.free(&sale("ann", &held)).await;
        assert_eq!((house.map().await, house.areas().await), ("000000000000".into(), vec![(0, 5), (1, 3)]));
        assert_eq!(house.holds().await, 0);
    }

    async fn giving_back_twice_frees_nobody_elses_seat(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.book(&sale("ann", &held)).await;
        house.free(&sale("ann", &held)).await;
        let other = house.take("ben", &[1]).await.expect("it is free again");
        house.free(&sale("ann", &held)).await;
        assert_eq!(house.map().await, "010000000000");
        house.book(&sale("ben", &other)).await;
        house.free(&sale("ann", &held)).await;
        assert_eq!(house.map().await, "020000000000");
    }

    async fn giving_back_under_another_fence_frees_nothing(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        let mut older = sale("ann", &held);
        older.fence -= 1;
        house.free(&older).await;
        assert_eq!(house.map().await, "010000000000");
        house.book(&sale("ann", &held)).await;
        house.free(&older).await;
        assert_eq!(house.map().await, "020000000000");
    }

    async fn part_of_a_booking_may_come_back(house: &House) {
        let held = house.take("ann", &[1, 2, 3]).await.expect("they are free");
        house.book(&sale("ann", &held)).await;
        let mut part = sale("ann", &held);
        part.lot = lot(&[2], &[]);
        house.free(&part).await;
        assert_eq!(house.map().await, "020200000000");
        assert_eq!(house.take("ann", &[4, 5, 6, 7, 8]).await, Err(Refusal::Limit(4)));
    }

    async fn states_are_told_as_they_are_to_whoever_asks_next(house: &House) {
        let held = house.take("ann", &[1, 2]).await.expect("they are free");
        house.take("ben", &[3]).await.expect("it is free");
        house.book(&sale("ann", &held)).await;
        let snapshot = house.store.snapshot(house.show).await.expect("a snapshot");
        assert_eq!(snapshot.map[..4], [Available as u8, Booked as u8, Booked as u8, Locked as u8]);
    }
}
