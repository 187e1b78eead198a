//! Keeps the live connection of a session: opens it, follows it, comes back to it.
//!
//! Comes back with full jitter and doubling pauses, from where it was; after a gap, a new epoch or
//! garbage it asks for the whole map. How the map is read where no connection comes to stand is in `without_socket`.

use std::collections::BTreeSet;

use domain::api::PlanView;
use domain::wire::{Ask, MAX_SECTIONS_PER_READER};
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;

use super::follower::{Follower, News};
use crate::browser::calls::Failure;
use crate::browser::socket::{Happening, Socket};
use crate::browser::{self, calls, clock, events, ids, is_visible, socket_origin};
use crate::seat_map::session::{Live, Session};
use crate::seat_map::telling::notices::Notice;

/// Longest pause before the second try, milliseconds; doubles with each further one…
const FIRST_PAUSE_MS: u32 = 500;
/// …up to this.
const LONGEST_PAUSE_MS: u32 = 10_000;
/// Failed tries in a row after which people are told.
pub(super) const TRIES_UNTIL_OFFLINE: u32 = 2;
/// A page hidden for longer than this, milliseconds, does not trust its connection.
const LONGEST_NAP_MS: f64 = 5_000.0;
/// A line on which nothing came for longer than this, milliseconds, is dead: the server says something twice in that time
/// (`BEAT` in `server/src/live/socket.rs`).
const LONGEST_SILENCE_MS: f64 = 60_000.0;
/// How often that is looked at, milliseconds.
pub(in crate::seat_map) const SILENCE_LOOK_MS: u32 = 5_000;
/// Longest pause before one looks whether the show is in another room, milliseconds.
const LONGEST_LOOK_MS: u32 = 1_000;
/// Frames kept while the room is still loading; more means that something is wrong.
const MAX_WAITING_FRAMES: usize = 64;

/// The connection of a session.
#[derive(Default)]
pub struct Connection {
    socket: Option<Socket>,
    pub(super) follower: Follower,
    /// Tries in a row that failed.
    pub(super) failures: u32,
    /// Counts the connections, so that a pause that was overtaken does nothing.
    number: u64,
    /// The sections the server tells us the changes of; none stands for all.
    followed: Vec<u16>,
    /// Frames that came before the room, and when, on the monotonic clock: they tell the time.
    waiting: Vec<(Vec<u8>, f64)>,
    /// When the page was hidden, on the device's wall clock, milliseconds.
    hidden_at: Option<f64>,
    /// When something was heard last, or the connection asked for, on the same clock: it goes on while the device sleeps.
    heard_at: f64,
    /// Whether it is made anew because a request found nobody: that it stands takes nothing back of what was said of that.
    is_doubted: bool,
    /// The notice shown about a map that cannot be read; removed once the connection is there.
    pub(super) said: Option<Notice>,
}

impl Connection {
    /// Whether the connection is there, or coming, and nothing was heard of it for too long.
    fn is_silent(&self, now: f64) -> bool {
        self.socket.is_some() && is_over(LONGEST_SILENCE_MS, self.heard_at, now)
    }
}

/// Whether more than `limit_ms` passed between two instants of the device's wall clock. One that was set back says nothing:
/// rather once too often.
fn is_over(limit_ms: f64, since: f64, now: f64) -> bool {
    !(0.0..limit_ms).contains(&(now - since))
}

/// Sections as the address of the connection names them.
fn in_query(sections: &[u16]) -> Option<String> {
    let numbers: Vec<String> = sections.iter().map(u16::to_string).collect();
    (!numbers.is_empty()).then(|| format!("sections={}", numbers.join(",")))
}

impl Session {
    /// Connects, from where we were if we were anywhere.
    pub(in crate::seat_map) fn connect(self) {
        let resume = self.connection.with_value(|connection| connection.follower.resume_from());
        let followed = self.sections_to_follow();
        let resumed = resume.map(|(epoch, version)| format!("epoch={epoch}&version={version}"));
        let query: Vec<String> = resumed.into_iter().chain(in_query(&followed)).collect();
        let address = format!("{}{}", socket_origin(), self.path(&format!("/live?{}", query.join("&"))));
        let resuming = resume.is_some();
        let socket = Socket::open(&address, move |happening| match happening {
            Happening::Open => {
                if resuming {
                    self.connected();
                }
                // A section may have been chosen meanwhile.
                self.follow_sections();
            }
            Happening::Frame(bytes) => {
                self.connection.update_value(|connection| connection.heard_at = clock::device_ms());
                self.hear(bytes, clock::monotonic_ms());
            }
            Happening::End => self.hear_end(),
        });
        self.connection.update_value(|connection| {
            connection.number += 1;
            connection.socket = socket;
            connection.followed = followed;
            connection.heard_at = clock::device_ms();
        });
    }

