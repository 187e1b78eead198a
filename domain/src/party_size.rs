//! Sizes of the parties of simulated visitors: in a rehearsal and in the demo.

/// Sizes of parties, each with its share in percent: most people come in twos, families are three to six.
const PARTIES: [(u32, u64); 6] = [(1, 12), (2, 46), (3, 14), (4, 18), (5, 6), (6, 4)];

/// Size of a party for a random percentage below 100.
#[must_use]
pub fn party_size(draw_percent: u64) -> u32 {
    let mut below = 0;
    let fits = |(_, percent): &&(u32, u64)| {
        below += percent;
        draw_percent < below
    };
    PARTIES.iter().find(fits).map_or(1, |(size, _)| *size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parties_have_their_shares() {
        let share = |size| (0..100).filter(|draw| party_size(*draw) == size).count() as u64;
        assert!(PARTIES.iter().all(|(size, percent)| share(*size) == *percent));
        assert_eq!(PARTIES.iter().map(|(_, percent)| percent).sum::<u64>(), 100);
    }
}
