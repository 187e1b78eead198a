//! One answer per request, whatever happened to the hold meanwhile.

use domain::time::MINUTE_MS;
use seats::seat_locks::{HoldUpdate, Refusal, RequestIdentity, Selection};

use super::fixture::{StoreFixture, TERMS, asked, attempt, sale, selection};

const HOUR_MS: i64 = 60 * MINUTE_MS;
/// Stored answers per owner and day.
const KEPT_OF_OWNER: usize = 100;

on_every_store! {
    async fn retry_gets_the_same_hold_and_changes_nothing(fixture: &StoreFixture) {
        let request = attempt("ann", selection(&[1, 2], &[(0, 1)]));
        let first = fixture.try_one(&request).await;
        let version = fixture.version().await;
        assert!(first.is_ok());
        assert_eq!(fixture.try_one(&request).await, first);
        assert_eq!((fixture.version().await, fixture.holds().await), (version, 1));
    }

    async fn retry_after_a_release_gets_the_same_answer_and_takes_nothing(fixture: &StoreFixture) {
        let request = attempt("ann", selection(&[1], &[]));
        let first = fixture.try_one(&request).await.expect("the seat is free");
        fixture.release("ann", first.hold).await.expect("it is her hold");
        assert_eq!(fixture.try_one(&request).await, Ok(first));
        assert_eq!((fixture.map().await, fixture.holds().await), ("000000000000".into(), 0));
    }

    async fn retry_after_expiry_gets_the_same_answer_and_takes_nothing(fixture: &StoreFixture) {
        let request = attempt("ann", selection(&[1], &[]));
        let first = fixture.try_one(&request).await.expect("the seat is free");
        fixture.pass(TERMS.length_ms).await;
        fixture.take("ben", &[1]).await.expect("the seat is free again");
        let again = fixture.try_one(&request).await.expect("the same again");
        assert_eq!((again.hold, again.fence, again.selection), (first.hold, first.fence, first.selection));
        assert_eq!(fixture.hold_of("ann").await, None);
    }

    async fn retry_after_a_change_or_payment_gets_the_first_answer(fixture: &StoreFixture) {
        let request = attempt("ann", selection(&[1], &[]));
        let first = fixture.try_one(&request).await.expect("the seat is free");
        let changed = fixture.change("ann", first.hold, selection(&[2], &[]), Selection::default()).await.expect("the seat is free");
        assert_eq!(fixture.try_one(&request).await, Ok(first.clone()));
        fixture.begin_payment(&sale("ann", &changed)).await.expect("it is her hold");
        assert_eq!(fixture.try_one(&request).await, Ok(first));
    }

    async fn different_request_with_a_used_id_is_refused(fixture: &StoreFixture) {
        let request = attempt("ann", selection(&[1], &[]));
        fixture.try_one(&request).await.expect("the seat is free");
        let mut other = request.clone();
        other.asked.digest += 1;
        assert_eq!(fixture.try_one(&other).await, Err(Refusal::Reused));
        fixture.release("ann", request.asked.id).await.expect("it is her hold");
        assert_eq!(fixture.try_one(&other).await, Err(Refusal::Reused));
    }

    async fn lookup_of_a_request_returns_its_answer_without_side_effects(fixture: &StoreFixture) {
        let request = attempt("ann", selection(&[1], &[]));
        let before = |asked, hold| fixture.store.stored_answer(fixture.show, asked, hold, "ann");
        assert_eq!(before(request.asked, request.asked.id).await.expect("an answer"), None, "no answer yet");
        let first = fixture.try_one(&request).await.expect("the seat is free");
        let (add, remove) = (selection(&[2], &[]), selection(&[1], &[]));
        let change = HoldUpdate { asked: asked(), hold: first.hold, owner: "ann".into(), add, remove };
        let changed = fixture.try_change(&change).await.expect("the seat is free");
        let now_is = fixture.hold_of("ann").await;
        let version = fixture.version().await;
        assert_eq!(before(request.asked, first.hold).await.expect("an answer"), Some(Ok(first.clone())));
        assert_eq!(before(change.asked, first.hold).await.expect("an answer"), Some(Ok(changed)));
        let other = RequestIdentity { digest: request.asked.digest + 1, ..request.asked };
        assert_eq!(before(other, first.hold).await.expect("an answer"), Some(Err(Refusal::Reused)));
        assert_eq!(before(asked(), first.hold).await.expect("an answer"), None, "no such request");
        assert_eq!((fixture.hold_of("ann").await, fixture.version().await), (now_is, version));
        fixture.release("ann", first.hold).await.expect("it is her hold");
        assert_eq!(before(request.asked, first.hold).await.expect("an answer"), Some(Ok(first)));
        assert_eq!((fixture.map().await, fixture.holds().await), ("000000000000".into(), 0));
    }

    async fn refusal_is_not_stored_and_the_id_can_be_retried(fixture: &StoreFixture) {
        let in_the_way = fixture.take("zoe", &[1]).await.expect("the seat is free");
        let request = attempt("ann", selection(&[1], &[]));
        fixture.try_one(&request).await.expect_err("the seat is taken");
        fixture.release("zoe", in_the_way.hold).await.expect("it is her hold");
        assert!(fixture.try_one(&request).await.is_ok());
    }

    async fn repeated_change_is_replayed_and_applied_once(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        let change = HoldUpdate {
            asked: asked(),
            hold: held.hold,
            owner: "ann".into(),
            add: selection(&[2], &[(0, 2)]),
            remove: Selection::default(),
        };
        let first = fixture.try_change(&change).await;
        assert_eq!(first.as_ref().map(|held| held.selection.clone()), Ok(selection(&[1, 2], &[(0, 2)])));
        assert_eq!(fixture.try_change(&change).await, first);
        assert_eq!(fixture.areas().await, [(0, 3), (1, 3)]);
        fixture.release("ann", held.hold).await.expect("it is her hold");
        assert_eq!(fixture.try_change(&change).await, first);
        assert_eq!(fixture.map().await, "000000000000");
        let other = HoldUpdate { asked: RequestIdentity { digest: 9, ..change.asked }, ..change };
        assert_eq!(fixture.try_change(&other).await, Err(Refusal::Reused));
    }

    async fn repeated_change_to_an_empty_hold_is_replayed_as_empty(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        let change =
            HoldUpdate { asked: asked(), hold: held.hold, owner: "ann".into(), add: selection(&[], &[]), remove: selection(&[1], &[]) };
        let first = fixture.try_change(&change).await;
        assert_eq!(first.as_ref().map(|held| held.selection.is_empty()), Ok(true));
        assert_eq!(fixture.try_change(&change).await, first);
    }

    async fn noop_change_is_not_stored_and_its_id_stays_unused(fixture: &StoreFixture) {
        let held = fixture.take_selection("ann", selection(&[1], &[(0, 1)])).await.expect("the seat is free");
        let version = fixture.version().await;
        let asked = asked();
        let change = |digest, add, remove| HoldUpdate {
            asked: RequestIdentity { digest, ..asked },
            hold: held.hold,
            owner: "ann".into(),
            add,
            remove,
        };
        let nothing = [
            (selection(&[1], &[]), Selection::default()),
            (Selection::default(), selection(&[2], &[])),
            (selection(&[], &[(0, 1)]), selection(&[], &[(0, 1)])),
            (Selection::default(), Selection::default()),
        ];
        for (digest, (add, remove)) in (1..).zip(nothing) {
            assert_eq!(fixture.try_change(&change(digest, add, remove)).await, Ok(held.clone()), "{digest}");
        }
        assert_eq!(fixture.version().await, version, "nothing is announced");
        let before = fixture.store.stored_answer(fixture.show, asked, held.hold, "ann").await;
        assert_eq!(before.expect("an answer"), None);
        let something = change(9, selection(&[2], &[]), Selection::default());
        let changed = fixture.try_change(&something).await;
        assert_eq!(changed.as_ref().map(|held| held.selection.clone()), Ok(selection(&[1, 2], &[(0, 1)])));
        assert_eq!(fixture.try_change(&something).await, changed);
        assert_eq!(fixture.try_change(&change(1, selection(&[1], &[]), Selection::default())).await, Err(Refusal::Reused));
    }

    async fn latest_answers_of_each_owner_are_stored(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        let ben = attempt("ben", selection(&[5], &[]));
        let first_of_ben = fixture.try_one(&ben).await;
        let changes: Vec<HoldUpdate> = (0..KEPT_OF_OWNER + 5)
            .map(|number| {
                let (seat, nothing) = (selection(&[2], &[]), Selection::default());
                let (add, remove) = if number % 2 == 0 { (seat, nothing) } else { (nothing, seat) };
                HoldUpdate { asked: asked(), hold: held.hold, owner: "ann".into(), add, remove }
            })
            .collect();
        for change in &changes {
            fixture.try_change(change).await.expect("the seat is free");
        }
        let mut known = Vec::new();
        for change in &changes {
            let before = fixture.store.stored_answer(fixture.show, change.asked, held.hold, "ann").await;
            known.push(before.expect("an answer").is_some());
        }
        let expected: Vec<bool> = (0..changes.len()).map(|number| number >= 5).collect();
        assert_eq!(known, expected);
        let last = changes.last().expect("there are some");
        let version = fixture.version().await;
        assert!(fixture.try_change(last).await.is_ok());
        assert_eq!(fixture.version().await, version, "a replay changes nothing");
        assert_eq!(fixture.try_one(&ben).await, first_of_ben, "another owner's answers are kept");
    }

    async fn repeated_extension_is_applied_once(fixture: &StoreFixture) {
        let held = fixture.take("ann", &[1]).await.expect("the seat is free");
        let asked = asked();
        let extend = || fixture.store.extend(fixture.show, asked, held.hold, "ann", MINUTE_MS);
        let first = extend().await.expect("an answer");
        assert_eq!(first.as_ref().map(|longer| longer.expires_at.since(held.expires_at)), Ok(MINUTE_MS));
        assert_eq!(extend().await.expect("an answer"), first);
        assert_eq!(fixture.hold_of("ann").await.map(|mine| mine.expires_at), first.clone().map(|held| held.expires_at).ok());
        let other = RequestIdentity { digest: 9, ..asked };
        let reused = fixture.store.extend(fixture.show, other, held.hold, "ann", MINUTE_MS).await.expect("an answer");
        assert_eq!(reused, Err(Refusal::Reused));
        fixture.release("ann", held.hold).await.expect("it is her hold");
        assert_eq!(extend().await.expect("an answer"), first);
    }

    async fn answer_is_stored_for_a_day(fixture: &StoreFixture) {
        let request = attempt("ann", selection(&[1], &[]));
        let first = fixture.try_one(&request).await.expect("the seat is free");
        // In memory the day changes once meanwhile; Redis' own clock does not move.
        fixture.pass(23 * HOUR_MS).await;
        assert_eq!(fixture.try_one(&request).await.map(|held| held.fence), Ok(first.fence));
        assert_eq!(fixture.holds().await, 0);
    }
}
