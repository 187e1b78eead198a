//! The free seats nearest to somebody's own, for those who cannot have the seat they tapped.
//!
//! Beside their party first, then in its row, then in the row nearest to it. Pure; knows the sections that are loaded.

use domain::api::{SEAT_PITCH, SeatKind};
use domain::seats::SeatIndex;

use crate::seat_map::room::Room;

/// Neighbours sit at most this far apart, plan units: beyond is an aisle.
const AISLE: i32 = SEAT_PITCH * 3 / 2;

/// Where a seat is.
#[derive(Clone, Copy)]
struct Spot {
    seat: SeatIndex,
    /// The first seat of its row, which stands for it.
    row: SeatIndex,
    x: i64,
    y: i64,
    category: u8,
}

/// How far a seat is from somebody's own, by squares of plan units; what is less is nearer.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Far {
    Beside,
    InTheirRow(i64),
    InAnotherRow { row: i64, seat: i64 },
}

/// As many free seats as were lost, in ascending order: near those of `party`, and where that is empty near the lost one.
/// They are of the category that was lost or of one the party sits in; where those have too few left, of any. Wheelchair
/// spaces and the seats beside them are for those who lost one, and nothing else is offered to these.
///
/// `None` when there are not so many, and where somebody has to look at the whole room: for several seats together without
/// a party to go by, and for sofas, which nobody shares with a stranger.
#[must_use]
pub fn nearest(
    room: &Room,
    lost: &[SeatIndex],
    party: &[SeatIndex],
    is_free: impl Fn(SeatIndex) -> bool,
) -> Option<Vec<SeatIndex>> {
    let all = spots(room);
    let gone = all.iter().find(|spot| lost.first() == Some(&spot.seat)).copied()?;
    let kind_of = |category: u8| room.plan().categories.get(usize::from(category)).map(|category| category.kind);
    let is_plain = |category: u8| matches!(kind_of(category), Some(SeatKind::Standard | SeatKind::Recliner));
    let own: Vec<Spot> = all.iter().filter(|spot| party.contains(&spot.seat)).copied().collect();
    if kind_of(gone.category) == Some(SeatKind::Couple) || (own.is_empty() && lost.len() > 1) {
        return None;
    }
    let own = if own.is_empty() { vec![gone] } else { own };
    let is_left = |spot: &&Spot| is_free(spot.seat) && !lost.contains(&spot.seat) && !party.contains(&spot.seat);
    let free: Vec<Spot> = all.iter().filter(is_left).copied().collect();
    let both_plain = |spot: &Spot| is_plain(gone.category) && is_plain(spot.category);
    let is_theirs = |spot: &Spot| both_plain(spot) && own.iter().any(|other| other.category == spot.category);
    let alike = free.iter().filter(|&spot| spot.category == gone.category || is_theirs(spot)).copied().collect();
    choose(&all, alike, own.clone(), gone, lost.len()).or_else(|| {
        let any = free.iter().filter(|&spot| both_plain(spot)).copied().collect();
        choose(&all, any, own.clone(), gone, lost.len())
    })
}

/// One after another, so that each seat found is one of the party for the next.
fn choose(all: &[Spot], mut free: Vec<Spot>, mut own: Vec<Spot>, gone: Spot, count: usize) -> Option<Vec<SeatIndex>> {
    let mut found = Vec::with_capacity(count);
    while found.len() < count {
        let next = next(all, &free, &own, gone)?;
        free.retain(|spot| spot.seat != next.seat);
        own.push(next);
        found.push(next.seat);
    }
    found.sort_unstable();
    Some(found)
}

fn next(all: &[Spot], free: &[Spot], own: &[Spot], gone: Spot) -> Option<Spot> {
    let distance = |spot: &Spot| own.iter().map(|other| spot.squared_to(other)).min().unwrap_or(i64::MAX);
    // How near each row is, by its nearest seat, free or not.
    let rows: Vec<(SeatIndex, i64)> = all
        .chunk_by(|one, other| one.row == other.row)
        .map(|row| (row[0].row, row.iter().map(distance).min().unwrap_or(i64::MAX)))
        .collect();
    let far = |spot: &Spot| {
        if own.iter().any(|other| spot.is_beside(other)) {
            return Far::Beside;
        }
        let seat = distance(spot);
        if own.iter().any(|other| other.row == spot.row) {
            return Far::InTheirRow(seat);
        }
        let row = rows.iter().find(|(row, _)| *row == spot.row).map_or(i64::MAX, |(_, row)| *row);
        Far::InAnotherRow { row, seat }
    };
    // Equally near: the one closer to what was wanted; then the lower number, so that the same question has one answer.
    free.iter().min_by_key(|&spot| (far(spot), spot.squared_to(&gone), spot.seat)).copied()
}

/// Every loaded seat, row by row.
fn spots(room: &Room) -> Vec<Spot> {
    let rows = room.rows(None).map(|(_, row)| row);
    let seats = rows.flat_map(|row| {
        let places = (row.first..).zip(&row.x).zip(&row.y).zip(&row.category);
        places.map(move |(((seat, x), y), category)| Spot {
            seat,
            row: row.first,
            x: i64::from(*x),
            y: i64::from(*y),
            category: *category,
        })
    });
    seats.collect()
}

impl Spot {
    fn squared_to(&self, other: &Self) -> i64 {
        (self.x - other.x).pow(2) + (self.y - other.y).pow(2)
    }

