//! Free seats of each section: counted at once when the map was quiet, and once a second in a rush. Numbers that
//! change faster nobody can read, and each costs the page a new layout.

use std::time::Duration;

use domain::wire::Change;
use leptos::prelude::*;

use crate::browser::clock;
use crate::seat_map::session::Session;

/// Sections are counted again after this long at the soonest, milliseconds.
const COUNT_EVERY_MS: u32 = 1_000;

/// What is to be counted.
#[derive(Default)]
pub struct Counting {
    /// Sections in which something changed since they were counted.
    touched: Vec<bool>,
    /// When sections were counted last, on the monotonic clock.
    counted_at: f64,
    /// Whether they will be counted in a moment.
    is_due: bool,
}

impl Session {
    /// Counts every section.
    pub(in crate::seat_map) fn count_all(self) {
        self.count(|_| true);
    }

    /// Counts the sections of what changed: now, or with what else changes until then.
    pub(in crate::seat_map) fn count_soon(self, changes: &[Change]) {
        let sections = self.free.with_value(Vec::len);
        let now = clock::monotonic_ms();
        let wait = self.room.with_untracked(|room| {
            self.counting.update_value(|counting| {
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
                set_timeout(move || self.count_touched(), Duration::from_millis(COUNT_EVERY_MS.into()));
            }
            Some(false) => self.count_touched(),
            None => {}
        }
    }

    fn count_touched(self) {
        let touched = self.counting.update_value(|counting| {
            counting.is_due = false;
            counting.counted_at = clock::monotonic_ms();
            std::mem::take(&mut counting.touched)
        });
        self.count(|section| touched.get(section).is_some_and(|touched| *touched));
    }

    fn count(self, which: impl Fn(usize) -> bool) {
        self.room.with_untracked(|room| {
            let sections = room.iter().flat_map(|room| &room.plan().sections).enumerate();
            for (number, section) in sections.filter(|(number, _)| which(*number)) {
                let now = self.board.with_value(|board| board.free_among(section.first, section.count));
                self.set_free(number, now);
            }
        });
    }

    /// Takes how many seats are free in each section from somebody who counted.
    pub(in crate::seat_map) fn hear_free(self, free: &[u32]) {
        (0..).zip(free).for_each(|(section, free)| self.set_free(section, *free));
    }

    fn set_free(self, section: usize, now: u32) {
        self.free.with_value(|free| {
            if let Some(free) = free.get(section).filter(|free| free.get_untracked() != now) {
                free.set(now);
            }
        });
    }
}
