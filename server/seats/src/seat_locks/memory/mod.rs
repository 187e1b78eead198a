//! Seat locks in memory: what `lua/*.lua` says, without Redis. For tests and simulations, where its clock
//! is whatever the caller says it is, and as the half of a pair that shows whether Redis answers right.
//!
//! What is not here: a life beyond the process, and other replicas. It loses nothing, so it never falls
//! back behind what it said.

mod answers;
mod holds;
mod sales;
mod show_seats;
mod staff;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use domain::seats::SeatIndex;
use domain::time::Timestamp;
use tokio::sync::broadcast;
use uuid::Uuid;

use self::show_seats::Room;
use super::{
    Asked, Attempt, Change, Held, KnownSeats, MapSnapshot, Refusal, ReleasedAll, Renewal, Sale, SeatLocks, StoreError,
    Terms,
};

/// Announcements kept for a slow listener; beyond, it is told how many it missed.
const MAX_UNHEARD: usize = 4_096;
/// Epochs and fences begin at the time in microseconds, as in Redis.
const MICROS_PER_MS: i64 = 1_000;

/// A clock that stands still until it is told that time has passed.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// It is `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(now.0)))
    }

    /// `ms` milliseconds pass, for every copy of it.
    pub fn pass(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }

    /// What it says.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
}

/// What became of a map, as Redis would publish it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The show.
    pub show: Uuid,
    /// `epoch;version;seat=state,…,aAREA=left,…`, or `epoch;version;*` for a map that was built.
    pub text: String,
}

/// Seat locks in memory.
pub struct MemoryLocks {
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
    shows: Mutex<Shows>,
    announcements: broadcast::Sender<Announcement>,
}

#[derive(Default)]
struct Shows {
    rooms: HashMap<Uuid, Room>,
    /// Higher than every epoch and fence of a show that was forgotten: none comes twice.
    floor: i64,
}

