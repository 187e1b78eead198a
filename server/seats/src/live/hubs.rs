//! The hubs of this replica: opened by the first reader, closed some time after the last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::seats::SeatIndex;
use domain::time::Timestamp;
use domain::waiting_room::Queue;
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio::time::timeout;
use uuid::Uuid;

use super::hub::Hub;
use super::map::Sections;
use super::reader::Reader;
use super::sockets::Sockets;
use super::ticks::tick;
use crate::SeatsState;
use crate::seat_locks::{MapSnapshot, with_map};
use catalogue::Show;
use http::{Code, Problem};

/// Shows one replica serves live at most.
const MAX_HUBS: usize = 2_000;
/// Opening a show may take this long; the subscriber may be reconnecting.
const OPEN_DEADLINE: Duration = Duration::from_secs(4);
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
    /// Those that are open, and those that are being opened: they listen already.
    open: Mutex<HashMap<Uuid, Arc<Hub>>>,
    orders: mpsc::Sender<Order>,
    pub(super) orders_taken: AsyncMutex<Option<mpsc::Receiver<Order>>>,
    pub(super) sockets: Sockets,
}

impl Hubs {
    /// None is open yet. `sockets_per_address`: 0 for no limit.
    #[must_use]
    pub fn new(sockets_per_address: usize) -> Self {
        let (orders, taken) = mpsc::channel(MAX_WAITING_ORDERS);
        Self {
            open: Mutex::default(),
            orders,
            orders_taken: AsyncMutex::new(Some(taken)),
            sockets: Sockets::new(sockets_per_address),
        }
    }

    /// The hub of a show, if somebody reads it or is about to.
    pub(super) fn get(&self, show: Uuid) -> Option<Arc<Hub>> {
        self.lock().get(&show).cloned()
    }

    /// A reader of a show, counted from here on: its hub does not close under them. It may have no map
    /// yet.
    fn join(&self, show: Uuid, sections: impl FnOnce() -> Sections) -> Result<Reader, Problem> {
        let mut open = self.lock();
        if !open.contains_key(&show) && open.len() >= MAX_HUBS {
            // Those whose opening failed, and nobody waits for.
            open.retain(|_, hub| hub.opened.initialized() || Arc::strong_count(hub) > 1);
            if open.len() >= MAX_HUBS {
                let detail = "Too many shows are live right now. Please try again shortly.";
                return Err(Problem::new(Code::Overloaded, detail));
            }
        }
        let hub = open.entry(show).or_insert_with(|| Arc::new(Hub::new(show, sections())));
        Ok(Reader::new(Arc::clone(hub)))
    }

