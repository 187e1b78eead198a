//! Detects calls of a show that overlapped: their order is unknown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::tally::DivergenceCounter;

/// Calls to the first store in progress, by show. Shows without any are not in it.
#[derive(Default)]
pub(super) struct Overlaps(Mutex<HashMap<Uuid, Calls>>);

#[derive(Default)]
struct Calls {
    running: u32,
    begun: u64,
}

pub(super) struct Running {
    overlaps: Arc<Overlaps>,
    tally: Arc<DivergenceCounter>,
    show: Uuid,
    was_alone: bool,
    begun: u64,
    is_over: bool,
}

impl Overlaps {
    pub(super) fn begin(self: &Arc<Self>, show: Uuid, tally: &Arc<DivergenceCounter>) -> Running {
        let mut shows = self.lock();
        let calls = shows.entry(show).or_default();
        calls.running += 1;
        calls.begun += 1;
        let (was_alone, begun) = (calls.running == 1, calls.begun);
        drop(shows);
        Running { overlaps: Arc::clone(self), tally: Arc::clone(tally), show, was_alone, begun, is_over: false }
    }

    // Held for a map operation only, never across an await.
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Calls>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Ends the call. Returns true if no other call of the show overlapped with it.
    pub(super) fn end(mut self) -> bool {
        self.is_over = true;
        self.leave()
    }

    fn leave(&self) -> bool {
        let mut shows = self.overlaps.lock();
        let Some(calls) = shows.get_mut(&self.show) else { return false };
        calls.running -= 1;
        let stayed_alone = calls.begun == self.begun;
        if calls.running == 0 {
            shows.remove(&self.show);
        }
        self.was_alone && stayed_alone
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            self.leave();
            self.tally.missed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_ordered_only_if_no_call_of_the_same_show_overlapped() {
        let (overlaps, tally) = (Arc::<Overlaps>::default(), Arc::<DivergenceCounter>::default());
        let begin = |show| overlaps.begin(Uuid::from_u128(show), &tally);
        let (first, elsewhere) = (begin(1), begin(2));
        assert!(first.end(), "calls of other shows do not count");
        let (first, second) = (begin(1), begin(1));
        assert!(!first.end());
        let third = begin(1);
        assert!(!second.end());
        assert!(!third.end(), "it began beside the second");
        assert!(elsewhere.end());
        assert_eq!(overlaps.lock().len(), 0);
    }

    #[test]
    fn a_call_whose_caller_disconnected_is_counted_as_missed() {
        let (overlaps, tally) = (Arc::<Overlaps>::default(), Arc::<DivergenceCounter>::default());
        drop(overlaps.begin(Uuid::nil(), &tally));
        assert_eq!(tally.so_far().missed, 1);
        assert_eq!(overlaps.lock().len(), 0);
    }
}
