//! Staff calls: block seats, put them back on sale, release every hold.

use domain::seats::SeatState::{Blocked, Booked, Locked};
use seats::seat_locks::{HoldLimits, LockAttempt, RebuildInput, Refusal, ReleasedAll};

use super::fixture::{StoreFixture, TERMS, attempt, sale, selection};

on_every_store! {
    async fn blocked_seat_is_off_sale_until_it_is_put_back(fixture: &StoreFixture) {
        fixture.block(&[1, 2], true).await.expect("the seats are free");
        assert_eq!(fixture.map().await, "033000000000");
        fixture.take("ann", &[1]).await.expect_err("the seat is blocked");
        fixture.block(&[1, 2], false).await.expect("the seats are not held");
        assert_eq!(fixture.map().await, "000000000000");
        fixture.take("ann", &[1]).await.expect("the seat is free");
    }

    async fn blocking_a_blocked_seat_changes_nothing(fixture: &StoreFixture) {
        fixture.block(&[1], true).await.expect("the seat is free");
        let version = fixture.version().await;
        fixture.block(&[1], true).await.expect("the seat is blocked already");
        fixture.block(&[2], false).await.expect("the seat is on sale already");
        assert_eq!(fixture.version().await, version);
    }

    async fn held_and_sold_seats_cannot_be_blocked(fixture: &StoreFixture) {
        let sold = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.book(&sale("ann", &sold)).await;
        fixture.take("ben", &[2]).await.expect("the seat is free");
        let in_the_way = Err(Refusal::Taken(vec![(1, Booked), (2, Locked)]));
        assert_eq!(fixture.block(&[0, 1, 2], true).await, in_the_way);
        assert_eq!(fixture.block(&[0, 1, 2], false).await, in_the_way);
        assert_eq!(fixture.map().await, "021000000000");
    }

    async fn withdrawn_seats_leave_the_map_and_unpaid_holds_at_once(fixture: &StoreFixture) {
        let sold = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.book(&sale("ann", &sold)).await;
        let held = fixture.take("ben", &[2, 3]).await.expect("the seats are free");
        fixture.take("cat", &[4]).await.expect("the seat is free");
        let paying = fixture.take("dan", &[5, 6]).await.expect("the seats are free");
        fixture.begin_payment(&sale("dan", &paying)).await.expect("he pays");
        let version = fixture.version().await;
        assert_eq!(fixture.withdraw(&[0, 1, 2, 4, 5]).await, Ok(vec![1, 5]));
        assert_eq!((fixture.map().await, fixture.version().await), ("323131100000".into(), version + 1));
        let rest = fixture.hold_of("ben").await.expect("he keeps the other seat");
        assert_eq!((rest.hold, rest.selection.seats.as_slice()), (held.hold, &[3][..]));
        assert_eq!(fixture.hold_of("cat").await, None, "the hold became empty");
        assert_eq!(fixture.holds().await, 2);
        fixture.take("eve", &[4]).await.expect_err("the seat is withdrawn");
        // A repeat changes nothing. Paying and sold seats stay off sale when they are freed.
        assert_eq!(fixture.withdraw(&[0, 2, 4]).await, Ok(vec![]));
        fixture.free_and_block(&sale("dan", &paying), &[5]).await;
        fixture.free_and_block(&sale("ann", &sold), &[1]).await;
        assert_eq!(fixture.map().await, "333133000000");
        fixture.take("ann", &[6, 7, 8, 9, 10, 11]).await.expect("six are within the limit: freed seats do not count");
        assert_eq!(fixture.withdraw(&[11, 12]).await, Err(Refusal::Outside(12)), "all or none");
        assert_eq!(fixture.map().await, "333133111111");
    }

    async fn house_seat_goes_to_its_guest_in_one_step(fixture: &StoreFixture) {
        fixture.block(&[1, 2, 3], true).await.expect("the seats are free");
        let version = fixture.version().await;
        // Together with a seat on sale, as after the map was rebuilt meanwhile.
        let gift = LockAttempt { takes_kept: true, ..attempt("ann", selection(&[0, 1, 2], &[])) };
        let held = fixture.try_one(&gift).await.expect("the seats are granted");
        assert_eq!((fixture.map().await, fixture.version().await), ("111300000000".into(), version + 1));
        assert_eq!(fixture.hold_of("ann").await, Some(held.clone()));
        // After a release they are on sale, and the same request takes nothing again.
        fixture.release("ann", held.hold).await.expect("it is her hold");
        assert_eq!(fixture.try_one(&gift).await.map(|again| again.fence), Ok(held.fence));
        assert_eq!(fixture.map().await, "000300000000");
    }

    async fn held_and_sold_seats_are_not_given_to_a_guest(fixture: &StoreFixture) {
        fixture.block(&[1], true).await.expect("the seat is free");
        let sold = fixture.take("cat", &[3]).await.expect("the seat is free");
        fixture.book(&sale("cat", &sold)).await;
        fixture.take("ben", &[2]).await.expect("the seat is free");
        let gift = |owner: &str, seats: &[u32]| LockAttempt { takes_kept: true, ..attempt(owner, selection(seats, &[])) };
        let in_the_way = Err(Refusal::Taken(vec![(2, Locked), (3, Booked)]));
        assert_eq!(fixture.try_one(&gift("ann", &[1, 2, 3])).await, in_the_way);
        let many = fixture.try_one(&gift("ann", &[1, 4, 5, 6, 7, 8, 9])).await;
        assert_eq!(many, Err(Refusal::Limit(6)), "the limit applies");
        assert_eq!(fixture.map().await, "031200000000");
    }

    async fn other_attempts_of_a_guests_call_take_no_house_seat(fixture: &StoreFixture) {
        fixture.block(&[1, 2, 3], true).await.expect("the seats are free");
        let gift = LockAttempt { takes_kept: true, ..attempt("ann", selection(&[1], &[])) };
        let attempts = [attempt("ben", selection(&[1], &[])), gift, attempt("cat", selection(&[1, 2], &[]))];
        let answers = fixture.try_all(&attempts).await;
        assert_eq!(answers[0], Err(Refusal::Taken(vec![(1, Blocked)])));
        assert!(answers[1].is_ok());
        assert_eq!(answers[2], Err(Refusal::Taken(vec![(1, Locked), (2, Blocked)])));
        assert_eq!(fixture.map().await, "013300000000");
    }

    async fn unknown_seat_cannot_be_blocked(fixture: &StoreFixture) {
        assert_eq!(fixture.block(&[1, 12], true).await, Err(Refusal::Outside(12)));
        assert_eq!(fixture.map().await, "000000000000");
    }

    async fn every_hold_is_released_but_paying_ones(fixture: &StoreFixture) {
        fixture.take_selection("ann", selection(&[1, 2], &[(0, 2)])).await.expect("the seats are free");
        let paying = fixture.take("ben", &[3]).await.expect("the seat is free");
        fixture.begin_payment(&sale("ben", &paying)).await.expect("it is his hold");
        let sold = fixture.take("cat", &[4]).await.expect("the seat is free");
        fixture.book(&sale("cat", &sold)).await;
        let all = fixture.store.release_all(fixture.show).await.expect("an answer");
        assert_eq!(all, ReleasedAll { released: 1, paying: 1 });
        assert_eq!((fixture.map().await, fixture.areas().await), ("000120000000".into(), vec![(0, 5), (1, 3)]));
        assert_eq!(fixture.hold_of("ann").await, None);
        let again = fixture.store.release_all(fixture.show).await.expect("an answer");
        assert_eq!(again, ReleasedAll { released: 0, paying: 1 });
    }

    async fn hundreds_of_holds_are_released_beside_paying_ones(fixture: &StoreFixture) {
        let (show, rows) = (platform::ids::new_id(), 700_u32);
        let known = RebuildInput { map: vec![0; rows as usize], ..RebuildInput::default() };
        fixture.store.load(show, &known).await.expect("the map is loaded");
        // The first to expire, the last, and some between.
        let is_paying = |seat: u32| seat < 5 || seat.is_multiple_of(9) || seat >= rows - 5;
        for group in (0..rows).collect::<Vec<_>>().chunks(64) {
            let attempts: Vec<_> =
                group.iter().map(|seat| attempt(&format!("visitor {seat}"), selection(&[*seat], &[]))).collect();
            let terms = HoldLimits { length_ms: TERMS.length_ms + i64::from(group[0]), ..TERMS };
            let answers = fixture.store.lock(show, terms, &attempts).await.expect("answers");
            for (held, seat) in answers.into_iter().zip(group) {
                let held = held.expect("the seat is free");
                if is_paying(*seat) {
                    let sale = sale(&format!("visitor {seat}"), &held);
                    fixture.store.begin_payment(show, &sale, 1).await.expect("an answer").expect("it is their hold");
                }
            }
        }
        let all = fixture.store.release_all(show).await.expect("an answer");
        let paying = (0..rows).filter(|seat| is_paying(*seat)).count() as u64;
        assert_eq!(all, ReleasedAll { released: u64::from(rows) - paying, paying });
        let map = fixture.store.snapshot(show).await.expect("a snapshot").map;
        assert!((0..rows).all(|seat| (map[seat as usize] == Locked as u8) == is_paying(seat)));
        fixture.store.forget(show).await.expect("the show is forgotten");
    }
}
