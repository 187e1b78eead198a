//! One show's map on this replica, and everyone who reads it.
//!
//! Sockets are told once a tick ([`Hub::announce`]). Readers in step take the tick's bytes without any lock
//! of the hub; a reader who fell behind asks for one merged delta, or the snapshot where that is shorter.
//! There is no queue for anyone.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use domain::seats::{AreaIndex, SeatIndex, SeatState};
use domain::time::Timestamp;
use domain::waiting_room::Queue;
use domain::wire::{Change, Frame};
use tokio::sync::{OnceCell, watch};
use uuid::Uuid;

use super::announcement::Step;
use super::inbox::Inbox;
use super::map::{At, LiveMap, Sections};
use super::recent_locks::Lately;
use super::view::{self, News, NumberedFrame, Tick, View};
use super::websocket_frames::packed;
use crate::seat_locks::MapSnapshot;

/// Sets of sections one show encodes deltas for, besides the whole room. Readers of further sets get the
/// whole room: more than they asked for, never less.
const MAX_SECTION_SETS: usize = 64;
/// A delta up to this length is sent without comparing it with the snapshot, bytes.
const SHORT_DELTA_BYTES: usize = 512;
/// An encoded snapshot tells the time; it is shared for so long, milliseconds.
const SNAPSHOT_LIFE_MS: i64 = 50;

/// What the sockets of a show share.
pub(super) struct Hub {
    pub(super) show: Uuid,
    sections: Sections,
    /// Set once the first snapshot was read; who opens it reads for everyone who waits.
    pub(super) opened: OnceCell<()>,
    inner: Mutex<Inner>,
    lately: Mutex<Lately>,
}

struct Inner {
    /// `None` until the first snapshot was read.
    map: Option<LiveMap>,
    inbox: Inbox,
    /// The whole room first.
    views: Vec<View>,
    overview: NumberedFrame,
    /// What the overview said last.
    overview_of: Vec<u32>,
    areas: NumberedFrame,
    areas_of: Vec<(AreaIndex, u32)>,
    /// How the waiting room stands, where there is one.
    queue: NumberedFrame,
    queue_of: Queue,
    /// The present as a frame, and the time it tells.
    snapshot: Option<(Timestamp, Bytes)>,
    /// The present as JSON.
    json: Option<Bytes>,
    stopping: bool,
}

/// The part of the map that a reader lacks.
enum Missing {
    /// A delta that was encoded before.
    Encoded(Bytes),
    /// Changes that are not encoded yet.
    Changes(Vec<Change>),
    /// More than the history has.
    Everything,
}

impl Hub {
    pub(super) fn new(show: Uuid, sections: Sections) -> Self {
        let inner = Inner {
            map: None,
            inbox: Inbox::default(),
            views: vec![View::new(Box::default(), Vec::new())],
            overview: NumberedFrame::default(),
            overview_of: Vec::new(),
            areas: NumberedFrame::default(),
            areas_of: Vec::new(),
            queue: NumberedFrame::default(),
            queue_of: Queue::default(),
            snapshot: None,
            json: None,
            stopping: false,
        };
        Self { show, sections, opened: OnceCell::new(), inner: Mutex::new(inner), lately: Mutex::default() }
    }

    /// How many sections the room has.
    pub(super) fn section_count(&self) -> usize {
        self.sections.len()
    }

    /// Whether it is of a room with these sections and so many seats.
    pub(super) fn is_of(&self, sections: impl Iterator<Item = Range<SeatIndex>>, seats: usize) -> bool {
        let end = self.sections.last().map_or(0, |last| last.end as usize);
        end == seats && self.sections.iter().cloned().eq(sections)
    }

    /// Whether its readers were told to come back elsewhere.
    pub(super) fn is_stopped(&self) -> bool {
        self.lock().stopping
    }

    /// The seats of these sections, which are the room's.
    pub(super) fn seats_of(&self, sections: &[u16]) -> Vec<Range<SeatIndex>> {
        sections.iter().filter_map(|section| self.sections.get(usize::from(*section))).cloned().collect()
    }

    /// Follows these sections, sorted, each once: the sections that are really told, and their ticks.
    pub(super) fn subscribe(&self, sections: &[u16]) -> (Box<[u16]>, watch::Receiver<Tick>) {
        let sections = if sections.len() >= self.sections.len() { &[] } else { sections };
        let mut inner = self.lock();
        if let Some(view) = inner.views.iter().find(|view| *view.sections == *sections) {
            return (view.sections.clone(), view.subscribe());
        }
        if inner.views.len() > MAX_SECTION_SETS {
            return (Box::default(), inner.views[0].subscribe());
        }
        let mut view = View::new(sections.into(), self.seats_of(sections));
        let ticks = view.subscribe();
        inner.tell_overview();
        if let Some(news) = inner.news(true) {
            view.publish(&news);
        }
        inner.views.push(view);
        (sections.into(), ticks)
    }

