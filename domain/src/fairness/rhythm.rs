//! Whether somebody tries in a way that no person does.
//!
//! Looked at are the last [`INTERVALS`] pauses between the tries of one visitor. Two things people cannot do:
//!
//! - be that quick on and on: to see something and answer it with one finger, without a choice to make, takes people 231
//!   ms on average (D. Woods et al., "Factors influencing the latency of simple reaction time", Frontiers in Human
//!   Neuroscience 9:131, 2015: 1,469 people). Here is a seat to be chosen and a pointer to be moved as well. So a mean
//!   pause of less than 200 ms over twenty of them is no person's;
//! - be that even: people who tap to a beat and do nothing else vary by some hundredths of the beat, the most practised
//!   of them by about two (B. Repp, "Sensorimotor synchronization: a review of the tapping literature", Psychonomic
//!   Bulletin & Review 12, 2005). Nobody taps to a beat who looks for seats, and the network adds to what people vary.
//!   So a standard deviation of less than two hundredths of the mean over twenty pauses is a clock's.
//!
//! A program that waits for a random time is not found this way. It is a hint for people, not a proof.

use crate::time::Timestamp;

/// Pauses that are looked at.
pub const INTERVALS: usize = 20;
/// A mean pause below this is no person's, milliseconds.
const QUICKEST_MS: u64 = 200;
/// A standard deviation below the mean divided by this is no person's.
const EVENEST: u64 = 50;
/// A pause longer than this is no part of any rhythm: what came before is forgotten, milliseconds.
const LONGEST_MS: i64 = 60_000;

/// The last tries of somebody.
#[derive(Clone, Debug, Default)]
pub struct Rhythm {
    last: Option<Timestamp>,
    /// Milliseconds, in no order.
    pauses: [u32; INTERVALS],
    /// Where the next goes.
    next: usize,
    /// How many there are.
    count: usize,
}

impl Rhythm {
    /// Somebody tries; whether they and their last tries are no person's.
    pub fn note(&mut self, now: Timestamp) -> bool {
        let pause = self.last.replace(now).map(|last| now.since(last).max(0));
        match pause {
            None => {}
            Some(pause) if pause > LONGEST_MS => (self.next, self.count) = (0, 0),
            Some(pause) => {
                self.pauses[self.next] = u32::try_from(pause).unwrap_or(u32::MAX);
                self.next = (self.next + 1) % INTERVALS;
                self.count = (self.count + 1).min(INTERVALS);
            }
        }
        self.is_inhuman()
    }

    fn is_inhuman(&self) -> bool {
        if self.count < INTERVALS {
            return false;
        }
        // Whole numbers: n² times the variance is n times the sum of squares less the square of the sum.
        let count = INTERVALS as u64;
        let sum: u64 = self.pauses.iter().map(|pause| u64::from(*pause)).sum();
        let squares: u64 = self.pauses.iter().map(|pause| u64::from(*pause).pow(2)).sum();
        let spread = count * squares - sum * sum;
        sum < QUICKEST_MS * count || spread * EVENEST.pow(2) < sum * sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often it is said of tries with these pauses.
    fn said(pauses: impl IntoIterator<Item = i64>) -> usize {
        let (mut rhythm, mut now) = (Rhythm::default(), Timestamp(5_000));
        rhythm.note(now);
        let mut said = 0;
        for pause in pauses {
            now = now.plus_ms(pause);
            said += usize::from(rhythm.note(now));
        }
        said
    }

    /// Pauses of somebody who looks, taps, and looks again.
    fn person(times: usize) -> impl Iterator<Item = i64> {
        [900, 410, 2_300, 640, 1_250, 380, 700].into_iter().cycle().take(times)
    }

    #[test]
    fn nobody_is_judged_by_a_few_tries() {
        assert_eq!(said(std::iter::repeat_n(10, INTERVALS - 1)), 0);
        assert_eq!(said(std::iter::repeat_n(10, INTERVALS)), 1);
    }

    #[test]
    fn people_are_not_taken_for_programs_however_long_they_try() {
        assert_eq!(said(person(2_000)), 0);
        // Somebody in a hurry, twice as quick and half as far apart.
        assert_eq!(said([260, 310, 240, 420].into_iter().cycle().take(400)), 0);
    }

    #[test]
    fn whoever_is_quicker_than_people_react_is_no_person() {
        assert!(said([20, 350, 80, 190, 300].into_iter().cycle().take(60)) > 30);
    }

    #[test]
    fn whoever_keeps_time_better_than_a_drummer_is_no_person() {
        assert_eq!(said(std::iter::repeat_n(5_000, 40)), 21);
        assert!(said([1_000, 1_012, 991, 1_003].into_iter().cycle().take(40)) > 0);
        assert_eq!(said([1_000, 1_050, 940, 1_080].into_iter().cycle().take(40)), 0, "a good one does that");
    }

    #[test]
    fn a_long_pause_begins_anew_and_a_clock_that_goes_back_harms_nothing() {
        let evenly = || std::iter::repeat_n(1_000, INTERVALS - 1);
        assert_eq!(said(evenly().chain([LONGEST_MS + 1]).chain(evenly())), 0);
        assert_eq!(said(std::iter::repeat_n(-1_000, 40)), 21, "all at once");
        assert_eq!(said(std::iter::repeat_n(LONGEST_MS, 40)), 21, "and no number is too large");
    }
}
