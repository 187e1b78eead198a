//! Seat locks in memory: the rules of `lua/*.lua` without Redis. For tests and simulations, where the caller sets
//! its clock, and as the second of a shadow pair that verifies Redis.
//!
//! It does not persist and serves one process. It loses nothing, so it never falls back to an older version.

mod answers;
mod calls;
mod show_seats;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use domain::seats::SeatIndex;
use domain::time::Timestamp;
use tokio::sync::broadcast;
use uuid::Uuid;

use self::show_seats::ShowSeats;
use super::{
    FencedSelection, HoldLimits, HoldUpdate, LockAttempt, MapSnapshot, RebuildInput, ReleasedAll, Renewal,
    RequestIdentity, SeatLocks, SeatResult, StoreError, StoreResult, StoredHold,
};

/// Announcements kept for a slow receiver; beyond, it gets the number it missed.
const MAX_PENDING_ANNOUNCEMENTS: usize = 4_096;
/// Epochs and fences begin at the time in microseconds, as in Redis.
const MICROS_PER_MS: i64 = 1_000;

/// A clock that only moves when it is advanced.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// Creates a clock at `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(now.0)))
    }

    /// Advances the clock and all its copies by `ms` milliseconds.
    pub fn pass(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }

    /// The present time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
}

/// A change of a map, as Redis would publish it.
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
    by_show: HashMap<Uuid, ShowSeats>,
    /// Higher than every epoch and fence of a deleted show, so that none is used twice.
    floor: i64,
}

