//! What readers of the same seats share: the whole room, or some of its sections.

use std::ops::Range;

use bytes::Bytes;
use domain::seats::SeatIndex;
use domain::wire::{Change, Frame};
use tokio::sync::watch;

use super::map::{At, LiveMap};
use super::websocket_frames::packed;

/// Deltas from other versions than the last tick's that are kept until the next: readers who fell
/// behind together ask for the same.
const MAX_MERGED: usize = 8;

/// A frame that goes out when it changed: its number says whether a reader has it.
#[derive(Clone, Debug, Default)]
pub(super) struct NumberedFrame {
    /// 0: there is nothing to tell.
    pub(super) number: u32,
    pub(super) frame: Bytes,
}

impl NumberedFrame {
    /// Replaces it by the next one.
    pub(super) fn tell(&mut self, frame: &Frame) {
        *self = Self { number: self.number.wrapping_add(1).max(1), frame: packed(frame) };
    }
}

/// What a tick tells everyone in step: no lock of the hub, nothing to encode.
#[derive(Clone, Debug, Default)]
pub(super) struct Tick {
    /// Where it leads to.
    pub(super) at: At,
    /// From this version of the same epoch…
    pub(super) from: u64,
    /// …by this delta. Empty: one of one's own, or a snapshot, is needed.
    pub(super) delta: Bytes,
    pub(super) overview: NumberedFrame,
    pub(super) areas: NumberedFrame,
    pub(super) queue: NumberedFrame,
    /// The server is about to stop.
    pub(super) stopping: bool,
}

/// The news of a hub that are the same for all its views.
pub(super) struct News<'a> {
    pub(super) map: &'a LiveMap,
    pub(super) overview: &'a NumberedFrame,
    pub(super) areas: &'a NumberedFrame,
    pub(super) queue: &'a NumberedFrame,
    /// Whether views that had nothing to say catch up as well; about once a second.
    pub(super) roll_call: bool,
    pub(super) stopping: bool,
}

pub(super) struct View {
    /// Sorted numbers of its sections; none means the whole room.
    pub(super) sections: Box<[u16]>,
    ranges: Vec<Range<SeatIndex>>,
    ticks: watch::Sender<Tick>,
    merged: Vec<(u64, Bytes)>,
}

impl View {
    /// The view of these sections, whose seats are `ranges`.
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

    /// Wakes the readers, if there is something they should know.
    pub(super) fn publish(&mut self, news: &News<'_>) {
        let at = news.map.at();
        let (last, overview, areas, queue, stopping) = {
            let tick = self.ticks.borrow();
            (tick.at, tick.overview.number, tick.areas.number, tick.queue.number, tick.stopping)
        };
        let changes = news.map.reaches_back_to(last).then(|| news.map.changes_since(last.version, self.within()));
        let is_due = match &changes {
            Some(changes) => at != last && (self.is_whole() || news.roll_call || !changes.is_empty()),
            None => true,
        };
        let has_overview = self.is_whole() || overview == news.overview.number;
        let has_others = areas == news.areas.number && queue == news.queue.number;
        if !is_due && has_overview && has_others && stopping == news.stopping {
            return;
        }
        // A tick that changed half the room is told shorter by a snapshot: each reader asks for it.
        let delta = changes
            .map(|changes| delta(last.version, at.version, changes))
            .filter(|delta| delta.len() <= news.map.longest_snapshot())
            .unwrap_or_default();
        let overview = if self.is_whole() { NumberedFrame::default() } else { news.overview.clone() };
        self.ticks.send_replace(Tick {
            at,
            from: last.version,
            delta,
            overview,
            areas: news.areas.clone(),
            queue: news.queue.clone(),
            stopping: news.stopping,
        });
    }

    /// The delta from that version to the present, if it was kept.
    pub(super) fn merged_since(&self, from: u64) -> Option<Bytes> {
        self.merged.iter().find(|(version, _)| *version == from).map(|(_, bytes)| bytes.clone())
    }

    /// Keeps the delta from that version to the present for other readers at that version.
    pub(super) fn keep_merged(&mut self, from: u64, bytes: &Bytes) {
        if self.merged.len() < MAX_MERGED && self.merged_since(from).is_none() {
            self.merged.push((from, bytes.clone()));
        }
    }

    /// Changes since a version of this epoch that the history reaches back to.
    pub(super) fn changes_since(&self, from: u64, map: &LiveMap) -> Vec<Change> {
        map.changes_since(from, self.within())
    }

    /// The same, and every seat of the sections that are `new` to the reader.
    pub(super) fn changes_with(&self, from: u64, new: &[Range<SeatIndex>], map: &LiveMap) -> Vec<Change> {
        let mut changes = self.changes_since(from, map);
        changes.extend(map.states_of(new));
        changes.sort_unstable_by_key(|change| change.seat);
        changes.dedup_by_key(|change| change.seat);
        changes
    }

    /// Forgets deltas to a version that is not the present any more.
    pub(super) fn forget_merged(&mut self) {
        self.merged.clear();
    }
}

/// The frame of these changes.
pub(super) fn delta(from: u64, to: u64, changes: Vec<Change>) -> Bytes {
    packed(&Frame::Delta { from, to, changes })
}
