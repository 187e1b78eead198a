//! The draw of a waiting room once more, from its description in docs/api.md, and whether it is even.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::checker::Findings;

/// Groups of people by coming and by place.
const GROUPS: u64 = 20;
/// People looked at, evenly chosen.
const LOOKED_AT: u64 = 200_000;
/// Deviations from even that are too many: one draw in a million is as odd.
const MOST_DEVIATIONS: f64 = 5.0;

/// The place of one of `people` by a key.
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

/// Whether when one came says anything about one's place, by the key of this round.
pub fn check(people: u64, round: u64) -> Findings {
    let mut found = Findings::default();
    let key = Sha256::digest(round.to_be_bytes());
    let mut cells = vec![0_u64; (GROUPS * GROUPS) as usize];
    let step = (people / LOOKED_AT).max(1);
    let mut looked_at = 0;
    for number in (0..people).step_by(step as usize) {
        let place = place_of(&key, people, number);
        cells[(number * GROUPS / people * GROUPS + place * GROUPS / people) as usize] += 1;
        looked_at += 1;
    }
    let expected = looked_at as f64 / (GROUPS * GROUPS) as f64;
    let chi_square: f64 = cells.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum();
    let freedom = ((GROUPS - 1) * (GROUPS - 1)) as f64;
    let deviations = (chi_square - freedom) / (2.0 * freedom).sqrt();
    if deviations.abs() > MOST_DEVIATIONS {
        found.add(|| format!("the draw is {deviations:.1} deviations from even"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_description_are_what_is_drawn_and_a_draw_is_even() {
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
