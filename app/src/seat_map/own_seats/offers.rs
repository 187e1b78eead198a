//! Seats and places that a notice offers for one tap, for a visitor who cannot have the seats they chose.
//!
//! The free seats nearest to the visitor's own: seats beside the party come first, then its row, then the nearest row.
//! [`nearest`] is pure and considers the loaded sections only.

use std::sync::Arc;

use domain::api::{AreaQuantity, BestView, PlaceLine, SEAT_PITCH, SeatKind, SeatLine};
use domain::money::Money;
use domain::seats::{SeatIndex, sort_for_display};
use language::{Arg, current, listed, number, say};
use leptos::task::spawn_local;

use super::cart::Cart;
use crate::browser::{self, calls};
use crate::seat_map::appearance::SeatAppearance;
use crate::seat_map::room_plan::RoomPlan;
use crate::seat_map::session::MapSession;

/// Largest distance between neighbours, plan units. More is an aisle.
const AISLE: i32 = SEAT_PITCH * 3 / 2;

#[derive(Clone, Copy)]
struct SeatPosition {
    seat: SeatIndex,
    /// The first seat of its row, which identifies the row.
    row: SeatIndex,
    x: i64,
    y: i64,
    category: u8,
}

/// Distance of a seat from the party in squared plan units, nearest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum SeatDistance {
    Beside,
    InTheirRow(i64),
    InAnotherRow { row: i64, seat: i64 },
}

/// As many free seats as were lost, in ascending order, near those of `party`, or near the lost seat if that is empty.
/// They are of the lost category or one of the party's; if too few are left, of any. Wheelchair spaces and companion
/// seats are only offered for lost ones of their category, and nothing else is offered for those.
///
/// `None` if there are too few, and where only a look at the whole room helps: for several seats without a party, and
/// for couple seats, which strangers do not share.
pub fn nearest(
    room: &RoomPlan,
    lost: &[SeatIndex],
    party: &[SeatIndex],
    is_free: impl Fn(SeatIndex) -> bool,
) -> Option<Vec<SeatIndex>> {
    let all = positions(room);
    let lost_seat = all.iter().find(|position| lost.first() == Some(&position.seat)).copied()?;
    let kind_of = |category: u8| room.plan().categories.get(usize::from(category)).map(|category| category.kind);
    let may_replace = |category: u8| kind_of(category).is_some_and(SeatKind::is_interchangeable);
    let own: Vec<SeatPosition> = all.iter().filter(|position| party.contains(&position.seat)).copied().collect();
    if kind_of(lost_seat.category).is_some_and(|kind| kind.rules().is_paired) || (own.is_empty() && lost.len() > 1) {
        return None;
    }
    let own = if own.is_empty() { vec![lost_seat] } else { own };
    let is_candidate = |position: &&SeatPosition| {
        is_free(position.seat) && !lost.contains(&position.seat) && !party.contains(&position.seat)
    };
    let free: Vec<SeatPosition> = all.iter().filter(is_candidate).copied().collect();
    let is_exchangeable = |position: &SeatPosition| may_replace(lost_seat.category) && may_replace(position.category);
    let is_party_category = |position: &SeatPosition| {
        is_exchangeable(position) && own.iter().any(|other| other.category == position.category)
    };
    let alike = free
        .iter()
        .filter(|&position| position.category == lost_seat.category || is_party_category(position))
        .copied()
        .collect();
    choose(&all, alike, own.clone(), lost_seat, lost.len()).or_else(|| {
        let any = free.iter().filter(|&position| is_exchangeable(position)).copied().collect();
        choose(&all, any, own.clone(), lost_seat, lost.len())
    })
}

/// Chooses one seat after another, each of which then counts as part of the party.
fn choose(
    all: &[SeatPosition],
    mut free: Vec<SeatPosition>,
    mut own: Vec<SeatPosition>,
    lost_seat: SeatPosition,
    count: usize,
) -> Option<Vec<SeatIndex>> {
    let mut found = Vec::with_capacity(count);
    while found.len() < count {
        let next = next(all, &free, &own, lost_seat)?;
        free.retain(|position| position.seat != next.seat);
        own.push(next);
        found.push(next.seat);
    }
    found.sort_unstable();
    Some(found)
}