    /// The sections whose changes are worth hearing: the one on screen, and those of our own seats, of seats we wait
    /// for and of seats that are offered. None stands for the whole room: its overview shows every seat.
    fn sections_to_follow(self) -> Vec<u16> {
        let Some(on_screen) = self.section.get_untracked() else { return Vec::new() };
        let elsewhere = self.room.with_untracked(|room| {
            let own = self.cart.with_untracked(|cart| cart.want().to_vec());
            let offered = self.notice.with_untracked(|notice| notice.as_ref()?.offer.clone());
            let offered = offered.into_iter().flat_map(|offer| offer.seats.to_vec());
            let seats = own.into_iter().chain(self.watched_seats()).chain(offered);
            seats.filter_map(|seat| room.as_ref()?.section_of(seat)).collect::<Vec<_>>()
        });
        let all = elsewhere.into_iter().chain([on_screen]);
        let all: BTreeSet<u16> = all.filter_map(|at| u16::try_from(at).ok()).collect();
        if all.len() > MAX_SECTIONS_PER_READER { Vec::new() } else { all.into_iter().collect() }
    }

    /// Tells the server which sections are looked at, if it thinks of others.
    pub(in crate::seat_map) fn follow_sections(self) {
        let wanted = self.sections_to_follow();
        self.connection.update_value(|connection| {
            let ask = || Ask::Subscribe { sections: wanted.clone() }.encode();
            // A connection that does not stand yet takes nothing: it asks again when it does.
            if connection.followed != wanted && connection.socket.as_ref().is_some_and(|socket| socket.send(&ask())) {
                connection.followed = wanted;
            }
        });
    }

    /// Connects now, from where we were, whatever the connection says of itself: one that slept may be
    /// dead without knowing.
    fn connect_afresh(self) {
        self.connection.update_value(|connection| connection.failures = 0);
        self.live.set(Live::Connecting);
        self.connect_in(0);
    }

    /// Looks whether the connection has died without a word: the page says no longer that it is live, and comes back.
    pub(in crate::seat_map) fn look_whether_dead(self) {
        let now = clock::device_ms();
        let is_dead = self.connection.update_value(|connection| {
            let is_dead = connection.is_silent(now);
            if is_dead {
                // Not again while the next one is on its way.
                connection.heard_at = now;
            }
            is_dead
        });
        match self.live.get_untracked() {
            _ if !is_dead => {}
            Live::On => self.connect_afresh(),
            // One that never came to stand: a try that failed, as any other.
            Live::Connecting | Live::Offline => self.hear_end(),
        }
    }

    /// A request found nobody. Where the line seems to stand all the same, it may have died without a word.
    pub(in crate::seat_map) fn doubt(self, failure: &Failure) {
        if *failure == Failure::Unreachable && self.live.get_untracked() == Live::On {
            self.connection.update_value(|connection| connection.is_doubted = true);
            self.connect_afresh();
        }
    }

    /// Lets the connection go; coming back to the page takes it up again.
    pub(in crate::seat_map) fn disconnect(self) {
        self.connection.update_value(|connection| {
            connection.number += 1;
            connection.socket = None;
        });
        self.live.set(Live::Connecting);
    }

    /// The network is gone, says the browser.
    pub(in crate::seat_map) fn go_offline(self) {
        self.live.set(Live::Offline);
    }

    /// Reads what came while the room was loading.
    pub(in crate::seat_map) fn hear_waiting(self) {
        let waiting = self.connection.update_value(|connection| std::mem::take(&mut connection.waiting));
        waiting.into_iter().for_each(|(bytes, heard_at)| self.hear(bytes, heard_at));
    }

    fn connected(self) {
        let was_doubted = self.connection.update_value(|connection| {
            connection.failures = 0;
            std::mem::take(&mut connection.is_doubted)
        });
        if self.live.get_untracked() != Live::On {
            self.live.set(Live::On);
            if !was_doubted {
                // Only this notice: any other is as true as before.
                self.unsay(&Notice::failed(&Failure::Unreachable));
            }
            if let Some(said) = self.connection.update_value(|connection| connection.said.take()) {
                self.unsay(&said);
            }
        }
    }

