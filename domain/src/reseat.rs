//! Finds replacement seats: as many, together, no cheaper, and as near as possible.
//!
//! It serves buyers whose payment arrived too late for their seats and who agreed to others. Pure: the set of free
//! seats is an argument. [`crate::best_available`] serves buyers who have not chosen yet.

use crate::api::{SEAT_PITCH, SeatKind};
use crate::seats::SeatIndex;

/// Distance above which two seats have an aisle between them, plan units.
const MAX_STEP: i32 = SEAT_PITCH * 2;

/// The properties of a seat that the choice depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PricedSeat {
    /// The seat.
    pub seat: SeatIndex,
    /// Centre, plan units from the left.
    pub x: i32,
    /// Centre, plan units from the top.
    pub y: i32,
    /// Kind of the seat.
    pub kind: SeatKind,
    /// Price in this show, minor units.
    pub price: i64,
}

/// Returns the best replacement of `lost`: neighbours in one row, of the same kinds, none cheaper. Cheaper groups come
/// first, then groups nearer to `lost`. `None` if there are none.
///
/// `rows` are the rows of the room, each in seat order. O(seats × lost).
#[must_use]
pub fn find_replacement(
    rows: &[Vec<PricedSeat>],
    lost: &[PricedSeat],
    is_free: impl Fn(SeatIndex) -> bool,
) -> Option<Vec<SeatIndex>> {
    let count = lost.len();
    if count == 0 {
        return None;
    }
    let mut wanted: Vec<_> = lost.iter().map(|place| (place.kind as u8, place.price)).collect();
    wanted.sort_unstable();
    let (at_x, at_y) = sum_of_centres(lost);
    let mut best = None;
    for row in rows {
        for (from, seats) in row.windows(count).enumerate() {
            if !seats.iter().all(|place| is_free(place.seat))
                || !are_neighbours(seats)
                || !are_no_worse(seats, &wanted)
                || splits_a_couple(row, from, from + count)
            {
                continue;
            }
            let extra: i64 = seats.iter().zip(lost).map(|(new, old)| new.price.saturating_sub(old.price)).sum();
            let (x, y) = sum_of_centres(seats);
            let (dx, dy) = (i64::from(x - at_x), i64::from(y - at_y));
            // Another row is a greater change than another seat in the same row.
            let rank = (extra, dx * dx + 2 * dy * dy, seats[0].seat);
            if best.as_ref().is_none_or(|(best, _)| rank < *best) {
                best = Some((rank, seats));
            }
        }
    }
    best.map(|(_, seats)| seats.iter().map(|place| place.seat).collect())
}

/// Groups of equal size can be compared by the sum instead of the mean.
fn sum_of_centres(seats: &[PricedSeat]) -> (i32, i32) {
    seats.iter().fold((0, 0), |(x, y), place| (x + place.x, y + place.y))
}

fn are_neighbours(seats: &[PricedSeat]) -> bool {
    let step = |pair: &[PricedSeat]| (i64::from(pair[1].x - pair[0].x), i64::from(pair[1].y - pair[0].y));
    seats.windows(2).map(step).all(|(dx, dy)| dx * dx + dy * dy <= i64::from(MAX_STEP).pow(2))
}

/// Matches seats of each kind by price, so that no seat is cheaper than the one it replaces.
fn are_no_worse(seats: &[PricedSeat], wanted: &[(u8, i64)]) -> bool {
    let mut offered: Vec<_> = seats.iter().map(|place| (place.kind as u8, place.price)).collect();
    offered.sort_unstable();
    offered.iter().zip(wanted).all(|(new, old)| new.0 == old.0 && new.1 >= old.1)
}

