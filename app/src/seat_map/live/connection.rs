//! Keeps the live connection of a session: opens it, follows it, comes back to it.
//!
//! Comes back with full jitter and doubling pauses, from where it was; after a gap, a new epoch or
//! garbage it asks for the whole map. How the map is read where no connection comes to stand is in `without_socket`.

use std::collections::BTreeSet;

use domain::api::PlanView;
use domain::wire::{Ask, MAX_SECTIONS_PER_READER};
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;

use super::connection_state::{TRIES_UNTIL_OFFLINE, is_over};
use super::follower::News;
use super::{map_changes, without_socket};
use crate::browser::calls::{self, Failure};
use crate::browser::socket::{Happening, Socket};
use crate::browser::{self, clock, events, ids, is_visible, socket_origin};
use crate::seat_map::large_rooms::counting;
use crate::seat_map::own_seats::own_hold;
use crate::seat_map::session::{Live, Session};
use crate::seat_map::telling::notices::Notice;

/// Longest pause before the second try, milliseconds; doubles with each further one…
const FIRST_PAUSE_MS: u32 = 500;
/// …up to this.
const LONGEST_PAUSE_MS: u32 = 10_000;
/// A page hidden for longer than this, milliseconds, does not trust its connection.
const LONGEST_NAP_MS: f64 = 5_000.0;
/// How often that is looked at, milliseconds.
pub(in crate::seat_map) const SILENCE_LOOK_MS: u32 = 5_000;
/// Longest pause before one looks whether the show is in another room, milliseconds.
const LONGEST_LOOK_MS: u32 = 1_000;
/// Frames kept while the room is still loading; more means that something is wrong.
const MAX_WAITING_FRAMES: usize = 64;

/// Sections as the address of the connection names them.
fn in_query(sections: &[u16]) -> Option<String> {
    let numbers: Vec<String> = sections.iter().map(u16::to_string).collect();
    (!numbers.is_empty()).then(|| format!("sections={}", numbers.join(",")))
}

/// Connects, from where we were if we were anywhere.
pub(in crate::seat_map) fn connect(session: Session) {
    let resume = session.connection.with_value(|connection| connection.follower.resume_from());
    let followed = sections_to_subscribe(session);
    let resumed = resume.map(|(epoch, version)| format!("epoch={epoch}&version={version}"));
    let query: Vec<String> = resumed.into_iter().chain(in_query(&followed)).collect();
    let address = format!("{}{}", socket_origin(), session.path(&format!("/live?{}", query.join("&"))));
    let resuming = resume.is_some();
    let socket = Socket::open(&address, move |happening| match happening {
        Happening::Open => {
            if resuming {
                mark_connected(session);
            }
            // A section may have been chosen meanwhile.
            subscribe_sections(session);
        }
        Happening::Frame(bytes) => {
            session.connection.update_value(|connection| connection.heard_at = clock::device_ms());
            handle_frame(session, bytes, clock::monotonic_ms());
        }
        Happening::End => handle_end(session),
    });
    session.connection.update_value(|connection| {
        connection.number += 1;
        connection.socket = socket;
        connection.followed = followed;
        connection.heard_at = clock::device_ms();
    });
}

/// The sections whose changes are worth hearing: the one on screen, and those of our own seats, of seats we wait
/// for and of seats that are offered. None stands for the whole room: its overview shows every seat.
fn sections_to_subscribe(session: Session) -> Vec<u16> {
    let Some(on_screen) = session.section.get_untracked() else { return Vec::new() };
    let elsewhere = session.room.with_untracked(|room| {
        let own = session.cart.with_untracked(|cart| cart.want().to_vec());
        let offered = session.notice.with_untracked(|notice| notice.as_ref()?.offer.clone());
        let offered = offered.into_iter().flat_map(|offer| offer.seats.to_vec());
        let seats = own.into_iter().chain(session.watched_seats()).chain(offered);
        seats.filter_map(|seat| room.as_ref()?.section_of(seat)).collect::<Vec<_>>()
    });
    let all = elsewhere.into_iter().chain([on_screen]);
    let all: BTreeSet<u16> = all.filter_map(|at| u16::try_from(at).ok()).collect();
    if all.len() > MAX_SECTIONS_PER_READER { Vec::new() } else { all.into_iter().collect() }
}

