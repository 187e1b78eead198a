//! The hubs of this replica: opened by the first reader, closed some time after the last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot, watch};
use tokio::time::timeout;
use uuid::Uuid;

use super::hub::Hub;
use crate::AppState;
use crate::catalogue::Show;
use crate::seat_locks::{MapSnapshot, with_map};
use crate::web::{Code, Problem};

/// How often changes go out while few are watching; a blink is longer.
const FAST_TICK: Duration = Duration::from_millis(50);
/// …and while many are.
const SLOW_TICK: Duration = Duration::from_millis(250);
/// Sockets of one show from which on ticks are slow; between, they stretch evenly.
const MANY_READERS: usize = 5_000;
/// A hub without readers is kept this long.
const IDLE_LIFE: Duration = Duration::from_secs(30);
/// A snapshot that could not be read is asked for again this often.
const READ_AGAIN: Duration = Duration::from_secs(1);
/// Shows one replica serves live at most.
const MAX_HUBS: usize = 2_000;
/// Sockets one replica serves at most.
const MAX_SOCKETS: usize = 20_000;
/// Beginning to listen may take this long; the subscriber may be reconnecting.
const FOLLOW_DEADLINE: Duration = Duration::from_secs(4);
/// Channels to follow that may wait for the subscriber.
const MAX_WAITING_ORDERS: usize = 4_096;

/// What the subscriber of changes should do.
pub(super) enum Order {
    /// Listen to a show, and say when that is so.
    Follow(Uuid, oneshot::Sender<()>),
    Forget(Uuid),
}

/// All hubs of this replica.
pub struct Hubs {
    open: Mutex<HashMap<Uuid, Arc<Hub>>>,
    /// Opening reads a snapshot; one at a time is enough, the rest find it open.
    opening: AsyncMutex<()>,
    orders: mpsc::Sender<Order>,
    pub(super) orders_taken: AsyncMutex<Option<mpsc::Receiver<Order>>>,
    sockets: Arc<tokio::sync::Semaphore>,
}

impl Default for Hubs {
    fn default() -> Self {
        let (orders, taken) = mpsc::channel(MAX_WAITING_ORDERS);
        Self {
            open: Mutex::default(),
            opening: AsyncMutex::default(),
            orders,
            orders_taken: AsyncMutex::new(Some(taken)),
            sockets: Arc::new(tokio::sync::Semaphore::new(MAX_SOCKETS)),
        }
    }
}

impl Hubs {
    /// The hub of a show that is open, if it is.
    pub(super) fn get(&self, show: Uuid) -> Option<Arc<Hub>> {
        self.lock().get(&show).cloned()
    }

    /// A reader of a show that is open, counted from here on: it does not close under them.
    fn join(&self, show: Uuid) -> Option<Reader> {
        self.lock().get(&show).map(|hub| Reader { hub: Arc::clone(hub), ticks: hub.subscribe() })
    }

    /// A place for one more socket.
    pub(super) fn admit(&self) -> Result<tokio::sync::OwnedSemaphorePermit, Problem> {
        let full =
            |_| Problem::new(Code::Overloaded, "Too many people are watching right now. Please try again shortly.");
        Arc::clone(&self.sockets).try_acquire_owned().map_err(full)
    }

    /// A reader of a show; opens its hub when this is the first.
    pub(super) async fn open(&self, state: &AppState, show: &Show) -> Result<Reader, Problem> {
        if let Some(reader) = self.join(show.id) {
            return Ok(reader);
        }
        let one_at_a_time = timeout(FOLLOW_DEADLINE, self.opening.lock()).await.map_err(|_| coming_back())?;
        if let Some(reader) = self.join(show.id) {
            return Ok(reader);
        }
        if self.lock().len() >= MAX_HUBS {
            return Err(Problem::new(Code::Overloaded, "Too many shows are live right now. Please try again shortly."));
        }
        self.follow(show.id).await?;
        let hub = Arc::new(Hub::new(show.id, &read(state, show).await?));
        let reader = Reader { ticks: hub.subscribe(), hub: Arc::clone(&hub) };
        self.lock().insert(show.id, Arc::clone(&hub));
        drop(one_at_a_time);
        // Holds that others granted, and may not live to see end.
        state.watched.add(show.id);
        // What was announced between that reading and this line found no hub: the first tick reads again.
        hub.mark_stale();
        state.tasks.spawn(tick(state.clone(), hub));
        Ok(reader)
    }

    /// Listening begins before reading: a change in between is announced again, not missed.
    async fn follow(&self, show: Uuid) -> Result<(), Problem> {
        let (done, listening) = oneshot::channel();
        let asked = async {
            self.orders.send(Order::Follow(show, done)).await.ok()?;
            listening.await.ok()
        };
        match timeout(FOLLOW_DEADLINE, asked).await {
            Ok(Some(())) => Ok(()),
            Ok(None) | Err(_) => Err(coming_back()),
        }
    }

    /// Closes a hub unless somebody reads it, or began to just now.
    fn close_if_unread(&self, hub: &Hub) -> bool {
        let mut open = self.lock();
        if hub.readers() > 0 {
            return false;
        }
        open.remove(&hub.show);
        // Said under the lock, so that nobody's order to follow comes first. A full queue means a
        // subscription too many until the next restart, no more.
        let _ = self.orders.try_send(Order::Forget(hub.show));
        true
    }

    // Held for map operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Hub>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who reads a show's map; while they live, its hub does.
pub(super) struct Reader {
    /// The hub.
    pub(super) hub: Arc<Hub>,
    /// Moves once a tick, when something changed.
    pub(super) ticks: watch::Receiver<(u64, u64)>,
}

async fn read(state: &AppState, show: &Show) -> Result<MapSnapshot, Problem> {
    with_map(state, show, || state.locks.snapshot(show.id)).await
}

fn coming_back() -> Problem {
    Problem::new(Code::LockStoreUnavailable, "The live map is coming back. Please try again in a few seconds.")
}

/// The heartbeat of a hub, until the server stops or nobody has been watching for a while.
async fn tick(state: AppState, hub: Arc<Hub>) {
    let mut idle = Duration::ZERO;
    let mut since_read = READ_AGAIN;
    loop {
        let pause = pause_for(hub.readers());
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        since_read += pause;
        if hub.is_stale() && since_read >= READ_AGAIN {
            super::refresh(&state, hub.show).await;
            since_read = Duration::ZERO;
        }
        hub.announce();
        idle = if hub.readers() == 0 { idle + pause } else { Duration::ZERO };
        if idle >= IDLE_LIFE && state.hubs.close_if_unread(&hub) {
            return;
        }
    }
}

fn pause_for(readers: usize) -> Duration {
    let share = readers.min(MANY_READERS) as f64 / MANY_READERS as f64;
    FAST_TICK + (SLOW_TICK - FAST_TICK).mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stretch_from_twenty_to_four_a_second() {
        assert_eq!(pause_for(0), FAST_TICK);
        assert_eq!(pause_for(MANY_READERS), SLOW_TICK);
        assert_eq!(pause_for(1_000_000), SLOW_TICK);
        assert!(pause_for(100) < pause_for(2_500));
    }
}
