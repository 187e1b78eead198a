//! The hubs of this replica: opened by the first reader, closed some time after the last one left. A full table closes
//! hubs without readers at once, and without such a hub the one with the fewest readers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::seats::{SeatIndex, SeatState};
use domain::time::Timestamp;
use domain::waiting_room::WaitingRoomStatus;
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio::time::timeout;
use uuid::Uuid;

use super::hub::Hub;
use super::map::Sections;
use super::reader::MapSubscriber;
use super::sockets::Sockets;
use super::ticks::tick;
use crate::SeatsState;
use crate::seat_locks::{MapSnapshot, with_map};
use catalogue::Show;
use http::{ApiResult, Code, Problem};

/// Maximum of open hubs on one replica.
const MAX_HUBS: usize = 2_000;
/// Age at which a hub with readers may be closed for another. Readers who lost their hub do not close one another's at once.
const MIN_EVICTED_AGE: Duration = Duration::from_secs(30);

/// Use of a hub by a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// Follows its changes: a live map.
    Live,
    /// Reads it once. No hub with readers is closed for that.
    Once,
}
/// Timeout for opening a hub; the subscriber may be reconnecting.
const OPEN_DEADLINE: Duration = Duration::from_secs(4);
/// Maximum of queued orders for the subscriber.
const MAX_WAITING_ORDERS: usize = 4_096;

/// An order to the subscriber of changes.
pub(super) enum HubCommand {
    /// Subscribes to a show, and confirms it.
    Follow(Uuid, oneshot::Sender<()>),
    Forget(Uuid),
}

/// All hubs of this replica.
pub struct Hubs {
    /// Open hubs, and hubs that are being opened: those are subscribed already.
    open: Mutex<HashMap<Uuid, Arc<Hub>>>,
    orders: mpsc::Sender<HubCommand>,
    /// Locked by the subscriber while it runs.
    pub(super) orders_taken: AsyncMutex<mpsc::Receiver<HubCommand>>,
    /// Number of starts of the subscriber. A start ends the subscriptions of the one before.
    subscriber_starts: AtomicU64,
    pub(super) sockets: Sockets,
    min_evicted_age: Duration,
}

impl Hubs {
    /// Creates the registry without hubs. `sockets_per_address`: 0 for no limit.
    #[must_use]
    pub fn new(sockets_per_address: usize) -> Self {
        let (orders, taken) = mpsc::channel(MAX_WAITING_ORDERS);
        Self {
            open: Mutex::default(),
            orders,
            orders_taken: AsyncMutex::new(taken),
            subscriber_starts: AtomicU64::new(0),
            sockets: Sockets::new(sockets_per_address),
            min_evicted_age: MIN_EVICTED_AGE,
        }
    }

    /// The hub of a show, if it is open or being opened.
    pub(super) fn get(&self, show: Uuid) -> Option<Arc<Hub>> {
        self.lock().get(&show).cloned()
    }

    /// Adds a reader of a show, who keeps its hub open. The hub may have no map yet.
    ///
    /// # Errors
    /// 503 when the table is full and no hub may be closed for this one.
    fn join(&self, show: Uuid, sections: impl FnOnce() -> Sections, reads: Reads) -> ApiResult<MapSubscriber> {
        let mut open = self.lock();
        if !open.contains_key(&show) && open.len() >= MAX_HUBS {
            self.evict(&mut open, reads);
            if open.len() >= MAX_HUBS {
                let detail = "Too many shows are live right now. Please try again shortly.";
                return Err(Problem::new(Code::Overloaded, detail));
            }
        }
        let hub = open.entry(show).or_insert_with(|| Arc::new(Hub::new(show, sections())));
        Ok(MapSubscriber::new(Arc::clone(hub)))
    }