    /// Whether they are neighbours: no seat and no aisle between them.
    fn is_beside(&self, other: &Self) -> bool {
        self.row == other.row
            && self.seat.abs_diff(other.seat) == 1
            && self.squared_to(other) <= i64::from(AISLE).pow(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat_map::room::tests::two_sections;
    use domain::api::{CategoryView, PlanView};

    /// The nearest seats in a room where all are free but these: stalls A1 to A4 (0 to 3) and B1 to B4 (4 to 7), circle A1
    /// and A2 (8, 9).
    fn found(plan: PlanView, lost: &[SeatIndex], party: &[SeatIndex], taken: &[SeatIndex]) -> Option<Vec<SeatIndex>> {
        nearest(&Room::new(plan), lost, party, |seat| !taken.contains(&seat))
    }

    fn with_another_category(kind: SeatKind, seats: &[SeatIndex]) -> PlanView {
        let mut plan = two_sections();
        let first = plan.categories[0].clone();
        plan.categories.push(CategoryView { name: "other".to_owned(), label: "Other".to_owned(), kind, ..first });
        for row in plan.sections.iter_mut().flat_map(|section| &mut section.rows) {
            for (seat, category) in (row.first..).zip(&mut row.category) {
                *category = u8::from(seats.contains(&seat));
            }
        }
        plan
    }

    #[test]
    fn a_seat_beside_ones_own_comes_before_one_that_is_closer_to_the_lost_one() {
        assert_eq!(found(two_sections(), &[3], &[4], &[3]), Some(vec![5]), "B2 beside B1, not A3 beside the lost A4");
        assert_eq!(found(two_sections(), &[2], &[1], &[2]), Some(vec![0]));
    }

    #[test]
    fn of_both_sides_of_a_party_the_one_nearer_to_the_lost_seat_is_taken() {
        assert_eq!(found(two_sections(), &[3], &[5], &[3]), Some(vec![6]));
        assert_eq!(found(two_sections(), &[0], &[5], &[0]), Some(vec![4]));
    }

    #[test]
    fn where_no_neighbour_is_free_it_is_the_same_row_and_then_the_nearest_row() {
        assert_eq!(found(two_sections(), &[1], &[0], &[1]), Some(vec![2]), "A3 is farther than B1, but in their row");
        assert_eq!(found(two_sections(), &[1], &[0], &[1, 2, 3]), Some(vec![4]));
        assert_eq!(found(two_sections(), &[1], &[0], &[1, 2, 3, 4, 5]), Some(vec![6]), "row B, not the circle");
        assert_eq!(found(two_sections(), &[1], &[0], &[1, 2, 3, 4, 5, 6, 7]), Some(vec![8]));
        assert_eq!(found(two_sections(), &[1], &[0], &[1, 2, 3, 4, 5, 6, 7, 8, 9]), None);
    }

    #[test]
    fn nobody_is_beside_somebody_across_an_aisle() {
        let mut plan = two_sections();
        plan.sections[0].rows[1].x = vec![0, 20, 80, 100];
        assert_eq!(found(plan, &[3], &[5], &[3]), Some(vec![4]), "B1, not B3 behind the aisle");
    }

    #[test]
    fn without_a_party_the_lost_seat_is_what_one_stays_near() {
        assert_eq!(found(two_sections(), &[6], &[], &[6]), Some(vec![5]));
        assert_eq!(found(two_sections(), &[6], &[], &[4, 5, 6, 7]), Some(vec![2]));
        assert_eq!(found(two_sections(), &[5, 6], &[], &[5, 6]), None, "two together: the whole room is looked at");
    }

    #[test]
    fn several_lost_seats_are_found_again_side_by_side() {
        assert_eq!(found(two_sections(), &[2, 3], &[4], &[2, 3]), Some(vec![5, 6]));
        assert_eq!(found(two_sections(), &[2, 3], &[5], &[2, 3]), Some(vec![6, 7]));
    }

    #[test]
    fn the_category_stays_while_it_has_seats_and_special_ones_are_for_those_who_lost_one() {
        let recliners = with_another_category(SeatKind::Recliner, &[0, 1, 2, 3]);
        assert_eq!(found(recliners.clone(), &[6], &[5], &[4, 6, 7]), Some(vec![9]), "standard, though far");
        assert_eq!(found(recliners.clone(), &[6], &[5], &[4, 6, 7, 8, 9]), Some(vec![1]));
        assert_eq!(found(recliners, &[6], &[2], &[6]), Some(vec![1]), "beside the party, which reclines");
        let spaces = with_another_category(SeatKind::Wheelchair, &[0, 1]);
        assert_eq!(found(spaces.clone(), &[1], &[], &[1]), Some(vec![0]));
        assert_eq!(found(spaces.clone(), &[1], &[], &[0, 1]), None, "a chair is no help");
        assert_eq!(found(spaces, &[2], &[], &[2, 3, 4, 5, 6, 7, 8, 9]), None);
        assert_eq!(found(with_another_category(SeatKind::Couple, &[0, 1, 2, 3]), &[1], &[0], &[1]), None);
    }

    #[test]
    fn a_seat_of_a_section_that_is_not_loaded_has_no_neighbours_here() {
        let mut plan = two_sections();
        plan.sections[1].rows.clear();
        assert_eq!(found(plan.clone(), &[8], &[], &[]), None);
        assert_eq!(found(plan, &[3], &[8], &[3]), Some(vec![2]), "the party is out of sight");
    }
}