impl MemoryLocks {
    /// Creates an empty store that reads `clock` once in every call.
    #[must_use]
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            clock: Box::new(clock),
            shows: Mutex::default(),
            announcements: broadcast::Sender::new(MAX_PENDING_ANNOUNCEMENTS),
        }
    }

    /// Subscribes to the changes of all shows.
    #[must_use]
    pub fn announcements(&self) -> broadcast::Receiver<Announcement> {
        self.announcements.subscribe()
    }

    /// Runs one call: frees due holds, runs `act`, and announces all changes as one version.
    fn with<T>(&self, show: Uuid, act: impl FnOnce(&mut ShowSeats) -> T) -> StoreResult<T> {
        let now = (self.clock)();
        let mut shows = self.lock();
        let seats = shows.by_show.get_mut(&show).filter(|seats| !seats.is_empty()).ok_or(StoreError::NoMap(show))?;
        seats.begin_call(now);
        let answer = act(seats);
        if let Some(text) = seats.finish_call() {
            self.announce(show, text);
        }
        Ok(answer)
    }

    // Without receivers an announcement is dropped.
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
        terms: HoldLimits,
        attempts: &[LockAttempt],
    ) -> StoreResult<Vec<SeatResult<StoredHold>>> {
        self.with(show, |show_seats| show_seats.lock(terms, attempts))
    }

    async fn change(&self, show: Uuid, terms: HoldLimits, change: &HoldUpdate) -> StoreResult<SeatResult<StoredHold>> {
        self.with(show, |show_seats| show_seats.change(terms, change))
    }

    async fn extend(
        &self,
        show: Uuid,
        asked: RequestIdentity,
        hold: Uuid,
        owner: &str,
        by_ms: i64,
    ) -> StoreResult<SeatResult<StoredHold>> {
        self.with(show, |show_seats| show_seats.extend(asked, hold, owner, by_ms))
    }

    async fn hold_of(&self, show: Uuid, owner: &str) -> StoreResult<Option<StoredHold>> {
        self.with(show, |show_seats| show_seats.hold_of(owner))
    }

    async fn shorten_hold(&self, show: Uuid, hold: Uuid, owner: &str, grace_ms: i64) -> StoreResult<()> {
        self.with(show, |show_seats| show_seats.shorten_hold(hold, owner, grace_ms))
    }

    async fn release(&self, show: Uuid, hold: Uuid, owner: &str) -> StoreResult<SeatResult<()>> {
        self.with(show, |show_seats| show_seats.release(hold, owner))
    }

    async fn begin_payment(
        &self,
        show: Uuid,
        sale: &FencedSelection,
        extension_ms: i64,
    ) -> StoreResult<SeatResult<Timestamp>> {
        self.with(show, |show_seats| show_seats.begin_payment(sale, extension_ms))
    }

    async fn end_payment(&self, show: Uuid, sale: &FencedSelection, extension_ms: i64) -> StoreResult<()> {
        self.with(show, |show_seats| show_seats.end_payment(sale, extension_ms))
    }

    async fn renew(
        &self,
        show: Uuid,
        party: &FencedSelection,
        renewal: &Renewal,
    ) -> StoreResult<SeatResult<StoredHold>> {
        self.with(show, |show_seats| show_seats.renew(party, renewal))
    }

    async fn book(&self, show: Uuid, sale: &FencedSelection) -> StoreResult<()> {
        self.with(show, |show_seats| show_seats.book(sale))
    }

    async fn free_and_block(&self, show: Uuid, sale: &FencedSelection, kept: &[SeatIndex]) -> StoreResult<()> {
        self.with(show, |show_seats| show_seats.free(sale, kept))
    }

    async fn block(&self, show: Uuid, seats: &[SeatIndex], blocked: bool) -> StoreResult<SeatResult<()>> {
        self.with(show, |show_seats| show_seats.block(seats, blocked))
    }

    async fn withdraw(&self, show: Uuid, seats: &[SeatIndex]) -> StoreResult<SeatResult<Vec<SeatIndex>>> {
        self.with(show, |show_seats| show_seats.withdraw(seats))
    }

    async fn release_all(&self, show: Uuid) -> StoreResult<ReleasedAll> {
        self.with(show, ShowSeats::release_all)
    }

    async fn copy_hold(
        &self,
        show: Uuid,
        owner: &str,
        held: &StoredHold,
        now: Timestamp,
    ) -> StoreResult<SeatResult<()>> {
        self.with(show, |show_seats| show_seats.copy_hold(owner, held, now))
    }

    async fn copy_fences(&self, show: Uuid, fences: &[(Uuid, i64)]) -> StoreResult<()> {
        self.with(show, |show_seats| show_seats.copy_fences(fences))
    }

    async fn sweep(&self, show: Uuid) -> StoreResult<u64> {
        loop {
            let (left, due) = self.with(show, |show_seats| (show_seats.live_holds(), show_seats.has_due()))?;
            if !due {
                return Ok(left);
            }
        }
    }

    async fn snapshot(&self, show: Uuid) -> StoreResult<MapSnapshot> {
        let shows = self.lock();
        let seats = shows.by_show.get(&show).filter(|seats| !seats.is_empty());
        seats.map(ShowSeats::snapshot).ok_or(StoreError::NoMap(show))
    }

    async fn load(&self, show: Uuid, known: &RebuildInput) -> StoreResult<()> {
        if self.with(show, |_| ()).is_ok() {
            return Ok(());
        }
        let micros = (self.clock)().0.saturating_mul(MICROS_PER_MS);
        let mut shows = self.lock();
        let floor = shows.floor;
        // Another call may have loaded it meanwhile.
        let is_missing = shows.by_show.get(&show).is_none_or(ShowSeats::is_empty);
        if is_missing {
            let (earlier_epoch, earlier_version) = shows.by_show.get(&show).map_or((floor, 0), ShowSeats::position);
            let epoch = micros.max(earlier_epoch + 1);
            let seats = ShowSeats::build(known, epoch, earlier_version + 1, micros.max(floor));
            self.announce(show, seats.rebuild_announcement());
            shows.by_show.insert(show, seats);
        }
        Ok(())
    }

    async fn forget(&self, show: Uuid) -> StoreResult<()> {
        let mut shows = self.lock();
        if let Some(seats) = shows.by_show.remove(&show) {
            shows.floor = shows.floor.max(seats.highest_number());
        }
        Ok(())
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    async fn ping(&self) -> StoreResult<()> {
        Ok(())
    }
}
