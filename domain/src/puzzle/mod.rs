//! A puzzle: a little work that a browser does unseen, and that costs whoever comes ten thousand times ten thousand
//! times as much.
//!
//! The server says a challenge, a short text. A solution is the challenge, a hyphen and a number whose SHA-256 begins
//! with so many zero bits. There is no way to one but to try: 2^bits numbers on average; looking whether it is one takes
//! a single hash, however hard it was to find. How many bits are asked for follows from how many people want seats just
//! then ([`bits_asked`], [`Load`]): none while it is calm.
//!
//! Sources: C. Dwork, M. Naor, "Pricing via Processing or Combatting Junk Mail", CRYPTO '92 (work as a price); A. Back,
//! "Hashcash: A Denial of Service Counter-Measure", 2002 (leading zero bits of a hash); A. Juels, J. Brainard, "Client
//! Puzzles", NDSS 1999 (asked for under load only, harder with it, and nothing kept by the server until it is solved).
//! What it is not good for: B. Laurie, R. Clayton, "Proof-of-Work Proves Not to Work", 2004. It slows down who has many
//! visitors on few machines; it stops nobody who has many machines.
//!
//! Not here: how a challenge is signed, whose it is, and that it is spent once; that is the server's.

mod load;

use sha2::{Digest, Sha256};

pub use load::{Load, WINDOW_MS};

/// Bits of the easiest puzzle: 16,384 hashes on average, a few hundredths of a second of a phone.
pub const LEAST_BITS: u8 = 14;
/// Bits of the hardest: 262,144 hashes on average, about a second of a phone. A puzzle that takes longer would decide
/// who gets the seats by who has the newer device.
pub const MOST_BITS: u8 = 18;
/// Longest number in a solution, digits: far more than any puzzle needs.
pub const MOST_DIGITS: usize = 16;

/// How many bits are asked for at so many attempts a second, where `calm` of them are still answered without a puzzle;
/// `None`: no puzzle is asked for. Each doubling of the load doubles the work, from [`LEAST_BITS`] to [`MOST_BITS`]. A
/// `calm` of zero asks for none, ever.
#[must_use]
pub fn bits_asked(per_second: u32, calm: u32) -> Option<u8> {
    if calm == 0 || per_second <= calm {
        return None;
    }
    let doublings = (per_second / calm).ilog2();
    Some(u8::try_from(doublings).unwrap_or(MOST_BITS).saturating_add(LEAST_BITS).min(MOST_BITS))
}

/// The challenge in what should be a solution; `None` when it can be none: the number is missing, too long, or none.
#[must_use]
pub fn challenge_of(solution: &str) -> Option<&str> {
    let (challenge, number) = solution.rsplit_once('-')?;
    let is_number = (1..=MOST_DIGITS).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then_some(challenge)
}

/// Whether this solves a puzzle of so many bits: one hash.
#[must_use]
pub fn is_solved(solution: &str, bits: u8) -> bool {
    zero_bits(&Sha256::digest(solution.as_bytes()).into()) >= u32::from(bits)
}

/// The first solution among so many numbers, as the worker of the browser finds it
/// (`frontend/static/puzzle-worker.js`).
#[must_use]
pub fn solve(challenge: &str, bits: u8, most_tries: u64) -> Option<String> {
    (0..most_tries).map(|number| format!("{challenge}-{number}")).find(|solution| is_solved(solution, bits))
}

/// Zero bits in front.
fn zero_bits(hash: &[u8; 32]) -> u32 {
    let whole = hash.iter().take_while(|byte| **byte == 0).count();
    let rest = hash.get(whole).map_or(0, |byte| byte.leading_zeros());
    // A hash has 32 bytes.
    whole as u32 * 8 + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// More than any puzzle of these tests takes: one in e^64 needs more.
    const TRIES: u64 = 64 << 8;

    #[test]
    fn a_calm_show_asks_nothing_and_each_doubling_of_the_load_doubles_the_work() {
        for (per_second, bits) in [
            (0, None),
            (20, None),
            (21, Some(14)),
            (39, Some(14)),
            (40, Some(15)),
            (79, Some(15)),
            (80, Some(16)),
            (320, Some(18)),
            (u32::MAX, Some(MOST_BITS)),
        ] {
            assert_eq!(bits_asked(per_second, 20), bits, "{per_second} a second");
        }
        assert_eq!(bits_asked(u32::MAX, 0), None, "switched off");
        assert_eq!(bits_asked(u32::MAX, 1), Some(MOST_BITS));
    }

    #[test]
    fn the_worker_solves_the_hardest_and_gives_up_on_harder_ones() {
        let worker = include_str!("../../../frontend/static/puzzle-worker.js");
        assert!(worker.contains(&format!("const MOST_BITS = {MOST_BITS};")));
    }

    #[test]
    fn zero_bits_are_counted_from_the_front() {
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
    fn a_solution_is_found_by_trying_and_is_that_challenges_only() {
        let solution = solve("8-one", 8, TRIES).expect("a solution");
        assert_eq!(challenge_of(&solution), Some("8-one"));
        assert!(is_solved(&solution, 8) && is_solved(&solution, 0));
        assert!(!is_solved(&solution, 64), "nobody is as lucky as that");
        assert_eq!(solve("8-one", 8, 0), None, "nothing was tried");
        assert!(solve("8-other", 8, TRIES).is_some_and(|other| challenge_of(&other) == Some("8-other")));
    }

    #[test]
    fn what_can_be_no_solution_is_seen_at_once() {
        let long = format!("a-{}", "1".repeat(MOST_DIGITS + 1));
        for text in ["", "-", "a", "a-", "a-1b", "a- 1", "a-+1", "a-１", &long] {
            assert_eq!(challenge_of(text), None, "{text}");
        }
        assert_eq!(challenge_of("a-b-0"), Some("a-b"));
        assert_eq!(challenge_of("-7"), Some(""));
    }

    proptest! {
        #[test]
        fn more_people_never_make_it_easier(one in any::<u32>(), other in any::<u32>(), calm in any::<u32>()) {
            let (fewer, more) = (one.min(other), one.max(other));
            prop_assert!(bits_asked(fewer, calm) <= bits_asked(more, calm));
            let in_bounds = |bits: Option<u8>| bits.is_none_or(|bits| (LEAST_BITS..=MOST_BITS).contains(&bits));
            prop_assert!(in_bounds(bits_asked(more, calm)));
        }

        #[test]
        fn any_text_is_looked_at_without_harm(text in any::<String>(), bits in any::<u8>()) {
            let _ = (challenge_of(&text), is_solved(&text, bits));
        }
    }
}
