//! Proof-of-work puzzles: cheap for one browser, ten thousand times as expensive for a visitor who comes ten thousand
//! times.
//!
//! The server issues a challenge, a short text. A solution is the challenge, a hyphen and a number, such that the
//! SHA-256 of the whole begins with a given number of zero bits. Finding one takes 2^bits attempts on average;
//! verifying it takes one hash, whatever the difficulty. The difficulty follows from the current demand for seats
//! ([`required_bits`], [`Load`]); at low demand there is no puzzle.
//!
//! Sources: C. Dwork, M. Naor, "Pricing via Processing or Combatting Junk Mail", CRYPTO '92 (work as a price); A. Back,
//! "Hashcash: A Denial of Service Counter-Measure", 2002 (leading zero bits of a hash); A. Juels, J. Brainard, "Client
//! Puzzles", NDSS 1999 (used under load only, difficulty grows with it, and the server keeps no state until a solution
//! arrives). Limits: B. Laurie, R. Clayton, "Proof-of-Work Proves Not to Work", 2004. Puzzles slow down an attacker
//! with many visitors on few machines; they do not stop one with many machines.
//!
//! The server signs challenges, binds them to a visitor and accepts each once. That is not part of this module.

use sha2::{Digest, Sha256};

use crate::time::{SECOND_MS, Timestamp};

/// Minimum difficulty: 16,384 hashes on average, a few hundredths of a second on a phone.
pub const MIN_BITS: u8 = 14;
/// Maximum difficulty: 262,144 hashes on average, about a second on a phone. A harder puzzle would favour visitors with
/// newer devices.
pub const MAX_BITS: u8 = 18;
/// Maximum length of the number in a solution, digits: far more than any puzzle needs.
pub const MAX_DIGITS: usize = 16;

/// Returns the difficulty at `per_second` attempts a second; `None`, which means no puzzle, up to `calm` of them. Each
/// doubling of the load doubles the work, from [`MIN_BITS`] to [`MAX_BITS`]. A `calm` of 0 disables puzzles.
#[must_use]
pub fn required_bits(per_second: u32, calm: u32) -> Option<u8> {
    if calm == 0 || per_second <= calm {
        return None;
    }
    let doublings = (per_second / calm).ilog2();
    Some(u8::try_from(doublings).unwrap_or(MAX_BITS).saturating_add(MIN_BITS).min(MAX_BITS))
}

/// Returns the challenge part of a solution; `None` if the number is missing, too long or not a number.
#[must_use]
pub fn challenge_of(solution: &str) -> Option<&str> {
    let (challenge, number) = solution.rsplit_once('-')?;
    let is_number = (1..=MAX_DIGITS).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then_some(challenge)
}

/// True if `solution` solves a puzzle of `bits` bits. It computes one hash.
#[must_use]
pub fn is_solved(solution: &str, bits: u8) -> bool {
    zero_bits(&Sha256::digest(solution.as_bytes()).into()) >= u32::from(bits)
}

/// Returns the first solution among `most_tries` numbers. The browser's worker uses the same search
/// (`frontend/static/puzzle-worker.js`).
#[must_use]
pub fn solve(challenge: &str, bits: u8, most_tries: u64) -> Option<String> {
    (0..most_tries).map(|number| format!("{challenge}-{number}")).find(|solution| is_solved(solution, bits))
}

fn zero_bits(hash: &[u8; 32]) -> u32 {
    let whole = hash.iter().take_while(|byte| **byte == 0).count();
    let rest = hash.get(whole).map_or(0, |byte| byte.leading_zeros());
    // A hash has 32 bytes, so the cast is lossless.
    whole as u32 * 8 + rest
}

/// Length of a window, milliseconds: long enough that one fast visitor does not count as a crowd, short enough to
/// detect the crowd in the first second of a sale.
pub const WINDOW_MS: i64 = 5 * SECOND_MS;

/// Sliding-window counter of attempts. It keeps two numbers. The previous window's attempts are assumed to be evenly
/// distributed and count in proportion to its overlap with the last [`WINDOW_MS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    window: i64,
    current: u32,
    previous: u32,
}

impl Load {
    /// Counts an attempt.
    pub fn record(&mut self, at: Timestamp) {
        self.advance(at);
        self.current = self.current.saturating_add(1);
    }

    /// Returns the attempts per second over the last [`WINDOW_MS`], rounded down.
    #[must_use]
    pub fn per_second(mut self, at: Timestamp) -> u32 {
        self.advance(at);
        let rest_ms = WINDOW_MS - at.0.rem_euclid(WINDOW_MS);
        let counted = i64::from(self.current) + i64::from(self.previous) * rest_ms / WINDOW_MS;
        u32::try_from(counted * SECOND_MS / WINDOW_MS).unwrap_or(u32::MAX)
    }

    /// True if no counted attempt is recent enough to count.
    #[must_use]
    pub fn is_over(mut self, at: Timestamp) -> bool {
        self.advance(at);
        self.current == 0 && self.previous == 0
    }

