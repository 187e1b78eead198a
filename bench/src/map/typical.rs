//! A typical half-sold room: parties of two to six sit together, the middle is sold first, some seats
//! are held, a few are blocked.

use crate::checker::{AVAILABLE, BOOKED, LOCKED};
use crate::random::Random;

/// Seats per row.
const ROW: u32 = 100;
/// Map byte of a seat that is not for sale.
const BLOCKED: u8 = 3;
/// Percentage of parties that hold their seats and have not paid.
const HELD_PERCENT: u64 = 4;
/// Blocked seats per thousand.
const HOUSE_PER_MILLE: u64 = 2;

/// Creates a map of `seats` seats, half of them taken.
pub fn room(seats: u32, random: &mut Random) -> Vec<u8> {
    let mut map = vec![AVAILABLE; seats as usize];
    for _ in 0..u64::from(seats) * HOUSE_PER_MILLE / 1_000 {
        map[random.below(u64::from(seats)) as usize] = BLOCKED;
    }
    let mut taken = 0;
    while taken < seats / 2 {
        let size = 2 + random.below(5) as u32;
        let state = if random.below(100) < HELD_PERCENT { LOCKED } else { BOOKED };
        if let Some(first) = best_place(&map, size, random) {
            map[first..first + size as usize].fill(state);
            taken += size;
        }
    }
    map
}

/// Chooses the seats of a party: of a few random free places the one nearest to the middle of the room.
/// Half of the parties move next to their neighbours.
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
    // Half of the parties move up to their neighbours; the others may leave a gap.
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
    fn half_of_the_seats_are_taken_in_parties_and_more_in_the_middle() {
        let map = room(5_000, &mut Random::from_seed(3));
        let taken_in = |seats: &[u8]| seats.iter().filter(|state| **state != AVAILABLE).count();
        assert!((2_500..2_530).contains(&taken_in(&map)), "{}", taken_in(&map));
        assert!(map.contains(&LOCKED) && map.contains(&BLOCKED));
        let (middle, sides): (Vec<u8>, Vec<u8>) =
            map.chunks(100).fold(Default::default(), |(mut middle, mut sides), row| {
                middle.extend_from_slice(&row[30..70]);
                sides.extend_from_slice(&row[..30]);
                (middle, sides)
            });
        assert!(
            taken_in(&middle) * 3 > taken_in(&sides) * 4,
            "{} in the middle, {} at the side",
            taken_in(&middle),
            taken_in(&sides)
        );
        let runs = map.chunk_by(|a, b| a == b).count();
        assert!(runs < 5_000 / 3, "{runs} runs: parties are split");
    }
}
