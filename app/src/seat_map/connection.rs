//! Keeps the live connection of a session: opens it, follows it, comes back to it.
//!
//! Comes back with full jitter and doubling pauses, from where it was; after a gap, a new epoch or
//! garbage it asks for the whole map.

use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;

use super::follower::{Follower, News};
use super::session::{Live, Session};
use crate::browser::socket::{Happening, Socket};
use crate::browser::{clock, events, ids, is_visible, socket_origin};

/// Longest pause before the second try, milliseconds; doubles with each further one…
const FIRST_PAUSE_MS: u32 = 500;
/// …up to this.
const LONGEST_PAUSE_MS: u32 = 10_000;
/// Failed tries in a row after which people are told.
const TRIES_UNTIL_OFFLINE: u32 = 2;
/// Frames kept while the room is still loading; more means that something is wrong.
const MAX_WAITING_FRAMES: usize = 64;

/// The connection of a session.
#[derive(Default)]
pub struct Line {
    socket: Option<Socket>,
    follower: Follower,
    failures: u32,
    /// Counts the connections, so that a pause that was overtaken does nothing.
    number: u64,
    /// Frames that came before the room.
    waiting: Vec<Vec<u8>>,
}

impl Session {
    /// Connects, from where we were if we were anywhere.
    pub(super) fn connect(self) {
        let resume = self.line.with_value(|line| line.follower.resume_from());
        let query = resume.map(|(epoch, version)| format!("?epoch={epoch}&version={version}")).unwrap_or_default();
        let address = format!("{}{}", socket_origin(), self.path(&format!("/live{query}")));
        let resuming = resume.is_some();
        let socket = Socket::open(&address, move |happening| match happening {
            Happening::Open if resuming => self.connected(),
            Happening::Open => {}
            Happening::Frame(bytes) => self.hear(bytes),
            Happening::End => self.hear_end(),
        });
        self.line.update_value(|line| {
            line.number += 1;
            line.socket = socket;
        });
    }

    /// Connects now, unless the connection stands: the device woke up, the network is back.
    pub(super) fn connect_if_needed(self) {
        if self.live.get_untracked() != Live::On {
            self.line.update_value(|line| line.failures = 0);
            self.connect_in(0);
        }
    }

    /// Lets the connection go; [`Session::connect_if_needed`] takes it up again.
    pub(super) fn disconnect(self) {
        self.line.update_value(|line| {
            line.number += 1;
            line.socket = None;
        });
        self.live.set(Live::Connecting);
    }

    /// The network is gone, says the browser.
    pub(super) fn go_offline(self) {
        self.live.set(Live::Offline);
    }

    /// Reads what came while the room was loading.
    pub(super) fn hear_waiting(self) {
        let waiting = self.line.try_update_value(|line| std::mem::take(&mut line.waiting)).unwrap_or_default();
        waiting.into_iter().for_each(|bytes| self.hear(bytes));
    }

    fn connected(self) {
        self.line.update_value(|line| line.failures = 0);
        if self.live.get_untracked() != Live::On {
            self.live.set(Live::On);
        }
    }

    fn hear(self, bytes: Vec<u8>) {
        let Some(seats) = self.room.with_untracked(|room| room.as_ref().map(|room| room.plan().seat_count)) else {
            self.line.update_value(|line| {
                if line.waiting.len() < MAX_WAITING_FRAMES {
                    line.waiting.push(bytes);
                }
            });
            return;
        };
        let heard_at = clock::monotonic_ms();
        let Some(news) = self.line.try_update_value(|line| line.follower.hear(&bytes, seats)) else {
            return;
        };
        match news {
            News::Map { map, now } => {
                clock::observe(now, heard_at);
                self.connected();
                self.replace_map(&map);
            }
            News::Changes(changes) => {
                self.connected();
                self.apply(&changes);
            }
            News::Mine { mine, now } => {
                clock::observe(now, heard_at);
                self.hear_mine(mine.as_ref());
            }
            News::Leave { retry_ms } => {
                let pause = u32::try_from(retry_ms).unwrap_or(LONGEST_PAUSE_MS).min(LONGEST_PAUSE_MS);
                self.connect_in(pause / 2 + ids::jitter(pause));
            }
            News::Lost => self.connect_in(ids::jitter(FIRST_PAUSE_MS)),
        }
    }

    fn hear_end(self) {
        let failures = self.line.try_update_value(|line| {
            line.failures += 1;
            line.failures
        });
        let failures = failures.unwrap_or(1);
        self.live.set(if failures >= TRIES_UNTIL_OFFLINE { Live::Offline } else { Live::Connecting });
        let longest = FIRST_PAUSE_MS.saturating_mul(1 << failures.min(8)).min(LONGEST_PAUSE_MS);
        self.connect_in(ids::jitter(longest));
    }

    /// Replaces the connection after a pause. Never at once: the old one must not be dropped while its
    /// own callback runs.
    fn connect_in(self, pause_ms: u32) {
        let number = self.line.try_update_value(|line| {
            line.number += 1;
            line.number
        });
        spawn_local(async move {
            events::after(pause_ms).await;
            if self.line.with_value(|line| Some(line.number) == number) {
                self.connect();
            }
        });
    }

    /// Reacts to the page being hidden, shown, left and come back to.
    pub(super) fn watch_page(self) {
        events::on_window("pagehide", move |_| {
            self.leave();
            self.disconnect();
        });
        events::on_window("pageshow", move |event| {
            // Shown again from the back-forward cache, not shown for the first time.
            if event.dyn_ref::<web_sys::PageTransitionEvent>().is_some_and(web_sys::PageTransitionEvent::persisted) {
                self.wake();
            }
        });
        events::on_document("visibilitychange", move |_| {
            if is_visible() {
                self.wake();
            }
        });
        events::on_window("online", move |_| self.wake());
        events::on_window("offline", move |_| self.go_offline());
    }

    fn wake(self) {
        self.set_off_to_pay(false);
        self.recall();
        self.connect_if_needed();
    }
}
