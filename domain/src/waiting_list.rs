//! Matches free seats of a sold-out show to its waiting list: first in, first out, where the quantity fits.
//!
//! Entries are served in the order of joining. The first entry whose *whole* quantity is free in its category gets an
//! offer. Entries that do not fit are skipped and keep their position. Neighbours in a row are preferred, starting with
//! the lowest seat index; otherwise the lowest free seats are offered; if there are not enough seats, places in an
//! area. Wheelchair spaces and companion seats are offered only to entries that requested their category.

use crate::api::SeatKind;
use crate::seats::{AreaIndex, Places, SeatIndex};

/// Maximum number of entries in the waiting list of a show.
pub const MAX_WAITING_PER_SHOW: i64 = 1_000;
/// Maximum number of waiting lists that one person may join.
pub const MAX_LISTS_PER_PERSON: i64 = 10;
/// Maximum number of open offers in a show. Offered seats are not on sale, and an offer may be declined.
pub const MAX_OFFERS_AT_ONCE: usize = 100;

/// The request of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRequest {
    /// Number of seats or places.
    pub quantity: u32,
    /// Name of the category; `None` for any except wheelchair spaces and companion seats.
    pub category: Option<String>,
}

impl EntryRequest {
    fn takes(&self, category: &str, kind: SeatKind) -> bool {
        takes(self.category.as_deref(), category, kind)
    }
}

/// True if an entry that named `wanted`, or no category, is offered seats of this category and kind.
#[must_use]
pub fn takes(wanted: Option<&str>, category: &str, kind: SeatKind) -> bool {
    match wanted {
        Some(wanted) => wanted == category,
        None => kind.rules().is_offered_unasked,
    }
}

/// A free seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeSeat {
    /// The seat.
    pub seat: SeatIndex,
    /// Number of the row, unique in the room.
    pub row: u32,
    /// Name of its category.
    pub category: String,
    /// Kind of the seat.
    pub kind: SeatKind,
}

/// An area with free places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeArea {
    /// The free places.
    pub left: Places,
    /// Name of its category.
    pub category: String,
}

/// An offer for one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferedPlaces {
    /// Seats, sorted.
    Seats(Vec<SeatIndex>),
    /// Places in one area.
    Places(Places),
}

/// The free seats and places of a show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreePlaces {
    /// Seats, sorted by index.
    pub seats: Vec<FreeSeat>,
    /// Areas with free places.
    pub areas: Vec<FreeArea>,
}

