//! A payment for a hold begins, and is given up.

use domain::time::{MINUTE_MS, Timestamp};
use seats::seat_locks::{Lot, Refusal, Renewal};

use super::house::{House, PAYING_MS, TERMS, lot, sale};

/// The renewal of a hold for this owner.
fn renewal(owner: &str, until: Timestamp) -> Renewal {
    let hold = platform::ids::derived_id(&["renewed", owner]);
    Renewal { hold, owner: owner.to_owned(), until, ends_payment: true, per_person: None }
}

on_every_store! {
    async fn a_payment_makes_the_hold_last_longer_once_however_often_it_begins(house: &House) {
        let held = house.take("ann", &[1, 2]).await.expect("they are free");
        let end = house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        assert_eq!(end.since(held.expires_at), PAYING_MS);
        assert_eq!(house.begin_payment(&sale("ann", &held)).await, Ok(end));
        let mine = house.mine("ann").await.expect("it is hers");
        assert!(mine.paying);
        assert_eq!((mine.expires_at, mine.latest), (end, held.latest));
    }

    async fn a_payment_given_up_takes_its_extension_back_once(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        house.end_payment(&sale("ann", &held)).await;
        house.end_payment(&sale("ann", &held)).await;
        assert_eq!(house.mine("ann").await, Some(held.clone()));
        house.change("ann", held.hold, lot(&[2], &[]), Lot::default()).await.expect("it is open again");
    }

    async fn a_closed_tab_does_not_shorten_a_hold_that_is_being_paid_for(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        house.leave("ann", held.hold, 0).await;
        house.pass(TERMS.length_ms + PAYING_MS - MINUTE_MS).await;
        assert_eq!(house.map().await, "010000000000");
        house.pass(MINUTE_MS).await;
        assert_eq!(house.map().await, "000000000000");
    }

    async fn a_tab_closed_before_the_payment_began_is_made_good_by_it(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.leave("ann", held.hold, 30_000).await;
        let end = house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        assert_eq!(end.since(held.expires_at), PAYING_MS);
    }

    async fn a_hold_that_is_being_paid_for_is_not_let_go(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        assert_eq!(house.release("ann", held.hold).await, Err(Refusal::Paying));
        assert_eq!(house.map().await, "010000000000");
    }

    async fn nobody_pays_for_other_seats_than_those_of_the_hold(house: &House) {
        let held = house.take_lot("ann", lot(&[1, 2], &[(0, 1)])).await.expect("they are free");
        for other in [lot(&[1], &[(0, 1)]), lot(&[1, 2], &[]), lot(&[1, 2], &[(0, 2)]), lot(&[1, 2, 3], &[(0, 1)])] {
            let mut sale = sale("ann", &held);
            sale.lot = other;
            assert_eq!(house.begin_payment(&sale).await, Err(Refusal::Changed));
        }
        assert_eq!(house.mine("ann").await, Some(held));
    }

    async fn nobody_pays_for_anothers_hold_or_one_of_another_fence_or_one_that_is_over(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        assert_eq!(house.begin_payment(&sale("ben", &held)).await, Err(Refusal::Gone));
        let mut older = sale("ann", &held);
        older.fence -= 1;
        assert_eq!(house.begin_payment(&older).await, Err(Refusal::Gone));
        house.end_payment(&older).await;
        house.pass(TERMS.length_ms).await;
        assert_eq!(house.begin_payment(&sale("ann", &held)).await, Err(Refusal::Gone));
    }

    async fn a_declined_payment_leaves_the_hold_under_another_id_and_fence_its_seats_never_free(house: &House) {
        let held = house.take_lot("ann", lot(&[1, 2], &[(0, 1)])).await.expect("they are free");
        let old = sale("ann", &held);
        house.begin_payment(&old).await.expect("it is hers");
        let next = renewal("ann", held.expires_at);
        let renewed = house.renew(&old, &next).await.expect("it is hers");
        assert_eq!((renewed.hold, renewed.paying, &renewed.lot), (next.hold, false, &held.lot));
        assert_eq!(renewed.expires_at, held.expires_at);
        assert!(renewed.fence > held.fence);
        assert_eq!(house.map().await, "011000000000");
        assert_eq!(house.mine("ann").await, Some(renewed.clone()));
        assert_eq!(house.renew(&old, &next).await, Ok(renewed.clone()), "a repeat");
        // Whatever the first booking still does, it does to nothing.
        house.free(&old).await;
        house.end_payment(&old).await;
        assert_eq!(house.begin_payment(&old).await, Err(Refusal::Gone));
        assert_eq!(house.map().await, "011000000000");
        house.begin_payment(&sale("ann", &renewed)).await.expect("it is hers");
        house.book(&sale("ann", &renewed)).await;
        house.free(&old).await;
        assert_eq!(house.map().await, "022000000000");
        assert_eq!(house.renew(&old, &next).await, Err(Refusal::Gone), "it was sold");
    }

    async fn a_renewed_hold_expires_at_its_given_instant(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        house.renew(&sale("ann", &held), &renewal("ann", held.expires_at)).await.expect("it is hers");
        house.pass(TERMS.length_ms - 1_000).await;
        assert_eq!(house.map().await, "010000000000");
        house.pass(1_000).await;
        assert_eq!(house.map().await, "000000000000");
    }

    async fn a_hold_is_renewed_for_another_owner_only_while_open_and_within_their_limit(house: &House) {
        let held = house.take("ann", &[1, 2]).await.expect("they are free");
        let open = |owner: &str, most| Renewal {
            ends_payment: false,
            per_person: Some(most),
            ..renewal(owner, held.expires_at)
        };
        let mut older = sale("ann", &held);
        older.fence -= 1;
        assert_eq!(house.renew(&older, &open("ben", 10)).await, Err(Refusal::Gone));
        assert_eq!(house.renew(&sale("eve", &held), &open("ben", 10)).await, Err(Refusal::Gone));
        assert_eq!(house.renew(&sale("ann", &held), &open("ben", 1)).await, Err(Refusal::Limit(1)));
        let other = house.take("ben", &[5]).await.expect("it is free");
        assert_eq!(house.renew(&sale("ann", &held), &open("ben", 10)).await, Err(Refusal::OtherHold(other.hold)));
        house.release("ben", other.hold).await.expect("it is his");
        house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        assert_eq!(house.renew(&sale("ann", &held), &open("ben", 10)).await, Err(Refusal::Paying));
        house.end_payment(&sale("ann", &held)).await;
        let his = house.renew(&sale("ann", &held), &open("ben", 10)).await.expect("he may have it");
        assert_eq!((house.mine("ann").await, house.mine("ben").await), (None, Some(his)));
        assert_eq!(house.map().await, "011000000000");
        house.take("ann", &[7]).await.expect("she has none any more");
    }

    async fn what_several_ask_in_one_call_is_answered_each_by_its_own(house: &House) {
        let ann = house.take("ann", &[1, 2]).await.expect("they are free");
        let ben = house.take_lot("ben", lot(&[3], &[(0, 1)])).await.expect("they are free");
        let owners = ["ben", "nobody", "ann", "ben"].map(str::to_owned);
        let holds = house.store.mine_all(house.show, &owners).await.expect("they are told");
        assert_eq!(holds, [Some(ben.clone()), None, Some(ann.clone()), Some(ben.clone())]);
        let mut other = sale("ann", &ann);
        other.lot = lot(&[1], &[]);
        let asked = [other, sale("ben", &ben), sale("eve", &ann), sale("ann", &ann), sale("ben", &ben)];
        let begun = house.store.begin_payments(house.show, &asked, PAYING_MS).await.expect("they are told");
        let end = |held: &seats::seat_locks::Held| Ok(held.expires_at.plus_ms(PAYING_MS));
        assert_eq!(begun, [Err(Refusal::Changed), end(&ben), Err(Refusal::Gone), end(&ann), end(&ben)]);
        assert!(house.mine("ann").await.is_some_and(|held| held.paying));
    }

    async fn who_gives_up_anothers_payment_changes_nothing(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        house.end_payment(&sale("ben", &held)).await;
        assert!(house.mine("ann").await.is_some_and(|held| held.paying));
    }
}
