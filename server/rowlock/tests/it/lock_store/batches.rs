//! Several attempts in one call: each sees what those before it did.

use domain::seats::SeatState::Locked;
use seats::seat_locks::{Asked, Refusal};

use super::house::{House, attempt, lot};

on_every_store! {
    async fn the_first_of_a_call_gets_the_seat_and_the_later_ones_are_told(house: &House) {
        let wishes = [
            attempt("ann", lot(&[1, 2], &[])),
            attempt("ben", lot(&[2, 3], &[])),
            attempt("cat", lot(&[3], &[])),
            attempt("dan", lot(&[1, 3, 4], &[])),
        ];
        let answers = house.try_all(&wishes).await;
        assert_eq!(answers[0].as_ref().map(|held| held.lot.clone()), Ok(lot(&[1, 2], &[])));
        assert_eq!(answers[1], Err(Refusal::Taken(vec![(2, Locked)])));
        assert!(answers[2].is_ok(), "what was refused took nothing");
        assert_eq!(answers[3], Err(Refusal::Taken(vec![(1, Locked), (3, Locked)])));
        assert_eq!(house.map().await, "011100000000");
    }

    async fn fences_of_a_call_follow_each_other_without_those_refused(house: &House) {
        let wishes =
            [attempt("ann", lot(&[1], &[])), attempt("ben", lot(&[1], &[])), attempt("cat", lot(&[2], &[]))];
        let answers = house.try_all(&wishes).await;
        let fences: Vec<_> = answers.iter().flatten().map(|held| held.fence).collect();
        assert_eq!(fences[1], fences[0] + 1);
        assert_eq!(fences.len(), 2);
    }

    async fn all_of_a_call_is_one_step_of_the_version(house: &House) {
        let before = house.version().await;
        house.try_all(&[attempt("ann", lot(&[1], &[])), attempt("ben", lot(&[2], &[])), attempt("cat", lot(&[3], &[]))])
            .await;
        assert_eq!(house.version().await, before + 1);
    }

    async fn a_person_who_tries_twice_in_a_call_has_one_hold(house: &House) {
        let wishes = [attempt("ann", lot(&[1], &[])), attempt("ann", lot(&[2], &[])), attempt("ben", lot(&[2], &[]))];
        let answers = house.try_all(&wishes).await;
        assert_eq!(answers[1], Err(Refusal::OtherHold(wishes[0].asked.id)));
        assert!(answers[0].is_ok() && answers[2].is_ok());
    }

    async fn a_person_refused_first_may_get_the_next_wish_of_the_call(house: &House) {
        house.take("zoe", &[1]).await.expect("it is free");
        let answers = house.try_all(&[attempt("ann", lot(&[1], &[])), attempt("ann", lot(&[2], &[]))]).await;
        assert_eq!(answers[0], Err(Refusal::Taken(vec![(1, Locked)])));
        assert!(answers[1].is_ok());
    }

    async fn the_same_request_twice_in_a_call_gets_one_hold_and_one_answer(house: &House) {
        let wish = attempt("ann", lot(&[1], &[]));
        let mut other = attempt("ann", lot(&[2], &[]));
        other.asked = Asked { id: wish.asked.id, digest: wish.asked.digest + 1 };
        let answers = house.try_all(&[wish.clone(), wish.clone(), other]).await;
        assert!(answers[0].is_ok());
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[2], Err(Refusal::Reused));
        assert_eq!((house.holds().await, house.map().await), (1, "010000000000".into()));
    }

    async fn a_refused_request_twice_in_a_call_is_refused_twice(house: &House) {
        house.take("zoe", &[1]).await.expect("it is free");
        let wish = attempt("ann", lot(&[1], &[]));
        let answers = house.try_all(&[wish.clone(), wish]).await;
        assert_eq!(answers, vec![Err(Refusal::Taken(vec![(1, Locked)])); 2]);
    }

    async fn places_of_an_area_go_to_the_first_of_a_call(house: &House) {
        let wishes = [
            attempt("ann", lot(&[], &[(1, 2)])),
            attempt("ben", lot(&[], &[(1, 2)])),
            attempt("cat", lot(&[], &[(1, 1)])),
        ];
        let answers = house.try_all(&wishes).await;
        assert_eq!(answers[1], Err(Refusal::Full(vec![(1, 1)])));
        assert!(answers[0].is_ok() && answers[2].is_ok());
        assert_eq!(house.areas().await, [(0, 5), (1, 0)]);
    }

    async fn a_retry_among_new_wishes_gets_its_earlier_answer(house: &House) {
        let wish = attempt("ann", lot(&[1], &[]));
        let earlier = house.try_one(&wish).await;
        let answers = house.try_all(&[attempt("ben", lot(&[2], &[])), wish, attempt("cat", lot(&[1], &[]))]).await;
        assert!(answers[0].is_ok());
        assert_eq!(answers[1], earlier);
        assert_eq!(answers[2], Err(Refusal::Taken(vec![(1, Locked)])));
    }
}
