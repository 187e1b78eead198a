//! Whom what is free in a sold-out show is offered to: first in, first out, where the quantity fits.
//!
//! The rule: people are asked in the order in which they joined. The first whose *whole* quantity is
//! free in the category they named gets it; whoever's is not is passed over and keeps their place. Seats
//! are neighbours in a row where there are such, the lowest numbers of all; else the lowest that are free;
//! where there are not enough seats, places in an area. Nobody is offered a wheelchair space or the seat
//! beside it who did not ask for that category.

use crate::api::SeatKind;
use crate::seats::{AreaIndex, Places, SeatIndex};

/// The most people who may wait for one show.
pub const MAX_WAITING_PER_SHOW: i64 = 1_000;
/// The most shows one person may wait for.
pub const MAX_LISTS_PER_PERSON: i64 = 10;
/// The most offers of one show that are open at once: what is offered is not on sale, and may be declined.
pub const MAX_OFFERS_AT_ONCE: usize = 100;

/// What somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// How many seats or places.
    pub quantity: u32,
    /// Name of their category; without one, any but wheelchair spaces and companion seats.
    pub category: Option<String>,
}

impl Wish {
    fn takes(&self, category: &str, kind: SeatKind) -> bool {
        match &self.category {
            Some(wanted) => wanted == category,
            None => !matches!(kind, SeatKind::Wheelchair | SeatKind::Companion),
        }
    }
}

/// A seat that is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeSeat {
    /// The seat.
    pub seat: SeatIndex,
    /// The same number for all seats of a row, another for each row.
    pub row: u32,
    /// Name of its category.
    pub category: String,
    /// What it is.
    pub kind: SeatKind,
}

/// An area with places left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeArea {
    /// How many it has left.
    pub left: Places,
    /// Name of its category.
    pub category: String,
}

/// What one person is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Seats, sorted.
    Seats(Vec<SeatIndex>),
    /// Places in one area.
    Places(Places),
}

/// What is free in a show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Free {
    /// Seats, sorted by number.
    pub seats: Vec<FreeSeat>,
    /// Areas.
    pub areas: Vec<FreeArea>,
}

impl Free {
    /// Whether nothing is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty() && self.areas.iter().all(|area| area.left.count == 0)
    }

    /// What the rule gives to this wish; `None` when not all of its quantity is free.
    #[must_use]
    pub fn fit(&self, wish: &Wish) -> Option<Offer> {
        let count = wish.quantity as usize;
        if count == 0 {
            return None;
        }
        let suitable: Vec<&FreeSeat> = self.seats.iter().filter(|free| wish.takes(&free.category, free.kind)).collect();
        if suitable.len() >= count {
            let together = suitable.windows(count).find(|run| are_neighbours(run));
            let chosen = together.unwrap_or(&suitable[..count]);
            return Some(Offer::Seats(chosen.iter().map(|free| free.seat).collect()));
        }
        let area = self
            .areas
            .iter()
            .find(|area| area.left.count >= wish.quantity && wish.takes(&area.category, SeatKind::Standard))?;
        Some(Offer::Places(Places { area: area.left.area, count: wish.quantity }))
    }

    /// Takes an offer out of what is free.
    pub fn take(&mut self, offer: &Offer) {
        match offer {
            Offer::Seats(seats) => self.seats.retain(|free| seats.binary_search(&free.seat).is_err()),
            Offer::Places(places) => self.take_places(places.area, places.count),
        }
    }

    fn take_places(&mut self, area: AreaIndex, count: u32) {
        if let Some(free) = self.areas.iter_mut().find(|free| free.left.area == area) {
            free.left.count = free.left.count.saturating_sub(count);
        }
    }
}

fn are_neighbours(run: &[&FreeSeat]) -> bool {
    run.windows(2).all(|pair| pair[0].row == pair[1].row && pair[0].seat + 1 == pair[1].seat)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seats as `(seat, row)`, gold.
    fn free(seats: &[(SeatIndex, u32)]) -> Free {
        let seat = |(seat, row): &(SeatIndex, u32)| FreeSeat {
            seat: *seat,
            row: *row,
            category: "gold".to_owned(),
            kind: SeatKind::Standard,
        };
        Free { seats: seats.iter().map(seat).collect(), areas: vec![] }
    }

    fn wish(quantity: u32, category: Option<&str>) -> Wish {
        Wish { quantity, category: category.map(str::to_owned) }
    }

    #[test]
    fn neighbours_come_before_lower_numbers_and_rows_do_not_join() {
        let free = free(&[(3, 0), (9, 0), (10, 1), (11, 1)]);
        assert_eq!(free.fit(&wish(2, None)), Some(Offer::Seats(vec![10, 11])), "9 and 10 are of two rows");
        assert_eq!(free.fit(&wish(1, None)), Some(Offer::Seats(vec![3])));
        assert_eq!(free.fit(&wish(3, None)), Some(Offer::Seats(vec![3, 9, 10])), "apart rather than nothing");
    }

    #[test]
    fn a_quantity_that_does_not_fit_gets_nothing_and_never_a_part() {
        assert_eq!(free(&[(3, 0)]).fit(&wish(2, None)), None);
        assert_eq!(free(&[]).fit(&wish(1, None)), None);
        assert_eq!(free(&[(3, 0)]).fit(&wish(0, None)), None);
    }

    #[test]
    fn a_category_is_what_was_asked_for_and_wheelchair_spaces_only_then() {
        let mut free = free(&[(3, 0)]);
        free.seats.push(FreeSeat { seat: 4, row: 0, category: "wheelchair".to_owned(), kind: SeatKind::Wheelchair });
        assert_eq!(free.fit(&wish(2, None)), None);
        assert_eq!(free.fit(&wish(1, Some("wheelchair"))), Some(Offer::Seats(vec![4])));
        assert_eq!(free.fit(&wish(1, Some("silver"))), None);
    }

    #[test]
    fn places_are_offered_where_seats_are_not_enough_and_are_gone_then() {
        let mut free = free(&[(3, 0)]);
        free.areas = vec![FreeArea { left: Places { area: 2, count: 3 }, category: "floor".to_owned() }];
        let offer = Offer::Places(Places { area: 2, count: 2 });
        assert_eq!(free.fit(&wish(2, None)), Some(offer.clone()));
        free.take(&offer);
        assert_eq!(free.fit(&wish(2, Some("floor"))), None);
        assert_eq!(free.fit(&wish(1, Some("floor"))), Some(Offer::Places(Places { area: 2, count: 1 })));
        free.take(&Offer::Seats(vec![3]));
        assert!(free.seats.is_empty() && !free.is_empty());
    }
}
