//! Payments of a hold: start and end.

use domain::time::{MINUTE_MS, Timestamp};
use seats::seat_locks::{Refusal, Renewal, Selection};

use super::fixture::{PAYING_MS, StoreFixture, TERMS, sale, selection};

/// A renewal of a hold for this owner.
fn renewal(owner: &str, until: Timestamp) -> Renewal {
    let hold = platform::ids::derived_id(&["renewed", owner]);
    Renewal { hold, owner: owner.to_owned(), until, ends_payment: true, per_person: None }
}

on_every_store! {
    async fn repeated_payment_start_extends_the_hold_once(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1, 2]).await.expect("the seats are free");
        let end = fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        assert_eq!(end.since(held.expires_at), PAYING_MS);
        assert_eq!(fixture.begin_payment(&sale("ann", &held)).await, Ok(end));
        let mine = fixture.hold_of("ann").await.expect("it is her hold");
        assert!(mine.paying);
        assert_eq!((mine.expires_at, mine.latest), (end, held.latest));
    }

    async fn ended_payment_removes_its_extension_once(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        fixture.end_payment(&sale("ann", &held)).await;
        fixture.end_payment(&sale("ann", &held)).await;
        assert_eq!(fixture.hold_of("ann").await, Some(held.clone()));
        fixture.change("ann", held.hold, selection(&[2], &[]), Selection::default()).await.expect("the hold is open again");
    }

    async fn closed_tab_does_not_shorten_a_paying_hold(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        fixture.shorten_hold("ann", held.hold, 0).await;
        fixture.pass(TERMS.length_ms + PAYING_MS - MINUTE_MS).await;
        assert_eq!(fixture.map().await, "010000000000");
        fixture.pass(MINUTE_MS).await;
        assert_eq!(fixture.map().await, "000000000000");
    }

    async fn payment_start_restores_a_hold_shortened_by_a_closed_tab(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.shorten_hold("ann", held.hold, 30_000).await;
        let end = fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        assert_eq!(end.since(held.expires_at), PAYING_MS);
    }

    async fn paying_hold_cannot_be_released(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        assert_eq!(fixture.release("ann", held.hold).await, Err(Refusal::Paying));
        assert_eq!(fixture.map().await, "010000000000");
    }

    async fn payment_of_other_seats_than_the_holds_is_refused(fixture: &StoreFixture) {
        let held = fixture.take_selection("ann", selection(&[1, 2], &[(0, 1)])).await.expect("the seats are free");
        for other in [selection(&[1], &[(0, 1)]), selection(&[1, 2], &[]), selection(&[1, 2], &[(0, 2)]), selection(&[1, 2, 3], &[(0, 1)])] {
            let mut sale = sale("ann", &held);
            sale.selection = other;
            assert_eq!(fixture.begin_payment(&sale).await, Err(Refusal::Changed));
        }
        assert_eq!(fixture.hold_of("ann").await, Some(held));
    }

    async fn payment_of_a_foreign_outdated_or_expired_hold_is_refused(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        assert_eq!(fixture.begin_payment(&sale("ben", &held)).await, Err(Refusal::Gone));
        let mut older = sale("ann", &held);
        older.fence -= 1;
        assert_eq!(fixture.begin_payment(&older).await, Err(Refusal::Gone));
        fixture.end_payment(&older).await;
        fixture.pass(TERMS.length_ms).await;
        assert_eq!(fixture.begin_payment(&sale("ann", &held)).await, Err(Refusal::Gone));
    }

    async fn declined_payment_renews_the_hold_with_a_new_id_and_fence(fixture: &StoreFixture) {
        let held = fixture.take_selection("ann", selection(&[1, 2], &[(0, 1)])).await.expect("the seats are free");
        let old = sale("ann", &held);
        fixture.begin_payment(&old).await.expect("it is her hold");
        let next = renewal("ann", held.expires_at);
        let renewed = fixture.renew(&old, &next).await.expect("it is her hold");
        assert_eq!((renewed.hold, renewed.paying, &renewed.selection), (next.hold, false, &held.selection));
        assert_eq!(renewed.expires_at, held.expires_at);
        assert!(renewed.fence > held.fence);
        assert_eq!(fixture.map().await, "011000000000");
        assert_eq!(fixture.hold_of("ann").await, Some(renewed.clone()));
        assert_eq!(fixture.renew(&old, &next).await, Ok(renewed.clone()), "a repeat");
        // Later calls of the first booking change nothing.
        fixture.free(&old).await;
        fixture.end_payment(&old).await;
        assert_eq!(fixture.begin_payment(&old).await, Err(Refusal::Gone));
        assert_eq!(fixture.map().await, "011000000000");
        fixture.begin_payment(&sale("ann", &renewed)).await.expect("it is her hold");
        fixture.book(&sale("ann", &renewed)).await;
        fixture.free(&old).await;
        assert_eq!(fixture.map().await, "022000000000");
        assert_eq!(fixture.renew(&old, &next).await, Err(Refusal::Gone), "the hold was sold");
    }

    async fn renewed_hold_expires_at_the_given_instant(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        fixture.renew(&sale("ann", &held), &renewal("ann", held.expires_at)).await.expect("it is her hold");
        fixture.pass(TERMS.length_ms - 1_000).await;
        assert_eq!(fixture.map().await, "010000000000");
        fixture.pass(1_000).await;
        assert_eq!(fixture.map().await, "000000000000");
    }

    async fn hold_is_renewed_for_another_owner_only_while_open_and_within_their_limit(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1, 2]).await.expect("the seats are free");
        let open = |owner: &str, most| Renewal {
            ends_payment: false,
            per_person: Some(most),
            ..renewal(owner, held.expires_at)
        };
        let mut older = sale("ann", &held);
        older.fence -= 1;
        assert_eq!(fixture.renew(&older, &open("ben", 10)).await, Err(Refusal::Gone));
        assert_eq!(fixture.renew(&sale("eve", &held), &open("ben", 10)).await, Err(Refusal::Gone));
        assert_eq!(fixture.renew(&sale("ann", &held), &open("ben", 1)).await, Err(Refusal::Limit(1)));
        let other = fixture.take("ben", &[5]).await.expect("the seat is free");
        assert_eq!(fixture.renew(&sale("ann", &held), &open("ben", 10)).await, Err(Refusal::OtherHold(other.hold)));
        fixture.release("ben", other.hold).await.expect("it is his hold");
        fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        assert_eq!(fixture.renew(&sale("ann", &held), &open("ben", 10)).await, Err(Refusal::Paying));
        fixture.end_payment(&sale("ann", &held)).await;
        let his = fixture.renew(&sale("ann", &held), &open("ben", 10)).await.expect("he may have it");
        assert_eq!((fixture.hold_of("ann").await, fixture.hold_of("ben").await), (None, Some(his)));
        assert_eq!(fixture.map().await, "011000000000");
        fixture.take("ann", &[7]).await.expect("she has no hold any more");
    }

    async fn batched_calls_get_individual_answers(fixture: &StoreFixture) {
        let ann = fixture.take("ann", &[1, 2]).await.expect("the seats are free");
        let ben = fixture.take_selection("ben", selection(&[3], &[(0, 1)])).await.expect("the seats are free");
        let owners = ["ben", "zoe", "ann", "ben"].map(str::to_owned);
        let holds = fixture.store.holds_of(fixture.show, &owners).await.expect("holds are returned");
        assert_eq!(holds, [Some(ben.clone()), None, Some(ann.clone()), Some(ben.clone())]);
        let mut other = sale("ann", &ann);
        other.selection = selection(&[1], &[]);
        let asked = [other, sale("ben", &ben), sale("eve", &ann), sale("ann", &ann), sale("ben", &ben)];
        let begun = fixture.store.begin_payments(fixture.show, &asked, PAYING_MS).await.expect("payments are started");
        let end = |held: &seats::seat_locks::StoredHold| Ok(held.expires_at.plus_ms(PAYING_MS));
        assert_eq!(begun, [Err(Refusal::Changed), end(&ben), Err(Refusal::Gone), end(&ann), end(&ben)]);
        assert!(fixture.hold_of("ann").await.is_some_and(|held| held.paying));
    }

    async fn ending_a_foreign_payment_changes_nothing(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        fixture.end_payment(&sale("ben", &held)).await;
        assert!(fixture.hold_of("ann").await.is_some_and(|held| held.paying));
    }
}