impl MemoryLocks {
    /// An empty store that asks `clock` for the time, once in every call.
    #[must_use]
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { clock: Box::new(clock), shows: Mutex::default(), announcements: broadcast::Sender::new(MAX_UNHEARD) }
    }

    /// Hears of every change of every show from now on.
    #[must_use]
    pub fn announcements(&self) -> broadcast::Receiver<Announcement> {
        self.announcements.subscribe()
    }

    /// One call: frees what is due, acts, and announces what changed as one step.
    fn with<T>(&self, show: Uuid, act: impl FnOnce(&mut Room) -> T) -> Result<T, StoreError> {
        let now = (self.clock)();
        let mut shows = self.lock();
        let room = shows.rooms.get_mut(&show).filter(|room| !room.is_nothing()).ok_or(StoreError::NoMap(show))?;
        room.begin(now);
        let answer = act(room);
        if let Some(text) = room.finish() {
            self.announce(show, text);
        }
        Ok(answer)
    }

    // Nobody listening is fine.
    fn announce(&self, show: Uuid, text: String) {
        let _ = self.announcements.send(Announcement { show, text });
    }

    // Held for one call, never across an await.
    fn lock(&self) -> MutexGuard<'_, Shows> {
        self.shows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SeatLocks for MemoryLocks {
    async fn lock(
        &self,
        show: Uuid,
        terms: Terms,
        attempts: &[Attempt],
    ) -> Result<Vec<Result<Held, Refusal>>, StoreError> {
        self.with(show, |room| room.lock(terms, attempts))
    }

    async fn change(&self, show: Uuid, terms: Terms, change: &Change) -> Result<Result<Held, Refusal>, StoreError> {
        self.with(show, |room| room.change(terms, change))
    }

    async fn extend(
        &self,
        show: Uuid,
        asked: Asked,
        hold: Uuid,
        owner: &str,
        by_ms: i64,
    ) -> Result<Result<Held, Refusal>, StoreError> {
        self.with(show, |room| room.extend(asked, hold, owner, by_ms))
    }

    async fn mine(&self, show: Uuid, owner: &str) -> Result<Option<Held>, StoreError> {
        self.with(show, |room| room.mine(owner))
    }

    async fn leave(&self, show: Uuid, hold: Uuid, owner: &str, grace_ms: i64) -> Result<(), StoreError> {
        self.with(show, |room| room.leave(hold, owner, grace_ms))
    }

    async fn release(&self, show: Uuid, hold: Uuid, owner: &str) -> Result<Result<(), Refusal>, StoreError> {
        self.with(show, |room| room.release(hold, owner))
    }

    async fn begin_payment(
        &self,
        show: Uuid,
        sale: &Sale,
        extension_ms: i64,
    ) -> Result<Result<Timestamp, Refusal>, StoreError> {
        self.with(show, |room| room.begin_payment(sale, extension_ms))
    }

    async fn end_payment(&self, show: Uuid, sale: &Sale, extension_ms: i64) -> Result<(), StoreError> {
        self.with(show, |room| room.end_payment(sale, extension_ms))
    }

    async fn renew(&self, show: Uuid, party: &Sale, renewal: &Renewal) -> Result<Result<Held, Refusal>, StoreError> {
        self.with(show, |room| room.renew(party, renewal))
    }

    async fn book(&self, show: Uuid, sale: &Sale) -> Result<(), StoreError> {
        self.with(show, |room| room.book(sale))
    }

    async fn free_keeping(&self, show: Uuid, sale: &Sale, kept: &[SeatIndex]) -> Result<(), StoreError> {
        self.with(show, |room| room.free(sale, kept))
    }

    async fn block(&self, show: Uuid, seats: &[SeatIndex], blocked: bool) -> Result<Result<(), Refusal>, StoreError> {
        self.with(show, |room| room.block(seats, blocked))
    }

    async fn withdraw(&self, show: Uuid, seats: &[SeatIndex]) -> Result<Result<Vec<SeatIndex>, Refusal>, StoreError> {
        self.with(show, |room| room.withdraw(seats))
    }

    async fn release_all(&self, show: Uuid) -> Result<ReleasedAll, StoreError> {
        self.with(show, Room::release_all)
    }

    async fn adopt(
        &self,
        show: Uuid,
        owner: &str,
        held: &Held,
        now: Timestamp,
    ) -> Result<Result<(), Refusal>, StoreError> {
        self.with(show, |room| room.adopt(owner, held, now))
    }

    async fn stamp(&self, show: Uuid, fences: &[(Uuid, i64)]) -> Result<(), StoreError> {
        self.with(show, |room| room.stamp(fences))
    }

    async fn sweep(&self, show: Uuid) -> Result<u64, StoreError> {
        loop {
            let (left, due) = self.with(show, |room| (room.live_holds(), room.has_due()))?;
            if !due {
                return Ok(left);
            }
        }
    }

    async fn snapshot(&self, show: Uuid) -> Result<MapSnapshot, StoreError> {
        let shows = self.lock();
        let room = shows.rooms.get(&show).filter(|room| !room.is_nothing());
        room.map(Room::snapshot).ok_or(StoreError::NoMap(show))
    }

    async fn load(&self, show: Uuid, known: &KnownSeats) -> Result<(), StoreError> {
        if self.with(show, |_| ()).is_ok() {
            return Ok(());
        }
        let micros = (self.clock)().0.saturating_mul(MICROS_PER_MS);
        let mut shows = self.lock();
        let floor = shows.floor;
        // Somebody else may have been faster.
        let nothing = shows.rooms.get(&show).is_none_or(Room::is_nothing);
        if nothing {
            let (earlier_epoch, earlier_version) = shows.rooms.get(&show).map_or((floor, 0), Room::position);
            let epoch = micros.max(earlier_epoch + 1);
            let room = Room::build(known, epoch, earlier_version + 1, micros.max(floor));
            self.announce(show, room.built_text());
            shows.rooms.insert(show, room);
        }
        Ok(())
    }

    async fn forget(&self, show: Uuid) -> Result<(), StoreError> {
        let mut shows = self.lock();
        if let Some(room) = shows.rooms.remove(&show) {
            shows.floor = shows.floor.max(room.highest_number());
        }
        Ok(())
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
