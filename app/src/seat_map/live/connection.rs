//! Keeps the map of a session current: opens the live connection, follows it, and reconnects.
//!
//! Reconnects with full jitter and doubling pauses, and resumes from the last version. After a gap, a new epoch or
//! garbage, and for added sections, it requests a snapshot. While no connection can be opened, it reads the map over HTTP,
//! which is stale as soon as it is read.

use std::collections::BTreeSet;

use domain::api::PlanView;
use domain::json::{FromJson, Json};
use domain::seats::{AreaIndex, SeatState};
use domain::wire::{ClientMessage, Frame, MAX_SECTIONS_PER_READER, SeatChange};
use leptos::prelude::request_animation_frame;
use leptos::task::spawn_local;

use super::connection_state::{TRIES_UNTIL_OFFLINE, has_elapsed};
use crate::browser::calls::{self, Failure};
use crate::browser::socket::{Socket, SocketEvent};
use crate::browser::{self, clock, events, ids, is_visible, socket_origin};
use crate::seat_map::large_rooms::{counting, painting};
use crate::seat_map::notice::Notice;
use crate::seat_map::own_seats::{own_hold, watched};
use crate::seat_map::session::{ConnectionStatus, MapSession};
use crate::seat_map::signals::SendWrapper;

/// Longest pause before the second attempt, milliseconds. Doubles with each further attempt…
const FIRST_PAUSE_MS: u32 = 500;
/// …up to this.
const LONGEST_PAUSE_MS: u32 = 10_000;
/// A connection is replaced after the page was hidden for longer than this, milliseconds.
const MAX_HIDDEN_MS: f64 = 5_000.0;
/// Interval of the check for a silent connection, milliseconds.
pub const SILENCE_CHECK_MS: u32 = 5_000;
/// Longest pause before checking whether the show moved to another room, milliseconds.
const MAX_MOVE_CHECK_PAUSE_MS: u32 = 1_000;
/// Most frames buffered while the room plan is loading. More means that something is wrong.
const MAX_BUFFERED_FRAMES: usize = 64;

/// The sections as the query of the connection's address.
fn in_query(sections: &[u16]) -> Option<String> {
    let numbers: Vec<String> = sections.iter().map(u16::to_string).collect();
    (!numbers.is_empty()).then(|| format!("sections={}", numbers.join(",")))
}

/// Connects and resumes from the last version, if there is one for these sections.
pub fn connect(session: MapSession) {
    let subscribed = sections_to_subscribe(session);
    let resume = session.connection.update_value(|connection| connection.resume_from(&subscribed));
    let resumed = resume.map(|(epoch, version)| format!("epoch={epoch}&version={version}"));
    let query: Vec<String> = resumed.into_iter().chain(in_query(&subscribed)).collect();
    let address = format!("{}{}", socket_origin(), session.path(&format!("/live?{}", query.join("&"))));
    let resuming = resume.is_some();
    let socket = Socket::open(&address, move |happening| match happening {
        SocketEvent::Open => {
            if resuming {
                mark_connected(session);
            }
            // The section may have changed while connecting.
            subscribe_sections(session);
        }
        SocketEvent::Frame(bytes) => {
            session.connection.update_value(|connection| connection.received_at = clock::device_ms());
            handle_frame(session, bytes, clock::monotonic_ms());
        }
        SocketEvent::End => handle_end(session),
    });
    session.connection.update_value(|connection| {
        connection.generation += 1;
        connection.socket = socket.map(SendWrapper::new);
        connection.subscribed = subscribed;
        connection.received_at = clock::device_ms();
    });
}

/// The sections to subscribe to: the section on screen, and those of the visitor's own, watched and offered seats. An
/// empty list means the whole room, whose overview shows every seat.
fn sections_to_subscribe(session: MapSession) -> Vec<u16> {
    let Some(on_screen) = session.section.get_untracked() else { return Vec::new() };
    let elsewhere = session.room.with_untracked(|room| {
        let own = session.cart.with_untracked(|cart| cart.want().to_vec());
        let offered = session.notice.with_untracked(|notice| notice.as_ref()?.offer.clone());
        let offered = offered.into_iter().flat_map(|offer| offer.seats.to_vec());
        let watched: Vec<_> = session.watched.with_value(|watched| watched.iter().map(|one| one.seat).collect());
        let seats = own.into_iter().chain(watched).chain(offered);
        seats.filter_map(|seat| room.as_ref()?.section_of(seat)).collect::<Vec<_>>()
    });
    let all = elsewhere.into_iter().chain([on_screen]);
    let all: BTreeSet<u16> = all.filter_map(|at| u16::try_from(at).ok()).collect();
    if all.len() > MAX_SECTIONS_PER_READER { Vec::new() } else { all.into_iter().collect() }
}