/// Tells the server which sections are looked at, if it thinks of others.
pub(in crate::seat_map) fn subscribe_sections(session: Session) {
    let wanted = sections_to_subscribe(session);
    session.connection.update_value(|connection| {
        let ask = || Ask::Subscribe { sections: wanted.clone() }.encode();
        // A connection that does not stand yet takes nothing: it asks again when it does.
        if connection.followed != wanted && connection.socket.as_ref().is_some_and(|socket| socket.send(&ask())) {
            connection.followed = wanted;
        }
    });
}

/// Connects now, from where we were, whatever the connection says of itself: one that slept may be
/// dead without knowing.
fn reconnect_now(session: Session) {
    session.connection.update_value(|connection| connection.failures = 0);
    session.connection_status.set(Live::Connecting);
    reconnect_after(session, 0);
}

/// Looks whether the connection has died without a word: the page says no longer that it is live, and comes back.
pub(in crate::seat_map) fn check_silence(session: Session) {
    let now = clock::device_ms();
    let is_dead = session.connection.update_value(|connection| {
        let is_dead = connection.is_silent(now);
        if is_dead {
            // Not again while the next one is on its way.
            connection.heard_at = now;
        }
        is_dead
    });
    match session.connection_status.get_untracked() {
        _ if !is_dead => {}
        Live::On => reconnect_now(session),
        // One that never came to stand: a try that failed, as any other.
        Live::Connecting | Live::Offline => handle_end(session),
    }
}

/// A request found nobody. Where the line seems to stand all the same, it may have died without a word.
pub(in crate::seat_map) fn reconnect_if_unreachable(session: Session, failure: &Failure) {
    if *failure == Failure::Unreachable && session.connection_status.get_untracked() == Live::On {
        session.connection.update_value(|connection| connection.is_doubted = true);
        reconnect_now(session);
    }
}

/// Lets the connection go; coming back to the page takes it up again.
pub(in crate::seat_map) fn disconnect(session: Session) {
    session.connection.update_value(|connection| {
        connection.number += 1;
        connection.socket = None;
    });
    session.connection_status.set(Live::Connecting);
}

/// The network is gone, says the browser.
pub(in crate::seat_map) fn go_offline(session: Session) {
    session.connection_status.set(Live::Offline);
}

/// Reads what came while the room was loading.
pub(in crate::seat_map) fn replay_buffered_frames(session: Session) {
    let waiting = session.connection.update_value(|connection| std::mem::take(&mut connection.waiting));
    waiting.into_iter().for_each(|(bytes, heard_at)| handle_frame(session, bytes, heard_at));
}

fn mark_connected(session: Session) {
    let was_doubted = session.connection.update_value(|connection| {
        connection.failures = 0;
        std::mem::take(&mut connection.is_doubted)
    });
    if session.connection_status.get_untracked() != Live::On {
        session.connection_status.set(Live::On);
        if !was_doubted {
            // Only this notice: any other is as true as before.
            session.dismiss(&Notice::failed(&Failure::Unreachable));
        }
        if let Some(said) = session.connection.update_value(|connection| connection.said.take()) {
            session.dismiss(&said);
        }
    }
}

