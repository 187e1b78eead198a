//! The map of one show on this replica, and its readers.
//!
//! Sockets get changes once a tick ([`Hub::publish_tick`]). Readers in step take the tick's bytes without any lock
//! of the hub; a reader that fell behind gets one merged delta, or the snapshot if that is shorter.
//! No reader has a queue.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use bytes::Bytes;
use domain::best_available::{SeatRequest, Suggestion};
use domain::seats::{AreaIndex, SeatIndex, SeatState};
use domain::time::Timestamp;
use domain::waiting_room::WaitingRoomStatus;
use domain::wire::{Frame, SeatChange};
use tokio::sync::{OnceCell, watch};
use uuid::Uuid;

use super::feed::MapChange;
use super::inbox::Inbox;
use super::map::{LiveMap, MapVersion, Sections};
use super::recent_locks::RecentLocks;
use super::view::{self, NumberedFrame, Tick, View, ViewUpdate};
use super::websocket_frames::encode;
use crate::seat_locks::MapSnapshot;

/// Sets of sections one show encodes deltas for, besides the whole room. Readers of further sets get the
/// whole room, which includes their sections.
const MAX_SECTION_SETS: usize = 64;
/// A delta up to this length is sent without comparing it with the snapshot, bytes.
const SHORT_DELTA_BYTES: usize = 512;
/// An encoded snapshot contains the time, so it is shared for only this long, milliseconds.
const SNAPSHOT_LIFE_MS: i64 = 50;
/// Requests whose suggestions are kept per version, at most a kilobyte each; further ones are searched each time.
const MAX_SUGGESTED: usize = 128;

/// The shared state of all sockets of a show.
pub(super) struct Hub {
    pub(super) show: Uuid,
    pub(super) created_at: Instant,
    sections: Sections,
    /// Set after the first snapshot; the first reader reads it for all that wait.
    pub(super) opened: OnceCell<()>,
    inner: Mutex<HubState>,
    recent_locks: Mutex<RecentLocks>,
    /// The slot of the show's search for the best seats.
    pub(super) search: Arc<Semaphore>,
}

struct HubState {
    /// `None` until the first snapshot was read.
    map: Option<LiveMap>,
    inbox: Inbox,
    /// The first one is the whole room.
    views: Vec<View>,
    overview: NumberedFrame,
    /// The free seats in the last overview.
    overview_of: Vec<u32>,
    areas: NumberedFrame,
    areas_of: Vec<(AreaIndex, u32)>,
    /// The state of the waiting room, if there is one.
    queue: NumberedFrame,
    queue_of: WaitingRoomStatus,
    /// The present as a frame, and the time in it.
    snapshot: Option<(Timestamp, Bytes)>,
    /// The present as JSON.
    json: Option<Bytes>,
    /// The suggestions found at the present.
    suggested: HashMap<SuggestionKey, Arc<[Suggestion]>>,
    stopping: bool,
}

/// The layout that was searched, and the request.
type SuggestionKey = (Uuid, SeatRequest);

/// The part of the map that a reader lacks.
enum Missing {
    /// A delta that was encoded before.
    Encoded(Bytes),
    /// Changes that are not encoded yet.
    Changes(Vec<SeatChange>),
    /// The changes go back beyond the history.
    Everything,
}

impl Hub {
    pub(super) fn new(show: Uuid, sections: Sections) -> Self {
        let inner = HubState {
            map: None,
            inbox: Inbox::default(),
            views: vec![View::new(Box::default(), Vec::new())],
            overview: NumberedFrame::default(),
            overview_of: Vec::new(),
            areas: NumberedFrame::default(),
            areas_of: Vec::new(),
            queue: NumberedFrame::default(),
            queue_of: WaitingRoomStatus::default(),
            snapshot: None,
            json: None,
            suggested: HashMap::new(),
            stopping: false,
        };
        Self {
            show,
            created_at: Instant::now(),
            sections,
            opened: OnceCell::new(),
            inner: Mutex::new(inner),
            recent_locks: Mutex::default(),
            search: Arc::new(Semaphore::new(1)),
        }
    }

    pub(super) fn section_count(&self) -> usize {
        self.sections.len()
    }

    /// True if its room has these sections and this number of seats.
    pub(super) fn has_layout(&self, sections: impl Iterator<Item = Range<SeatIndex>>, seats: usize) -> bool {
        let end = self.sections.last().map_or(0, |last| last.end as usize);
        end == seats && self.sections.iter().cloned().eq(sections)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.lock().stopping
    }

    /// The seats of these sections, which exist in the room.
    pub(super) fn seats_of(&self, sections: &[u16]) -> Vec<Range<SeatIndex>> {
        sections.iter().filter_map(|section| self.sections.get(usize::from(*section))).cloned().collect()
    }

