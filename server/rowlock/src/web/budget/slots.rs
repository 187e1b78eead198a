//! Slots for browsing requests: they take half of the connections to the database at most, whatever their number and
//! whatever their queries wait for. The other half is always free for choosing and paying.
//!
//! Shedding new requests is not enough. A query that hangs in Postgres keeps its connection; so its request keeps its slot
//! too, until the database has answered, even if the visitor has long reloaded the page.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests that may wait for a slot; further ones are shed at once.
const MAX_QUEUED: usize = 1_024;

/// The slots, and the number of requests that wait for one.
#[derive(Debug)]
pub struct WorkSlots {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl WorkSlots {
    pub fn new(slots: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(slots)), waiting: AtomicUsize::new(0) }
    }

    /// Takes a slot, in the order of arrival; `None` when too many requests wait already, or no slot was freed in time.
    pub async fn take(&self, patience: Duration) -> Option<OwnedSemaphorePermit> {
        if let Ok(slot) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(slot);
        }
        let _waiting = QueuedRequest::join(&self.waiting)?;
        tokio::time::timeout(patience, Arc::clone(&self.free).acquire_owned()).await.ok()?.ok()
    }
}

struct QueuedRequest<'a>(&'a AtomicUsize);

impl<'a> QueuedRequest<'a> {
    fn join(waiting: &'a AtomicUsize) -> Option<Self> {
        let ahead = waiting.fetch_add(1, Relaxed);
        // A request that finds the queue full leaves it at once.
        let joined = Self(waiting);
        (ahead < MAX_QUEUED).then_some(joined)
    }
}

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Work in a slot. If its request is cancelled the work still runs to its end, and frees the slot then.
pub struct Work<T: Send + 'static>(Option<(BoxFuture<'static, T>, OwnedSemaphorePermit)>);

impl<T: Send + 'static> Work<T> {
    pub fn new(work: BoxFuture<'static, T>, slot: OwnedSemaphorePermit) -> Self {
        Self(Some((work, slot)))
    }
}

impl<T: Send + 'static> Future for Work<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Taken out during the poll, so that work that panicked is not polled again.
        let (mut work, slot) = self.0.take().expect("not polled after completion");
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.0 = Some((work, slot));
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Work<T> {
    fn drop(&mut self) {
        if let (Some((work, slot)), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            // At most one task per slot.
            runtime.spawn(async move {
                work.await;
                drop(slot);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use tokio::sync::oneshot;

    const PATIENT: Duration = Duration::from_secs(20);
    const IMPATIENT: Duration = Duration::from_millis(1);

    fn work(slot: OwnedSemaphorePermit) -> (oneshot::Sender<u8>, Work<Option<u8>>) {
        let (done, wait) = oneshot::channel();
        (done, Work::new(Box::pin(async move { wait.await.ok() }), slot))
    }

    #[tokio::test]
    async fn a_slot_is_free_when_its_work_is_done() {
        let slots = WorkSlots::new(1);
        let (done, work) = work(slots.take(PATIENT).await.expect("it is free"));
        assert!(slots.take(IMPATIENT).await.is_none(), "there is one slot");
        done.send(7).expect("the work waits");
        assert_eq!(work.await, Some(7));
        assert!(slots.take(IMPATIENT).await.is_some());
    }

    #[tokio::test]
    async fn a_cancelled_request_keeps_its_slot_until_the_work_is_done() {
        let slots = WorkSlots::new(1);
        let (done, work) = work(slots.take(PATIENT).await.expect("it is free"));
        drop(work);
        assert!(slots.take(IMPATIENT).await.is_none(), "its connection is not free either");
        done.send(7).expect("the work goes on");
        assert!(slots.take(PATIENT).await.is_some());
    }

    #[tokio::test]
    async fn work_that_panics_frees_its_slot() {
        let slots = WorkSlots::new(1);
        let slot = slots.take(PATIENT).await.expect("it is free");
        let work = Work::<()>::new(Box::pin(async { panic!("a bug") }), slot);
        // As the layer around does: what panicked is dropped when that is over.
        assert!(std::panic::AssertUnwindSafe(work).catch_unwind().await.is_err());
        assert_eq!(slots.free.available_permits(), 1);
        assert!(slots.take(PATIENT).await.is_some());
    }

    #[tokio::test]
    async fn the_queue_is_bounded_and_a_cancelled_request_leaves_it() {
        let slots = WorkSlots::new(1);
        let slot = slots.take(PATIENT).await.expect("it is free");
        let mut queue: Vec<_> = (0..MAX_QUEUED).map(|_| Box::pin(slots.take(PATIENT))).collect();
        for waiting in &mut queue {
            assert!(futures::poll!(waiting).is_pending());
        }
        assert!(matches!(futures::poll!(Box::pin(slots.take(PATIENT))), Poll::Ready(None)), "shed at once");
        drop(queue.pop());
        assert!(futures::poll!(Box::pin(slots.take(PATIENT))).is_pending());
        drop(slot);
        assert!(queue.swap_remove(0).await.is_some(), "the first in the queue");
    }
}
