//! The send schedule of a load, computed before the first request is sent (an open loop).
//!
//! A closed loop, which waits for answers before it sends again, hides a slow server. An open-loop
//! schedule does not depend on the server, so a delay of server or generator shows in the latency.

use crate::random::Random;

/// Distribution of the gaps between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Spacing {
    /// Independent arrivals, as of people.
    Poisson,
    /// Equal gaps.
    Even,
}

pub const NANOS_PER_S: f64 = 1e9;

/// Computes the sorted send times, nanoseconds from the start: `rate` a second for `seconds`.
pub fn schedule(spacing: Spacing, rate: f64, seconds: f64, random: &mut Random) -> Vec<u64> {
    let gap = NANOS_PER_S / rate;
    let end = seconds * NANOS_PER_S;
    let mut at = 0.0;
    let mut instants = Vec::with_capacity((rate * seconds * 1.1) as usize);
    loop {
        at += match spacing {
            Spacing::Poisson => -random.share().ln() * gap,
            Spacing::Even => gap,
        };
        if at > end {
            return instants;
        }
        instants.push(at as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spacings_keep_rate_and_order() {
        for spacing in [Spacing::Poisson, Spacing::Even] {
            let instants = schedule(spacing, 5_000.0, 10.0, &mut Random::from_seed(1));
            assert!((49_000..=51_000).contains(&instants.len()), "{spacing:?}: {}", instants.len());
            assert!(instants.is_sorted());
            assert!(*instants.last().expect("some") <= 10_000_000_000);
        }
    }

    #[test]
    fn poisson_gaps_vary_and_even_gaps_do_not() {
        let widest = |spacing| {
            let instants = schedule(spacing, 1_000.0, 5.0, &mut Random::from_seed(2));
            instants.windows(2).map(|two| two[1] - two[0]).max().expect("many")
        };
        assert!(widest(Spacing::Poisson) > 4_000_000);
        assert!(widest(Spacing::Even) <= 1_000_001);
    }
}
