//! A room in the middle of a sale, as rooms look: parties of two to six sit together, the middle goes
//! first, some seats are held right now, a few are not for sale.

use crate::checker::{AVAILABLE, BOOKED, LOCKED};
use crate::random::Random;

/// Seats of a row.
const ROW: u32 = 100;
/// Not for sale.
const BLOCKED: u8 = 3;
/// Of a hundred parties, this many are still paying.
const HELD_PERCENT: u64 = 4;
/// Of a thousand seats, this many are the house's.
const HOUSE_PER_MILLE: u64 = 2;

/// A map of so many seats, half of them gone.
pub fn room(seats: u32, random: &mut Random) -> Vec<u8> {
    let mut map = vec![AVAILABLE; seats as usize];
    for _ in 0..u64::from(seats) * HOUSE_PER_MILLE / 1_000 {
        map[random.below(u64::from(seats)) as usize] = BLOCKED;
    }
    let mut gone = 0;
    while gone < seats / 2 {
        let size = 2 + random.below(5) as u32;
        let state = if random.below(100) < HELD_PERCENT { LOCKED } else { BOOKED };
        if let Some(first) = best_place(&map, size, random) {
            map[first..first + size as usize].fill(state);
            gone += size;
        }
    }
    map
}

/// Where a party of this size sits: the free place nearest to the middle of the room that they happen to
/// look at, some right beside another party and some not.
fn best_place(map: &[u8], size: u32, random: &mut Random) -> Option<usize> {
    const LOOKS: usize = 3;
    let rows = (map.len() as u32).div_ceil(ROW);
    let free = |first: u32| {
        let place = first as usize..(first + size) as usize;
        first % ROW + size <= ROW && map.get(place).is_some_and(|seats| seats.iter().all(|seat| *seat == AVAILABLE))
    };
    let distance = |first: u32| {
        let (row, seat) = (first / ROW, first % ROW + size / 2);
        row.abs_diff(rows / 2) * ROW / rows.max(1) + seat.abs_diff(ROW / 2)
    };
    let looked = (0..LOOKS).map(|_| random.below(map.len() as u64) as u32).filter(|first| free(*first));
    let mut first = looked.min_by_key(|first| distance(*first))?;
    // Half of them move up to their neighbours; the others leave a gap.
    if random.below(2) == 0 {
        return Some(first as usize);
    }
    while first % ROW > 0 && free(first - 1) && distance(first - 1) <= distance(first) {
        first -= 1;
    }
    while free(first + 1) && distance(first + 1) < distance(first) {
        first += 1;
    }
    Some(first as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_room_is_gone_in_parties_and_the_middle_is_fuller_than_the_sides() {
        let map = room(5_000, &mut Random::from_seed(3));
        let gone = |seats: &[u8]| seats.iter().filter(|state| **state != AVAILABLE).count();
        assert!((2_500..2_530).contains(&gone(&map)), "{}", gone(&map));
        assert!(map.contains(&LOCKED) && map.contains(&BLOCKED));
        let (middle, sides): (Vec<u8>, Vec<u8>) =
            map.chunks(100).fold(Default::default(), |(mut middle, mut sides), row| {
                middle.extend_from_slice(&row[30..70]);
                sides.extend_from_slice(&row[..30]);
                (middle, sides)
            });
        assert!(gone(&middle) * 3 > gone(&sides) * 4, "{} in the middle, {} at the side", gone(&middle), gone(&sides));
        let runs = map.chunk_by(|a, b| a == b).count();
        assert!(runs < 5_000 / 3, "{runs} runs: people sit alone");
    }
}