/// Subscribes to the sections in use, if they differ from the subscribed ones.
pub fn subscribe_sections(session: MapSession) {
    let wanted = sections_to_subscribe(session);
    session.connection.update_value(|connection| {
        let ask = || ClientMessage::Subscribe { sections: wanted.clone() }.encode();
        // An unopened connection takes no frame. It subscribes when it opens.
        if connection.subscribed != wanted && connection.socket.as_ref().is_some_and(|socket| socket.send(&ask())) {
            connection.record_subscription(wanted);
        }
    });
}

/// Reconnects at once and resumes, whatever the connection's own state: after sleep it may be dead without notice.
fn reconnect_now(session: MapSession) {
    session.connection.update_value(|connection| connection.failures = 0);
    session.connection_status.set(ConnectionStatus::Connecting);
    reconnect_after(session, 0);
}

/// Replaces a connection that has been silent for too long.
pub fn check_silence(session: MapSession) {
    let now = clock::device_ms();
    let is_dead = session.connection.update_value(|connection| {
        let is_dead = connection.is_silent(now);
        if is_dead {
            // No second replacement while the next connection is opening.
            connection.received_at = now;
        }
        is_dead
    });
    match session.connection_status.get_untracked() {
        _ if !is_dead => {}
        ConnectionStatus::Live => reconnect_now(session),
        // A connection that never opened counts as a failed attempt.
        ConnectionStatus::Connecting | ConnectionStatus::Offline => handle_end(session),
    }
}

/// Reconnects after a request got no answer, because a connection that looks alive may be dead.
pub fn reconnect_if_unreachable(session: MapSession, failure: &Failure) {
    if *failure == Failure::Unreachable && session.connection_status.get_untracked() == ConnectionStatus::Live {
        session.connection.update_value(|connection| connection.is_reconnect_after_failure = true);
        reconnect_now(session);
    }
}

/// Handles the frames that arrived while the room plan was loading.
pub fn replay_buffered_frames(session: MapSession) {
    let buffered = session.connection.update_value(|connection| std::mem::take(&mut connection.buffered));
    buffered.into_iter().for_each(|(bytes, received_at)| handle_frame(session, bytes, received_at));
}

fn mark_connected(session: MapSession) {
    let was_reconnect_after_failure = session.connection.update_value(|connection| {
        connection.failures = 0;
        std::mem::take(&mut connection.is_reconnect_after_failure)
    });
    if session.connection_status.get_untracked() != ConnectionStatus::Live {
        session.connection_status.set(ConnectionStatus::Live);
        if !was_reconnect_after_failure {
            // Only this notice: any other is still true.
            session.dismiss(&Notice::failed(&Failure::Unreachable));
        }
        if let Some(notice) = session.connection.update_value(|connection| connection.map_failure_notice.take()) {
            session.dismiss(&notice);
        }
    }
}

/// Handles a frame received at `received_at` on the monotonic clock.
fn handle_frame(session: MapSession, bytes: Vec<u8>, received_at: f64) {
    let Some(seats) = session.room.with_untracked(|room| room.as_ref().map(|room| room.plan().seat_count)) else {
        session.connection.update_value(|connection| {
            if connection.buffered.len() < MAX_BUFFERED_FRAMES {
                connection.buffered.push((bytes, received_at));
            }
        });
        return;
    };
    let before = session.connection.with_value(|connection| connection.follower.resume_from());
    let frame = session.connection.update_value(|connection| connection.follower.read_frame(&bytes, seats));
    let after = session.connection.with_value(|connection| connection.follower.resume_from());
    // After a new epoch or an invalid frame the show may be in another room.
    if frame.is_none() || before.zip(after).is_some_and(|(before, after)| before.0 != after.0) {
        reload_if_moved(session);
    }
    match frame {
        Some(Frame::Snapshot { map, now, .. }) => {
            clock::observe_frame(now, received_at);
            mark_connected(session);
            session.connection.update_value(|connection| connection.needs_snapshot = false);
            replace_map(session, &map);
        }
        Some(Frame::Delta { changes, .. }) => {
            mark_connected(session);
            apply_changes(session, &changes);
        }
        Some(Frame::OwnHold { mine, now }) => {
            clock::observe_frame(now, received_at);
            own_hold::compare_with_live_map(session, mine.as_ref());
        }
        Some(Frame::Areas { left }) => session.places_left.set(left),
        Some(Frame::Overview { free }) => counting::set_free_counts(session, &free),
        // Of no use to a visitor who sees the map.
        Some(Frame::Queue(_)) => {}
        Some(Frame::Drain { retry_ms }) => {
            let pause = u32::try_from(retry_ms).unwrap_or(LONGEST_PAUSE_MS).min(LONGEST_PAUSE_MS);
            reconnect_after(session, pause / 2 + ids::jitter(pause));
        }
        None => reconnect_after(session, ids::jitter(FIRST_PAUSE_MS)),
    }
}

