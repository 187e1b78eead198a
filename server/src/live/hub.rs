//! One show's map on this replica.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use domain::seats::{SeatIndex, SeatState};
use domain::time::Timestamp;
use domain::wire::{Change, Frame};
use tokio::sync::watch;
use uuid::Uuid;

use crate::seat_locks::MapSnapshot;

/// The changes of one message: from the version before to `version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) epoch: u64,
    pub(super) version: u64,
    /// `None`: the map was rebuilt, ask for a snapshot.
    pub(super) changes: Option<Vec<(SeatIndex, SeatState)>>,
}

/// What became of a [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Applied, or older than what we have.
    Yes,
    /// Something between is missing: a snapshot must be read.
    Gap,
}

/// What the sockets of a show share.
pub(super) struct Hub {
    pub(super) show: Uuid,
    map: Mutex<HubMap>,
    /// The version sockets may send up to; moves once a tick.
    announced: watch::Sender<(u64, u64)>,
    /// A snapshot was needed and could not be read: the map may be stale until one can.
    stale: AtomicBool,
}

struct HubMap {
    epoch: u64,
    version: u64,
    seats: Vec<SeatState>,
    /// Version at which each seat last changed; a delta from any version is one pass over it.
    changed_at: Vec<u64>,
    /// Deltas of this epoch can start here or later.
    oldest: u64,
    /// The last delta that was asked for: in step, all sockets ask for the same.
    last_delta: Option<(u64, u64, Bytes)>,
}

impl Hub {
    pub(super) fn new(show: Uuid, snapshot: &MapSnapshot) -> Self {
        let map = HubMap::of(snapshot);
        let (announced, _) = watch::channel((map.epoch, map.version));
        Self { show, map: Mutex::new(map), announced, stale: AtomicBool::new(false) }
    }

    /// Follows the ticks of this hub.
    pub(super) fn subscribe(&self) -> watch::Receiver<(u64, u64)> {
        self.announced.subscribe()
    }

    /// Notes that a snapshot is needed and could not be had.
    pub(super) fn mark_stale(&self) {
        self.stale.store(true, Ordering::Relaxed);
    }

