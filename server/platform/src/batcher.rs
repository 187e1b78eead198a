//! A bounded queue whose items are taken in batches by a bounded number of workers.
//!
//! The queue has no dedicated task: an item that is added while there are too few workers starts one, and a worker that
//! finds the queue empty ends.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// A queue of work of one kind.
pub struct Batcher<T> {
    state: Mutex<State<T>>,
    /// Notified when a whole batch waits.
    full_batch: Notify,
    limits: BatchLimits,
}

/// The limits of a [`Batcher`].
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// Maximum items in one batch.
    pub max_batch: usize,
    /// Maximum items that wait.
    pub max_queue: usize,
    /// Time the first item of a batch waits for others.
    pub linger: Duration,
    /// Maximum workers at one time.
    pub workers: usize,
}

struct State<T> {
    waiting: VecDeque<(Instant, T)>,
    workers: usize,
}

impl<T> Batcher<T> {
    /// Creates an empty queue.
    #[must_use]
    pub const fn new(limits: BatchLimits) -> Self {
        let state = State { waiting: VecDeque::new(), workers: 0 };
        Self { state: Mutex::new(state), full_batch: Notify::const_new(), limits }
    }

    /// Adds an item. `start` is called if one more worker is needed; it spawns a task that uses [`Batcher::worker`].
    ///
    /// # Errors
    /// The item, when the queue is full.
    pub fn add(&self, item: T, start: impl FnOnce()) -> Result<(), T> {
        let mut state = self.lock();
        if state.waiting.len() >= self.limits.max_queue {
            return Err(item);
        }
        state.waiting.push_back((Instant::now(), item));
        if state.waiting.len() >= self.limits.max_batch {
            self.full_batch.notify_one();
        }
        let is_wanted = state.workers < self.limits.workers;
        state.workers += usize::from(is_wanted);
        drop(state);
        if is_wanted {
            start();
        }
        Ok(())
    }

    /// Returns the worker that [`Batcher::add`] asked for.
    pub const fn worker(&self) -> Worker<'_, T> {
        Worker { queue: self, has_ended: false }
    }

    async fn next_batch(&self) -> Option<Vec<T>> {
        let ripe_at = {
            let state = self.lock();
            let first = state.waiting.front().map(|(since, _)| *since);
            first.filter(|_| state.waiting.len() < self.limits.max_batch).map(|since| since + self.limits.linger)
        };
        if let Some(ripe_at) = ripe_at
            && ripe_at > Instant::now()
        {
            // The result does not matter: the items that wait by then are the batch.
            let _ = timeout_at(ripe_at, self.full_batch.notified()).await;
        }
        let mut state = self.lock();
        if state.waiting.is_empty() {
            state.workers -= 1;
            return None;
        }
        let size = state.waiting.len().min(self.limits.max_batch);
        Some(state.waiting.drain(..size).map(|(_, item)| item).collect())
    }

    // Held for queue operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker of a queue. One that panics frees its slot for another, which the next item starts.
pub struct Worker<'queue, T> {
    queue: &'queue Batcher<T>,
    has_ended: bool,
}

impl<T> Worker<'_, T> {
    /// Returns the next batch: a whole one, or the items that came within the linger time of the first. `None`: the queue
    /// is empty, and this worker has ended.
    pub async fn next_batch(&mut self) -> Option<Vec<T>> {
        let batch = self.queue.next_batch().await;
        self.has_ended = batch.is_none();
        batch
    }
}

impl<T> Drop for Worker<'_, T> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.queue.lock().workers -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(linger_ms: u64) -> Batcher<u32> {
        let linger = Duration::from_millis(linger_ms);
        Batcher::new(BatchLimits { max_batch: 3, max_queue: 4, linger, workers: 2 })
    }

    /// Adds an item; returns true if a worker is to be started.
    fn add(queue: &Batcher<u32>, item: u32) -> bool {
        let mut is_wanted = false;
        queue.add(item, || is_wanted = true).expect("the queue has room");
        is_wanted
    }

    #[tokio::test]
    async fn workers_start_up_to_the_limit_and_end_when_the_queue_is_empty() {
        let queue = queue(0);
        assert_eq!([1, 2, 3].map(|item| add(&queue, item)), [true, true, false]);
        let (mut one, mut other) = (queue.worker(), queue.worker());
        assert_eq!(one.next_batch().await, Some(vec![1, 2, 3]));
        assert_eq!((one.next_batch().await, other.next_batch().await), (None, None));
        assert!(add(&queue, 4), "both have ended");
    }

    #[tokio::test]
    async fn a_dropped_worker_frees_its_slot() {
        let queue = queue(0);
        assert_eq!([1, 2].map(|item| add(&queue, item)), [true, true]);
        let (mut left, other) = (queue.worker(), queue.worker());
        assert_eq!(left.next_batch().await, Some(vec![1, 2]));
        assert!(!add(&queue, 3));
        drop(left);
        assert_eq!([4, 5].map(|item| add(&queue, item)), [true, false]);
        assert_eq!(queue.worker().next_batch().await, Some(vec![3, 4, 5]), "no item is lost");
        drop(other);
    }

    #[tokio::test]
    async fn a_batch_is_ready_when_full_or_after_the_linger_time() {
        let (slow, quick) = (queue(60_000), queue(5));
        let _ = [1, 2].map(|item| add(&slow, item));
        let mut worker = slow.worker();
        let (batch, _) = tokio::join!(worker.next_batch(), async { add(&slow, 3) });
        assert_eq!(batch, Some(vec![1, 2, 3]), "the third completes it");
        let began = Instant::now();
        add(&quick, 7);
        assert_eq!(quick.worker().next_batch().await, Some(vec![7]));
        assert!(began.elapsed() >= Duration::from_millis(5), "others had the time to come");
    }

    #[test]
    fn a_full_queue_returns_the_item() {
        let queue = queue(0);
        let added: Vec<_> = (1..=5).map(|item| queue.add(item, || ())).collect();
        assert_eq!(added, [Ok(()), Ok(()), Ok(()), Ok(()), Err(5)]);
    }
}