/// Reloads the page if the show was moved to another room, where its seats have other numbers.
fn reload_if_moved(session: MapSession) {
    let known = session.room.with_untracked(|room| room.as_ref().and_then(|room| room.plan().room));
    spawn_local(async move {
        // Jitter: every client gets the new epoch at the same moment.
        events::after(ids::jitter(MAX_MOVE_CHECK_PAUSE_MS)).await;
        let Ok(plan) = calls::read::<PlanView>(&session.path("/plan")).await else { return };
        if plan.room.is_some() && plan.room != known {
            browser::reload();
        }
    });
}

fn handle_end(session: MapSession) {
    let failures = session.connection.update_value(|connection| {
        connection.failures += 1;
        connection.is_reconnect_after_failure = false;
        connection.failures
    });
    session.connection_status.set(if failures >= TRIES_UNTIL_OFFLINE {
        ConnectionStatus::Offline
    } else {
        ConnectionStatus::Connecting
    });
    let longest = FIRST_PAUSE_MS.saturating_mul(1 << failures.min(8)).min(LONGEST_PAUSE_MS);
    reconnect_after(session, ids::jitter(longest));
    read_map_if_offline(session);
}

/// Replaces the connection after a pause. Never at once: the old one must not be dropped while its own callback runs.
fn reconnect_after(session: MapSession, pause_ms: u32) {
    let generation = session.connection.update_value(|connection| {
        connection.generation += 1;
        connection.generation
    });
    spawn_local(async move {
        events::after(pause_ms).await;
        if session.connection.with_value(|connection| connection.generation == generation) {
            connect(session);
        }
    });
}

/// Reacts to the page being hidden, shown, left and restored.
pub fn watch_page(session: MapSession) {
    events::on_window("pagehide", move |_| {
        own_hold::shorten_on_leave(session);
        // Returning to the page opens the connection again.
        session.connection.update_value(|connection| {
            connection.generation += 1;
            connection.socket = None;
        });
        session.connection_status.set(ConnectionStatus::Connecting);
    });
    events::on_restored(move || {
        session.set_payment_pending(false);
        own_hold::refresh_after_beacons(session);
        reconnect_now(session);
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
    events::on_window("offline", move |_| session.connection_status.set(ConnectionStatus::Offline));
}

/// Refreshes hold and connection when the page becomes visible.
fn resume_page(session: MapSession) {
    let hidden_at = session.connection.update_value(|connection| connection.hidden_at.take());
    let now = clock::device_ms();
    let slept = hidden_at.is_some_and(|at| has_elapsed(MAX_HIDDEN_MS, at, now));
    own_hold::refresh_after_beacons(session);
    if slept
        || session.connection.with_value(|connection| connection.is_silent(now))
        || session.connection_status.get_untracked() != ConnectionStatus::Live
    {
        reconnect_now(session);
    }
}

/// The map in the API's HTTP format.
struct SeatsView {
    epoch: u64,
    version: u64,
    states: String,
    areas: Vec<AreaPlaces>,
}

struct AreaPlaces {
    area: AreaIndex,
    left: u32,
}

impl FromJson for SeatsView {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        Some(Self {
            epoch: json.field("epoch")?,
            version: json.field("version")?,
            states: json.field("states")?,
            areas: json.field("areas")?,
        })
    }
}

impl FromJson for AreaPlaces {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        Some(Self { area: json.field("area")?, left: json.field("left")? })
    }
}

impl SeatsView {
    /// Every seat's state; `None` for an invalid digit.
    fn map(&self) -> Option<Vec<SeatState>> {
        self.states.bytes().map(|digit| SeatState::from_byte(digit.wrapping_sub(b'0'))).collect()
    }
}