/// Sofas are sold whole: couple seats form pairs from the start of their run in the row.
fn splits_a_couple(row: &[PricedSeat], from: usize, to: usize) -> bool {
    let is_couple = |place: &PricedSeat| place.kind.rules().is_paired;
    let before = |end: usize| row[..end].iter().rev().take_while(|place| is_couple(place)).count();
    let cuts = |end: usize| end < row.len() && is_couple(&row[end]) && before(end) % 2 == 1;
    cuts(from) || cuts(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of standard seats with these prices, one pitch apart.
    fn row(number: u32, prices: &[i64]) -> Vec<PricedSeat> {
        let place = |(column, price): (usize, &i64)| PricedSeat {
            seat: number * 100 + column as u32,
            x: SEAT_PITCH * column as i32,
            y: SEAT_PITCH * number as i32,
            kind: SeatKind::Standard,
            price: *price,
        };
        prices.iter().enumerate().map(place).collect()
    }

    fn places_of(rows: &[Vec<PricedSeat>], seats: &[SeatIndex]) -> Vec<PricedSeat> {
        let find = |seat: &SeatIndex| rows.iter().flatten().find(|place| place.seat == *seat).copied();
        seats.iter().map(|seat| find(seat).expect("it is in the room")).collect()
    }

    fn choose(rows: &[Vec<PricedSeat>], lost: &[SeatIndex], taken: &[SeatIndex]) -> Option<Vec<SeatIndex>> {
        find_replacement(rows, &places_of(rows, lost), |seat| !taken.contains(&seat))
    }

    #[test]
    fn nearest_seats_of_the_same_price_come_first() {
        let rows = [row(0, &[10; 6]), row(1, &[10; 6]), row(2, &[10; 6])];
        assert_eq!(choose(&rows, &[102, 103], &[102]), Some(vec![103, 104]), "one seat along");
        assert_eq!(choose(&rows, &[102, 103], &[101, 102, 103, 104]), Some(vec![2, 3]), "the row in front");
        assert_eq!(choose(&rows, &[102, 103], &[]), Some(vec![102, 103]), "the same, if they are free after all");
    }

    #[test]
    fn dearer_seats_are_a_fallback_and_cheaper_ones_are_never_chosen() {
        let rows = [row(0, &[5; 6]), row(1, &[10; 6]), row(2, &[15; 6])];
        assert_eq!(choose(&rows, &[102, 103], &[102]), Some(vec![103, 104]));
        assert_eq!(choose(&rows, &[102, 103], &[101, 102, 104]), Some(vec![202, 203]), "100, 103, 105 are alone");
        let dear: Vec<_> = (200..206).chain([101, 102, 104]).collect();
        assert_eq!(choose(&rows, &[102, 103], &dear), None);
    }

    #[test]
    fn no_member_of_a_party_with_mixed_prices_is_worse_off() {
        let rows = [row(0, &[10, 15]), row(1, &[10, 10]), row(2, &[15, 15]), row(3, &[10, 15])];
        assert_eq!(choose(&rows, &[0, 1], &[0, 1]), Some(vec![300, 301]), "the same prices, though further away");
        assert_eq!(choose(&rows, &[0, 1], &[0, 1, 300]), Some(vec![200, 201]));
        assert_eq!(choose(&rows, &[0, 1], &[0, 1, 300, 200]), None);
    }

    #[test]
    fn groups_do_not_span_an_aisle_or_rows() {
        let mut gapped = row(0, &[10; 4]);
        gapped[2].x += SEAT_PITCH * 3;
        gapped[3].x += SEAT_PITCH * 3;
        let rows = [gapped, row(1, &[10; 1])];
        assert_eq!(choose(&rows, &[0, 1], &[0]), Some(vec![2, 3]));
        assert_eq!(choose(&rows, &[0, 1], &[0, 3]), None, "1 and 2 have an aisle between them");
        assert_eq!(choose(&rows, &[0, 1, 2], &[]), None);
    }

    #[test]
    fn kinds_are_kept_and_sofas_are_not_split() {
        let mut rows = [row(0, &[10; 5]), row(1, &[10; 4])];
        rows[0][0].kind = SeatKind::Wheelchair;
        rows[0][1].kind = SeatKind::Companion;
        for place in &mut rows[1] {
            place.kind = SeatKind::Couple;
        }
        assert_eq!(choose(&rows, &[2, 3], &[3]), None, "neither a wheelchair's space nor a sofa is a seat");
        assert_eq!(choose(&rows, &[0, 1], &[0]), None);
        assert_eq!(choose(&rows, &[100, 101], &[100]), Some(vec![102, 103]), "not 101 and 102");
    }

    #[test]
    fn empty_group_has_no_replacement() {
        assert_eq!(find_replacement(&[row(0, &[10; 3])], &[], |_| true), None);
    }
}
