//! The draw: who came before opening gets a place that depends on nobody's hand.
//!
//! Tickets have numbers `0..people` in the order people came. A keyed permutation of these numbers gives every ticket
//! its place. The key is random and chosen when the waiting room is switched on; its SHA-256 ([`commitment`]) is
//! published at once, the key itself after opening. So nobody, we included, can choose another key once people come,
//! and everybody can do the sum again. docs/api.md has it in words, `deploy/verify-draw.py` as a program.
//!
//! The permutation is a Feistel network over pairs of numbers below `side`, the smallest number whose square is at
//! least `people`, with HMAC-SHA-256 as its round function and addition instead of exclusive-or; results outside
//! `0..people` are sent through again until one lies inside ("cycle walking"), which hardly ever takes a second time.
//! Source: J. Black, P. Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, methods 2 and 3. Ten rounds as
//! in NIST SP 800-38G (FF1).

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Name of this way to draw, which stands in every input of the round function.
pub const METHOD: &str = "rowlock-draw-1";
/// Length of a key, bytes.
pub const KEY_BYTES: usize = 32;
/// Rounds of the network.
const ROUNDS: u8 = 10;

/// What is published of a key before it is: its SHA-256.
#[must_use]
pub fn commitment(key: &[u8; KEY_BYTES]) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// A draw of so many people by a key.
#[derive(Clone)]
pub struct Draw {
    keyed: Hmac<Sha256>,
    people: u64,
    side: u64,
}

impl Draw {
    /// The draw of those with the tickets `0..people`.
    #[must_use]
    pub fn new(key: &[u8; KEY_BYTES], people: u64) -> Self {
        let mut keyed = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
        keyed.update(METHOD.as_bytes());
        keyed.update(&people.to_be_bytes());
        let side = people.checked_sub(1).map_or(1, |last| last.isqrt() + 1);
        Self { keyed, people, side }
    }

    /// How many were drawn.
    #[must_use]
    pub const fn people(&self) -> u64 {
        self.people
    }

    /// The place of a ticket, from 0. Who came after opening stands behind the drawn, in the order of coming.
    #[must_use]
    pub fn place_of(&self, number: u64) -> u64 {
        self.walk(number, Self::forwards)
    }

    /// The ticket at a place: the inverse of [`Draw::place_of`].
    #[must_use]
    pub fn number_at(&self, place: u64) -> u64 {
        self.walk(place, Self::backwards)
    }

    fn walk(&self, start: u64, step: impl Fn(&Self, u64) -> u64) -> u64 {
        if start >= self.people {
            return start;
        }
        let mut at = step(self, start);
        // Steps of a permutation lead back to the start at last, which lies inside.
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

    /// HMAC of the method, the number of people, the round and one half: its first eight bytes, below `side`.
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

    /// The sum of the squared distances from what is expected, in units of it: Pearson's chi-square.
    fn chi_square(found: &[u32], expected: f64) -> f64 {
        found.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
    }

    #[test]
    fn every_place_is_somebodys_and_nobody_has_two_in_rooms_of_every_small_size() {
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
            assert_eq!(draw.place_of(people), people, "who comes later stands behind");
            assert_eq!(draw.number_at(people + 7), people + 7);
        }
    }

    proptest! {
        #[test]
        fn places_lead_back_to_their_tickets(seed: u64, people in 1..3_000_000_u64, number in 0..3_000_000_u64) {
            let draw = Draw::new(&key(seed), people);
            let place = draw.place_of(number);
            prop_assert_eq!(place < people, number < people);
            prop_assert_eq!(draw.number_at(place), number);
        }
    }

    /// Whether one came first or last says nothing about one's place: 20 groups by coming, 20 by place, 50 people
    /// expected in each of 400 cells. 361 degrees of freedom: mean 361, deviation 26.9.
    #[test]
    fn when_one_came_says_nothing_about_ones_place() {
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

    /// Over many keys each place of a small room is as likely for the first as any other. 9 degrees of freedom: above
    /// 33.7 in one of 10,000 runs.
    #[test]
    fn over_many_keys_each_place_is_as_likely() {
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

    /// What `deploy/verify-draw.py` and other people's programs must come to as well (docs/api.md).
    #[test]
    fn the_documented_examples_are_what_is_drawn() {
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
