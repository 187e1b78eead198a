//! The hubs of this replica: opened by the first reader, closed some time after the last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
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

    /// All open hubs.
    pub(super) fn all(&self) -> Vec<Arc<Hub>> {
        self.lock().values().cloned().collect()
    }

    /// A place for one more socket.
    pub(super) fn admit(&self) -> Result<tokio::sync::OwnedSemaphorePermit, Problem> {
        let full =
            |_| Problem::new(Code::Overloaded, "Too many people are watching right now. Please try again shortly.");
        Arc::clone(&self.sockets).try_acquire_owned().map_err(full)
    }

    /// The hub of a show; opens it when this is its first reader.
    pub(super) async fn open(&self, state: &AppState, show: &Show) -> Result<Arc<Hub>, Problem> {
        if let Some(hub) = self.get(show.id) {
            return Ok(hub);
        }
        let _one_at_a_time = self.opening.lock().await;
        if let Some(hub) = self.get(show.id) {
            return Ok(hub);
        }
        if self.lock().len() >= MAX_HUBS {
            return Err(Problem::new(Code::Overloaded, "Too many shows are live right now. Please try again shortly."));
        }
        self.follow(show.id).await?;
        let hub = Arc::new(Hub::new(show.id, &self.read(state, show).await?));
        self.lock().insert(show.id, Arc::clone(&hub));
        // What was announced between that reading and this line found no hub: read once more.
        hub.resync(&self.read(state, show).await?);
        // Holds that others granted, and may not live to see end.
        state.watched.add(show.id);
        state.tasks.spawn(tick(state.clone(), Arc::clone(&hub)));
        Ok(hub)
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
            Ok(None) | Err(_) => Err(Problem::new(
                Code::LockStoreUnavailable,
                "The live map is coming back. Please try again in a few seconds.",
            )),
        }
    }

    async fn read(&self, state: &AppState, show: &Show) -> Result<MapSnapshot, Problem> {
        with_map(state, show, || state.locks.snapshot(show.id)).await
    }

    fn close(&self, show: Uuid) {
        self.lock().remove(&show);
        // A full queue means a subscription too many until the next restart, no more.
        let _ = self.orders.try_send(Order::Forget(show));
    }

    // Held for map operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Hub>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The heartbeat of a hub, until the server stops or nobody has been watching for a while.
async fn tick(state: AppState, hub: Arc<Hub>) {
    let mut idle = Duration::ZERO;
    loop {
        let pause = pause_for(hub.readers());
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        hub.announce();
        idle = if hub.readers() == 0 { idle + pause } else { Duration::ZERO };
        if idle >= IDLE_LIFE {
            state.hubs.close(hub.show);
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
