//! The position of one reader and its next frame. Its size does not depend on what the reader missed.

use std::sync::Arc;

use bytes::Bytes;
use domain::time::Timestamp;
use tokio::sync::watch;

use super::hub::Hub;
use super::map::MapVersion;
use super::view::Tick;
use super::websocket_frames;

/// A reader of a show's map; keeps the hub alive.
pub(super) struct MapSubscriber {
    pub(super) hub: Arc<Hub>,
    /// Changes once a tick, if something changed in the followed sections.
    pub(super) ticks: watch::Receiver<Tick>,
    sections: Box<[u16]>,
    at: Option<MapVersion>,
    /// Numbers of the overview, areas and waiting room frames the reader has.
    overview: u32,
    areas: u32,
    queue: u32,
    /// Sections followed since the last frame, whose seats the reader does not have yet.
    new: Box<[u16]>,
}

/// The next frame of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Frame(Bytes),
    /// The reader is up to date.
    Nothing,
    /// The server stops, and the reader should reconnect elsewhere.
    Stopping,
}

/// The room has no such section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoSuchSection(pub(super) u16);

impl MapSubscriber {
    /// Creates a reader of the whole room without a map.
    pub(super) fn new(hub: Arc<Hub>) -> Self {
        let (sections, ticks) = hub.subscribe(&[]);
        Self { hub, ticks, sections, at: None, overview: 0, areas: 0, queue: 0, new: Box::default() }
    }

    /// Resumes from the map at version `at`, which the reader has.
    pub(super) fn resume(&mut self, at: MapVersion) {
        self.at = Some(at);
    }

    /// Follows these sections, sorted, each once; none means the whole room.
    pub(super) fn follow(&mut self, sections: &[u16]) -> Result<(), NoSuchSection> {
        let count = self.hub.section_count();
        if let Some(section) = sections.iter().find(|section| usize::from(**section) >= count) {
            return Err(NoSuchSection(*section));
        }
        let before = std::mem::take(&mut self.sections);
        (self.sections, self.ticks) = self.hub.subscribe(sections);
        self.overview = 0;
        if before.is_empty() || self.at.is_none() {
            // A reader that followed the whole room, or gets a snapshot anyway, needs no extra seats.
        } else if self.sections.is_empty() {
            self.at = None;
        } else {
            let is_new = |section: &&u16| !before.contains(section) || self.new.contains(section);
            self.new = self.sections.iter().filter(is_new).copied().collect();
        }
        Ok(())
    }

    /// The heartbeat frame for the version the reader has.
    pub(super) fn heartbeat(&self) -> Bytes {
        websocket_frames::heartbeat(self.at.map(|at| at.version))
    }

    /// Takes the next frame and counts it as received. `now` is the lock store's clock.
    pub(super) fn next(&mut self, now: impl FnOnce() -> Timestamp) -> Next {
        let (at, overview, areas, queue) = {
            let tick = self.ticks.borrow_and_update();
            if tick.stopping {
                return Next::Stopping;
            }
            let is_in_step = self.at == Some(MapVersion { version: tick.from, ..tick.at }) && self.new.is_empty();
            if is_in_step && self.at != Some(tick.at) && !tick.delta.is_empty() {
                self.at = Some(tick.at);
                return Next::Frame(tick.delta.clone());
            }
            (tick.at, tick.overview.number, tick.areas.number, tick.queue.number)
        };
        if (self.at != Some(at) || !self.new.is_empty())
            && let Some((at, frame)) = self.hub.catch_up(self.at, &self.sections, &self.hub.seats_of(&self.new), now())
        {
            self.at = Some(at);
            self.new = Box::default();
            return Next::Frame(frame);
        }
        if self.overview == overview && self.areas == areas && self.queue == queue {
            return Next::Nothing;
        }
        let tick = self.ticks.borrow();
        let numbered = if self.overview != tick.overview.number {
            self.overview = tick.overview.number;
            &tick.overview
        } else if self.areas != tick.areas.number {
            self.areas = tick.areas.number;
            &tick.areas
        } else {
            self.queue = tick.queue.number;
            &tick.queue
        };
        if numbered.number == 0 { Next::Nothing } else { Next::Frame(numbered.frame.clone()) }
    }
}
