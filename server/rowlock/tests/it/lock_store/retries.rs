//! One answer per request, whatever happened to the hold meanwhile.

use domain::time::MINUTE_MS;
use seats::seat_locks::{Asked, Change, Lot, Refusal};

use super::house::{House, TERMS, asked, attempt, lot, sale};

const HOUR_MS: i64 = 60 * MINUTE_MS;
/// Answers kept of each owner and day.
const KEPT_OF_OWNER: usize = 100;

on_every_store! {
    async fn a_retry_gets_the_same_hold_and_changes_nothing(house: &House) {
        let wish = attempt("ann", lot(&[1, 2], &[(0, 1)]));
        let first = house.try_one(&wish).await;
        let version = house.version().await;
        assert!(first.is_ok());
        assert_eq!(house.try_one(&wish).await, first);
        assert_eq!((house.version().await, house.holds().await), (version, 1));
    }

    async fn a_retry_gets_the_same_hold_after_it_was_let_go_and_takes_nothing_back(house: &House) {
        let wish = attempt("ann", lot(&[1], &[]));
        let first = house.try_one(&wish).await.expect("it is free");
        house.release("ann", first.hold).await.expect("it is hers");
        assert_eq!(house.try_one(&wish).await, Ok(first));
        assert_eq!((house.map().await, house.holds().await), ("000000000000".into(), 0));
    }

    async fn a_retry_gets_the_same_hold_after_it_ended_and_somebody_else_has_the_seat(house: &House) {
        let wish = attempt("ann", lot(&[1], &[]));
        let first = house.try_one(&wish).await.expect("it is free");
        house.pass(TERMS.length_ms).await;
        house.take("ben", &[1]).await.expect("it is free again");
        let again = house.try_one(&wish).await.expect("the same again");
        assert_eq!((again.hold, again.fence, again.lot), (first.hold, first.fence, first.lot));
        assert_eq!(house.mine("ann").await, None);
    }

    async fn a_retry_gets_the_same_hold_after_it_was_changed_or_paid_for(house: &House) {
        let wish = attempt("ann", lot(&[1], &[]));
        let first = house.try_one(&wish).await.expect("it is free");
        let changed = house.change("ann", first.hold, lot(&[2], &[]), Lot::default()).await.expect("it is free");
        assert_eq!(house.try_one(&wish).await, Ok(first.clone()));
        house.begin_payment(&sale("ann", &changed)).await.expect("it is hers");
        assert_eq!(house.try_one(&wish).await, Ok(first));
    }

    async fn another_wish_under_the_same_id_is_refused(house: &House) {
        let wish = attempt("ann", lot(&[1], &[]));
        house.try_one(&wish).await.expect("it is free");
        let mut other = wish.clone();
        other.asked.digest += 1;
        assert_eq!(house.try_one(&other).await, Err(Refusal::Reused));
        house.release("ann", wish.asked.id).await.expect("it is hers");
        assert_eq!(house.try_one(&other).await, Err(Refusal::Reused));
    }

    async fn what_was_granted_is_told_whoever_asks_for_that_alone_and_nothing_else_happens(house: &House) {
        let wish = attempt("ann", lot(&[1], &[]));
        let before = |asked, hold| house.store.granted_before(house.show, asked, hold, "ann");
        assert_eq!(before(wish.asked, wish.asked.id).await.expect("an answer"), None, "not yet");
        let first = house.try_one(&wish).await.expect("it is free");
        let (add, remove) = (lot(&[2], &[]), lot(&[1], &[]));
        let change = Change { asked: asked(), hold: first.hold, owner: "ann".into(), add, remove };
        let changed = house.try_change(&change).await.expect("it is free");
        let now_is = house.mine("ann").await;
        let version = house.version().await;
        assert_eq!(before(wish.asked, first.hold).await.expect("an answer"), Some(Ok(first.clone())));
        assert_eq!(before(change.asked, first.hold).await.expect("an answer"), Some(Ok(changed)));
        let other = Asked { digest: wish.asked.digest + 1, ..wish.asked };
        assert_eq!(before(other, first.hold).await.expect("an answer"), Some(Err(Refusal::Reused)));
        assert_eq!(before(asked(), first.hold).await.expect("an answer"), None, "she asked for nothing");
        assert_eq!((house.mine("ann").await, house.version().await), (now_is, version));
        house.release("ann", first.hold).await.expect("it is hers");
        assert_eq!(before(wish.asked, first.hold).await.expect("an answer"), Some(Ok(first)));
        assert_eq!((house.map().await, house.holds().await), ("000000000000".into(), 0));
    }

    async fn a_refusal_is_not_kept_and_the_same_id_may_try_again(house: &House) {
        let in_the_way = house.take("zoe", &[1]).await.expect("it is free");
        let wish = attempt("ann", lot(&[1], &[]));
        house.try_one(&wish).await.expect_err("it is taken");
        house.release("zoe", in_the_way.hold).await.expect("it is hers");
        assert!(house.try_one(&wish).await.is_ok());
    }

    async fn a_change_asked_again_gets_the_same_answer_and_happens_once(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        let change = Change {
            asked: asked(),
            hold: held.hold,
            owner: "ann".into(),
            add: lot(&[2], &[(0, 2)]),
            remove: Lot::default(),
        };
        let first = house.try_change(&change).await;
        assert_eq!(first.as_ref().map(|held| held.lot.clone()), Ok(lot(&[1, 2], &[(0, 2)])));
        assert_eq!(house.try_change(&change).await, first);
        assert_eq!(house.areas().await, [(0, 3), (1, 3)]);
        house.release("ann", held.hold).await.expect("it is hers");
        assert_eq!(house.try_change(&change).await, first);
        assert_eq!(house.map().await, "000000000000");
        let other = Change { asked: Asked { digest: 9, ..change.asked }, ..change };
        assert_eq!(house.try_change(&other).await, Err(Refusal::Reused));
    }

    async fn a_hold_changed_into_nothing_answers_a_retry_with_nothing_left(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        let change =
            Change { asked: asked(), hold: held.hold, owner: "ann".into(), add: lot(&[], &[]), remove: lot(&[1], &[]) };
        let first = house.try_change(&change).await;
        assert_eq!(first.as_ref().map(|held| held.lot.is_empty()), Ok(true));
        assert_eq!(house.try_change(&change).await, first);
    }

    async fn a_change_that_changes_nothing_is_not_remembered_and_its_id_is_free(house: &House) {
        let held = house.take_lot("ann", lot(&[1], &[(0, 1)])).await.expect("it is free");
        let version = house.version().await;
        let asked = asked();
        let change = |digest, add, remove| Change {
            asked: Asked { digest, ..asked },
            hold: held.hold,
            owner: "ann".into(),
            add,
            remove,
        };
        let nothing = [
            (lot(&[1], &[]), Lot::default()),
            (Lot::default(), lot(&[2], &[])),
            (lot(&[], &[(0, 1)]), lot(&[], &[(0, 1)])),
            (Lot::default(), Lot::default()),
        ];
        for (digest, (add, remove)) in (1..).zip(nothing) {
            assert_eq!(house.try_change(&change(digest, add, remove)).await, Ok(held.clone()), "{digest}");
        }
        assert_eq!(house.version().await, version, "nothing is announced");
        let before = house.store.granted_before(house.show, asked, held.hold, "ann").await;
        assert_eq!(before.expect("an answer"), None);
        let something = change(9, lot(&[2], &[]), Lot::default());
        let changed = house.try_change(&something).await;
        assert_eq!(changed.as_ref().map(|held| held.lot.clone()), Ok(lot(&[1, 2], &[(0, 1)])));
        assert_eq!(house.try_change(&something).await, changed);
        assert_eq!(house.try_change(&change(1, lot(&[1], &[]), Lot::default())).await, Err(Refusal::Reused));
    }

    async fn of_each_owner_the_latest_answers_are_kept(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        let ben = attempt("ben", lot(&[5], &[]));
        let first_of_ben = house.try_one(&ben).await;
        let changes: Vec<Change> = (0..KEPT_OF_OWNER + 5)
            .map(|number| {
                let (seat, nothing) = (lot(&[2], &[]), Lot::default());
                let (add, remove) = if number % 2 == 0 { (seat, nothing) } else { (nothing, seat) };
                Change { asked: asked(), hold: held.hold, owner: "ann".into(), add, remove }
            })
            .collect();
        for change in &changes {
            house.try_change(change).await.expect("it is free");
        }
        let mut known = Vec::new();
        for change in &changes {
            let before = house.store.granted_before(house.show, change.asked, held.hold, "ann").await;
            known.push(before.expect("an answer").is_some());
        }
        let expected: Vec<bool> = (0..changes.len()).map(|number| number >= 5).collect();
        assert_eq!(known, expected);
        let last = changes.last().expect("there are some");
        let version = house.version().await;
        assert!(house.try_change(last).await.is_ok());
        assert_eq!(house.version().await, version, "a replay changes nothing");
        assert_eq!(house.try_one(&ben).await, first_of_ben, "another owner loses none");
    }

    async fn an_extension_asked_again_happens_once(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        let asked = asked();
        let extend = || house.store.extend(house.show, asked, held.hold, "ann", MINUTE_MS);
        let first = extend().await.expect("an answer");
        assert_eq!(first.as_ref().map(|longer| longer.expires_at.since(held.expires_at)), Ok(MINUTE_MS));
        assert_eq!(extend().await.expect("an answer"), first);
        assert_eq!(house.mine("ann").await.map(|mine| mine.expires_at), first.clone().map(|held| held.expires_at).ok());
        let other = Asked { digest: 9, ..asked };
        let reused = house.store.extend(house.show, other, held.hold, "ann", MINUTE_MS).await.expect("an answer");
        assert_eq!(reused, Err(Refusal::Reused));
        house.release("ann", held.hold).await.expect("it is hers");
        assert_eq!(extend().await.expect("an answer"), first);
    }

    async fn an_answer_is_kept_for_a_day(house: &House) {
        let wish = attempt("ann", lot(&[1], &[]));
        let first = house.try_one(&wish).await.expect("it is free");
        // In memory the day before is over once on the way; Redis' own clock stands still here.
        house.pass(23 * HOUR_MS).await;
        assert_eq!(house.try_one(&wish).await.map(|held| held.fence), Ok(first.fence));
        assert_eq!(house.holds().await, 0);
    }
}
