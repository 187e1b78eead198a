//! Frames shared by the readers of the same seats: the whole room, or some of its sections.

use std::ops::Range;

use bytes::Bytes;
use domain::seats::SeatIndex;
use domain::wire::{Frame, SeatChange};
use tokio::sync::watch;

use super::map::{LiveMap, MapVersion};
use super::websocket_frames::encode;

/// Merged deltas kept until the next tick: readers that fell behind at the same time have the same version.
const MAX_MERGED: usize = 8;

/// A frame that is sent after each change; readers compare its number with that of the frame they have.
#[derive(Clone, Debug, Default)]
pub(super) struct NumberedFrame {
    /// 0: there is no frame.
    pub(super) number: u32,
    pub(super) frame: Bytes,
}

impl NumberedFrame {
    pub(super) fn replace(&mut self, frame: &Frame) {
        *self = Self { number: self.number.wrapping_add(1).max(1), frame: encode(frame) };
    }
}

/// One tick for all readers at its start version; they take it without a lock of the hub and without encoding.
#[derive(Clone, Debug, Default)]
pub(super) struct Tick {
    /// The version it leads to.
    pub(super) at: MapVersion,
    /// The version it starts from, in the same epoch.
    pub(super) from: u64,
    /// The delta from `from` to `at`. Empty: a reader needs its own delta, or a snapshot.
    pub(super) delta: Bytes,
    pub(super) overview: NumberedFrame,
    pub(super) areas: NumberedFrame,
    pub(super) queue: NumberedFrame,
    /// The server is about to stop.
    pub(super) stopping: bool,
}

/// The state of a hub that all its views share.
pub(super) struct ViewUpdate<'a> {
    pub(super) map: &'a LiveMap,
    pub(super) overview: &'a NumberedFrame,
    pub(super) areas: &'a NumberedFrame,
    pub(super) queue: &'a NumberedFrame,
    /// True if views without changes catch up as well; about once a second.
    pub(super) includes_idle_views: bool,
    pub(super) stopping: bool,
}

pub(super) struct View {
    /// Sorted section numbers; empty for the whole room.
    pub(super) sections: Box<[u16]>,
    ranges: Vec<Range<SeatIndex>>,
    ticks: watch::Sender<Tick>,
    merged: Vec<(u64, Bytes)>,
}

impl View {
    /// Creates the view of these sections, whose seats are `ranges`.
    pub(super) fn new(sections: Box<[u16]>, ranges: Vec<Range<SeatIndex>>) -> Self {
        Self { sections, ranges, ticks: watch::Sender::new(Tick::default()), merged: Vec::new() }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Tick> {
        self.ticks.subscribe()
    }

    pub(super) fn readers(&self) -> usize {
        self.ticks.receiver_count()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.sections.is_empty()
    }

    fn within(&self) -> Option<&[Range<SeatIndex>]> {
        if self.is_whole() { None } else { Some(&self.ranges) }
    }

    /// Wakes the readers, if there is something new for them.
    pub(super) fn publish(&mut self, update: &ViewUpdate<'_>) {
        let at = update.map.at();
        let (last, overview, areas, queue, stopping) = {
            let tick = self.ticks.borrow();
            (tick.at, tick.overview.number, tick.areas.number, tick.queue.number, tick.stopping)
        };
        let changes = update.map.reaches_back_to(last).then(|| update.map.changes_since(last.version, self.within()));
        let is_due = match &changes {
            Some(changes) => at != last && (self.is_whole() || update.includes_idle_views || !changes.is_empty()),
            None => true,
        };
        let has_overview = self.is_whole() || overview == update.overview.number;
        let has_others = areas == update.areas.number && queue == update.queue.number;
        if !is_due && has_overview && has_others && stopping == update.stopping {
            return;
        }
        // After a tick that changed half the room a snapshot is shorter: each reader asks for it.
        let delta = changes
            .map(|changes| delta(last.version, at.version, changes))
            .filter(|delta| delta.len() <= update.map.longest_snapshot())
            .unwrap_or_default();
        let overview = if self.is_whole() { NumberedFrame::default() } else { update.overview.clone() };
        self.ticks.send_replace(Tick {
            at,
            from: last.version,
            delta,
            overview,
            areas: update.areas.clone(),
            queue: update.queue.clone(),
            stopping: update.stopping,
        });
    }

    /// The kept delta from that version to the present.
    pub(super) fn merged_since(&self, from: u64) -> Option<Bytes> {
        self.merged.iter().find(|(version, _)| *version == from).map(|(_, bytes)| bytes.clone())
    }

    /// Keeps a delta to the present for other readers at version `from`.
    pub(super) fn keep_merged(&mut self, from: u64, bytes: &Bytes) {
        if self.merged.len() < MAX_MERGED && self.merged_since(from).is_none() {
            self.merged.push((from, bytes.clone()));
        }
    }

    /// Changes since a version of this epoch within the history.
    pub(super) fn changes_since(&self, from: u64, map: &LiveMap) -> Vec<SeatChange> {
        map.changes_since(from, self.within())
    }

    /// Changes since `from`, and every seat of the sections that are `new` to the reader.
    pub(super) fn changes_with(&self, from: u64, new: &[Range<SeatIndex>], map: &LiveMap) -> Vec<SeatChange> {
        let mut changes = self.changes_since(from, map);
        changes.extend(map.states_of(new));
        changes.sort_unstable_by_key(|change| change.seat);
        changes.dedup_by_key(|change| change.seat);
        changes
    }

    /// Drops the merged deltas after a change of the map.
    pub(super) fn forget_merged(&mut self) {
        self.merged.clear();
    }
}

pub(super) fn delta(from: u64, to: u64, changes: Vec<SeatChange>) -> Bytes {
    encode(&Frame::Delta { from, to, changes })
}
