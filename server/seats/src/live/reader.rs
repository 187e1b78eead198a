//! What one reader has, and what they need next. A few words a reader, whatever they miss.

use std::sync::Arc;

use bytes::Bytes;
use domain::time::Timestamp;
use tokio::sync::watch;

use super::hub::Hub;
use super::map::At;
use super::view::Tick;
use super::websocket_frames;

/// Somebody who reads a show's map; while they live, its hub does.
pub(super) struct Reader {
    pub(super) hub: Arc<Hub>,
    /// Moves once a tick, when something changed in what they follow.
    pub(super) ticks: watch::Receiver<Tick>,
    sections: Box<[u16]>,
    at: Option<At>,
    /// Numbers of the overview, the list of areas and the waiting room's frame they have.
    overview: u32,
    areas: u32,
    queue: u32,
    /// Sections they follow since just now, of which they have nothing yet.
    new: Box<[u16]>,
}

/// What a reader should be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Frame(Bytes),
    /// They have everything.
    Nothing,
    /// The server stops: they should go elsewhere.
    Leave,
}

/// The room has no such section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoSuchSection(pub(super) u16);

impl Reader {
    /// A reader of the whole room who has nothing yet.
    pub(super) fn new(hub: Arc<Hub>) -> Self {
        let (sections, ticks) = hub.subscribe(&[]);
        Self { hub, ticks, sections, at: None, overview: 0, areas: 0, queue: 0, new: Box::default() }
    }

    /// They come back with the map as it was at `at`.
    pub(super) fn resume(&mut self, at: At) {
        self.at = Some(at);
    }

    /// From now on they follow these sections, sorted, each once; none means the whole room.
    pub(super) fn follow(&mut self, sections: &[u16]) -> Result<(), NoSuchSection> {
        let count = self.hub.section_count();
        if let Some(section) = sections.iter().find(|section| usize::from(**section) >= count) {
            return Err(NoSuchSection(*section));
        }
        let before = std::mem::take(&mut self.sections);
        (self.sections, self.ticks) = self.hub.subscribe(sections);
        self.overview = 0;
        if before.is_empty() || self.at.is_none() {
            // Who followed the whole room, or gets a snapshot anyway, lacks nothing.
        } else if self.sections.is_empty() {
            self.at = None;
        } else {
            let is_new = |section: &&u16| !before.contains(section) || self.new.contains(section);
            self.new = self.sections.iter().filter(is_new).copied().collect();
        }
        Ok(())
    }

    /// The sign of life for somebody who has all that was told so far.
    pub(super) fn beat(&self) -> Bytes {
        websocket_frames::beat(self.at.map(|at| at.version))
    }

    /// What they need next, which they are taken to have from then on. `now` is the lock store's clock.
    pub(super) fn next(&mut self, now: impl FnOnce() -> Timestamp) -> Next {
        let (at, overview, areas, queue) = {
            let tick = self.ticks.borrow_and_update();
            if tick.stopping {
                return Next::Leave;
            }
            let is_in_step = self.at == Some(At { version: tick.from, ..tick.at }) && self.new.is_empty();
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
        let told = if self.overview != tick.overview.number {
            self.overview = tick.overview.number;
            &tick.overview
        } else if self.areas != tick.areas.number {
            self.areas = tick.areas.number;
            &tick.areas
        } else {
            self.queue = tick.queue.number;
            &tick.queue
        };
        if told.number == 0 { Next::Nothing } else { Next::Frame(told.frame.clone()) }
    }
}
