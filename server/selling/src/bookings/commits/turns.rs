//! One request at a time for each hold or booking of a visitor, and one more that waits for it.
//!
//! Requests with keys of their own for the same hold need the same row of Postgres, one after another. Without this
//! limit a visitor who sends thousands of them fills the commit queue, and others are answered 503. A request with the
//! same key shares the answer of the first and needs no turn (`idempotency::run_once`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use http::{ApiResult, Code, Problem};

/// Requests for one hold or booking that are served or wait at one time: one is served, one waits.
const MAX_PER_SUBJECT: usize = 2;
/// Maximum wait of the second request; after it the caller is asked to retry.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The owner of a request, and the hold or booking it is about. With the owner in it no visitor takes the turns of
/// another's hold.
type Subject = (String, Uuid);

/// Requests that are served or wait, by subject.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<HashMap<Subject, Queue>>>);

struct Queue {
    /// One permit: the request that has it is served.
    served: Arc<Semaphore>,
    /// Requests that are served or wait.
    length: usize,
}

/// The right to work on a hold or booking. It ends when it is dropped, or before ([`Turn::end`]).
pub(crate) struct Turn(Option<(OwnedSemaphorePermit, TurnSlot)>);

impl Turn {
    /// Lets the next request begin. Called after the commit, so that no request waits for a gateway.
    pub(crate) fn end(&mut self) {
        drop(self.0.take());
    }
}

/// One of the requests that are served or wait; released on drop.
struct TurnSlot {
    turns: Turns,
    subject: Subject,
}

impl Turns {
    /// Waits for a turn.
    ///
    /// # Errors
    /// 409 when one request is served and one waits already, or the wait is too long.
    pub(super) async fn take(&self, owner: &str, subject: Uuid) -> ApiResult<Turn> {
        self.take_within(MAX_WAIT, owner, subject).await
    }

    async fn take_within(&self, max_wait: Duration, owner: &str, subject: Uuid) -> ApiResult<Turn> {
        let (served, slot) = self.join((owner.to_owned(), subject)).ok_or_else(busy)?;
        match tokio::time::timeout(max_wait, served.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Turn(Some((permit, slot)))),
            Ok(Err(_)) | Err(_) => Err(busy()),
        }
    }

    fn join(&self, subject: Subject) -> Option<(Arc<Semaphore>, TurnSlot)> {
        let mut queues = self.lock();
        let queue =
            queues.entry(subject.clone()).or_insert_with(|| Queue { served: Arc::new(Semaphore::new(1)), length: 0 });
        if queue.length >= MAX_PER_SUBJECT {
            return None;
        }
        queue.length += 1;
        Some((Arc::clone(&queue.served), TurnSlot { turns: self.clone(), subject }))
    }

    // Held for a map operation only, never across an await.
    fn lock(&self) -> MutexGuard<'_, HashMap<Subject, Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TurnSlot {
    fn drop(&mut self) {
        if let Entry::Occupied(mut queue) = self.turns.lock().entry(std::mem::take(&mut self.subject)) {
            queue.get_mut().length -= 1;
            if queue.get().length == 0 {
                queue.remove();
            }
        }
    }
}

fn busy() -> Problem {
    let detail = "Other requests of yours for these seats are still running. Wait a moment, then send this one again.";
    Problem::new(Code::StillRunning, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Uuid = Uuid::from_u128(7);

    fn code(turn: ApiResult<Turn>) -> Option<Code> {
        turn.err().map(|problem| problem.code())
    }

    #[tokio::test]
    async fn one_request_is_served_one_waits_and_a_third_is_refused() {
        let turns = Turns::default();
        let mut first = turns.take("ann", HOLD).await.expect("the hold is idle");
        let mut second = Box::pin(turns.take("ann", HOLD));
        assert!(futures::poll!(&mut second).is_pending());
        assert_eq!(code(turns.take("ann", HOLD).await), Some(Code::StillRunning));
        first.end();
        let second = second.await.expect("the first has ended");
        drop(second);
        assert!(turns.lock().is_empty(), "an idle hold takes no memory");
    }

    #[tokio::test]
    async fn turns_of_other_owners_and_holds_are_independent() {
        let turns = Turns::default();
        let _first = turns.take("ann", HOLD).await.expect("the hold is idle");
        for (owner, hold) in [("ben", HOLD), ("ann", Uuid::from_u128(8))] {
            assert_eq!(code(turns.take(owner, hold).await), None, "{owner}");
        }
    }

    #[tokio::test]
    async fn a_cancelled_wait_frees_its_slot() {
        let turns = Turns::default();
        let first = turns.take("ann", HOLD).await.expect("the hold is idle");
        let mut second = Box::pin(turns.take("ann", HOLD));
        assert!(futures::poll!(&mut second).is_pending());
        drop(second);
        let mut third = Box::pin(turns.take("ann", HOLD));
        assert!(futures::poll!(&mut third).is_pending(), "there is room to wait");
        drop(first);
        assert!(third.await.is_ok());
    }

    #[tokio::test]
    async fn a_wait_for_a_turn_times_out() {
        let turns = Turns::default();
        let _first = turns.take("ann", HOLD).await.expect("the hold is idle");
        let second = turns.take_within(Duration::from_millis(1), "ann", HOLD).await;
        assert_eq!(code(second), Some(Code::StillRunning));
    }
}