    /// Reads a frame that came at `heard_at` on the monotonic clock.
    fn hear(self, bytes: Vec<u8>, heard_at: f64) {
        let Some(seats) = self.room.with_untracked(|room| room.as_ref().map(|room| room.plan().seat_count)) else {
            self.connection.update_value(|connection| {
                if connection.waiting.len() < MAX_WAITING_FRAMES {
                    connection.waiting.push((bytes, heard_at));
                }
            });
            return;
        };
        let before = self.connection.with_value(|connection| connection.follower.resume_from());
        let news = self.connection.update_value(|connection| connection.follower.hear(&bytes, seats));
        let after = self.connection.with_value(|connection| connection.follower.resume_from());
        // A map that was built anew, or that does not fit: the show may be in another room now.
        if news == News::Lost || before.zip(after).is_some_and(|(before, after)| before.0 != after.0) {
            self.look_for_other_room();
        }
        match news {
            News::Map { map, now } => {
                clock::hear(now, heard_at);
                self.connected();
                self.replace_map(&map);
            }
            News::Changes(changes) => {
                self.connected();
                self.apply(&changes);
            }
            News::Mine { mine, now } => {
                clock::hear(now, heard_at);
                self.hear_mine(mine.as_ref());
            }
            News::Areas(left) => self.places_left.set(left),
            News::Free(free) => self.hear_free(&free),
            News::Queue => {}
            News::Leave { retry_ms } => {
                let pause = u32::try_from(retry_ms).unwrap_or(LONGEST_PAUSE_MS).min(LONGEST_PAUSE_MS);
                self.connect_in(pause / 2 + ids::jitter(pause));
            }
            News::Lost => self.connect_in(ids::jitter(FIRST_PAUSE_MS)),
        }
    }

    /// Reads the page once more if the show was moved to another screen: its seats have other numbers there.
    fn look_for_other_room(self) {
        let known = self.room.with_untracked(|room| room.as_ref().and_then(|room| room.plan().room));
        spawn_local(async move {
            // Everybody hears of it at once, and not all are to ask at once.
            events::after(ids::jitter(LONGEST_LOOK_MS)).await;
            let Ok(plan) = calls::read::<PlanView>(&self.path("/plan")).await else { return };
            if plan.room.is_some() && plan.room != known {
                browser::reload();
            }
        });
    }

    fn hear_end(self) {
        let failures = self.connection.update_value(|connection| {
            connection.failures += 1;
            connection.is_doubted = false;
            connection.failures
        });
        self.live.set(if failures >= TRIES_UNTIL_OFFLINE { Live::Offline } else { Live::Connecting });
        let longest = FIRST_PAUSE_MS.saturating_mul(1 << failures.min(8)).min(LONGEST_PAUSE_MS);
        self.connect_in(ids::jitter(longest));
        self.read_map_if_cut_off();
    }

    /// Replaces the connection after a pause. Never at once: the old one must not be dropped while its
    /// own callback runs.
    fn connect_in(self, pause_ms: u32) {
        let number = self.connection.update_value(|connection| {
            connection.number += 1;
            connection.number
        });
        spawn_local(async move {
            events::after(pause_ms).await;
            if self.connection.with_value(|connection| connection.number == number) {
                self.connect();
            }
        });
    }

    /// Reacts to the page being hidden, shown, left and come back to.
    pub(in crate::seat_map) fn watch_page(self) {
        events::on_window("pagehide", move |_| {
            self.leave();
            self.disconnect();
        });
        events::on_window("pageshow", move |event| {
            // Shown again from the back-forward cache, not shown for the first time.
            if event.dyn_ref::<web_sys::PageTransitionEvent>().is_some_and(web_sys::PageTransitionEvent::persisted) {
                self.set_off_to_pay(false);
                self.recall_past_beacons();
                self.connect_afresh();
            }
        });
        events::on_document("visibilitychange", move |_| {
            if is_visible() {
                self.wake();
            } else {
                self.connection.update_value(|connection| connection.hidden_at = Some(clock::device_ms()));
            }
        });
        events::on_window("online", move |_| {
            self.recall();
            self.connect_afresh();
        });
        events::on_window("offline", move |_| self.go_offline());
    }

    /// The page can be seen again.
    fn wake(self) {
        let hidden_at = self.connection.update_value(|connection| connection.hidden_at.take());
        let now = clock::device_ms();
        let slept = hidden_at.is_some_and(|at| is_over(LONGEST_NAP_MS, at, now));
        self.recall_past_beacons();
        if slept
            || self.connection.with_value(|connection| connection.is_silent(now))
            || self.live.get_untracked() != Live::On
        {
            self.connect_afresh();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_too_long_after_a_minute_and_when_the_clock_was_set_back() {
        let is_over = |now| is_over(LONGEST_SILENCE_MS, 1_000.0, now);
        assert!(!is_over(1_000.0) && !is_over(60_999.0));
        assert!(is_over(61_000.0) && is_over(999.0));
        assert!(!Connection::default().is_silent(1e9), "where there is no connection nobody is silent");
    }

    #[test]
    fn sections_are_named_in_the_address_and_all_of_them_by_none() {
        assert_eq!(in_query(&[2, 5]).as_deref(), Some("sections=2,5"));
        assert_eq!(in_query(&[]), None);
    }
}