/// Reads the map over HTTP if there is no connection and the map is missing or already shown as stale.
pub fn read_map_if_offline(session: MapSession) {
    let failures = session.connection.with_value(|connection| connection.failures);
    let has_room = session.room.with_untracked(Option::is_some);
    let limit = if session.is_map_known.get_untracked() { TRIES_UNTIL_OFFLINE } else { 1 };
    if !has_room || failures < limit {
        return;
    }
    spawn_local(async move {
        let seats = match calls::read::<SeatsView>(&session.path("/seats")).await {
            Ok(seats) => seats,
            // Without an answer the next failed attempt reads again.
            Err(Failure::Unreachable) => return,
            Err(refused @ Failure::Problem(_)) => return show_failure_once(session, &refused),
        };
        let reached = session.connection.with_value(|connection| connection.follower.resume_from());
        let is_older = reached.is_some_and(|at| at.0 == seats.epoch && at.1 > seats.version);
        // The live connection resumes from its own version: its deltas repeat what this map contains.
        if let (Some(map), false, true) =
            (seats.map(), is_older, session.connection_status.get_untracked() != ConnectionStatus::Live)
        {
            replace_map(session, &map);
            session.places_left.set(seats.areas.iter().map(|area| (area.area, area.left)).collect());
        }
    });
}

/// Shows why there is no map (for example, seats cannot be held now). Once until the next connection, and never over
/// another notice.
fn show_failure_once(session: MapSession, refused: &Failure) {
    let is_shown = session.connection.with_value(|connection| connection.map_failure_notice.is_some());
    if is_shown || session.notice.with_untracked(Option::is_some) {
        return;
    }
    let notice = Notice::failed(refused);
    session.connection.update_value(|connection| connection.map_failure_notice = Some(notice.clone()));
    session.notice.set(Some(notice));
}

fn replace_map(session: MapSession, map: &[SeatState]) {
    let replaced = session.cart.with_untracked(|cart| session.board.update_value(|board| board.replace(map, cart)));
    if replaced && !session.is_map_known.get_untracked() {
        session.is_map_known.set(true);
    }
    counting::count_all(session);
    painting::paint_changes(session);
    watched::notify_watched(session);
}

fn apply_changes(session: MapSession, changes: &[SeatChange]) {
    // A seat of our hold that is not locked any more: the hold ended elsewhere.
    let lost = |change: &SeatChange| change.state != SeatState::Locked;
    if session.cart.with_untracked(|cart| changes.iter().any(|change| lost(change) && cart.holds(change.seat))) {
        own_hold::refresh(session);
    }
    if session.board.update_value(|board| board.apply(changes)) {
        schedule_paint(session);
    }
    counting::count_changed(session, changes);
    painting::paint_changes(session);
    watched::notify_watched(session);
}

/// Paints changed seats on screen together: in the next frame, or later while the map moves.
fn schedule_paint(session: MapSession) {
    let is_scheduled =
        session.connection.update_value(|connection| std::mem::replace(&mut connection.is_paint_scheduled, true));
    if !is_scheduled {
        paint_when_still(session, clock::monotonic_ms());
    }
}

/// Paints the changes made at `since` and later.
fn paint_when_still(session: MapSession, since: f64) {
    request_animation_frame(move || {
        if session.map_view.delays_paint(since, clock::monotonic_ms()) {
            return paint_when_still(session, since);
        }
        session.connection.update_value(|connection| connection.is_paint_scheduled = false);
        session.cart.with_untracked(|cart| session.board.with_value(|board| board.update_signals(cart)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribed_sections_are_in_the_query_and_none_means_all() {
        assert_eq!(in_query(&[2, 5]).as_deref(), Some("sections=2,5"));
        assert_eq!(in_query(&[]), None);
    }

    #[test]
    fn a_map_in_digits_is_parsed_as_seat_states() {
        let seats = |states: &str| SeatsView { epoch: 1, version: 1, states: states.to_owned(), areas: vec![] };
        let all = [SeatState::Available, SeatState::Locked, SeatState::Booked, SeatState::Blocked];
        assert_eq!(seats("0123").map().as_deref(), Some(&all[..]));
        assert_eq!(seats("01x").map(), None);
        let read = domain::json::read::<SeatsView>(
            r#"{"epoch":7,"version":3,"states":"02","areas":[{"area":1,"left":40,"name":"Floor"}]}"#,
        );
        let read = read.expect("the API's format");
        assert_eq!((read.epoch, read.version, read.map()), (7, 3, Some(vec![SeatState::Available, SeatState::Booked])));
        assert_eq!(read.areas.iter().map(|area| (area.area, area.left)).collect::<Vec<_>>(), [(1, 40)]);
    }
}
