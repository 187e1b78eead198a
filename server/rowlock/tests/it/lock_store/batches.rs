//! Several attempts in one call: each sees the results of those before it.

use domain::seats::SeatState::Locked;
use seats::seat_locks::{Refusal, RequestIdentity};

use super::fixture::{StoreFixture, attempt, selection};

on_every_store! {
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
}
