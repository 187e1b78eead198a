//! Counts the free seats of each section: at once on a quiet map, and once a second in a rush. Numbers that
//! change faster are unreadable, and each change costs a layout.

use std::time::Duration;

use domain::wire::SeatChange;
use leptos::prelude::*;

use crate::browser::clock;
use crate::seat_map::session::MapSession;

/// Shortest interval between two counts, milliseconds.
const COUNT_EVERY_MS: u32 = 1_000;

pub fn count_all(session: MapSession) {
    count_sections(session, |_| true);
}

/// Counts the sections of these changes: now, or together with further changes.
pub fn count_changed(session: MapSession, changes: &[SeatChange]) {
    let sections = session.free_seats.with_value(Vec::len);
    let now = clock::monotonic_ms();
    let wait = session.room.with_untracked(|room| {
        session.counting.update_value(|counting| {
            counting.touched.resize(sections, false);
            for change in changes {
                let section = room.as_ref().and_then(|room| room.section_of(change.seat));
                if let Some(touched) = section.and_then(|section| counting.touched.get_mut(section)) {
                    *touched = true;
                }
            }
            let quiet_ms = now - counting.counted_at;
            let is_due = std::mem::replace(&mut counting.is_due, true);
            (!is_due).then_some(quiet_ms < f64::from(COUNT_EVERY_MS))
        })
    });
    match wait {
        Some(true) => {
            set_timeout(move || count_pending(session), Duration::from_millis(COUNT_EVERY_MS.into()));
        }
        Some(false) => count_pending(session),
        None => {}
    }
}

fn count_pending(session: MapSession) {
    let touched = session.counting.update_value(|counting| {
        counting.is_due = false;
        counting.counted_at = clock::monotonic_ms();
        std::mem::take(&mut counting.touched)
    });
    count_sections(session, |section| touched.get(section).is_some_and(|touched| *touched));
}

fn count_sections(session: MapSession, which: impl Fn(usize) -> bool) {
    session.room.with_untracked(|room| {
        let sections = room.iter().flat_map(|room| &room.plan().sections).enumerate();
        for (number, section) in sections.filter(|(number, _)| which(*number)) {
            let now = session.board.with_value(|board| board.free_among(section.first, section.count));
            set_free_count(session, number, now);
        }
    });
}

/// Sets the free seats of each section as counted by the server.
pub fn set_free_counts(session: MapSession, free: &[u32]) {
    (0..).zip(free).for_each(|(section, free)| set_free_count(session, section, *free));
}

fn set_free_count(session: MapSession, section: usize, now: u32) {
    session.free_seats.with_value(|free| {
        if let Some(free) = free.get(section).filter(|free| free.get_untracked() != now) {
            free.set(now);
        }
    });
}