fn next(
    all: &[SeatPosition],
    free: &[SeatPosition],
    own: &[SeatPosition],
    lost_seat: SeatPosition,
) -> Option<SeatPosition> {
    let distance =
        |position: &SeatPosition| own.iter().map(|other| position.squared_to(other)).min().unwrap_or(i64::MAX);
    // The distance of each row by its nearest seat, free or not.
    let rows: Vec<(SeatIndex, i64)> = all
        .chunk_by(|one, other| one.row == other.row)
        .map(|row| (row[0].row, row.iter().map(distance).min().unwrap_or(i64::MAX)))
        .collect();
    let distance_of = |position: &SeatPosition| {
        if own.iter().any(|other| position.is_beside(other)) {
            return SeatDistance::Beside;
        }
        let seat = distance(position);
        if own.iter().any(|other| other.row == position.row) {
            return SeatDistance::InTheirRow(seat);
        }
        let row = rows.iter().find(|(row, _)| *row == position.row).map_or(i64::MAX, |(_, row)| *row);
        SeatDistance::InAnotherRow { row, seat }
    };
    // Ties: the seat nearer to the lost one, then the lower number, so that the result is deterministic.
    free.iter().min_by_key(|&position| (distance_of(position), position.squared_to(&lost_seat), position.seat)).copied()
}

/// Every loaded seat, row by row.
fn positions(room: &RoomPlan) -> Vec<SeatPosition> {
    let rows = room.rows(None).map(|(_, row)| row);
    let seats = rows.flat_map(|row| {
        let places = (row.first..).zip(&row.x).zip(&row.y).zip(&row.category);
        places.map(move |(((seat, x), y), category)| SeatPosition {
            seat,
            row: row.first,
            x: i64::from(*x),
            y: i64::from(*y),
            category: *category,
        })
    });
    seats.collect()
}

impl SeatPosition {
    fn squared_to(&self, other: &Self) -> i64 {
        (self.x - other.x).pow(2) + (self.y - other.y).pow(2)
    }

    /// Returns true if two seats are neighbours: no seat and no aisle between them.
    fn is_beside(&self, other: &Self) -> bool {
        self.row == other.row
            && self.seat.abs_diff(other.seat) == 1
            && self.squared_to(other) <= i64::from(AISLE).pow(2)
    }
}

/// The free seats nearest to the visitor's own, or nearest to the lost seats without own seats. As many as were lost.
pub fn nearest_offer(session: MapSession, lost: &[SeatIndex]) -> Option<SeatOffer> {
    let takes_more = |cart: &Cart| !cart.is_paying() && cart.has_room_for(lost.len());
    let room = session.room.get_untracked().filter(|_| session.cart.with_untracked(takes_more))?;
    let seats = session.cart.with_untracked(|cart| {
        session.board.with_value(|board| {
            nearest(&room, lost, cart.want(), |seat| board.look(seat, cart) == SeatAppearance::Available)
        })
    })?;
    let lines: Vec<SeatLine> = seats.iter().filter_map(|seat| room.line(*seat)).collect();
    Some(SeatOffer::instead(&lines, Money::total(lines.iter().map(|line| line.price))?))
}

/// Finds as many free seats as were lost and adds them to the notice on show as an offer.
pub fn offer_alternatives(session: MapSession, lost: &[SeatIndex]) {
    if let Some(offer) = nearest_offer(session, lost) {
        session.notice.update(|notice| {
            if let Some(notice) = notice {
                notice.offer = Some(offer);
            }
        });
        return;
    }
    let category = session.room.with_untracked(|room| {
        let room = room.as_ref()?;
        lost.first().and_then(|seat| room.seat(*seat)).map(|seat| seat.category.name.clone())
    });
    let (Some(category), count) = (category, lost.len()) else { return };
    let about = session.notice.get_untracked();
    spawn_local(async move {
        let path = session.path(&format!("/best?count={count}&category={}&most=1", browser::encoded(&category)));
        let Ok(best) = calls::read::<BestView>(&path).await else { return };
        let Some(place) = best.suggestions.into_iter().next() else { return };
        let offer = SeatOffer::instead(&place.seats, place.total);
        session.notice.update(|notice| {
            // Only while the notice is still the same.
            if *notice == about
                && let Some(notice) = notice
            {
                notice.offer = Some(offer);
            }
        });
    });
}

