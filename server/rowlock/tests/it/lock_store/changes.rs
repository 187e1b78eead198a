//! Adding and releasing seats of a hold in one step.

use domain::seats::SeatState::{Blocked, Locked};
use domain::time::MINUTE_MS;
use seats::seat_locks::{HoldLimits, HoldUpdate, Refusal, Selection};

use super::fixture::{StoreFixture, TERMS, asked, sale, selection};

on_every_store! {
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
