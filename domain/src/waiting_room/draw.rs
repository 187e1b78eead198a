//! Draws the order of visitors who joined the waiting room before it opened. The draw is verifiable.
//!
//! Tickets are numbered `0..people` in the order of joining. A keyed permutation of these numbers gives every ticket
//! its position. The key is random and is chosen when the waiting room is turned on. Its SHA-256 ([`commitment`]) is
//! published at once and the key after opening. The operator therefore cannot change the key after visitors have
//! joined, and anyone can verify the draw. `docs/api.md` describes the algorithm, and `deploy/verify-draw.py`
//! implements it.
//!
//! The permutation is a Feistel network over pairs of numbers below `side`, the smallest number whose square is at
//! least `people`, with HMAC-SHA-256 as its round function and addition instead of exclusive-or. Results outside
//! `0..people` are permuted again until one is inside ("cycle walking"), which rarely needs a second step. Source: J.
//! Black, P. Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, methods 2 and 3. Ten rounds as in NIST SP
//! 800-38G (FF1).

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Name of the algorithm, which is part of every input of the round function.
pub const METHOD: &str = "rowlock-draw-1";
/// Length of a key, bytes.
pub const KEY_BYTES: usize = 32;
/// Number of rounds.
const ROUNDS: u8 = 10;

/// Returns the commitment that is published before the key: its SHA-256.
#[must_use]
pub fn commitment(key: &[u8; KEY_BYTES]) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// A draw among `people` tickets with a key.
#[derive(Clone)]
pub struct Draw {
    keyed: Hmac<Sha256>,
    people: u64,
    side: u64,
}

impl Draw {
    /// Creates the draw among the tickets `0..people`.
    #[must_use]
    pub fn new(key: &[u8; KEY_BYTES], people: u64) -> Self {
        let mut keyed = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
        keyed.update(METHOD.as_bytes());
        keyed.update(&people.to_be_bytes());
        let side = people.checked_sub(1).map_or(1, |last| last.isqrt() + 1);
        Self { keyed, people, side }
    }

    /// Number of tickets drawn.
    #[must_use]
    pub const fn people(&self) -> u64 {
        self.people
    }

    /// Returns the position of a ticket, from 0. Tickets issued after opening keep their number, so they follow the
    /// drawn ones in the order of joining.
    #[must_use]
    pub fn place_of(&self, number: u64) -> u64 {
        self.walk(number, Self::forwards)
    }

    /// Returns the ticket at a position: the inverse of [`Draw::place_of`].
    #[must_use]
    pub fn number_at(&self, place: u64) -> u64 {
        self.walk(place, Self::backwards)
    }

    fn walk(&self, start: u64, step: impl Fn(&Self, u64) -> u64) -> u64 {
        if start >= self.people {
            return start;
        }
        let mut at = step(self, start);
        // Terminates: the cycle of a permutation returns to `start`, which is inside.
        while at >= self.people {
            at = step(self, at);
        }
        at
    }

    fn forwards(&self, value: u64) -> u64 {
        let (mut left, mut right) = (value / self.side, value % self.side);
        for round in 0..ROUNDS {
            (left, right) = (right, (left + self.round(round, right)) % self.side);
        }
        left * self.side + right
    }

    fn backwards(&self, value: u64) -> u64 {
        let (mut left, mut right) = (value / self.side, value % self.side);
        for round in (0..ROUNDS).rev() {
            (left, right) = ((right + self.side - self.round(round, left)) % self.side, left);
        }
        left * self.side + right
    }

