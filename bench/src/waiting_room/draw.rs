//! An independent implementation of the waiting room's draw, as docs/api.md describes it, and a test of its uniformity.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::checker::Findings;

/// Number of groups of tickets, and of places, in the contingency table.
const GROUPS: u64 = 20;
/// Tickets in the sample, evenly chosen.
const SAMPLE: u64 = 200_000;
/// Maximum standard deviations from uniform: one uniform draw in a million exceeds them.
const MAX_DEVIATIONS: f64 = 5.0;

/// Computes the place of ticket `number` of `people` by the key.
pub fn place_of(key: &[u8], people: u64, number: u64) -> u64 {
    let side = (people - 1).isqrt() + 1;
    let mut at = number;
    loop {
        let (mut left, mut right) = (at / side, at % side);
        for round in 0..10_u8 {
            let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
            for part in [&b"rowlock-draw-1"[..], &people.to_be_bytes(), &[round], &right.to_be_bytes()] {
                mac.update(part);
            }
            let digest = mac.finalize().into_bytes();
            let word = digest[..8].iter().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
            (left, right) = (right, (left + word % side) % side);
        }
        at = left * side + right;
        if at < people {
            return at;
        }
    }
}

/// Tests that the ticket number says nothing about the place (Pearson's chi-square), with a key derived from `round`.
pub fn check(people: u64, round: u64) -> Findings {
    let mut found = Findings::default();
    let key = Sha256::digest(round.to_be_bytes());
    let mut cells = vec![0_u64; (GROUPS * GROUPS) as usize];
    let step = (people / SAMPLE).max(1);
    let mut sampled = 0;
    for number in (0..people).step_by(step as usize) {
        let place = place_of(&key, people, number);
        cells[(number * GROUPS / people * GROUPS + place * GROUPS / people) as usize] += 1;
        sampled += 1;
    }
    let expected = sampled as f64 / (GROUPS * GROUPS) as f64;
    let chi_square: f64 = cells.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum();
    let freedom = ((GROUPS - 1) * (GROUPS - 1)) as f64;
    let deviations = (chi_square - freedom) / (2.0 * freedom).sqrt();
    if deviations.abs() > MAX_DEVIATIONS {
        found.add(|| format!("the draw is {deviations:.1} deviations from uniform"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draw_matches_the_documented_examples_and_is_uniform() {
        let key: Vec<u8> = (0..32).collect();
        let documented = include_str!("../../../docs/api.md");
        for people in [10, 2_000_000] {
            let places: Vec<String> = (0..5).map(|number| place_of(&key, people, number).to_string()).collect();
            let row = format!("| places of tickets 0 to 4 of {people} | `{}` |", places.join(", "));
            assert!(documented.contains(&row), "docs/api.md lacks {row}");
        }
        assert_eq!(check(20_000, 1).count(), 0);
    }
}