    /// Closes hubs of a full table: all without readers, also those whose opening failed; without such a hub, and only for
    /// a live map, the one with the fewest readers, and of equals the oldest. Its readers reconnect. So sockets at many
    /// shows do not keep out a show that many people watch.
    fn evict(&self, open: &mut HashMap<Uuid, Arc<Hub>>, reads: Reads) {
        let forget = |hub: Arc<Hub>| {
            // Ends its ticks, which would otherwise hold its map until it is idle for long.
            hub.stop();
            // A full queue is harmless, as in `close_if_unread`.
            let _ = self.orders.try_send(HubCommand::Forget(hub.show));
        };
        open.extract_if(|_, hub| hub.readers() == 0).for_each(|(_, hub)| forget(hub));
        if open.len() < MAX_HUBS || reads == Reads::Once {
            return;
        }
        let is_old = |hub: &&Arc<Hub>| hub.created_at.elapsed() >= self.min_evicted_age;
        let fewest = open.values().filter(is_old).min_by_key(|hub| (hub.readers(), hub.created_at)).map(|hub| hub.show);
        if let Some(hub) = fewest.and_then(|show| open.remove(&show)) {
            tracing::warn!(show = %hub.show, readers = hub.readers(), "close a live map for another: the table is full");
            forget(hub);
        }
    }