    /// Whether it still waits for a snapshot.
    pub(super) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Relaxed)
    }

    /// How many sockets follow it.
    pub(super) fn readers(&self) -> usize {
        self.announced.receiver_count()
    }

    pub(super) fn take(&self, step: &Step) -> Taken {
        let mut map = self.lock();
        let Some(changes) = &step.changes else { return Taken::Gap };
        if step.epoch != map.epoch || step.version > map.version + 1 {
            return Taken::Gap;
        }
        if step.version == map.version + 1 {
            for (seat, state) in changes {
                let index = *seat as usize;
                if index >= map.seats.len() {
                    return Taken::Gap;
                }
                map.seats[index] = *state;
                map.changed_at[index] = step.version;
            }
            map.version = step.version;
        }
        Taken::Yes
    }

    /// Starts over from a snapshot. One of the same epoch only adds what is new.
    pub(super) fn resync(&self, snapshot: &MapSnapshot) {
        self.stale.store(false, Ordering::Relaxed);
        let mut map = self.lock();
        let fresh = HubMap::of(snapshot);
        if fresh.epoch != map.epoch || fresh.seats.len() != map.seats.len() {
            *map = fresh;
        } else if fresh.version > map.version {
            for (index, state) in fresh.seats.iter().enumerate() {
                if map.seats[index] != *state {
                    map.seats[index] = *state;
                    map.changed_at[index] = fresh.version;
                }
            }
            map.version = fresh.version;
        }
    }

    /// One tick: lets the sockets send what came since the last.
    pub(super) fn announce(&self) {
        let now = {
            let map = self.lock();
            (map.epoch, map.version)
        };
        self.announced.send_if_modified(|last| std::mem::replace(last, now) != now);
    }

    /// The map as a frame, with the version it brings a reader to.
    pub(super) fn snapshot(&self, now: Timestamp) -> (u64, u64, Bytes) {
        let map = self.lock();
        let frame = Frame::Snapshot { epoch: map.epoch, version: map.version, now, map: map.seats.clone() };
        (map.epoch, map.version, frame.encode().into())
    }

    /// What a reader at `epoch` and `version` is missing: nothing, one delta, or `Err` when only a
    /// snapshot helps.
    pub(super) fn delta(&self, epoch: u64, version: u64) -> Result<Option<(u64, Bytes)>, ()> {
        let mut map = self.lock();
        if epoch != map.epoch || version > map.version || version < map.oldest {
            return Err(());
        }
        if version == map.version {
            return Ok(None);
        }
        if let Some((from, to, bytes)) = &map.last_delta
            && (*from, *to) == (version, map.version)
        {
            return Ok(Some((*to, bytes.clone())));
        }
        let changes: Vec<Change> = map
            .changed_at
            .iter()
            .zip(&map.seats)
            .enumerate()
            .filter(|(_, (changed_at, _))| **changed_at > version)
            .map(|(index, (_, state))| Change { seat: index as SeatIndex, state: *state })
            .collect();
        let to = map.version;
        let bytes = Bytes::from(Frame::Delta { from: version, to, changes }.encode());
        map.last_delta = Some((version, to, bytes.clone()));
        Ok(Some((to, bytes)))
    }

    /// Epoch, version and states, for the JSON reading of the map.
    pub(super) fn states(&self) -> (u64, u64, Vec<SeatState>) {
        let map = self.lock();
        (map.epoch, map.version, map.seats.clone())
    }

    // Held for memory work only, never across an await.
    fn lock(&self) -> MutexGuard<'_, HubMap> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HubMap {
    fn of(snapshot: &MapSnapshot) -> Self {
        // A byte nobody should have written is not for sale.
        let seats: Vec<_> =
            snapshot.map.iter().map(|byte| SeatState::from_byte(*byte).unwrap_or(SeatState::Blocked)).collect();
        Self {
            epoch: snapshot.epoch,
            version: snapshot.version,
            changed_at: vec![0; seats.len()],
            oldest: snapshot.version,
            last_delta: None,
            seats,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub() -> Hub {
        let map = Bytes::from(vec![0_u8; 8]);
        Hub::new(Uuid::nil(), &MapSnapshot { epoch: 1, version: 10, map })
    }

    fn step(version: u64, seat: SeatIndex, state: SeatState) -> Step {
        Step { epoch: 1, version, changes: Some(vec![(seat, state)]) }
    }

    fn decoded(hub: &Hub, version: u64) -> Frame {
        let (_, bytes) = hub.delta(1, version).expect("same epoch").expect("something is new");
        Frame::decode(&bytes, 8).expect("a frame")
    }

    #[test]
    fn a_reader_who_slept_gets_one_merged_delta() {
        let hub = hub();
        hub.take(&step(11, 3, SeatState::Locked));
        hub.take(&step(12, 5, SeatState::Locked));
        hub.take(&step(13, 3, SeatState::Available));
        let change = |seat, state| Change { seat, state };
        assert_eq!(
            decoded(&hub, 10),
            Frame::Delta {
                from: 10,
                to: 13,
                changes: vec![change(3, SeatState::Available), change(5, SeatState::Locked)]
            }
        );
        assert_eq!(
            decoded(&hub, 12),
            Frame::Delta { from: 12, to: 13, changes: vec![change(3, SeatState::Available)] }
        );
        assert_eq!(hub.delta(1, 13), Ok(None));
    }

    #[test]
    fn a_missing_message_and_another_epoch_are_gaps_and_an_old_message_is_none() {
        let hub = hub();
        assert_eq!(hub.take(&step(12, 1, SeatState::Locked)), Taken::Gap);
        assert_eq!(hub.take(&step(10, 1, SeatState::Locked)), Taken::Yes);
        assert_eq!(hub.states().2[1], SeatState::Available);
        assert_eq!(hub.take(&Step { epoch: 2, version: 1, changes: None }), Taken::Gap);
        assert_eq!(hub.take(&step(11, 99, SeatState::Locked)), Taken::Gap);
    }

    #[test]
    fn readers_of_an_older_epoch_or_before_our_time_need_the_snapshot() {
        let hub = hub();
        assert_eq!(hub.delta(2, 10), Err(()));
        assert_eq!(hub.delta(1, 9), Err(()));
        assert_eq!(hub.delta(1, 11), Err(()));
    }

    #[test]
    fn a_snapshot_of_the_same_epoch_reaches_readers_as_a_delta() {
        let hub = hub();
        let mut map = vec![0_u8; 8];
        map[6] = 2;
        hub.resync(&MapSnapshot { epoch: 1, version: 20, map: map.into() });
        assert_eq!(
            decoded(&hub, 10),
            Frame::Delta { from: 10, to: 20, changes: vec![Change { seat: 6, state: SeatState::Booked }] }
        );
    }
}
