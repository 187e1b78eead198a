//! Offers places in another area to a visitor who wants more places than an area has left.

use domain::api::{AreaProblem, AreaView};
use domain::seats::AreaIndex;

use super::cart::Cart;
use super::offers::SeatOffer;
use crate::seat_map::session::MapSession;

/// The number of wanted places that this refusal takes from the wish. Valid before the refusal changes the cart.
pub(super) fn refused_count(cart: &Cart, refused: &[AreaProblem]) -> u32 {
    let beyond = |problem: &AreaProblem| {
        let possible = cart.held_in(problem.area).saturating_add(problem.left);
        cart.wanted_in(problem.area).saturating_sub(possible)
    };
    refused.iter().map(beyond).sum()
}

/// Offers `count` places in the area with the nearest price. `None` if no other area has as many left, or if the cart
/// has no room for them.
pub(super) fn offer_places(session: MapSession, refused: &[AreaProblem], count: u32) -> Option<SeatOffer> {
    let takes_more = |cart: &Cart| count > 0 && !cart.is_paying() && cart.has_room_for(count as usize);
    let room = session.room.get_untracked().filter(|_| session.cart.with_untracked(takes_more))?;
    let left = session.places_left.get_untracked();
    let has_enough = |area: AreaIndex| {
        // Places left include those that the visitor wants but does not hold yet.
        let pending = session.cart.with_untracked(|cart| cart.wanted_in(area).saturating_sub(cart.held_in(area)));
        left.iter().any(|(known, left)| *known == area && left.saturating_sub(pending) >= count)
    };
    let area = nearest_area(&room.plan().areas, refused, has_enough)?.area;
    Some(SeatOffer::places_instead(&room.place_line(area, count)?))
}

/// The area with enough places whose price is nearest to that of the first refused area. Ties: the cheaper area, then
/// the order of the plan. Refused areas are excluded.
fn nearest_area<'a>(
    areas: &'a [AreaView],
    refused: &[AreaProblem],
    has_enough: impl Fn(AreaIndex) -> bool,
) -> Option<&'a AreaView> {
    let first = refused.first()?.area;
    let price = areas.iter().find(|area| area.area == first)?.price.minor;
    let is_refused = |area: AreaIndex| refused.iter().any(|problem| problem.area == area);
    let others = areas.iter().filter(|area| !is_refused(area.area) && has_enough(area.area));
    others.min_by_key(|area| (area.price.minor.abs_diff(price), area.price.minor))
}

#[cfg(test)]
mod tests {
    use domain::money::{Currency, Money};

    use super::*;
    use crate::seat_map::own_seats::cart::tests::{in_area, with_places};

    fn problem(area: AreaIndex, left: u32) -> AreaProblem {
        AreaProblem { area, label: format!("Area {area}"), left }
    }

    /// The nearest area among areas 0, 1, … at these prices, of which only those in `enough` have enough places.
    fn found(prices: &[i64], refused: &[AreaIndex], enough: &[AreaIndex]) -> Option<AreaIndex> {
        let currency = Currency::parse("EUR").expect("a code");
        let area = |(area, price): (AreaIndex, &i64)| AreaView {
            area,
            name: format!("Area {area}"),
            category: "floor".to_owned(),
            category_label: "Floor".to_owned(),
            price: Money::new(*price, currency),
            capacity: 300,
        };
        let areas: Vec<AreaView> = (0..).zip(prices).map(area).collect();
        let refused: Vec<AreaProblem> = refused.iter().map(|area| problem(*area, 0)).collect();
        nearest_area(&areas, &refused, |area| enough.contains(&area)).map(|area| area.area)
    }

    #[test]
    fn the_nearest_price_wins_then_the_cheaper_area_then_the_order_of_the_plan() {
        assert_eq!(found(&[2_000, 3_500, 2_500], &[0], &[1, 2]), Some(2));
        assert_eq!(found(&[2_000, 2_500, 1_500], &[0], &[1, 2]), Some(2), "both differ by 5.00");
        assert_eq!(found(&[2_500, 2_500, 2_000], &[2], &[0, 1]), Some(0), "both cost the same");
    }

    #[test]
    fn refused_areas_and_areas_with_too_few_places_are_not_offered() {
        assert_eq!(found(&[2_000, 2_000, 9_000], &[0], &[0, 2]), Some(2));
        assert_eq!(found(&[2_000, 2_100, 9_000], &[0, 1], &[0, 1, 2]), Some(2));
        assert_eq!(found(&[2_000, 2_100], &[0], &[]), None);
        assert_eq!(found(&[2_000], &[0], &[0]), None);
        assert_eq!(found(&[2_000], &[7], &[0]), None, "the room has no such area");
    }

    #[test]
    fn places_beyond_the_hold_and_the_places_left_are_refused() {
        let mut cart = Cart::default();
        cart.replace_hold(Some(with_places(&[], &[in_area(0, 1)])));
        cart.add(&[], &[in_area(0, 4), in_area(1, 2)]);
        assert_eq!(refused_count(&cart, &[problem(0, 1)]), 3, "5 wanted, 1 held, 1 left");
        assert_eq!(refused_count(&cart, &[problem(0, 1), problem(1, 0)]), 5);
        assert_eq!(refused_count(&cart, &[problem(0, 4)]), 0);
    }
}
