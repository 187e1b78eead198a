//! How many try to take seats of each show that is sold in a rush, at this replica.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use domain::puzzle::Load;
use domain::time::Timestamp;
use uuid::Uuid;

/// Shows counted at a time; those where it is quiet are forgotten first, and beyond that none is counted more.
const MAX_SHOWS: usize = 10_000;

/// A count for each show.
#[derive(Default)]
pub(super) struct Loads(Mutex<HashMap<Uuid, Load>>);

impl Loads {
    /// Counts an attempt; how many a second there are.
    pub(super) fn note(&self, show: Uuid, now: Timestamp) -> u32 {
        // Held for two additions.
        let mut loads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if loads.len() >= MAX_SHOWS && !loads.contains_key(&show) {
            loads.retain(|_, load| !load.is_over(now));
            if loads.len() >= MAX_SHOWS {
                return 0;
            }
        }
        let load = loads.entry(show).or_default();
        load.note(now);
        load.per_second(now)
    }
}

#[cfg(test)]
mod tests {
    use domain::puzzle::WINDOW_MS;

    use super::*;

    #[test]
    fn every_show_is_counted_by_itself_and_quiet_ones_are_forgotten() {
        let (loads, now) = (Loads::default(), Timestamp(WINDOW_MS));
        let show = |number: usize| Uuid::from_u128(number as u128);
        let crowd: Vec<u32> = (0..50).map(|_| loads.note(show(1), now)).collect();
        assert_eq!((crowd[0], crowd[49]), (0, 10));
        assert_eq!(loads.note(show(2), now), 0);
        for number in 3..=MAX_SHOWS {
            loads.note(show(number), now);
        }
        loads.note(show(MAX_SHOWS + 1), now);
        let kept = || loads.0.lock().expect("nobody panicked").len();
        assert_eq!(kept(), MAX_SHOWS, "no room while all are busy");
        loads.note(show(MAX_SHOWS + 1), now.plus_ms(2 * WINDOW_MS));
        assert_eq!(kept(), 1);
    }
}
