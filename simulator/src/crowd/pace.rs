//! The pace of visits: each watched show gets its own, from the moment it is watched.

use std::collections::BTreeMap;

use uuid::Uuid;

/// The next visit of each watched show.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Milliseconds since 1970.
    due_ms: BTreeMap<Uuid, i64>,
}

impl Pace {
    /// Sets the watched shows. The first visit of a new one is due at `first_ms`.
    pub fn set_watched(&mut self, shows: &[Uuid], first_ms: impl Fn() -> i64) {
        self.due_ms.retain(|show, _| shows.contains(show));
        for show in shows {
            self.due_ms.entry(*show).or_insert_with(&first_ms);
        }
    }

    /// Returns `true` while no show is watched.
    pub fn is_idle(&self) -> bool {
        self.due_ms.is_empty()
    }

    /// Returns the show whose visit is the longest overdue, if any is due.
    pub fn next_due(&self, now_ms: i64) -> Option<Uuid> {
        let due = self.due_ms.iter().filter(|(_, due_ms)| **due_ms <= now_ms);
        due.min_by_key(|(_, due_ms)| **due_ms).map(|(show, _)| *show)
    }

    /// Sets the next visit of a show.
    pub fn schedule(&mut self, show: Uuid, due_ms: i64) {
        self.due_ms.insert(show, due_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    #[test]
    fn watched_show_is_due_after_its_first_delay_and_then_as_scheduled() {
        let mut pace = Pace::default();
        assert!(pace.is_idle());
        pace.set_watched(&[ONE], || 2_000);
        assert_eq!((pace.next_due(1_999), pace.next_due(2_000)), (None, Some(ONE)));
        pace.schedule(ONE, 6_000);
        pace.set_watched(&[ONE], || 0);
        assert_eq!((pace.next_due(5_999), pace.next_due(6_000)), (None, Some(ONE)), "still the scheduled visit");
    }

    #[test]
    fn longest_overdue_show_is_next_and_an_unwatched_show_is_forgotten() {
        let mut pace = Pace::default();
        pace.set_watched(&[ONE, OTHER], || 3_000);
        pace.schedule(OTHER, 1_000);
        assert_eq!(pace.next_due(9_000), Some(OTHER));
        pace.set_watched(&[ONE], || 0);
        assert_eq!(pace.next_due(9_000), Some(ONE));
        pace.set_watched(&[], || 0);
        assert!(pace.is_idle());
    }
}