impl FreePlaces {
    /// True if there are no free seats or places.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty() && self.areas.iter().all(|area| area.left.count == 0)
    }

    /// Returns an offer for this request; `None` if its whole quantity is not free.
    #[must_use]
    pub fn find_offer(&self, wish: &EntryRequest) -> Option<OfferedPlaces> {
        let count = wish.quantity as usize;
        if count == 0 {
            return None;
        }
        let suitable: Vec<&FreeSeat> = self.seats.iter().filter(|free| wish.takes(&free.category, free.kind)).collect();
        if suitable.len() >= count {
            let together = suitable.windows(count).find(|run| are_neighbours(run));
            let chosen = together.unwrap_or(&suitable[..count]);
            return Some(OfferedPlaces::Seats(chosen.iter().map(|free| free.seat).collect()));
        }
        let area = self
            .areas
            .iter()
            .find(|area| area.left.count >= wish.quantity && wish.takes(&area.category, SeatKind::Standard))?;
        Some(OfferedPlaces::Places(Places { area: area.left.area, count: wish.quantity }))
    }

    /// Removes an offer from the free seats and places.
    pub fn take(&mut self, offer: &OfferedPlaces) {
        match offer {
            OfferedPlaces::Seats(seats) => self.seats.retain(|free| seats.binary_search(&free.seat).is_err()),
            OfferedPlaces::Places(places) => self.take_places(places.area, places.count),
        }
    }

    /// Removes what the entries with these requests, in order, can be offered. The free set only shrinks, so a request that
    /// did not fit never fits later: a long line costs hardly more than a short one.
    pub fn serve_all(&mut self, requests: impl IntoIterator<Item = EntryRequest>) {
        let mut unfit: Vec<EntryRequest> = Vec::new();
        for wish in requests {
            if self.is_empty() {
                return;
            }
            if unfit.contains(&wish) {
                continue;
            }
            match self.find_offer(&wish) {
                Some(offer) => self.take(&offer),
                None => unfit.push(wish),
            }
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

    /// Free seats given as `(seat, row)`, of category gold.
    fn free(seats: &[(SeatIndex, u32)]) -> FreePlaces {
        let seat = |(seat, row): &(SeatIndex, u32)| FreeSeat {
            seat: *seat,
            row: *row,
            category: "gold".to_owned(),
            kind: SeatKind::Standard,
        };
        FreePlaces { seats: seats.iter().map(seat).collect(), areas: vec![] }
    }

    fn wish(quantity: u32, category: Option<&str>) -> EntryRequest {
        EntryRequest { quantity, category: category.map(str::to_owned) }
    }

    #[test]
    fn neighbours_come_before_lower_indices_and_do_not_span_rows() {
        let free = free(&[(3, 0), (9, 0), (10, 1), (11, 1)]);
        assert_eq!(
            free.find_offer(&wish(2, None)),
            Some(OfferedPlaces::Seats(vec![10, 11])),
            "9 and 10 are of two rows"
        );
        assert_eq!(free.find_offer(&wish(1, None)), Some(OfferedPlaces::Seats(vec![3])));
        assert_eq!(
            free.find_offer(&wish(3, None)),
            Some(OfferedPlaces::Seats(vec![3, 9, 10])),
            "apart rather than nothing"
        );
    }

    #[test]
    fn seats_that_no_entry_can_use_are_left() {
        let left = |quantities: &[u32]| {
            let mut free = free(&[(3, 0), (9, 0), (10, 0)]);
            free.serve_all(quantities.iter().map(|quantity| wish(*quantity, None)));
            free.seats.iter().map(|free| free.seat).collect::<Vec<_>>()
        };
        assert_eq!(left(&[]), [3, 9, 10]);
        assert_eq!(left(&[10, 4, 2]), [3], "the neighbours are for the entry of two");
        assert_eq!(left(&[2, 2]), [3]);
        assert_eq!(left(&[4, 1, 10, 2]), [0; 0]);
    }

    #[test]
    fn offer_is_for_the_whole_quantity_or_absent() {
        assert_eq!(free(&[(3, 0)]).find_offer(&wish(2, None)), None);
        assert_eq!(free(&[]).find_offer(&wish(1, None)), None);
        assert_eq!(free(&[(3, 0)]).find_offer(&wish(0, None)), None);
    }

    #[test]
    fn category_is_respected_and_wheelchair_spaces_must_be_requested() {
        let mut free = free(&[(3, 0)]);
        free.seats.push(FreeSeat { seat: 4, row: 0, category: "wheelchair".to_owned(), kind: SeatKind::Wheelchair });
        assert_eq!(free.find_offer(&wish(2, None)), None);
        assert_eq!(free.find_offer(&wish(1, Some("wheelchair"))), Some(OfferedPlaces::Seats(vec![4])));
        assert_eq!(free.find_offer(&wish(1, Some("silver"))), None);
    }

    #[test]
    fn places_are_offered_when_seats_are_too_few() {
        let mut free = free(&[(3, 0)]);
        free.areas = vec![FreeArea { left: Places { area: 2, count: 3 }, category: "floor".to_owned() }];
        let offer = OfferedPlaces::Places(Places { area: 2, count: 2 });
        assert_eq!(free.find_offer(&wish(2, None)), Some(offer.clone()));
        free.take(&offer);
        assert_eq!(free.find_offer(&wish(2, Some("floor"))), None);
        assert_eq!(free.find_offer(&wish(1, Some("floor"))), Some(OfferedPlaces::Places(Places { area: 2, count: 1 })));
        free.take(&OfferedPlaces::Seats(vec![3]));
        assert!(free.seats.is_empty() && !free.is_empty());
    }
}
