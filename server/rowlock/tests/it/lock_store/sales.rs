//! Payments of a hold, and sales and refunds of seats: by fence, late, repeated, and after the hold was lost.

use domain::seats::SeatState::{Available, Booked, Locked};
use domain::time::{MINUTE_MS, Timestamp};
use seats::seat_locks::{Refusal, Renewal, Selection};

use super::fixture::{PAYING_MS, StoreFixture, TERMS, sale, selection};

on_every_store! {
    async fn sold_seat_stays_sold_and_its_hold_ends(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1, 2]).await.expect("the seats are free");
        fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        fixture.book(&sale("ann", &held)).await;
        assert_eq!((fixture.map().await, fixture.holds().await), ("022000000000".into(), 0));
        fixture.pass(10 * TERMS.life_ms).await;
        assert_eq!(fixture.map().await, "022000000000");
        assert_eq!(fixture.take("ben", &[2]).await, Err(Refusal::Taken(vec![(2, Booked)])));
        fixture.take("ann", &[5]).await.expect("she may take another hold");
    }

    async fn repeated_sale_counts_once(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1, 2, 3, 4]).await.expect("the seats are free");
        fixture.book(&sale("ann", &held)).await;
        let version = fixture.version().await;
        fixture.book(&sale("ann", &held)).await;
        assert_eq!(fixture.version().await, version);
        fixture.take("ann", &[5, 6]).await.expect("four sold and two held are six");
    }

    async fn late_sale_takes_the_seat_from_a_newer_hold_and_leaves_the_rest(fixture: &StoreFixture) {
        let lost = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.pass(TERMS.length_ms).await;
        let other = fixture.take("ben", &[1, 2]).await.expect("the seats are free");
        fixture.begin_payment(&sale("ben", &other)).await.expect("it is his hold");
        fixture.book(&sale("ann", &lost)).await;
        assert_eq!(fixture.map().await, "021000000000");
        let rest = fixture.hold_of("ben").await.expect("he keeps the rest");
        assert_eq!((rest.selection, rest.paying), (selection(&[2], &[]), false));
        assert_eq!(fixture.begin_payment(&sale("ben", &other)).await, Err(Refusal::Changed));
    }

    async fn late_sale_of_all_its_seats_ends_a_newer_hold(fixture: &StoreFixture) {
        let lost = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.release("ann", lost.hold).await.expect("it is her hold");
        fixture.take("ben", &[1]).await.expect("the seat is free");
        fixture.book(&sale("ann", &lost)).await;
        assert_eq!((fixture.hold_of("ben").await, fixture.holds().await), (None, 0));
        fixture.take("ben", &[2]).await.expect("he may take another hold");
    }

    async fn batched_sales_equal_consecutive_sales(fixture: &StoreFixture) {
        let ann = fixture.take_selection("ann", selection(&[1, 2], &[(0, 2)])).await.expect("the seats are free");
        let ben = fixture.take("ben", &[3, 4]).await.expect("the seats are free");
        let lost = fixture.take("eve", &[5]).await.expect("the seat is free");
        fixture.release("eve", lost.hold).await.expect("it is her hold");
        let cal = fixture.take("cal", &[5, 6]).await.expect("the seats are free");
        let mut part = sale("ben", &ben);
        part.selection = selection(&[3], &[]);
        let sales = [sale("ann", &ann), part, sale("eve", &lost), sale("ann", &ann)];
        fixture.store.book_all(fixture.show, &sales).await.expect("sales are recorded");
        assert_eq!((fixture.map().await, fixture.areas().await), ("022202100000".into(), vec![(0, 3), (1, 3)]));
        assert_eq!(fixture.hold_of("cal").await.map(|rest| (rest.hold, rest.selection)), Some((cal.hold, selection(&[6], &[]))));
        assert_eq!(fixture.take("ann", &[7, 8, 9]).await, Err(Refusal::Limit(2)), "each sale counts once");
    }

    async fn batched_sales_of_whole_holds_count_once_across_calls(fixture: &StoreFixture) {
        let ann = fixture.take_selection("ann", selection(&[0, 2, 3], &[(0, 1)])).await.expect("the seats are free");
        let ben = fixture.take("ben", &[4, 5, 6]).await.expect("the seats are free");
        fixture.store.book_all(fixture.show, &[sale("ann", &ann), sale("ben", &ben)]).await.expect("sales are recorded");
        assert_eq!((fixture.map().await, fixture.areas().await), ("202222200000".into(), vec![(0, 4), (1, 3)]));
        assert_eq!(fixture.holds().await, 0);
        let more = fixture.take("ben", &[7, 8]).await.expect("three and two are five");
        let cal = fixture.take("cal", &[9]).await.expect("the seat is free");
        let sales = [sale("ben", &more), sale("ann", &ann), sale("cal", &cal)];
        fixture.store.book_all(fixture.show, &sales).await.expect("sales are recorded");
        assert_eq!((fixture.map().await, fixture.areas().await), ("202222222200".into(), vec![(0, 4), (1, 3)]));
        assert_eq!(fixture.holds().await, 0);
        assert_eq!(fixture.take("ann", &[1, 10, 11]).await, Err(Refusal::Limit(2)));
        assert_eq!(fixture.take("ben", &[1, 10]).await, Err(Refusal::Limit(1)));
    }

    async fn sale_with_the_later_fence_wins(fixture: &StoreFixture) {
        let earlier = fixture.take("ann", &[1, 3]).await.expect("the seats are free");
        fixture.release("ann", earlier.hold).await.expect("it is her hold");
        let later = fixture.take("ben", &[1]).await.expect("the seat is free");
        fixture.book(&sale("ben", &later)).await;
        fixture.book(&sale("ann", &earlier)).await;
        assert_eq!(fixture.map().await, "020200000000");
        fixture.free(&sale("ann", &earlier)).await;
        assert_eq!(fixture.map().await, "020000000000", "the seat is Ben's");
        fixture.free(&sale("ben", &later)).await;
        assert_eq!(fixture.map().await, "000000000000");
    }

    async fn unsold_part_of_the_hold_is_freed(fixture: &StoreFixture) {
        let held = fixture.take_selection("ann", selection(&[1, 2], &[(0, 3), (1, 1)])).await.expect("the seats are free");
        let mut part = sale("ann", &held);
        part.selection = selection(&[1], &[(0, 2)]);
        fixture.book(&part).await;
        assert_eq!((fixture.map().await, fixture.areas().await), ("020000000000".into(), vec![(0, 3), (1, 3)]));
    }

    async fn sold_seat_removed_from_its_hold_is_taken_from_a_newer_hold(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1, 2]).await.expect("the seats are free");
        fixture.change("ann", held.hold, Selection::default(), selection(&[2], &[])).await.expect("it is her hold");
        fixture.take("ben", &[2, 3]).await.expect("the seats are free");
        fixture.book(&sale("ann", &held)).await;
        assert_eq!(fixture.hold_of("ben").await.map(|held| held.selection), Some(selection(&[3], &[])));
        fixture.pass(TERMS.length_ms).await;
        assert_eq!(fixture.map().await, "022000000000", "the end of Ben's hold frees only his seats");
    }

    async fn sale_of_a_blocked_seat_is_recorded(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.release("ann", held.hold).await.expect("it is her hold");
        fixture.block(&[1], true).await.expect("the seat is free");
        fixture.book(&sale("ann", &held)).await;
        assert_eq!(fixture.map().await, "020000000000");
    }

    async fn sale_of_an_unknown_seat_is_ignored(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        let mut outside = sale("ann", &held);
        outside.selection = selection(&[1, 12, 70], &[]);
        fixture.book(&outside).await;
        fixture.free(&outside).await;
        assert_eq!(fixture.map().await, "000000000000");
    }

    async fn freeing_an_unpaid_booking_ends_its_hold(fixture: &StoreFixture) {
        let held = fixture.take_selection("ann", selection(&[1, 2], &[(0, 1)])).await.expect("the seats are free");
        fixture.begin_payment(&sale("ann", &held)).await.expect("it is her hold");
        fixture.free(&sale("ann", &held)).await;
        assert_eq!((fixture.map().await, fixture.areas().await), ("000000000000".into(), vec![(0, 5), (1, 3)]));
        assert_eq!(fixture.holds().await, 0);
    }

    async fn repeated_free_does_not_free_a_newer_holders_seat(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        fixture.book(&sale("ann", &held)).await;
        fixture.free(&sale("ann", &held)).await;
        let other = fixture.take("ben", &[1]).await.expect("the seat is free again");
        fixture.free(&sale("ann", &held)).await;
        assert_eq!(fixture.map().await, "010000000000");
        fixture.book(&sale("ben", &other)).await;
        fixture.free(&sale("ann", &held)).await;
        assert_eq!(fixture.map().await, "020000000000");
    }

    async fn free_with_another_fence_changes_nothing(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        let mut older = sale("ann", &held);
        older.fence -= 1;
        fixture.free(&older).await;
        assert_eq!(fixture.map().await, "010000000000");
        fixture.book(&sale("ann", &held)).await;
        fixture.free(&older).await;
        assert_eq!(fixture.map().await, "020000000000");
    }

    async fn part_of_a_booking_is_freed(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1, 2, 3]).await.expect("the seats are free");
        fixture.book(&sale("ann", &held)).await;
        let mut part = sale("ann", &held);
        part.selection = selection(&[2], &[]);
        fixture.free(&part).await;
        assert_eq!(fixture.map().await, "020200000000");
        assert_eq!(fixture.take("ann", &[4, 5, 6, 7, 8]).await, Err(Refusal::Limit(4)));
    }

    async fn refusals_name_the_current_seat_states(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1, 2]).await.expect("the seats are free");
        fixture.take("ben", &[3]).await.expect("the seat is free");
        fixture.book(&sale("ann", &held)).await;
        let snapshot = fixture.store.snapshot(fixture.show).await.expect("a snapshot");
        assert_eq!(snapshot.map[..4], [Available as u8, Booked as u8, Booked as u8, Locked as u8]);
    }
}

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