#[derive(Clone, Debug, PartialEq)]
pub struct SeatOffer {
    pub seats: Arc<[SeatIndex]>,
    /// Places without numbers beside them.
    pub places: Arc<[AreaQuantity]>,
    /// Label of the button: names and total price.
    pub words: String,
}

impl SeatOffer {
    /// Offers these seats as an alternative to refused ones.
    pub(super) fn instead(lines: &[SeatLine], total: Money) -> Self {
        let words = say!("map.take_instead", seats = Arg::Ours(&listed(&names_of(lines))), price = total);
        Self { seats: lines.iter().map(|line| line.seat).collect(), places: [].into(), words }
    }

    /// Offers places in an area as an alternative to refused ones.
    pub(super) fn places_instead(line: &PlaceLine) -> Self {
        let places = [AreaQuantity { area: line.area, quantity: line.quantity }].into();
        let names = listed(&[quantity_of(line).as_str()]);
        let words = say!("map.take_instead", seats = Arg::Ours(&names), price = line.total());
        Self { seats: [].into(), places, words }
    }

    /// Offers seats and places that the visitor had before. `None` without a total price.
    pub(super) fn again(lines: &[SeatLine], places: &[PlaceLine]) -> Option<Self> {
        let total = Money::total(lines.iter().map(|line| line.price).chain(places.iter().map(PlaceLine::total)))?;
        let words = places.iter().map(quantity_of);
        let words: Vec<String> = names_of(lines).into_iter().map(str::to_owned).chain(words).collect();
        let names: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(Self {
            seats: lines.iter().map(|line| line.seat).collect(),
            places: places.iter().map(|line| AreaQuantity { area: line.area, quantity: line.quantity }).collect(),
            words: say!("map.take_again", seats = Arg::Ours(&listed(&names)), price = total),
        })
    }
}

pub(super) fn names_of(lines: &[SeatLine]) -> Vec<&str> {
    let mut names: Vec<&str> = lines.iter().map(|line| line.label.as_str()).collect();
    sort_for_display(&mut names, |name| name);
    names
}

/// `2 × Standing floor`: the same within a list in every sentence of every language.
pub fn quantity_of(places: &PlaceLine) -> String {
    format!("{} × {}", number(i64::from(places.quantity), current()), places.label)
}

#[cfg(test)]
mod tests {
    use domain::api::{CategoryView, PlanView};
    use domain::money::Currency;

    use super::*;
    use crate::seat_map::room_plan::tests::two_sections;