    /// Advances to the window of `at`. A clock that goes back stays in its window.
    fn advance(&mut self, at: Timestamp) {
        let window = at.0.div_euclid(WINDOW_MS);
        if window > self.window {
            self.previous = if window == self.window.saturating_add(1) { self.current } else { 0 };
            self.current = 0;
            self.window = window;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Enough tries for the puzzles of these tests: one puzzle in e^64 needs more.
    const TRIES: u64 = 64 << 8;

    #[test]
    fn low_demand_needs_no_puzzle_and_each_doubling_doubles_the_work() {
        for (per_second, bits) in [
            (0, None),
            (20, None),
            (21, Some(14)),
            (39, Some(14)),
            (40, Some(15)),
            (79, Some(15)),
            (80, Some(16)),
            (320, Some(18)),
            (u32::MAX, Some(MAX_BITS)),
        ] {
            assert_eq!(required_bits(per_second, 20), bits, "{per_second} a second");
        }
        assert_eq!(required_bits(u32::MAX, 0), None, "switched off");
        assert_eq!(required_bits(u32::MAX, 1), Some(MAX_BITS));
    }

    #[test]
    fn worker_has_the_same_maximum_difficulty() {
        let worker = include_str!("../../../frontend/static/puzzle-worker.js");
        assert!(worker.contains(&format!("const MAX_BITS = {MAX_BITS};")));
    }

    #[test]
    fn leading_zero_bits_are_counted() {
        let hash = |bytes: &[u8]| {
            let mut hash = [0xFF; 32];
            hash[..bytes.len()].copy_from_slice(bytes);
            hash
        };
        for (bytes, bits) in
            [(&[0x80][..], 0), (&[0x01][..], 7), (&[0x00][..], 8), (&[0x00, 0x00, 0x10][..], 19), (&[0; 32][..], 256)]
        {
            assert_eq!(zero_bits(&hash(bytes)), bits, "{bytes:?}");
        }
    }

    #[test]
    fn solution_is_found_and_valid_for_its_challenge_only() {
        let solution = solve("8-one", 8, TRIES).expect("a solution");
        assert_eq!(challenge_of(&solution), Some("8-one"));
        assert!(is_solved(&solution, 8) && is_solved(&solution, 0));
        assert!(!is_solved(&solution, 64), "the probability is negligible");
        assert_eq!(solve("8-one", 8, 0), None, "nothing was tried");
        assert!(solve("8-other", 8, TRIES).is_some_and(|other| challenge_of(&other) == Some("8-other")));
    }

    #[test]
    fn malformed_solutions_are_refused_without_hashing() {
        let long = format!("a-{}", "1".repeat(MAX_DIGITS + 1));
        for text in ["", "-", "a", "a-", "a-1b", "a- 1", "a-+1", "a-１", &long] {
            assert_eq!(challenge_of(text), None, "{text}");
        }
        assert_eq!(challenge_of("a-b-0"), Some("a-b"));
        assert_eq!(challenge_of("-7"), Some(""));
    }

    proptest! {
        #[test]
        fn higher_load_never_lowers_the_difficulty(one in any::<u32>(), other in any::<u32>(), calm in any::<u32>()) {
            let (fewer, more) = (one.min(other), one.max(other));
            prop_assert!(required_bits(fewer, calm) <= required_bits(more, calm));
            let in_bounds = |bits: Option<u8>| bits.is_none_or(|bits| (MIN_BITS..=MAX_BITS).contains(&bits));
            prop_assert!(in_bounds(required_bits(more, calm)));
        }

        #[test]
        fn arbitrary_text_never_panics(text in any::<String>(), bits in any::<u8>()) {
            let _ = (challenge_of(&text), is_solved(&text, bits));
        }
    }

    /// Start of a window.
    const BEGIN: Timestamp = Timestamp(1_000 * WINDOW_MS);

    fn load_after(attempts: u32) -> Load {
        let mut load = Load::default();
        (0..attempts).for_each(|_| load.record(BEGIN));
        load
    }

    #[test]
    fn rate_rises_at_once_and_decays_gradually() {
        let load = load_after(500);
        assert_eq!(load.per_second(BEGIN), 100);
        assert_eq!(load.per_second(BEGIN.plus_ms(WINDOW_MS - 1)), 100, "in the same window");
        assert_eq!(load.per_second(BEGIN.plus_ms(WINDOW_MS)), 100);
        assert_eq!(load.per_second(BEGIN.plus_ms(WINDOW_MS + WINDOW_MS / 2)), 50);
        assert_eq!(load.per_second(BEGIN.plus_ms(2 * WINDOW_MS)), 0);
    }

    #[test]
    fn old_attempts_expire() {
        let load = load_after(1);
        assert!(!load.is_over(BEGIN.plus_ms(2 * WINDOW_MS - 1)));
        assert!(load.is_over(BEGIN.plus_ms(2 * WINDOW_MS)));
        assert!(Load::default().is_over(BEGIN));
    }

    #[test]
    fn backward_clock_keeps_counts_and_counters_saturate() {
        let mut load = load_after(500);
        load.record(BEGIN.plus_ms(-3 * WINDOW_MS));
        assert_eq!(load.per_second(BEGIN), 100);
        let full = Load { window: BEGIN.0.div_euclid(WINDOW_MS), current: u32::MAX, previous: u32::MAX };
        let mut fuller = full;
        fuller.record(BEGIN);
        assert_eq!(fuller, full);
        assert!(fuller.per_second(BEGIN) > 1_000_000_000);
    }
}
