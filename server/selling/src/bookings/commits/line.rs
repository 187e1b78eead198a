//! A queue whose items are served in batches by a bounded number of servers.
//!
//! The queue has no task of its own: a caller that joins while there are too few servers starts one, and a server
//! that finds the queue empty ends. The user of the queue bounds its length.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// A queue of work of one kind.
pub(super) struct Line<T> {
    state: Mutex<State<T>>,
    /// Notified when a whole batch waits.
    full: Notify,
    terms: Terms,
}

/// The batch size, wait and concurrency of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
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

impl<T> Line<T> {
    pub(super) fn new(terms: Terms) -> Self {
        let state = State { waiting: VecDeque::new(), serving: 0 };
        Self { state: Mutex::new(state), full: Notify::new(), terms }
    }

    /// Adds a piece. `true`: one more server is needed, and the caller starts it.
    #[must_use]
    pub(super) fn join(&self, piece: T) -> bool {
        let mut state = self.lock();
        state.waiting.push_back((Instant::now(), piece));
        if state.waiting.len() >= self.terms.batch {
            self.full.notify_one();
        }
        let wanted = state.serving < self.terms.servers;
        state.serving += usize::from(wanted);
        wanted
    }

    /// Pieces that wait.
    pub(super) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Returns the server that [`BatchQueue::join`] asked for.
    pub(super) fn server(&self) -> Server<'_, T> {
        Server { line: self, has_ended: false }
    }

    async fn gather(&self) -> Option<Vec<T>> {
        let ripe_at = {
            let state = self.lock();
            let first = state.waiting.front().map(|(since, _)| *since);
            first.filter(|_| state.waiting.len() < self.terms.batch).map(|since| since + self.terms.patience)
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
        let size = state.waiting.len().min(self.terms.batch);
        Some(state.waiting.drain(..size).map(|(_, piece)| piece).collect())
    }

    // Held for queue operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server of a queue. A server that panics frees its slot for another.
pub(super) struct Server<'line, T> {
    line: &'line Line<T>,
    has_ended: bool,
}

impl<T> Server<'_, T> {
    /// Returns the next batch: a whole one, or the pieces that came within the maximum wait of the first. `None`: the
    /// queue is empty, and this server has ended.
    pub(super) async fn gather(&mut self) -> Option<Vec<T>> {
        let batch = self.line.gather().await;
        self.has_ended = batch.is_none();
        batch
    }
}

impl<T> Drop for Server<'_, T> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.line.lock().serving -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(patience_ms: u64) -> Line<u32> {
        Line::new(Terms { batch: 3, patience: Duration::from_millis(patience_ms), servers: 2 })
    }

    #[tokio::test]
    async fn whoever_finds_too_few_servers_starts_one_and_they_end_when_nobody_waits() {
        let line = line(0);
        assert_eq!([line.join(1), line.join(2), line.join(3)], [true, true, false]);
        let (mut one, mut other) = (line.server(), line.server());
        assert_eq!(one.gather().await, Some(vec![1, 2, 3]));
        assert_eq!((one.gather().await, other.gather().await), (None, None));
        assert!(line.join(4), "both have ended");
    }

    #[tokio::test]
    async fn a_server_that_is_left_makes_room_for_another() {
        let line = line(0);
        assert_eq!([line.join(1), line.join(2)], [true, true]);
        let (mut left, other) = (line.server(), line.server());
        assert_eq!(left.gather().await, Some(vec![1, 2]));
        assert!(!line.join(3));
        drop(left);
        assert_eq!([line.join(4), line.join(5)], [true, false]);
        assert_eq!(line.server().gather().await, Some(vec![3, 4, 5]), "nobody was forgotten");
        drop(other);
    }

    #[tokio::test]
    async fn a_batch_leaves_when_it_is_whole_or_its_first_piece_has_waited_long_enough() {
        let (slow, quick) = (line(60_000), line(5));
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