    /// How many sockets follow it.
    pub(super) fn readers(&self) -> usize {
        self.lock().views.iter().map(View::readers).sum()
    }

    /// Takes an announcement. It is told at the next tick, or when a snapshot was read.
    pub(super) fn take(&self, step: Step) {
        let Inner { map, inbox, .. } = &mut *self.lock();
        inbox.take(step, |changes| map.as_ref().is_some_and(|map| map.has(changes)));
    }

    /// Remembers for a moment which seats somebody has just taken.
    pub(super) fn note_locked(&self, step: &Step, now: Timestamp) {
        let Some(changes) = &step.changes else { return };
        let locked = changes.seats.iter().filter(|(_, state)| *state == SeatState::Locked);
        self.lately.lock().unwrap_or_else(PoisonError::into_inner).note(locked.map(|(seat, _)| *seat), now);
    }

    /// How long before `now` a seat was taken, milliseconds; `None` when that was not just now.
    pub(super) fn locked_ago(&self, seat: SeatIndex, now: Timestamp) -> Option<u32> {
        self.lately.lock().unwrap_or_else(PoisonError::into_inner).ago(seat, now)
    }

    /// Notes that announcements may have been missed: the next tick reads a snapshot.
    pub(super) fn mark_stale(&self) {
        self.lock().inbox.mark_stale();
    }

    /// Whether it waits for a snapshot.
    pub(super) fn is_stale(&self) -> bool {
        self.lock().inbox.is_stale()
    }

    /// The version heard of so far: what a snapshot asked for from now on must reach.
    pub(super) fn heard(&self) -> At {
        self.lock().inbox.heard()
    }

    /// Goes on from a snapshot that was asked for when the hub had heard of `before`.
    pub(super) fn resync(&self, before: At, snapshot: &MapSnapshot) {
        let mut inner = self.lock();
        let Inner { map, inbox, .. } = &mut *inner;
        let fresh = LiveMap::of(snapshot, Sections::clone(&self.sections));
        let now = fresh.at();
        let fits = |map: &Option<LiveMap>, changes: &_| map.as_ref().is_some_and(|map: &LiveMap| map.has(changes));
        let heard = inbox.heard();
        match map.as_mut().filter(|map| map.at().epoch == now.epoch && map.seats().len() == fresh.seats().len()) {
            Some(map) if now.version >= heard.version => map.move_to(&fresh),
            // Later announcements were heard while it was read: it tells nothing new.
            Some(_) if now.version >= before.version => {
                inbox.take_early(|changes| fits(map, changes));
                return;
            }
            // Another room or epoch, or a store that went back in time.
            _ => *map = Some(fresh),
        }
        inbox.start_at(now, |changes| fits(map, changes));
        inner.moved();
    }

    /// One tick: the map moves on, and readers are told. At a `roll_call`, about once a second, the
    /// overview is told too, and readers of sections where nothing happened learn the version.
    pub(super) fn announce(&self, roll_call: bool) {
        let mut inner = self.lock();
        inner.settle();
        inner.views.retain(|view| view.is_whole() || view.readers() > 0);
        if roll_call && inner.views.len() > 1 {
            inner.tell_overview();
        }
        inner.tell_areas();
        inner.publish(roll_call);
    }

    /// How the waiting room stands now; told at the next tick, if that is news.
    pub(super) fn note_queue(&self, queue: Queue) {
        let mut inner = self.lock();
        if inner.queue_of != queue {
            inner.queue_of = queue;
            inner.queue.tell(&Frame::Queue(queue));
        }
    }

    /// Tells every reader to come back: this server is about to stop, or the show is in another room.
    pub(super) fn stop(&self) {
        let mut inner = self.lock();
        inner.stopping = true;
        inner.publish(false);
    }

    /// Brings a reader of these sections from `at` to the present, with every seat of the sections that
    /// are `new` to them; `None` when they lack nothing. The changes are collected under the hub's lock and
    /// encoded outside of it: a reader who asks again and again delays no tick.
    pub(super) fn catch_up(
        &self,
        at: Option<At>,
        sections: &[u16],
        new: &[Range<SeatIndex>],
        now: Timestamp,
    ) -> Option<(At, Bytes)> {
        let (present, missing) = self.missing(at, sections, new)?;
        let delta = match (missing, at) {
            (Missing::Encoded(bytes), _) => Some(bytes),
            (Missing::Changes(changes), Some(at)) => {
                let bytes = view::delta(at.version, present.version, changes);
                if new.is_empty() {
                    self.keep_merged(at.version, present, sections, &bytes);
                }
                Some(bytes)
            }
            (Missing::Everything | Missing::Changes(_), _) => None,
        };
        if let Some(delta) = delta.as_ref().filter(|delta| delta.len() <= SHORT_DELTA_BYTES) {
            return Some((present, delta.clone()));
        }
        let (snapshot_at, snapshot) = self.snapshot(now)?;
        let shorter = delta.filter(|delta| delta.len() <= snapshot.len());
        Some(shorter.map_or((snapshot_at, snapshot), |delta| (present, delta)))
    }