    /// The number of open hubs, and of sockets.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.lock().len(), self.sockets.count())
    }

    /// The shows with readers on this replica.
    #[must_use]
    pub fn watched_shows(&self) -> Vec<Uuid> {
        self.lock().values().filter(|hub| hub.readers() > 0).map(|hub| hub.show).collect()
    }

    /// The time from a seat's last lock to `now`, milliseconds; `None` if that lock is not recent, or this replica
    /// has no hub of the show.
    pub fn time_since_lock(&self, show: Uuid, seat: SeatIndex, now: Timestamp) -> Option<u32> {
        self.get(show)?.time_since_lock(seat, now)
    }

    /// True if one of these seats is not available in the live map of this replica. A hint: the map lags behind the
    /// store, and a show without a hub has none.
    pub(crate) fn seems_taken(&self, show: Uuid, seats: &[SeatIndex]) -> bool {
        !self.taken_among(show, seats).is_empty()
    }

    /// Those of these seats that are not available in the live map of this replica, with their states. A hint as
    /// [`Self::seems_taken`].
    #[must_use]
    pub fn taken_among(&self, show: Uuid, seats: &[SeatIndex]) -> Vec<(SeatIndex, SeatState)> {
        self.get(show).map(|hub| hub.taken_among(seats)).unwrap_or_default()
    }

    /// Opens the hub of a show in the background, unless it is open. It closes like any hub without readers.
    pub(crate) fn open_unread(&self, state: &SeatsState, show: &Arc<Show>) {
        if self.get(show.id).is_some() {
            return;
        }
        let (opening, show) = (state.clone(), Arc::clone(show));
        state.tasks.spawn(async move {
            if let Err(problem) = opening.hubs.open(&opening, &show, Reads::Once).await {
                tracing::debug!(?problem, show = %show.id, "open a hub for refused attempts failed");
            }
        });
    }

    /// Publishes the state of the waiting room to readers of the show on this replica.
    pub fn publish_queue(&self, show: Uuid, queue: WaitingRoomStatus) {
        if let Some(hub) = self.get(show) {
            hub.note_queue(queue);
        }
    }

    /// Adds a reader of a show; opens its hub if it is the first.
    pub(super) async fn open(&self, state: &SeatsState, show: &Show, reads: Reads) -> ApiResult<MapSubscriber> {
        let sections = || show.layout.sections().collect();
        let read = || with_map(state, show, || state.locks.snapshot(show.id));
        let (reader, is_first) = self.open_with(show.id, (sections, reads), read).await?;
        if is_first {
            // Sweeps holds of other replicas, which may stop before those expire.
            state.watched.add(show.id);
            state.tasks.spawn(tick(state.clone(), Arc::clone(&reader.hub)));
        }
        Ok(reader)
    }

    /// Opens a hub from any source: `read` runs once for all readers that wait, and shows do not wait for
    /// each other. Returns the reader, and true if this reader opened the hub.
    async fn open_with<F>(
        &self,
        show: Uuid,
        (sections, reads): (impl FnOnce() -> Sections, Reads),
        read: impl FnOnce() -> F,
    ) -> ApiResult<(MapSubscriber, bool)>
    where
        F: Future<Output = ApiResult<MapSnapshot>>,
    {
        let reader = self.join(show, sections, reads)?;
        if reader.hub.opened.initialized() {
            return Ok((reader, false));
        }
        let (mut is_first, mut starts) = (false, 0);
        let opening = reader.hub.opened.get_or_try_init(|| async {
            // The subscription starts before the read: announcements in between wait in the hub's inbox.
            self.follow(show).await?;
            starts = self.subscriber_starts.load(Ordering::SeqCst);
            let before = reader.hub.received();
            reader.hub.resync(before, &read().await?);
            reader.hub.publish_tick(true);
            is_first = true;
            Ok::<(), Problem>(())
        });
        timeout(OPEN_DEADLINE, opening).await.map_err(|_| temporarily_unavailable())??;
        // The subscription ended during the read: `close_opened` did not know the hub as open.
        if is_first && starts != self.subscriber_starts.load(Ordering::SeqCst) {
            self.close(&reader.hub);
        }
        Ok((reader, is_first))
    }

    async fn follow(&self, show: Uuid) -> ApiResult<()> {
        let (done, listening) = oneshot::channel();
        self.orders.send(HubCommand::Follow(show, done)).await.map_err(|_| temporarily_unavailable())?;
        listening.await.map_err(|_| temporarily_unavailable())
    }

    /// Closes a hub without readers. False if it has readers.
    pub(super) fn close_if_unread(&self, hub: &Hub) -> bool {
        let mut open = self.lock();
        if hub.readers() > 0 {
            return false;
        }
        if !open.get(&hub.show).is_some_and(|known| std::ptr::eq(Arc::as_ptr(known), hub)) {
            // Another hub of the show replaced it.
            return true;
        }
        open.remove(&hub.show);
        // Sent under the lock, so that no new order to follow the show comes first. With a full queue one
        // subscription stays until the next restart, which is harmless.
        let _ = self.orders.try_send(HubCommand::Forget(hub.show));
        true
    }

    /// Closes a hub whose show moved to another room, and asks its readers to reconnect.
    pub(super) fn close(&self, hub: &Hub) {
        let mut open = self.lock();
        if open.get(&hub.show).is_some_and(|known| std::ptr::eq(Arc::as_ptr(known), hub)) {
            open.remove(&hub.show);
            // A full queue is harmless here too.
            let _ = self.orders.try_send(HubCommand::Forget(hub.show));
        }
        drop(open);
        hub.stop();
    }

    /// Closes all hubs, because a new subscriber has none of their subscriptions, and asks their readers to reconnect.
    /// Hubs that are being opened stay: a subscription that was not confirmed yet is made by the new subscriber, and
    /// without one that was, `open_with` closes the hub.
    pub(super) fn close_opened(&self) {
        self.subscriber_starts.fetch_add(1, Ordering::SeqCst);
        let opened: Vec<_> = self.lock().values().filter(|hub| hub.opened.initialized()).cloned().collect();
        opened.iter().for_each(|hub| self.close(hub));
    }

    // Held for map operations only, never across an await.
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Hub>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn temporarily_unavailable() -> Problem {
    Problem::new(Code::LockStoreUnavailable, "The live map is coming back. Please try again in a few seconds.")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use domain::seats::SeatState;
    use domain::wire::Frame;

    use super::super::feed::{Changes, MapChange};
    use super::super::reader::Next;
    use super::*;

    const ROOM: u32 = 40;

    fn snapshot() -> MapSnapshot {
        MapSnapshot { epoch: 1, version: 10, map: vec![0; ROOM as usize].into(), areas: vec![] }
    }

    fn next(reader: &mut MapSubscriber) -> Frame {
        match reader.next(|| Timestamp(1_000)) {
            Next::Frame(bytes) => Frame::decode(&bytes[2..], ROOM).expect("a short frame of ours"),
            other => panic!("{other:?} is no frame"),
        }
    }

    /// Takes the place of the subscriber.
    async fn take_orders(hubs: &Hubs) -> mpsc::Receiver<HubCommand> {
        std::mem::replace(&mut *hubs.orders_taken.lock().await, mpsc::channel(1).1)
    }

    /// Hubs with a subscriber that confirms every order at once.
    async fn hubs() -> Arc<Hubs> {
        let hubs = Arc::new(Hubs::new(0));
        let mut orders = take_orders(&hubs).await;
        tokio::spawn(async move {
            while let Some(order) = orders.recv().await {
                if let HubCommand::Follow(_, done) = order {
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
    async fn a_thousand_concurrent_readers_cost_one_read_of_the_store() {
        let hubs = hubs().await;
        let reads = Arc::new(AtomicUsize::new(0));
        let ask = || {
            let (hubs, reads) = (Arc::clone(&hubs), Arc::clone(&reads));
            tokio::spawn(async move {
                let read = || async {
                    reads.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    Ok(snapshot())
                };
                let (mut reader, is_first) =
                    hubs.open_with(Uuid::nil(), (whole_room, Reads::Live), read).await.expect("it opens");
                assert!(matches!(next(&mut reader), Frame::Snapshot { version: 10, .. }));
                is_first
            })
        };
        let openers = futures::future::join_all((0..1_000).map(|_| ask())).await;
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        assert_eq!(openers.into_iter().filter(|first| *first.as_ref().expect("no panic")).count(), 1);
    }

    #[tokio::test]
    async fn a_show_that_fails_to_open_blocks_no_other_show_and_is_retried() {
        let hubs = hubs().await;
        let (slow, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let waiting = {
            let hubs = Arc::clone(&hubs);
            tokio::spawn(
                async move { hubs.open_with(slow, (whole_room, Reads::Live), std::future::pending).await.is_ok() },
            )
        };
        tokio::task::yield_now().await;
        let read = || async { Ok(snapshot()) };
        assert!(hubs.open_with(other, (whole_room, Reads::Live), read).await.is_ok());
        waiting.abort();
        assert!(waiting.await.is_err());
        let fails = || async { Err(Problem::not_found("store")) };
        assert!(hubs.open_with(slow, (whole_room, Reads::Live), fails).await.is_err());
        assert!(hubs.open_with(slow, (whole_room, Reads::Live), read).await.is_ok_and(|(_, is_first)| is_first));
    }

    #[tokio::test]
    async fn an_announcement_during_opening_is_not_lost() {
        let hubs = hubs().await;
        let read = || async {
            // Announced after the store was read, before its answer is here.
            let hub = hubs.get(Uuid::nil()).expect("it is subscribed already");
            let seats = vec![(3, SeatState::Locked)];
            hub.take(MapChange { epoch: 1, version: 11, changes: Some(Changes { seats, areas: vec![] }) });
            Ok(snapshot())
        };
        let (mut reader, _) = hubs.open_with(Uuid::nil(), (whole_room, Reads::Live), read).await.expect("it opens");
        assert!(!reader.hub.is_stale(), "no second read is needed");
        let Frame::Snapshot { version: 11, map, .. } = next(&mut reader) else {
            panic!("the snapshot, and what followed")
        };
        assert_eq!(map[3], SeatState::Locked);
    }

    #[tokio::test]
    async fn a_full_table_closes_hubs_without_readers_and_then_the_one_with_the_fewest() {
        let hubs = Hubs { min_evicted_age: Duration::ZERO, ..Hubs::new(0) };
        let mut orders = take_orders(&hubs).await;
        let subscriber = tokio::spawn(async move {
            let mut forgotten = 0_usize;
            while let Some(order) = orders.recv().await {
                match order {
                    HubCommand::Follow(_, done) => done.send(()).expect("the opener waits"),
                    HubCommand::Forget(_) => forgotten += 1,
                }
            }
            forgotten
        });
        let open = |show: usize| {
            let read = || async { Ok(snapshot()) };
            hubs.open_with(Uuid::from_u128(show as u128), (whole_room, Reads::Live), read)
        };
        let (watched, _) = open(0).await.expect("it opens");
        let mut unread = None;
        for show in 1..MAX_HUBS {
            let (reader, _) = open(show).await.expect("it opens");
            unread = Some(Arc::clone(&reader.hub));
        }
        let mut readers = vec![open(MAX_HUBS).await.expect("hubs without readers give way").0];
        assert_eq!(hubs.counts().0, 2);
        assert!(unread.is_some_and(|hub| hub.is_stopped()), "its ticks end");
        assert!(!watched.hub.is_stopped() && hubs.get(Uuid::nil()).is_some(), "a hub with a reader stays");
        for show in MAX_HUBS + 1..2 * MAX_HUBS - 1 {
            readers.push(open(show).await.expect("there is room").0);
        }
        // All hubs have readers, and the first one has two.
        let (another, _) = open(0).await.expect("it is open");
        let once =
            hubs.open_with(Uuid::from_u128(u128::MAX), (whole_room, Reads::Once), || async { Ok(snapshot()) }).await;
        assert_eq!(once.err().map(|problem| problem.code()), Some(Code::Overloaded), "not for a single read");
        let (newest, is_first) = open(2 * MAX_HUBS).await.expect("the hub with the fewest readers gives way");
        assert!(is_first && !newest.hub.is_stopped());
        assert_eq!(hubs.counts().0, MAX_HUBS);
        let mut closed = readers.remove(0);
        assert_eq!(closed.hub.show, Uuid::from_u128(MAX_HUBS as u128), "the oldest of those with one reader");
        assert_eq!(closed.next(|| Timestamp(1_000)), Next::Stopping, "its reader reconnects");
        assert!(!another.hub.is_stopped() && readers.iter().all(|reader| !reader.hub.is_stopped()));
        drop((readers, hubs));
        assert_eq!(subscriber.await.expect("no panic"), MAX_HUBS, "subscriptions of the closed hubs ended");
    }

    #[tokio::test]
    async fn a_full_table_of_young_hubs_with_readers_closes_none() {
        let hubs = Hubs::new(0);
        let readers: Vec<_> = (0..MAX_HUBS)
            .map(|show| hubs.join(Uuid::from_u128(show as u128), whole_room, Reads::Live).expect("there is room"))
            .collect();
        let refused = hubs.join(Uuid::from_u128(u128::MAX), whole_room, Reads::Live);
        assert_eq!(refused.err().map(|problem| problem.code()), Some(Code::Overloaded));
        drop(readers);
        assert!(
            hubs.join(Uuid::from_u128(u128::MAX), whole_room, Reads::Once).is_ok(),
            "hubs without readers give way"
        );
    }

    #[tokio::test]
    async fn lost_subscriptions_close_open_hubs_and_keep_those_being_opened() {
        let hubs = hubs().await;
        let (open, opening) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let read = || async { Ok(snapshot()) };
        let (mut reader, _) = hubs.open_with(open, (whole_room, Reads::Live), read).await.expect("it opens");
        let waiting = hubs.join(opening, whole_room, Reads::Live).expect("there is room");
        hubs.close_opened();
        assert!(hubs.get(open).is_none() && reader.hub.is_stopped());
        assert_eq!(reader.next(|| Timestamp(1_000)), Next::Stopping, "its reader reconnects");
        assert!(hubs.get(opening).is_some() && !waiting.hub.is_stopped());
    }

    #[tokio::test]
    async fn a_subscription_lost_during_opening_closes_the_hub() {
        let hubs = hubs().await;
        let read = || async {
            // The subscriber has confirmed the subscription, and starts again before the map is read.
            hubs.close_opened();
            Ok(snapshot())
        };
        let (mut reader, is_first) =
            hubs.open_with(Uuid::nil(), (whole_room, Reads::Live), read).await.expect("it opens");
        assert!(is_first && hubs.get(Uuid::nil()).is_none());
        assert_eq!(reader.next(|| Timestamp(1_000)), Next::Stopping, "its reader reconnects");
    }

    #[tokio::test]
    async fn closing_a_hub_disconnects_its_readers_and_does_not_close_its_successor() {
        let hubs = hubs().await;
        let read = || async { Ok(snapshot()) };
        let (mut reader, _) = hubs.open_with(Uuid::nil(), (whole_room, Reads::Live), read).await.expect("it opens");
        let old = Arc::clone(&reader.hub);
        assert!(old.has_layout(std::iter::once(0..ROOM), ROOM as usize));
        assert!(!old.has_layout([0..20, 20..ROOM].into_iter(), ROOM as usize), "other sections");
        assert!(!old.has_layout(std::iter::once(0..ROOM), 12), "fewer seats");
        hubs.close(&old);
        assert!(old.is_stopped() && matches!(reader.next(|| Timestamp(1_000)), Next::Stopping));
        let (next, is_first) = hubs.open_with(Uuid::nil(), (whole_room, Reads::Live), read).await.expect("it opens");
        assert!(is_first, "another hub");
        drop(reader);
        assert!(hubs.close_if_unread(&old), "the old hub is closed");
        assert!(hubs.get(Uuid::nil()).is_some_and(|hub| Arc::ptr_eq(&hub, &next.hub)), "the new hub stays open");
    }
}