    /// Shows that are live here, and sockets.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.lock().len(), self.sockets.count())
    }

    /// How long before `now` a seat was taken, milliseconds; `None` when that was not just now, or nobody here
    /// follows the show.
    pub fn locked_ago(&self, show: Uuid, seat: SeatIndex, now: Timestamp) -> Option<u32> {
        self.get(show)?.locked_ago(seat, now)
    }

    /// How the waiting room of a show stands, for whoever follows the show here.
    pub fn tell_queue(&self, show: Uuid, queue: Queue) {
        if let Some(hub) = self.get(show) {
            hub.note_queue(queue);
        }
    }

    /// A reader of a show; opens its hub when this is the first.
    pub(super) async fn open(&self, state: &SeatsState, show: &Show) -> Result<Reader, Problem> {
        let sections = || show.layout.sections().collect();
        let read = || with_map(state, show, || state.locks.snapshot(show.id));
        let (reader, is_first) = self.open_with(show.id, sections, read).await?;
        if is_first {
            // Holds that others granted, and may not live to see end.
            state.watched.add(show.id);
            state.tasks.spawn(tick(state.clone(), Arc::clone(&reader.hub)));
        }
        Ok(reader)
    }

    /// The same from any source: `read` runs once, however many wait for it, and shows do not wait for
    /// each other. Whether this reader opened it.
    async fn open_with<F>(
        &self,
        show: Uuid,
        sections: impl FnOnce() -> Sections,
        read: impl FnOnce() -> F,
    ) -> Result<(Reader, bool), Problem>
    where
        F: Future<Output = Result<MapSnapshot, Problem>>,
    {
        let reader = self.join(show, sections)?;
        if reader.hub.opened.initialized() {
            return Ok((reader, false));
        }
        let mut is_first = false;
        let opening = reader.hub.opened.get_or_try_init(|| async {
            // Listening begins before reading: what is announced in between waits in the hub's inbox.
            self.follow(show).await?;
            let before = reader.hub.heard();
            reader.hub.resync(before, &read().await?);
            reader.hub.announce(true);
            is_first = true;
            Ok::<(), Problem>(())
        });
        timeout(OPEN_DEADLINE, opening).await.map_err(|_| coming_back())??;
        Ok((reader, is_first))
    }

    async fn follow(&self, show: Uuid) -> Result<(), Problem> {
        let (done, listening) = oneshot::channel();
        self.orders.send(Order::Follow(show, done)).await.map_err(|_| coming_back())?;
        listening.await.map_err(|_| coming_back())
    }

    /// Closes a hub unless somebody reads it, or began to just now.
    pub(super) fn close_if_unread(&self, hub: &Hub) -> bool {
        let mut open = self.lock();
        if hub.readers() > 0 {
            return false;
        }
        if !open.get(&hub.show).is_some_and(|known| std::ptr::eq(Arc::as_ptr(known), hub)) {
            // Another of the same show took its place.
            return true;
        }
        open.remove(&hub.show);
        // Said under the lock, so that nobody's order to follow comes first. A full queue means a
        // subscription too many until the next restart, no more.
        let _ = self.orders.try_send(Order::Forget(hub.show));
        true
    }

    /// Closes a hub whose show is in another room now: its readers are told to come back.
    pub(super) fn close(&self, hub: &Hub) {
        let mut open = self.lock();
        if open.get(&hub.show).is_some_and(|known| std::ptr::eq(Arc::as_ptr(known), hub)) {
            open.remove(&hub.show);
            // As when nobody reads it any more.
            let _ = self.orders.try_send(Order::Forget(hub.show));
        }
        drop(open);
        hub.stop();
    }

    // Held for map operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Hub>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn coming_back() -> Problem {
    Problem::new(Code::LockStoreUnavailable, "The live map is coming back. Please try again in a few seconds.")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use domain::seats::SeatState;
    use domain::wire::Frame;

    use super::super::announcement::{Changes, Step};
    use super::super::reader::Next;
    use super::*;

    const ROOM: u32 = 40;

    fn snapshot() -> MapSnapshot {
        MapSnapshot { epoch: 1, version: 10, map: vec![0; ROOM as usize].into(), areas: vec![] }
    }

    fn next(reader: &mut Reader) -> Frame {
        match reader.next(|| Timestamp(1_000)) {
            Next::Frame(bytes) => Frame::decode(&bytes[2..], ROOM).expect("a short frame of ours"),
            other => panic!("{other:?} is no frame"),
        }
    }

    /// Hubs whose orders to follow are obeyed at once.
    async fn hubs() -> Arc<Hubs> {
        let hubs = Arc::new(Hubs::new(0));
        let mut orders = hubs.orders_taken.lock().await.take().expect("nobody took them");
        tokio::spawn(async move {
            while let Some(order) = orders.recv().await {
                if let Order::Follow(_, done) = order {
                    let _ = done.send(());
                }
            }
        });
        hubs
    }

    fn whole_room() -> Sections {
        std::iter::once(0..ROOM).collect()
    }

    #[tokio::test]
    async fn a_thousand_who_come_at_once_cost_one_reading() {
        let hubs = hubs().await;
        let readings = Arc::new(AtomicUsize::new(0));
        let ask = || {
            let (hubs, readings) = (Arc::clone(&hubs), Arc::clone(&readings));
            tokio::spawn(async move {
                let read = || async {
                    readings.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    Ok(snapshot())
                };
                let (mut reader, is_first) = hubs.open_with(Uuid::nil(), whole_room, read).await.expect("it opens");
                assert!(matches!(next(&mut reader), Frame::Snapshot { version: 10, .. }));
                is_first
            })
        };
        let openers = futures::future::join_all((0..1_000).map(|_| ask())).await;
        assert_eq!(readings.load(Ordering::Relaxed), 1);
        assert_eq!(openers.into_iter().filter(|first| *first.as_ref().expect("no panic")).count(), 1);
    }

    #[tokio::test]
    async fn a_show_that_cannot_be_read_keeps_no_other_waiting_and_is_tried_again() {
        let hubs = hubs().await;
        let (slow, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let waiting = {
            let hubs = Arc::clone(&hubs);
            tokio::spawn(async move { hubs.open_with(slow, whole_room, std::future::pending).await.is_ok() })
        };
        tokio::task::yield_now().await;
        let read = || async { Ok(snapshot()) };
        assert!(hubs.open_with(other, whole_room, read).await.is_ok());
        waiting.abort();
        assert!(waiting.await.is_err());
        let fails = || async { Err(Problem::not_found("store")) };
        assert!(hubs.open_with(slow, whole_room, fails).await.is_err());
        assert!(hubs.open_with(slow, whole_room, read).await.is_ok_and(|(_, is_first)| is_first));
    }

    #[tokio::test]
    async fn what_is_announced_while_a_show_opens_is_not_missed() {
        let hubs = hubs().await;
        let read = || async {
            // Announced after the store was read, before anyone here knows what it said.
            let hub = hubs.get(Uuid::nil()).expect("it listens already");
            let seats = vec![(3, SeatState::Locked)];
            hub.take(Step { epoch: 1, version: 11, changes: Some(Changes { seats, areas: vec![] }) });
            Ok(snapshot())
        };
        let (mut reader, _) = hubs.open_with(Uuid::nil(), whole_room, read).await.expect("it opens");
        assert!(!reader.hub.is_stale(), "no second reading is needed");
        let Frame::Snapshot { version: 11, map, .. } = next(&mut reader) else {
            panic!("the snapshot, and what followed")
        };
        assert_eq!(map[3], SeatState::Locked);
    }

    #[tokio::test]
    async fn a_hub_of_another_room_sends_its_readers_away_and_leaves_the_next_one_alone() {
        let hubs = hubs().await;
        let read = || async { Ok(snapshot()) };
        let (mut reader, _) = hubs.open_with(Uuid::nil(), whole_room, read).await.expect("it opens");
        let old = Arc::clone(&reader.hub);
        assert!(old.is_of(std::iter::once(0..ROOM), ROOM as usize));
        assert!(!old.is_of([0..20, 20..ROOM].into_iter(), ROOM as usize), "other sections");
        assert!(!old.is_of(std::iter::once(0..ROOM), 12), "fewer seats");
        hubs.close(&old);
        assert!(old.is_stopped() && matches!(reader.next(|| Timestamp(1_000)), Next::Leave));
        let (next, is_first) = hubs.open_with(Uuid::nil(), whole_room, read).await.expect("it opens");
        assert!(is_first, "another hub");
        drop(reader);
        assert!(hubs.close_if_unread(&old), "the old one is done with");
        assert!(hubs.get(Uuid::nil()).is_some_and(|hub| Arc::ptr_eq(&hub, &next.hub)), "and the new one stays");
    }
}
