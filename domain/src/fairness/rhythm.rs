//! Detects tries that are too fast or too regular for a person.
//!
//! It examines the last [`PAUSES_EXAMINED`] pauses between the tries of one visitor. People cannot:
//!
//! - be that fast repeatedly: a simple reaction with one finger, without a choice, takes 231 ms on average (D. Woods et
//!   al., "Factors influencing the latency of simple reaction time", Frontiers in Human Neuroscience 9:131, 2015: 1,469
//!   people). Choosing a seat and moving a pointer takes longer. A mean of less than 200 ms over twenty pauses is
//!   therefore a program's;
//! - be that regular: people who only tap to a beat vary by some hundredths of the beat, the most practised of them by
//!   about two (B. Repp, "Sensorimotor synchronization: a review of the tapping literature", Psychonomic Bulletin &
//!   Review 12, 2005). Visitors who choose seats do not tap to a beat, and the network adds variation. A standard
//!   deviation of less than two hundredths of the mean over twenty pauses is therefore a program's.
//!
//! A program that waits for random times is not detected. The result is a hint for managers, not a proof.

use crate::time::Timestamp;

/// Number of pauses examined.
pub const PAUSES_EXAMINED: usize = 20;
/// Mean pause below which tries are a program's, milliseconds.
const MIN_HUMAN_MEAN_MS: u64 = 200;
/// Tries are a program's if the standard deviation is below the mean divided by this.
const MIN_HUMAN_DEVIATION_DIVISOR: u64 = 50;
/// A longer pause resets the history, milliseconds.
const MAX_PAUSE_MS: i64 = 60_000;

/// The last tries of one visitor.
#[derive(Clone, Debug, Default)]
pub struct Rhythm {
    last: Option<Timestamp>,
    /// Milliseconds, as a ring buffer.
    pauses: [u32; PAUSES_EXAMINED],
    /// Index of the next pause.
    next: usize,
    /// Number of recorded pauses.
    count: usize,
}

impl Rhythm {
    /// Records a try. Returns true if the last tries look like a program's.
    pub fn note(&mut self, now: Timestamp) -> bool {
        let pause = self.last.replace(now).map(|last| now.since(last).max(0));
        match pause {
            None => {}
            Some(pause) if pause > MAX_PAUSE_MS => (self.next, self.count) = (0, 0),
            Some(pause) => {
                self.pauses[self.next] = u32::try_from(pause).unwrap_or(u32::MAX);
                self.next = (self.next + 1) % PAUSES_EXAMINED;
                self.count = (self.count + 1).min(PAUSES_EXAMINED);
            }
        }
        self.is_inhuman()
    }

    fn is_inhuman(&self) -> bool {
        if self.count < PAUSES_EXAMINED {
            return false;
        }
        // In integers: n² times the variance is n times the sum of squares less the square of the sum.
        let count = PAUSES_EXAMINED as u64;
        let sum: u64 = self.pauses.iter().map(|pause| u64::from(*pause)).sum();
        let squares: u64 = self.pauses.iter().map(|pause| u64::from(*pause).pow(2)).sum();
        let spread = count * squares - sum * sum;
        sum < MIN_HUMAN_MEAN_MS * count || spread * MIN_HUMAN_DEVIATION_DIVISOR.pow(2) < sum * sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how many tries with these pauses are flagged.
    fn count_flagged(pauses: impl IntoIterator<Item = i64>) -> usize {
        let (mut rhythm, mut now) = (Rhythm::default(), Timestamp(5_000));
        rhythm.note(now);
        let mut flagged = 0;
        for pause in pauses {
            now = now.plus_ms(pause);
            flagged += usize::from(rhythm.note(now));
        }
        flagged
    }

    /// Pauses of a person who looks, taps, and looks again.
    fn human_pauses(times: usize) -> impl Iterator<Item = i64> {
        [900, 410, 2_300, 640, 1_250, 380, 700].into_iter().cycle().take(times)
    }

    #[test]
    fn few_tries_are_not_flagged() {
        assert_eq!(count_flagged(std::iter::repeat_n(10, PAUSES_EXAMINED - 1)), 0);
        assert_eq!(count_flagged(std::iter::repeat_n(10, PAUSES_EXAMINED)), 1);
    }

    #[test]
    fn human_pauses_are_never_flagged() {
        assert_eq!(count_flagged(human_pauses(2_000)), 0);
        // A person in a hurry, twice as fast and half as varied.
        assert_eq!(count_flagged([260, 310, 240, 420].into_iter().cycle().take(400)), 0);
    }

    #[test]
    fn pauses_below_human_reaction_time_are_flagged() {
        assert!(count_flagged([20, 350, 80, 190, 300].into_iter().cycle().take(60)) > 30);
    }

    #[test]
    fn pauses_more_regular_than_a_drummer_are_flagged() {
        assert_eq!(count_flagged(std::iter::repeat_n(5_000, 40)), 21);
        assert!(count_flagged([1_000, 1_012, 991, 1_003].into_iter().cycle().take(40)) > 0);
        assert_eq!(
            count_flagged([1_000, 1_050, 940, 1_080].into_iter().cycle().take(40)),
            0,
            "a good drummer varies as much"
        );
    }

    #[test]
    fn long_pause_resets_and_backward_clock_is_harmless() {
        let evenly = || std::iter::repeat_n(1_000, PAUSES_EXAMINED - 1);
        assert_eq!(count_flagged(evenly().chain([MAX_PAUSE_MS + 1]).chain(evenly())), 0);
        assert_eq!(count_flagged(std::iter::repeat_n(-1_000, 40)), 21, "pauses of 0");
        assert_eq!(count_flagged(std::iter::repeat_n(MAX_PAUSE_MS, 40)), 21, "the arithmetic does not overflow");
    }
}
