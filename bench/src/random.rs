//! Random numbers for a load: fast, repeatable from a seed, not cryptographic.
//!
//! The generator is SplitMix64. One number costs one multiplication chain, negligible beside a request.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the stream of this seed, for tests.
    #[cfg(test)]
    pub const fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates a stream with a random seed.
    pub fn fresh() -> Self {
        // The random key of a standard hash map serves as the seed.
        Self(RandomState::new().build_hasher().finish())
    }

    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number from 0 up to, not including, `limit`; `limit` is at least 1.
    pub const fn below(&mut self, limit: u64) -> u64 {
        ((self.bits() as u128 * limit as u128) >> 64) as u64
    }

    /// Draws a number above 0 and at most 1.
    pub fn share(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Draws 128 random bits in hex.
    pub fn hex(&mut self) -> String {
        format!("{:016x}{:016x}", self.bits(), self.bits())
    }

    pub const fn id(&mut self) -> uuid::Uuid {
        uuid::Uuid::from_u64_pair(self.bits(), self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_numbers_and_all_of_them_are_in_range() {
        let draw = || {
            let mut random = Random::from_seed(7);
            (0..1_000).map(|_| random.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(draw(), draw());
        assert!((0..10).all(|number| draw().contains(&number)));
        let mut random = Random::from_seed(8);
        assert!((0..1_000).map(|_| random.share()).all(|share| share > 0.0 && share <= 1.0));
    }
}
