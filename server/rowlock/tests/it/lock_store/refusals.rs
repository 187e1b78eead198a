//! Refusals that a store reads before it tries: those that the attempts would get, and only for their seats.

use domain::seats::SeatIndex;
use domain::seats::SeatState::{self, Blocked, Booked, Locked};
use seats::seat_locks::{LockAttempt, Refusal};

use super::fixture::{StoreFixture, TERMS, attempt, sale, selection};

async fn read(fixture: &StoreFixture, attempts: &[LockAttempt]) -> Vec<Option<Refusal>> {
    fixture.store.read_refusals(fixture.show, TERMS, attempts).await.expect("answers")
}

/// Attempts at seats of which some are held, sold and blocked, each with its refusal for them.
async fn contested(fixture: &StoreFixture) -> (Vec<LockAttempt>, Vec<Option<Refusal>>) {
    let of_ann = attempt("ann", selection(&[3], &[]));
    fixture.try_one(&of_ann).await.expect("the seat is free");
    let sold = fixture.take("ben", &[4]).await.expect("the seat is free");
    fixture.book(&sale("ben", &sold)).await;
    fixture.block(&[6], true).await.expect("the seat is free");
    let of_dan = attempt("dan", selection(&[8], &[]));
    let ended = fixture.try_one(&of_dan).await.expect("the seat is free");
    fixture.release("dan", ended.hold).await.expect("it is his hold");
    fixture.take("eve", &[8]).await.expect("the seat is free again");
    let mut of_house = attempt("fay", selection(&[6], &[]));
    of_house.takes_kept = true;
    let taken = |seats: &[(SeatIndex, SeatState)]| Some(Refusal::Taken(seats.to_vec()));
    let attempts = [
        (attempt("cat", selection(&[2, 3, 4, 6], &[])), taken(&[(3, Locked), (4, Booked), (6, Blocked)])),
        (attempt("gus", selection(&[11], &[(0, 5)])), None),
        // More places than there are: the seat is named first.
        (attempt("hal", selection(&[3], &[(1, 4)])), taken(&[(3, Locked)])),
        // A house seat is free for it.
        (of_house, None),
        // Retries of granted requests, the second after its hold has ended.
        (of_ann, None),
        (of_dan, None),
        // Another hold, and the limit.
        (attempt("ann", selection(&[3], &[])), None),
        (attempt("ben", selection(&[0, 1, 2, 3, 5, 7], &[])), None),
    ];
    attempts.into_iter().unzip()
}

on_every_store! {
    async fn refusal_that_is_read_is_the_one_that_the_attempt_gets(fixture: &StoreFixture) {
        let (attempts, refusals) = contested(fixture).await;
        let read = read(fixture, &attempts).await;
        let answers = fixture.try_all(&attempts).await;
        for (place, answer) in answers.iter().enumerate() {
            let refusal = answer.as_ref().err();
            assert!(refusals[place].is_none() || refusals[place].as_ref() == refusal, "attempt {place}: {answer:?}");
            assert!(read[place].is_none() || read[place].as_ref() == refusal, "attempt {place}: {answer:?}");
        }
        assert!(answers[4].is_ok() && answers[5].is_ok(), "retries get their holds: {answers:?}");
    }
}

#[tokio::test]
async fn redis_refuses_taken_seats_by_a_read_and_leaves_all_else_to_the_attempt() {
    let fixture = StoreFixture::in_redis().await;
    let (attempts, refusals) = contested(&fixture).await;
    let version = fixture.version().await;
    assert_eq!(read(&fixture, &attempts).await, refusals);
    assert_eq!(fixture.version().await, version);
    fixture.pass(TERMS.length_ms).await;
    assert_eq!(read(&fixture, &attempts).await, vec![None; attempts.len()], "due holds are freed first");
    fixture.lose().await;
    assert_eq!(read(&fixture, &attempts).await, vec![None; attempts.len()], "the map is loaded first");
    fixture.close().await;
}