    /// First eight bytes of the HMAC of the method, the number of people, the round and one half, modulo `side`.
    fn round(&self, round: u8, half: u64) -> u64 {
        let mut mac = self.keyed.clone();
        mac.update(&[round]);
        mac.update(&half.to_be_bytes());
        let digest = mac.finalize().into_bytes();
        digest.iter().take(8).fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte)) % self.side
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(seed: u64) -> [u8; KEY_BYTES] {
        Sha256::digest(seed.to_be_bytes()).into()
    }

    /// Pearson's chi-square: the sum of squared deviations from `expected`, divided by it.
    fn chi_square(found: &[u32], expected: f64) -> f64 {
        found.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
    }

    #[test]
    fn draw_is_a_permutation_for_every_small_number_of_people() {
        for people in 0..200 {
            let draw = Draw::new(&key(people), people);
            let mut taken = vec![false; usize::try_from(people).expect("small")];
            for number in 0..people {
                let place = draw.place_of(number);
                let mine = &mut taken[usize::try_from(place).expect("inside")];
                assert!(!*mine, "{people} people: place {place} is given twice");
                *mine = true;
                assert_eq!(draw.number_at(place), number);
            }
            assert_eq!(draw.place_of(people), people, "later tickets follow");
            assert_eq!(draw.number_at(people + 7), people + 7);
        }
    }

    proptest! {
        #[test]
        fn number_at_inverts_place_of(seed: u64, people in 1..3_000_000_u64, number in 0..3_000_000_u64) {
            let draw = Draw::new(&key(seed), people);
            let place = draw.place_of(number);
            prop_assert_eq!(place < people, number < people);
            prop_assert_eq!(draw.number_at(place), number);
        }
    }

    /// The order of joining is independent of the position: 20 groups by joining, 20 by position, 50 people expected in
    /// each of 400 cells. 361 degrees of freedom: mean 361, deviation 26.9.
    #[test]
    fn position_is_independent_of_the_order_of_joining() {
        const GROUPS: u64 = 20;
        const PEOPLE: u64 = 20_000;
        for seed in 0..5 {
            let draw = Draw::new(&key(seed), PEOPLE);
            let mut cells = vec![0_u32; usize::try_from(GROUPS * GROUPS).expect("small")];
            for number in 0..PEOPLE {
                let cell = number * GROUPS / PEOPLE * GROUPS + draw.place_of(number) * GROUPS / PEOPLE;
                cells[usize::try_from(cell).expect("small")] += 1;
            }
            let found = chi_square(&cells, 50.0);
            assert!((361.0 - 5.0 * 26.9..361.0 + 5.0 * 26.9).contains(&found), "{found} by key {seed}");
        }
    }

    /// Over many keys the first and the last ticket of a small room get each position equally often. 9 degrees of
    /// freedom: above 33.7 in one of 10,000 runs.
    #[test]
    fn positions_are_uniform_over_many_keys() {
        for (people, limit) in [(2_u64, 15.1), (3, 18.4), (10, 33.7)] {
            for number in [0, people - 1] {
                let mut places = vec![0_u32; usize::try_from(people).expect("small")];
                for seed in 0..6_000 {
                    let place = Draw::new(&key(seed), people).place_of(number);
                    places[usize::try_from(place).expect("inside")] += 1;
                }
                let found = chi_square(&places, 6_000.0 / people as f64);
                assert!(found < limit, "{found} for ticket {number} of {people}");
            }
        }
    }

    /// `deploy/verify-draw.py` and other implementations must produce the same results (`docs/api.md`).
    #[test]
    fn documented_examples_match() {
        let mut bytes = [0; KEY_BYTES];
        bytes.iter_mut().zip(0..).for_each(|(byte, value)| *byte = value);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let places = |people| {
            let draw = Draw::new(&bytes, people);
            (0..5).map(|number| draw.place_of(number).to_string()).collect::<Vec<_>>().join(", ")
        };
        let documented = include_str!("../../../docs/api.md");
        for row in [
            format!("| SHA-256 | `{}` |", hex(&commitment(&bytes))),
            format!("| places of tickets 0 to 4 of 10 | `{}` |", places(10)),
            format!("| places of tickets 0 to 4 of 2000000 | `{}` |", places(2_000_000)),
        ] {
            assert!(documented.contains(&row), "docs/api.md lacks {row}");
        }
    }
}
