//! Areas without seats: this many places, no more, and never fewer than zero.

use seats::seat_locks::Refusal;

use super::fixture::{StoreFixture, TERMS, attempt, sale, selection};

on_every_store! {
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
}
