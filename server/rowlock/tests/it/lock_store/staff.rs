//! What staff do: keep seats off sale, put them back, let every hold go.

use domain::seats::SeatState::{Blocked, Booked, Locked};
use seats::seat_locks::{Attempt, KnownSeats, Refusal, ReleasedAll, Terms};

use super::house::{House, TERMS, attempt, lot, sale};

on_every_store! {
    async fn a_blocked_seat_is_not_for_sale_until_it_is_put_back(house: &House) {
        house.block(&[1, 2], true).await.expect("they are free");
        assert_eq!(house.map().await, "033000000000");
        house.take("ann", &[1]).await.expect_err("it is blocked");
        house.block(&[1, 2], false).await.expect("nobody has them");
        assert_eq!(house.map().await, "000000000000");
        house.take("ann", &[1]).await.expect("it is free");
    }

    async fn blocking_what_is_blocked_changes_nothing(house: &House) {
        house.block(&[1], true).await.expect("it is free");
        let version = house.version().await;
        house.block(&[1], true).await.expect("it is so already");
        house.block(&[2], false).await.expect("it is so already");
        assert_eq!(house.version().await, version);
    }

    async fn held_and_sold_seats_stand_in_the_way_of_staff_and_then_nothing_changes(house: &House) {
        let sold = house.take("ann", &[1]).await.expect("it is free");
        house.book(&sale("ann", &sold)).await;
        house.take("ben", &[2]).await.expect("it is free");
        let in_the_way = Err(Refusal::Taken(vec![(1, Booked), (2, Locked)]));
        assert_eq!(house.block(&[0, 1, 2], true).await, in_the_way);
        assert_eq!(house.block(&[0, 1, 2], false).await, in_the_way);
        assert_eq!(house.map().await, "021000000000");
    }

    async fn withdrawn_seats_go_at_once_from_the_map_and_from_holds_that_are_not_paid_for(house: &House) {
        let sold = house.take("ann", &[1]).await.expect("it is free");
        house.book(&sale("ann", &sold)).await;
        let held = house.take("ben", &[2, 3]).await.expect("they are free");
        house.take("cat", &[4]).await.expect("it is free");
        let paying = house.take("dan", &[5, 6]).await.expect("they are free");
        house.begin_payment(&sale("dan", &paying)).await.expect("he pays");
        let version = house.version().await;
        assert_eq!(house.withdraw(&[0, 1, 2, 4, 5]).await, Ok(vec![1, 5]));
        assert_eq!((house.map().await, house.version().await), ("323131100000".into(), version + 1));
        let rest = house.mine("ben").await.expect("the other seat is his");
        assert_eq!((rest.hold, rest.lot.seats.as_slice()), (held.hold, &[3][..]));
        assert_eq!(house.mine("cat").await, None, "nothing was left of it");
        assert_eq!(house.holds().await, 2);
        house.take("eve", &[4]).await.expect_err("it is out of sale");
        // Again nothing changes; seats that are paid for or sold stay off sale when they come back.
        assert_eq!(house.withdraw(&[0, 2, 4]).await, Ok(vec![]));
        house.free_keeping(&sale("dan", &paying), &[5]).await;
        house.free_keeping(&sale("ann", &sold), &[1]).await;
        assert_eq!(house.map().await, "333133000000");
        house.take("ann", &[6, 7, 8, 9, 10, 11]).await.expect("six are within the limit: seats that went back do not count");
        assert_eq!(house.withdraw(&[11, 12]).await, Err(Refusal::Outside(12)), "all or none");
        assert_eq!(house.map().await, "333133111111");
    }

    async fn a_seat_that_is_given_away_goes_to_its_guest_in_one_step(house: &House) {
        house.block(&[1, 2, 3], true).await.expect("they are free");
        let version = house.version().await;
        // Beside one that is on sale: as where the map was built anew meanwhile.
        let gift = Attempt { takes_kept: true, ..attempt("ann", lot(&[0, 1, 2], &[])) };
        let held = house.try_one(&gift).await.expect("the house gives them away");
        assert_eq!((house.map().await, house.version().await), ("111300000000".into(), version + 1));
        assert_eq!(house.mine("ann").await, Some(held.clone()));
        // Let go they are on sale, and the same request takes nothing again.
        house.release("ann", held.hold).await.expect("it is hers");
        assert_eq!(house.try_one(&gift).await.map(|again| again.fence), Ok(held.fence));
        assert_eq!(house.map().await, "000300000000");
    }

    async fn what_is_held_or_sold_is_not_given_away_and_then_nothing_is(house: &House) {
        house.block(&[1], true).await.expect("it is free");
        let sold = house.take("cat", &[3]).await.expect("it is free");
        house.book(&sale("cat", &sold)).await;
        house.take("ben", &[2]).await.expect("it is free");
        let gift = |owner: &str, seats: &[u32]| Attempt { takes_kept: true, ..attempt(owner, lot(seats, &[])) };
        let in_the_way = Err(Refusal::Taken(vec![(2, Locked), (3, Booked)]));
        assert_eq!(house.try_one(&gift("ann", &[1, 2, 3])).await, in_the_way);
        let many = house.try_one(&gift("ann", &[1, 4, 5, 6, 7, 8, 9])).await;
        assert_eq!(many, Err(Refusal::Limit(6)), "as many as anybody");
        assert_eq!(house.map().await, "031200000000");
    }

    async fn those_who_share_a_call_with_a_guest_take_no_seat_of_the_house(house: &House) {
        house.block(&[1, 2, 3], true).await.expect("they are free");
        let gift = Attempt { takes_kept: true, ..attempt("ann", lot(&[1], &[])) };
        let wishes = [attempt("ben", lot(&[1], &[])), gift, attempt("cat", lot(&[1, 2], &[]))];
        let answers = house.try_all(&wishes).await;
        assert_eq!(answers[0], Err(Refusal::Taken(vec![(1, Blocked)])));
        assert!(answers[1].is_ok());
        assert_eq!(answers[2], Err(Refusal::Taken(vec![(1, Locked), (2, Blocked)])));
        assert_eq!(house.map().await, "013300000000");
    }

    async fn staff_cannot_block_a_seat_the_room_has_not(house: &House) {
        assert_eq!(house.block(&[1, 12], true).await, Err(Refusal::Outside(12)));
        assert_eq!(house.map().await, "000000000000");
    }

    async fn every_hold_is_let_go_but_those_being_paid_for(house: &House) {
        house.take_lot("ann", lot(&[1, 2], &[(0, 2)])).await.expect("they are free");
        let paying = house.take("ben", &[3]).await.expect("it is free");
        house.begin_payment(&sale("ben", &paying)).await.expect("it is his");
        let sold = house.take("cat", &[4]).await.expect("it is free");
        house.book(&sale("cat", &sold)).await;
        let all = house.store.release_all(house.show).await.expect("an answer");
        assert_eq!(all, ReleasedAll { released: 1, paying: 1 });
        assert_eq!((house.map().await, house.areas().await), ("000120000000".into(), vec![(0, 5), (1, 3)]));
        assert_eq!(house.mine("ann").await, None);
        let again = house.store.release_all(house.show).await.expect("an answer");
        assert_eq!(again, ReleasedAll { released: 0, paying: 1 });
    }

    async fn hundreds_of_holds_are_let_go_with_those_being_paid_for_among_them(house: &House) {
        let (show, rows) = (platform::ids::new_id(), 700_u32);
        let known = KnownSeats { map: vec![0; rows as usize], ..KnownSeats::default() };
        house.store.load(show, &known).await.expect("the map is loaded");
        // The first to end, the last, and some between.
        let is_paying = |seat: u32| seat < 5 || seat.is_multiple_of(9) || seat >= rows - 5;
        for group in (0..rows).collect::<Vec<_>>().chunks(64) {
            let attempts: Vec<_> =
                group.iter().map(|seat| attempt(&format!("visitor {seat}"), lot(&[*seat], &[]))).collect();
            let terms = Terms { length_ms: TERMS.length_ms + i64::from(group[0]), ..TERMS };
            let answers = house.store.lock(show, terms, &attempts).await.expect("answers");
            for (held, seat) in answers.into_iter().zip(group) {
                let held = held.expect("it is free");
                if is_paying(*seat) {
                    let sale = sale(&format!("visitor {seat}"), &held);
                    house.store.begin_payment(show, &sale, 1).await.expect("an answer").expect("it is theirs");
                }
            }
        }
        let all = house.store.release_all(show).await.expect("an answer");
        let paying = (0..rows).filter(|seat| is_paying(*seat)).count() as u64;
        assert_eq!(all, ReleasedAll { released: u64::from(rows) - paying, paying });
        let map = house.store.snapshot(show).await.expect("a snapshot").map;
        assert!((0..rows).all(|seat| (map[seat as usize] == Locked as u8) == is_paying(seat)));
        house.store.forget(show).await.expect("it is forgotten");
    }
}