    /// The nearest seats in a room with only these taken: stalls A1 to A4 (0 to 3) and B1 to B4 (4 to 7), circle A1 and
    /// A2 (8, 9).
    fn found(plan: PlanView, lost: &[SeatIndex], party: &[SeatIndex], taken: &[SeatIndex]) -> Option<Vec<SeatIndex>> {
        nearest(&RoomPlan::new(plan), lost, party, |seat| !taken.contains(&seat))
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
    fn a_seat_beside_the_party_comes_before_one_nearer_to_the_lost_seat() {
        assert_eq!(found(two_sections(), &[3], &[4], &[3]), Some(vec![5]), "B2 beside B1, not A3 beside the lost A4");
        assert_eq!(found(two_sections(), &[2], &[1], &[2]), Some(vec![0]));
    }

    #[test]
    fn the_side_of_the_party_nearer_to_the_lost_seat_wins() {
        assert_eq!(found(two_sections(), &[3], &[5], &[3]), Some(vec![6]));
        assert_eq!(found(two_sections(), &[0], &[5], &[0]), Some(vec![4]));
    }

    #[test]
    fn without_free_neighbours_the_same_row_then_the_nearest_row_is_searched() {
        assert_eq!(found(two_sections(), &[1], &[0], &[1]), Some(vec![2]), "A3 is farther than B1, but in their row");
        assert_eq!(found(two_sections(), &[1], &[0], &[1, 2, 3]), Some(vec![4]));
        assert_eq!(found(two_sections(), &[1], &[0], &[1, 2, 3, 4, 5]), Some(vec![6]), "row B, not the circle");
        assert_eq!(found(two_sections(), &[1], &[0], &[1, 2, 3, 4, 5, 6, 7]), Some(vec![8]));
        assert_eq!(found(two_sections(), &[1], &[0], &[1, 2, 3, 4, 5, 6, 7, 8, 9]), None);
    }

    #[test]
    fn seats_across_an_aisle_are_not_neighbours() {
        let mut plan = two_sections();
        plan.sections[0].rows[1].x = vec![0, 20, 80, 100];
        assert_eq!(found(plan, &[3], &[5], &[3]), Some(vec![4]), "B1, not B3 behind the aisle");
    }

    #[test]
    fn without_a_party_seats_near_the_lost_seat_are_found() {
        assert_eq!(found(two_sections(), &[6], &[], &[6]), Some(vec![5]));
        assert_eq!(found(two_sections(), &[6], &[], &[4, 5, 6, 7]), Some(vec![2]));
        assert_eq!(found(two_sections(), &[5, 6], &[], &[5, 6]), None, "two together: the whole room is searched");
    }

    #[test]
    fn several_lost_seats_are_replaced_side_by_side() {
        assert_eq!(found(two_sections(), &[2, 3], &[4], &[2, 3]), Some(vec![5, 6]));
        assert_eq!(found(two_sections(), &[2, 3], &[5], &[2, 3]), Some(vec![6, 7]));
    }

    #[test]
    fn the_category_is_kept_while_possible_and_special_seats_replace_only_special_seats() {
        let recliners = with_another_category(SeatKind::Recliner, &[0, 1, 2, 3]);
        assert_eq!(found(recliners.clone(), &[6], &[5], &[4, 6, 7]), Some(vec![9]), "standard, though far");
        assert_eq!(found(recliners.clone(), &[6], &[5], &[4, 6, 7, 8, 9]), Some(vec![1]));
        assert_eq!(found(recliners, &[6], &[2], &[6]), Some(vec![1]), "beside the party, which reclines");
        let spaces = with_another_category(SeatKind::Wheelchair, &[0, 1]);
        assert_eq!(found(spaces.clone(), &[1], &[], &[1]), Some(vec![0]));
        assert_eq!(found(spaces.clone(), &[1], &[], &[0, 1]), None, "a chair does not replace a wheelchair space");
        assert_eq!(found(spaces, &[2], &[], &[2, 3, 4, 5, 6, 7, 8, 9]), None);
        assert_eq!(found(with_another_category(SeatKind::Couple, &[0, 1, 2, 3]), &[1], &[0], &[1]), None);
    }

    #[test]
    fn seats_of_sections_that_are_not_loaded_are_ignored() {
        let mut plan = two_sections();
        plan.sections[1].rows.clear();
        assert_eq!(found(plan.clone(), &[8], &[], &[]), None);
        assert_eq!(found(plan, &[3], &[8], &[3]), Some(vec![2]), "the party is not loaded");
    }

    #[test]
    fn an_offer_of_places_names_their_number_and_area_with_the_total() {
        let price = Money::new(2_000, Currency::parse("EUR").expect("a code"));
        let label = "Balcony".to_owned();
        let offer =
            SeatOffer::places_instead(&PlaceLine { area: 1, label, category: "Gold".to_owned(), price, quantity: 2 });
        assert_eq!(offer.words, "Take 2 × Balcony instead, €40.00");
        assert!(offer.seats.is_empty());
        assert_eq!(&*offer.places, &[AreaQuantity { area: 1, quantity: 2 }]);
    }

    #[test]
    fn an_offer_of_previous_seats_names_them_with_their_total() {
        let price = Money::new(1_250, Currency::parse("EUR").expect("a code"));
        let line = |seat, label: &str| SeatLine { seat, label: label.to_owned(), category: "Gold".to_owned(), price };
        // A row numbered from the right.
        let offer = SeatOffer::again(&[line(30, "C8"), line(31, "C7")], &[]).expect("there are seats");
        assert_eq!((offer.words.as_str(), &*offer.seats), ("Take C7 and C8 again, €25.00", &[30, 31][..]));
        assert_eq!(SeatOffer::again(&[], &[]), None);
        let floor = PlaceLine { area: 0, label: "Floor".to_owned(), category: "Floor".to_owned(), price, quantity: 2 };
        let offer = SeatOffer::again(&[line(31, "C7")], &[floor]).expect("there are seats");
        assert_eq!(offer.words, "Take C7 and 2 × Floor again, €37.50");
        assert_eq!(&*offer.places, &[AreaQuantity { area: 0, quantity: 2 }]);
    }
}
