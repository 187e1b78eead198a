//! Grants of holds: every reason for a refusal, several attempts in one call, areas, and changes of a hold in one step.

use domain::seats::SeatState::{Blocked, Booked, Locked};
use domain::time::MINUTE_MS;
use seats::seat_locks::{HoldLimits, HoldUpdate, Refusal, RequestIdentity, Selection};

use super::fixture::{LOWEST_FENCE, StoreFixture, TERMS, asked, attempt, sale, selection};

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

    async fn first_attempt_of_a_call_gets_the_seat_and_later_ones_are_refused(fixture: &StoreFixture) {
        let attempts = [
            attempt("ann", selection(&[1, 2], &[])),
            attempt("ben", selection(&[2, 3], &[])),
            attempt("cat", selection(&[3], &[])),
            attempt("dan", selection(&[1, 3, 4], &[])),
        ];
        let answers = fixture.try_all(&attempts).await;
        assert_eq!(answers[0].as_ref().map(|held| held.selection.clone()), Ok(selection(&[1, 2], &[])));
        assert_eq!(answers[1], Err(Refusal::Taken(vec![(2, Locked)])));
        assert!(answers[2].is_ok(), "a refused attempt takes nothing");
        assert_eq!(answers[3], Err(Refusal::Taken(vec![(1, Locked), (3, Locked)])));
        assert_eq!(fixture.map().await, "011100000000");
    }

    async fn fences_of_a_call_are_consecutive_over_granted_attempts(fixture: &StoreFixture) {
        let attempts =
            [attempt("ann", selection(&[1], &[])), attempt("ben", selection(&[1], &[])), attempt("cat", selection(&[2], &[]))];
        let answers = fixture.try_all(&attempts).await;
        let fences: Vec<_> = answers.iter().flatten().map(|held| held.fence).collect();
        assert_eq!(fences[1], fences[0] + 1);
        assert_eq!(fences.len(), 2);
    }

    async fn call_increments_the_version_once(fixture: &StoreFixture) {
        let before = fixture.version().await;
        fixture.try_all(&[attempt("ann", selection(&[1], &[])), attempt("ben", selection(&[2], &[])), attempt("cat", selection(&[3], &[]))])
            .await;
        assert_eq!(fixture.version().await, before + 1);
    }

    async fn owner_with_two_attempts_in_a_call_gets_one_hold(fixture: &StoreFixture) {
        let attempts = [attempt("ann", selection(&[1], &[])), attempt("ann", selection(&[2], &[])), attempt("ben", selection(&[2], &[]))];
        let answers = fixture.try_all(&attempts).await;
        assert_eq!(answers[1], Err(Refusal::OtherHold(attempts[0].asked.id)));
        assert!(answers[0].is_ok() && answers[2].is_ok());
    }

    async fn owner_refused_first_may_get_the_next_attempt_of_the_call(fixture: &StoreFixture) {
        fixture.take("zoe", &[1]).await.expect("the seat is free");
        let answers = fixture.try_all(&[attempt("ann", selection(&[1], &[])), attempt("ann", selection(&[2], &[]))]).await;
        assert_eq!(answers[0], Err(Refusal::Taken(vec![(1, Locked)])));
        assert!(answers[1].is_ok());
    }

    async fn repeated_request_in_a_call_gets_one_hold_and_one_answer(fixture: &StoreFixture) {
        let request = attempt("ann", selection(&[1], &[]));
        let mut other = attempt("ann", selection(&[2], &[]));
        other.asked = RequestIdentity { id: request.asked.id, digest: request.asked.digest + 1 };
        let answers = fixture.try_all(&[request.clone(), request.clone(), other]).await;
        assert!(answers[0].is_ok());
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[2], Err(Refusal::Reused));
        assert_eq!((fixture.holds().await, fixture.map().await), (1, "010000000000".into()));
    }

    async fn refused_request_repeated_in_a_call_is_refused_twice(fixture: &StoreFixture) {
        fixture.take("zoe", &[1]).await.expect("the seat is free");
        let request = attempt("ann", selection(&[1], &[]));
        let answers = fixture.try_all(&[request.clone(), request]).await;
        assert_eq!(answers, vec![Err(Refusal::Taken(vec![(1, Locked)])); 2]);
    }

    async fn places_go_to_the_first_attempts_of_a_call(fixture: &StoreFixture) {
        let attempts = [
            attempt("ann", selection(&[], &[(1, 2)])),
            attempt("ben", selection(&[], &[(1, 2)])),
            attempt("cat", selection(&[], &[(1, 1)])),
        ];
        let answers = fixture.try_all(&attempts).await;
        assert_eq!(answers[1], Err(Refusal::Full(vec![(1, 1)])));
        assert!(answers[0].is_ok() && answers[2].is_ok());
        assert_eq!(fixture.areas().await, [(0, 5), (1, 0)]);
    }

    async fn retry_among_new_attempts_gets_its_earlier_answer(fixture: &StoreFixture) {
        let request = attempt("ann", selection(&[1], &[]));
        let earlier = fixture.try_one(&request).await;
        let answers = fixture.try_all(&[attempt("ben", selection(&[2], &[])), request, attempt("cat", selection(&[1], &[]))]).await;
        assert!(answers[0].is_ok());
        assert_eq!(answers[1], earlier);
        assert_eq!(answers[2], Err(Refusal::Taken(vec![(1, Locked)])));
    }

    async fn concurrent_holds_of_places_never_exceed_the_capacity(fixture: &StoreFixture) {
        let request = |number| attempt(&format!("visitor {number}"), selection(&[], &[(0, 1)]));
        let attempts: Vec<_> = (0..40).map(request).collect();
        let answers = futures::future::join_all(attempts.iter().map(|attempt| fixture.try_one(attempt))).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 5);
        assert_eq!(answers.iter().filter(|answer| **answer == Err(Refusal::Full(vec![(0, 0)]))).count(), 35);
        assert_eq!(fixture.areas().await, [(0, 0), (1, 3)]);
    }

    async fn hold_takes_all_its_places_and_seats_or_none(fixture: &StoreFixture) {
        fixture.take_selection("ann", selection(&[1], &[(0, 3), (1, 2)])).await.expect("the seats are free");
        assert_eq!(fixture.areas().await, [(0, 2), (1, 1)]);
        let refused = fixture.take_selection("ben", selection(&[2], &[(0, 3), (1, 2)])).await;
        assert_eq!(refused, Err(Refusal::Full(vec![(0, 2), (1, 1)])));
        assert_eq!((fixture.areas().await, fixture.map().await), (vec![(0, 2), (1, 1)], "010000000000".into()));
    }

    async fn places_are_freed_when_the_hold_is_released_or_expires(fixture: &StoreFixture) {
        let held = fixture.take_selection("ann", selection(&[], &[(0, 3)])).await.expect("the seats are free");
        fixture.release("ann", held.hold).await.expect("it is her hold");
        assert_eq!(fixture.areas().await, [(0, 5), (1, 3)]);
        fixture.take_selection("ben", selection(&[], &[(1, 3)])).await.expect("the seats are free");
        fixture.pass(TERMS.length_ms).await;
        assert_eq!(fixture.areas().await, [(0, 5), (1, 3)]);
    }

    async fn sold_places_stay_sold_and_are_freed_once(fixture: &StoreFixture) {
        let held = fixture.take_selection("ann", selection(&[], &[(0, 3)])).await.expect("the seats are free");
        let sale = sale("ann", &held);
        fixture.book(&sale).await;
        fixture.book(&sale).await;
        assert_eq!((fixture.areas().await, fixture.holds().await), (vec![(0, 2), (1, 3)], 0));
        fixture.free(&sale).await;
        fixture.free(&sale).await;
        assert_eq!(fixture.areas().await, [(0, 5), (1, 3)]);
    }

    async fn part_of_a_sale_is_freed_and_never_more_than_was_sold(fixture: &StoreFixture) {
        let held = fixture.take_selection("ann", selection(&[], &[(0, 4), (1, 1)])).await.expect("the seats are free");
        let mut sale = sale("ann", &held);
        fixture.book(&sale).await;
        sale.selection = selection(&[], &[(0, 1)]);
        fixture.free(&sale).await;
        assert_eq!(fixture.areas().await, [(0, 2), (1, 2)]);
        sale.selection = selection(&[], &[(0, 99), (1, 99)]);
        fixture.free(&sale).await;
        fixture.free(&sale).await;
        assert_eq!(fixture.areas().await, [(0, 5), (1, 3)]);
    }

    async fn area_oversold_after_a_loss_shows_zero_places_until_the_excess_is_freed(fixture: &StoreFixture) {
        let lost = fixture.take_selection("ann", selection(&[], &[(1, 3)])).await.expect("the seats are free");
        fixture.release("ann", lost.hold).await.expect("it is her hold");
        let other = fixture.take_selection("ben", selection(&[], &[(1, 2)])).await.expect("the seats are free");
        fixture.book(&sale("ann", &lost)).await;
        assert_eq!(fixture.areas().await, [(0, 5), (1, 0)]);
        assert_eq!(fixture.take_selection("cat", selection(&[], &[(1, 1)])).await, Err(Refusal::Full(vec![(1, 0)])));
        // A holder may release places of an oversold area.
        let fewer = fixture.change("ben", other.hold, selection(&[], &[]), selection(&[], &[(1, 1)])).await;
        assert_eq!(fewer.map(|held| held.selection), Ok(selection(&[], &[(1, 1)])));
        fixture.release("ben", other.hold).await.expect("it is his hold");
        assert_eq!(fixture.areas().await, [(0, 5), (1, 0)], "all three are sold");
        fixture.free(&sale("ann", &lost)).await;
        assert_eq!(fixture.areas().await, [(0, 5), (1, 3)], "at most the capacity");
    }

    async fn seats_are_swapped_in_one_step_and_the_expiry_stays(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[5, 7]).await.expect("the seats are free");
        let version = fixture.version().await;
        fixture.pass(MINUTE_MS).await;
        let before = fixture.hold_of("ann").await.expect("it is her hold");
        let after = fixture.change("ann", held.hold, selection(&[2], &[]), selection(&[7], &[])).await.expect("the seat is free");
        assert_eq!(after.selection, selection(&[2, 5], &[]));
        assert_eq!((after.expires_at, after.latest, after.fence), (before.expires_at, before.latest, held.fence));
        assert_eq!((fixture.map().await, fixture.version().await), ("001001000000".into(), version + 1));
    }

    async fn adding_never_extends_a_hold_shortened_by_a_closed_tab(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.shorten_hold("ann", held.hold, 30_000).await;
        fixture.change("ann", held.hold, selection(&[2], &[]), Selection::default()).await.expect("the seat is free");
        fixture.pass(30_000).await;
        assert_eq!(fixture.map().await, "000000000000");
    }

    async fn adding_held_seats_and_removing_foreign_seats_changes_nothing(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.take("ben", &[4]).await.expect("the seat is free");
        let version = fixture.version().await;
        let after = fixture.change("ann", held.hold, selection(&[1], &[]), selection(&[4, 9], &[(0, 2)])).await;
        assert_eq!(after.map(|held| held.selection), Ok(selection(&[1], &[])));
        assert_eq!(fixture.map().await, "010010000000");
        assert_eq!((fixture.areas().await, fixture.version().await), (vec![(0, 5), (1, 3)], version));
    }

    async fn change_is_applied_completely_or_not_at_all(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1, 2]).await.expect("the seats are free");
        fixture.take("ben", &[4]).await.expect("the seat is free");
        fixture.block(&[5], true).await.expect("the seat is free");
        let refused = fixture.change("ann", held.hold, selection(&[3, 4, 5], &[]), selection(&[1], &[])).await;
        assert_eq!(refused, Err(Refusal::Taken(vec![(4, Locked), (5, Blocked)])));
        assert_eq!(fixture.map().await, "011013000000");
    }

    async fn empty_hold_ends(fixture: &StoreFixture) {
        let held = fixture.take_selection("ann", selection(&[1], &[(0, 2)])).await.expect("the seats are free");
        let over = fixture.change("ann", held.hold, Selection::default(), selection(&[1], &[(0, 2)])).await.expect("it is her hold");
        assert!(over.selection.is_empty());
        assert_eq!((fixture.hold_of("ann").await, fixture.holds().await), (None, 0));
        fixture.take("ann", &[1]).await.expect("she may take another hold");
    }

    async fn places_are_added_and_removed_within_the_capacity(fixture: &StoreFixture) {
        let held = fixture.take_selection("ann", selection(&[], &[(1, 2)])).await.expect("the seats are free");
        let more = fixture.change("ann", held.hold, selection(&[], &[(0, 1)]), selection(&[], &[(1, 1)])).await;
        assert_eq!(more.map(|held| held.selection), Ok(selection(&[], &[(0, 1), (1, 1)])));
        assert_eq!(fixture.areas().await, [(0, 4), (1, 2)]);
        let too_many = fixture.change("ann", held.hold, selection(&[], &[(0, 5), (1, 3)]), Selection::default()).await;
        assert_eq!(too_many, Err(Refusal::Full(vec![(0, 4), (1, 2)])));
        let fewer = fixture.change("ann", held.hold, Selection::default(), selection(&[], &[(0, 99)])).await;
        assert_eq!(fewer.map(|held| held.selection), Ok(selection(&[], &[(1, 1)])));
        assert_eq!(fixture.areas().await, [(0, 5), (1, 2)]);
    }

    async fn removed_places_can_be_added_again_in_the_same_change(fixture: &StoreFixture) {
        let held = fixture.take_selection("ann", selection(&[], &[(1, 3)])).await.expect("the seats are free");
        let same = fixture.change("ann", held.hold, selection(&[], &[(1, 2)]), selection(&[], &[(1, 2)])).await;
        assert_eq!(same.map(|held| held.selection), Ok(selection(&[], &[(1, 3)])));
        assert_eq!(fixture.areas().await, [(0, 5), (1, 0)]);
    }

    async fn limit_counts_the_resulting_hold_and_earlier_purchases(fixture: &StoreFixture) {
        let bought = fixture.take("ann", &[0, 1]).await.expect("the seats are free");
        fixture.book(&sale("ann", &bought)).await;
        let held = fixture.take("ann", &[2, 3]).await.expect("the seats are free");
        let add = selection(&[4, 5, 6], &[]);
        assert_eq!(fixture.change("ann", held.hold, add.clone(), Selection::default()).await, Err(Refusal::Limit(4)));
        let swapped = fixture.change("ann", held.hold, add, selection(&[2], &[])).await;
        assert_eq!(swapped.map(|held| held.selection), Ok(selection(&[3, 4, 5, 6], &[])));
    }

    async fn removing_seats_never_violates_the_limit(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[0, 1, 2]).await.expect("the seats are free");
        let strict = HoldLimits { per_person: 1, ..TERMS };
        let change = HoldUpdate {
            asked: asked(),
            hold: held.hold,
            owner: "ann".into(),
            add: Selection::default(),
            remove: selection(&[0], &[]),
        };
        let answer = fixture.store.change(fixture.show, strict, &change).await.expect("an answer");
        assert_eq!(answer.map(|held| held.selection), Ok(selection(&[1, 2], &[])));
    }

    async fn foreign_expired_and_paying_holds_cannot_be_changed(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        let add = || selection(&[2], &[]);
        assert_eq!(fixture.change("ben", held.hold, add(), Selection::default()).await, Err(Refusal::Gone));
        fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        assert_eq!(fixture.change("ann", held.hold, add(), Selection::default()).await, Err(Refusal::Paying));
        fixture.end_payment(&sale("ann", &held)).await;
        fixture.release("ann", held.hold).await.expect("it is her hold");
        assert_eq!(fixture.change("ann", held.hold, add(), Selection::default()).await, Err(Refusal::Gone));
    }

    async fn change_refusals_have_the_order_unknown_taken_area_limit(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.take("ben", &[4]).await.expect("the seat is free");
        let try_adding = |add| fixture.change("ann", held.hold, add, Selection::default());
        assert_eq!(try_adding(selection(&[4, 40, 41], &[(9, 1)])).await, Err(Refusal::Outside(40)));
        assert_eq!(try_adding(selection(&[4], &[(9, 1)])).await, Err(Refusal::Taken(vec![(4, Locked)])));
        assert_eq!(try_adding(selection(&[], &[(1, 9), (9, 1)])).await, Err(Refusal::NoArea(9)));
        assert_eq!(try_adding(selection(&[2, 3, 5, 6, 7], &[(1, 9)])).await, Err(Refusal::Full(vec![(1, 3)])));
        assert_eq!(try_adding(selection(&[2, 3, 5, 6, 7, 8], &[])).await, Err(Refusal::Limit(6)));
    }
}