    /// Subscribes to these sections (sorted, each once). Returns the sections it will get, and their ticks.
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
        inner.update_overview();
        if let Some(update) = inner.view_update(true) {
            view.publish(&update);
        }
        inner.views.push(view);
        (sections.into(), ticks)
    }

    pub(super) fn readers(&self) -> usize {
        self.lock().views.iter().map(View::readers).sum()
    }

    /// Takes an announcement. Readers get it at the next tick, or after a snapshot was read.
    pub(super) fn take(&self, step: MapChange) {
        let HubState { map, inbox, .. } = &mut *self.lock();
        inbox.take(step, |changes| map.as_ref().is_some_and(|map| map.has(changes)));
    }

    pub(super) fn note_locked(&self, step: &MapChange, now: Timestamp) {
        let Some(changes) = &step.changes else { return };
        let locked = changes.seats.iter().filter(|(_, state)| *state == SeatState::Locked);
        self.recent_locks.lock().unwrap_or_else(PoisonError::into_inner).note(locked.map(|(seat, _)| *seat), now);
    }

    /// The time from a seat's last lock to `now`, milliseconds; `None` if that lock is not recent.
    pub(super) fn time_since_lock(&self, seat: SeatIndex, now: Timestamp) -> Option<u32> {
        self.recent_locks.lock().unwrap_or_else(PoisonError::into_inner).time_since(seat, now)
    }

    /// Those of these seats that were not available at the last tick, with their states. None while the map is in use, because
    /// a caller must not wait for a tick.
    pub(super) fn taken_among(&self, seats: &[SeatIndex]) -> Vec<(SeatIndex, SeatState)> {
        let Ok(inner) = self.inner.try_lock() else { return Vec::new() };
        let Some(map) = &inner.map else { return Vec::new() };
        let state_of = |seat: &SeatIndex| Some((*seat, *map.seats().get(*seat as usize)?));
        seats.iter().filter_map(state_of).filter(|(_, state)| *state != SeatState::Available).collect()
    }

    /// Records that announcements may have been lost: the next tick reads a snapshot.
    pub(super) fn mark_stale(&self) {
        self.lock().inbox.mark_stale();
    }

    pub(super) fn is_stale(&self) -> bool {
        self.lock().inbox.is_stale()
    }

    /// The last version received: a snapshot requested from now on must reach it.
    pub(super) fn received(&self) -> MapVersion {
        self.lock().inbox.received()
    }

    /// Continues from a snapshot that was requested when `before` was the last version received.
    pub(super) fn resync(&self, before: MapVersion, snapshot: &MapSnapshot) {
        let mut inner = self.lock();
        let HubState { map, inbox, .. } = &mut *inner;
        let fresh = LiveMap::of(snapshot, Sections::clone(&self.sections));
        let now = fresh.at();
        let fits = |map: &Option<LiveMap>, changes: &_| map.as_ref().is_some_and(|map: &LiveMap| map.has(changes));
        let received = inbox.received();
        match map.as_mut().filter(|map| map.at().epoch == now.epoch && map.seats().len() == fresh.seats().len()) {
            Some(map) if now.version >= received.version => map.move_to(&fresh),
            // Later announcements came while it was read: it contains nothing new.
            Some(_) if now.version >= before.version => {
                inbox.take_early(|changes| fits(map, changes));
                return;
            }
            // Another room or epoch, or a store that fell back to an earlier state.
            _ => *map = Some(fresh),
        }
        inbox.start_at(now, |changes| fits(map, changes));
        inner.drop_encoded();
    }

    /// Runs one tick: applies the announcements and publishes to readers. With `includes_idle_views`, about once a
    /// second, it also publishes the overview, and the version to readers of sections without changes.
    pub(super) fn publish_tick(&self, includes_idle_views: bool) {
        let mut inner = self.lock();
        inner.apply_announcements();
        inner.views.retain(|view| view.is_whole() || view.readers() > 0);
        if includes_idle_views && inner.views.len() > 1 {
            inner.update_overview();
        }
        inner.update_areas();
        inner.publish(includes_idle_views);
    }

    /// Records the state of the waiting room; a change is published at the next tick.
    pub(super) fn note_queue(&self, queue: WaitingRoomStatus) {
        let mut inner = self.lock();
        if inner.queue_of != queue {
            inner.queue_of = queue;
            inner.queue.replace(&Frame::Queue(queue));
        }
    }

    /// Asks every reader to reconnect: this server stops, the show is in another room, or the table of hubs is full.
    pub(super) fn stop(&self) {
        let mut inner = self.lock();
        inner.stopping = true;
        inner.publish(false);
    }

    /// Builds the frame that takes a reader of these sections from `at` to the present, with every seat of the sections
    /// that are `new` to it; `None` if it is up to date. The changes are collected under the hub's lock and
    /// encoded outside of it, so that repeated requests of a reader delay no tick.
    pub(super) fn catch_up(
        &self,
        at: Option<MapVersion>,
        sections: &[u16],
        new: &[Range<SeatIndex>],
        now: Timestamp,
    ) -> Option<(MapVersion, Bytes)> {
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

    /// The present version, and the changes that a reader at `at` lacks.
    fn missing(
        &self,
        at: Option<MapVersion>,
        sections: &[u16],
        new: &[Range<SeatIndex>],
    ) -> Option<(MapVersion, Missing)> {
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
    fn keep_merged(&self, from: u64, to: MapVersion, sections: &[u16], bytes: &Bytes) {
        let mut inner = self.lock();
        let is_present = inner.map.as_ref().is_some_and(|map| map.at() == to);
        if let Some(view) = inner.views.iter_mut().find(|view| *view.sections == *sections).filter(|_| is_present) {
            view.keep_merged(from, bytes);
        }
    }

    /// The present as a frame: encoded outside the lock and shared for [`SNAPSHOT_LIFE_MS`].
    fn snapshot(&self, now: Timestamp) -> Option<(MapVersion, Bytes)> {
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
        let bytes = encode(&Frame::Snapshot { epoch: at.epoch, version: at.version, now, map: seats });
        let mut inner = self.lock();
        if inner.map.as_ref().is_some_and(|map| map.at() == at) {
            inner.snapshot = Some((now, bytes.clone()));
        }
        Some((at, bytes))
    }

    /// The present as JSON, written once a version by `write`. It does not wait for the tick: a visitor that
    /// has just locked a seat must read it as locked.
    pub(super) fn json(&self, write: impl FnOnce(&LiveMap) -> Bytes) -> Option<(MapVersion, Bytes)> {
        let mut inner = self.lock();
        inner.apply_announcements();
        let HubState { map: Some(map), json, .. } = &mut *inner else { return None };
        Some((map.at(), json.get_or_insert_with(|| write(map)).clone()))
    }

    /// A copy of all seat states at the present; like [`Hub::json`] it does not wait for the tick.
    pub(super) fn states(&self) -> Option<(MapVersion, Vec<SeatState>)> {
        let mut inner = self.lock();
        inner.apply_announcements();
        inner.map.as_ref().map(|map| (map.at(), map.seats().to_vec()))
    }

    /// Returns the suggestions kept for the present version.
    pub(super) fn suggestions(&self, key: SuggestionKey) -> Option<(MapVersion, Arc<[Suggestion]>)> {
        let mut inner = self.lock();
        inner.apply_announcements();
        let at = inner.map.as_ref()?.at();
        inner.suggested.get(&key).map(|found| (at, Arc::clone(found)))
    }

    /// Keeps suggestions for other callers until the next version.
    pub(super) fn keep_suggestions(&self, at: MapVersion, key: SuggestionKey, found: &Arc<[Suggestion]>) {
        let mut inner = self.lock();
        let is_present = inner.map.as_ref().is_some_and(|map| map.at() == at);
        if is_present && inner.suggested.len() < MAX_SUGGESTED {
            inner.suggested.insert(key, Arc::clone(found));
        }
    }

    // Held for memory work only, never across an await.
    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HubState {
    fn apply_announcements(&mut self) {
        let Self { map: Some(map), inbox, .. } = self else { return };
        let steps = inbox.next();
        steps.iter().for_each(|(version, changes)| map.apply(*version, changes));
        if !steps.is_empty() {
            self.drop_encoded();
        }
    }

    /// Drops the frames and suggestions of the previous version.
    fn drop_encoded(&mut self) {
        (self.snapshot, self.json) = (None, None);
        self.suggested.clear();
        self.views.iter_mut().for_each(View::forget_merged);
    }

    fn view_update(&self, includes_idle_views: bool) -> Option<ViewUpdate<'_>> {
        let map = self.map.as_ref()?;
        Some(ViewUpdate {
            map,
            overview: &self.overview,
            areas: &self.areas,
            queue: &self.queue,
            includes_idle_views,
            stopping: self.stopping,
        })
    }

    fn publish(&mut self, includes_idle_views: bool) {
        let mut views = std::mem::take(&mut self.views);
        if let Some(update) = self.view_update(includes_idle_views) {
            views.iter_mut().for_each(|view| view.publish(&update));
        }
        self.views = views;
    }

    fn update_overview(&mut self) {
        let Some(map) = self.map.as_ref().filter(|map| map.free() != self.overview_of) else { return };
        self.overview_of = map.free().to_vec();
        self.overview.replace(&Frame::Overview { free: self.overview_of.clone() });
    }

    fn update_areas(&mut self) {
        let Some(left) = self.map.as_ref().map(LiveMap::areas).filter(|left| *left != self.areas_of) else { return };
        self.areas_of.clone_from(&left);
        self.areas.replace(&Frame::Areas { left });
    }
}
