//! A queue whose items are served in batches by a bounded number of servers.
//!
//! The queue has no dedicated task: a caller that joins while there are too few servers starts one, and a server
//! that finds the queue empty ends. The user of the queue bounds its length.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// A queue of work of one kind.
pub(super) struct BatchQueue<T> {
    state: Mutex<State<T>>,
    /// Notified when a whole batch waits.
    full: Notify,
    limits: BatchLimits,
}

/// The batch size, wait and concurrency of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchLimits {
    /// Maximum pieces in one batch.
    pub(super) batch: usize,
    /// Time the first piece of a batch waits for others.
    pub(super) patience: Duration,
    /// Maximum servers at one time.
    pub(super) servers: usize,
}

struct State<T> {
    waiting: VecDeque<(Instant, T)>,
    serving: usize,
}

impl<T> BatchQueue<T> {
    pub(super) fn new(limits: BatchLimits) -> Self {
        let state = State { waiting: VecDeque::new(), serving: 0 };
        Self { state: Mutex::new(state), full: Notify::new(), limits }
    }

    /// Adds a piece. `true`: one more server is needed, and the caller starts it.
    #[must_use]
    pub(super) fn join(&self, piece: T) -> bool {
        let mut state = self.lock();
        state.waiting.push_back((Instant::now(), piece));
        if state.waiting.len() >= self.limits.batch {
            self.full.notify_one();
        }
        let wanted = state.serving < self.limits.servers;
        state.serving += usize::from(wanted);
        wanted
    }

    /// Pieces that wait.
    pub(super) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Returns the server that [`BatchQueue::join`] asked for.
    pub(super) fn server(&self) -> Server<'_, T> {
        Server { queue: self, has_ended: false }
    }

    async fn gather(&self) -> Option<Vec<T>> {
        let ripe_at = {
            let state = self.lock();
            let first = state.waiting.front().map(|(since, _)| *since);
            first.filter(|_| state.waiting.len() < self.limits.batch).map(|since| since + self.limits.patience)
        };
        if let Some(ripe_at) = ripe_at
            && ripe_at > Instant::now()
        {
            // The result does not matter: the pieces that wait by then are the batch.
            let _ = timeout_at(ripe_at, self.full.notified()).await;
        }
        let mut state = self.lock();
        if state.waiting.is_empty() {
            state.serving -= 1;
            return None;
        }
        let size = state.waiting.len().min(self.limits.batch);
        Some(state.waiting.drain(..size).map(|(_, piece)| piece).collect())
    }

    // Held for queue operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server of a queue. A server that panics frees its slot for another.
pub(super) struct Server<'queue, T> {
    queue: &'queue BatchQueue<T>,
    has_ended: bool,
}

impl<T> Server<'_, T> {
    /// Returns the next batch: a whole one, or the pieces that came within the maximum wait of the first. `None`: the
    /// queue is empty, and this server has ended.
    pub(super) async fn gather(&mut self) -> Option<Vec<T>> {
        let batch = self.queue.gather().await;
        self.has_ended = batch.is_none();
        batch
    }
}

impl<T> Drop for Server<'_, T> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.queue.lock().serving -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(patience_ms: u64) -> BatchQueue<u32> {
        BatchQueue::new(BatchLimits { batch: 3, patience: Duration::from_millis(patience_ms), servers: 2 })
    }

    #[tokio::test]
    async fn servers_start_up_to_the_limit_and_end_when_the_queue_is_empty() {
        let queue = queue(0);
        assert_eq!([queue.join(1), queue.join(2), queue.join(3)], [true, true, false]);
        let (mut one, mut other) = (queue.server(), queue.server());
        assert_eq!(one.gather().await, Some(vec![1, 2, 3]));
        assert_eq!((one.gather().await, other.gather().await), (None, None));
        assert!(queue.join(4), "both have ended");
    }

    #[tokio::test]
    async fn a_dropped_server_frees_its_slot() {
        let queue = queue(0);
        assert_eq!([queue.join(1), queue.join(2)], [true, true]);
        let (mut left, other) = (queue.server(), queue.server());
        assert_eq!(left.gather().await, Some(vec![1, 2]));
        assert!(!queue.join(3));
        drop(left);
        assert_eq!([queue.join(4), queue.join(5)], [true, false]);
        assert_eq!(queue.server().gather().await, Some(vec![3, 4, 5]), "no piece is lost");
        drop(other);
    }

    #[tokio::test]
    async fn a_batch_is_ready_when_full_or_after_the_maximum_wait() {
        let (slow, quick) = (queue(60_000), queue(5));
        let _ = (slow.join(1), slow.join(2));
        let mut server = slow.server();
        let (batch, _) = tokio::join!(server.gather(), async { slow.join(3) });
        assert_eq!(batch, Some(vec![1, 2, 3]), "the third completes it");
        let began = Instant::now();
        let _ = quick.join(7);
        assert_eq!(quick.server().gather().await, Some(vec![7]));
        assert!(began.elapsed() >= Duration::from_millis(5), "others had the time to come");
    }
}