    /// The present version, and the part of it that a reader at `at` lacks.
    fn missing(&self, at: Option<At>, sections: &[u16], new: &[Range<SeatIndex>]) -> Option<(At, Missing)> {
        let inner = self.lock();
        let map = inner.map.as_ref()?;
        let present = map.at();
        if at == Some(present) && new.is_empty() {
            return None;
        }
        let view = inner.views.iter().find(|view| *view.sections == *sections);
        let missing = match (at.filter(|at| map.reaches_back_to(*at)), view) {
            (Some(at), Some(view)) if new.is_empty() => view
                .merged_since(at.version)
                .map_or_else(|| Missing::Changes(view.changes_since(at.version, map)), Missing::Encoded),
            (Some(at), Some(view)) => Missing::Changes(view.changes_with(at.version, new, map)),
            _ => Missing::Everything,
        };
        Some((present, missing))
    }

    /// Keeps a delta for other readers at that version, if it still leads to the present.
    fn keep_merged(&self, from: u64, to: At, sections: &[u16], bytes: &Bytes) {
        let mut inner = self.lock();
        let is_present = inner.map.as_ref().is_some_and(|map| map.at() == to);
        if let Some(view) = inner.views.iter_mut().find(|view| *view.sections == *sections).filter(|_| is_present) {
            view.keep_merged(from, bytes);
        }
    }

    /// The present as a frame, encoded outside the lock, once for all readers of a moment.
    fn snapshot(&self, now: Timestamp) -> Option<(At, Bytes)> {
        let (at, seats) = {
            let inner = self.lock();
            let map = inner.map.as_ref()?;
            if let Some((encoded_at, bytes)) = &inner.snapshot
                && (0..=SNAPSHOT_LIFE_MS).contains(&(now.0 - encoded_at.0))
            {
                return Some((map.at(), bytes.clone()));
            }
            (map.at(), map.seats().to_vec())
        };
        let bytes = packed(&Frame::Snapshot { epoch: at.epoch, version: at.version, now, map: seats });
        let mut inner = self.lock();
        if inner.map.as_ref().is_some_and(|map| map.at() == at) {
            inner.snapshot = Some((now, bytes.clone()));
        }
        Some((at, bytes))
    }

    /// The present as JSON, written once a version by `write`. It does not wait for the tick: who has
    /// just taken a seat and reads the map should find it taken.
    pub(super) fn json(&self, write: impl FnOnce(&LiveMap) -> Bytes) -> Option<(At, Bytes)> {
        let mut inner = self.lock();
        inner.settle();
        let Inner { map: Some(map), json, .. } = &mut *inner else { return None };
        Some((map.at(), json.get_or_insert_with(|| write(map)).clone()))
    }

    /// The present, copied, as [`Hub::json`] tells it.
    pub(super) fn states(&self) -> Option<(At, Vec<SeatState>)> {
        let mut inner = self.lock();
        inner.settle();
        inner.map.as_ref().map(|map| (map.at(), map.seats().to_vec()))
    }

    // Held for memory work only, never across an await.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Moves the map on by what was announced.
    fn settle(&mut self) {
        let Self { map: Some(map), inbox, .. } = self else { return };
        let steps = inbox.next();
        steps.iter().for_each(|(version, changes)| map.apply(*version, changes));
        if !steps.is_empty() {
            self.moved();
        }
    }

    /// Forgets what was encoded of the version before.
    fn moved(&mut self) {
        (self.snapshot, self.json) = (None, None);
        self.views.iter_mut().for_each(View::forget_merged);
    }

    fn news(&self, roll_call: bool) -> Option<News<'_>> {
        let map = self.map.as_ref()?;
        Some(News {
            map,
            overview: &self.overview,
            areas: &self.areas,
            queue: &self.queue,
            roll_call,
            stopping: self.stopping,
        })
    }

    fn publish(&mut self, roll_call: bool) {
        let mut views = std::mem::take(&mut self.views);
        if let Some(news) = self.news(roll_call) {
            views.iter_mut().for_each(|view| view.publish(&news));
        }
        self.views = views;
    }

    fn tell_overview(&mut self) {
        let Some(map) = self.map.as_ref().filter(|map| map.free() != self.overview_of) else { return };
        self.overview_of = map.free().to_vec();
        self.overview.tell(&Frame::Overview { free: self.overview_of.clone() });
    }

    fn tell_areas(&mut self) {
        let Some(left) = self.map.as_ref().map(LiveMap::areas).filter(|left| *left != self.areas_of) else { return };
        self.areas_of.clone_from(&left);
        self.areas.tell(&Frame::Areas { left });
    }
}