/// Reads a frame that came at `heard_at` on the monotonic clock.
fn handle_frame(session: Session, bytes: Vec<u8>, heard_at: f64) {
    let Some(seats) = session.room.with_untracked(|room| room.as_ref().map(|room| room.plan().seat_count)) else {
        session.connection.update_value(|connection| {
            if connection.waiting.len() < MAX_WAITING_FRAMES {
                connection.waiting.push((bytes, heard_at));
            }
        });
        return;
    };
    let before = session.connection.with_value(|connection| connection.follower.resume_from());
    let news = session.connection.update_value(|connection| connection.follower.hear(&bytes, seats));
    let after = session.connection.with_value(|connection| connection.follower.resume_from());
    // A map that was built anew, or that does not fit: the show may be in another room now.
    if news == News::Lost || before.zip(after).is_some_and(|(before, after)| before.0 != after.0) {
        reload_if_moved(session);
    }
    match news {
        News::Map { map, now } => {
            clock::hear(now, heard_at);
            mark_connected(session);
            map_changes::replace_map(session, &map);
        }
        News::Changes(changes) => {
            mark_connected(session);
            map_changes::apply_changes(session, &changes);
        }
        News::Mine { mine, now } => {
            clock::hear(now, heard_at);
            own_hold::compare_with_live_map(session, mine.as_ref());
        }
        News::Areas(left) => session.places_left.set(left),
        News::Free(free) => counting::set_free_counts(session, &free),
        News::Queue => {}
        News::Leave { retry_ms } => {
            let pause = u32::try_from(retry_ms).unwrap_or(LONGEST_PAUSE_MS).min(LONGEST_PAUSE_MS);
            reconnect_after(session, pause / 2 + ids::jitter(pause));
        }
        News::Lost => reconnect_after(session, ids::jitter(FIRST_PAUSE_MS)),
    }
}

/// Reads the page once more if the show was moved to another screen: its seats have other numbers there.
fn reload_if_moved(session: Session) {
    let known = session.room.with_untracked(|room| room.as_ref().and_then(|room| room.plan().room));
    spawn_local(async move {
        // Everybody hears of it at once, and not all are to ask at once.
        events::after(ids::jitter(LONGEST_LOOK_MS)).await;
        let Ok(plan) = calls::read::<PlanView>(&session.path("/plan")).await else { return };
        if plan.room.is_some() && plan.room != known {
            browser::reload();
        }
    });
}

fn handle_end(session: Session) {
    let failures = session.connection.update_value(|connection| {
        connection.failures += 1;
        connection.is_doubted = false;
        connection.failures
    });
    session.connection_status.set(if failures >= TRIES_UNTIL_OFFLINE { Live::Offline } else { Live::Connecting });
    let longest = FIRST_PAUSE_MS.saturating_mul(1 << failures.min(8)).min(LONGEST_PAUSE_MS);
    reconnect_after(session, ids::jitter(longest));
    without_socket::read_map_if_offline(session);
}

/// Replaces the connection after a pause. Never at once: the old one must not be dropped while its
/// own callback runs.
fn reconnect_after(session: Session, pause_ms: u32) {
    let number = session.connection.update_value(|connection| {
        connection.number += 1;
        connection.number
    });
    spawn_local(async move {
        events::after(pause_ms).await;
        if session.connection.with_value(|connection| connection.number == number) {
            connect(session);
        }
    });
}

/// Reacts to the page being hidden, shown, left and come back to.
pub(in crate::seat_map) fn watch_page(session: Session) {
    events::on_window("pagehide", move |_| {
        own_hold::shorten_on_leave(session);
        disconnect(session);
    });
    events::on_window("pageshow", move |event| {
        // Shown again from the back-forward cache, not shown for the first time.
        if event.dyn_ref::<web_sys::PageTransitionEvent>().is_some_and(web_sys::PageTransitionEvent::persisted) {
            session.set_payment_pending(false);
            own_hold::refresh_after_beacons(session);
            reconnect_now(session);
        }
    });
    events::on_document("visibilitychange", move |_| {
        if is_visible() {
            resume_page(session);
        } else {
            session.connection.update_value(|connection| connection.hidden_at = Some(clock::device_ms()));
        }
    });
    events::on_window("online", move |_| {
        own_hold::refresh(session);
        reconnect_now(session);
    });
    events::on_window("offline", move |_| go_offline(session));
}

/// The page can be seen again.
fn resume_page(session: Session) {
    let hidden_at = session.connection.update_value(|connection| connection.hidden_at.take());
    let now = clock::device_ms();
    let slept = hidden_at.is_some_and(|at| is_over(LONGEST_NAP_MS, at, now));
    own_hold::refresh_after_beacons(session);
    if slept
        || session.connection.with_value(|connection| connection.is_silent(now))
        || session.connection_status.get_untracked() != Live::On
    {
        reconnect_now(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_named_in_the_address_and_all_of_them_by_none() {
        assert_eq!(in_query(&[2, 5]).as_deref(), Some("sections=2,5"));
        assert_eq!(in_query(&[]), None);
    }
}
