//! Attempts per second at seats of each show in a rush, as seen by this replica.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use domain::puzzle::Load;
use domain::time::Timestamp;
use uuid::Uuid;

/// Shows counted at most. Beyond, quiet ones are evicted; if all are busy, new shows are not counted.
const MAX_SHOWS: usize = 10_000;

#[derive(Default)]
pub(super) struct Loads(Mutex<HashMap<Uuid, Load>>);

impl Loads {
    /// Counts an attempt; returns the attempts per second.
    pub(super) fn record(&self, show: Uuid, now: Timestamp) -> u32 {
        // Held for two additions.
        let mut loads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if loads.len() >= MAX_SHOWS && !loads.contains_key(&show) {
            loads.retain(|_, load| !load.is_over(now));
            if loads.len() >= MAX_SHOWS {
                return 0;
            }
        }
        let load = loads.entry(show).or_default();
        load.record(now);
        load.per_second(now)
    }
}

#[cfg(test)]
mod tests {
    use domain::puzzle::WINDOW_MS;

    use super::*;

    #[test]
    fn shows_are_counted_separately_and_quiet_ones_are_evicted() {
        let (loads, now) = (Loads::default(), Timestamp(WINDOW_MS));
        let show = |number: usize| Uuid::from_u128(number as u128);
        let crowd: Vec<u32> = (0..50).map(|_| loads.record(show(1), now)).collect();
        assert_eq!((crowd[0], crowd[49]), (0, 10));
        assert_eq!(loads.record(show(2), now), 0);
        for number in 3..=MAX_SHOWS {
            loads.record(show(number), now);
        }
        loads.record(show(MAX_SHOWS + 1), now);
        let kept = || loads.0.lock().expect("no panic").len();
        assert_eq!(kept(), MAX_SHOWS, "no eviction while all are busy");
        loads.record(show(MAX_SHOWS + 1), now.plus_ms(2 * WINDOW_MS));
        assert_eq!(kept(), 1);
    }
}
