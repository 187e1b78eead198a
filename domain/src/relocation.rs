//! Assigns places to all bookings when a show moves to another room: the same place if the room has it, otherwise other
//! seats together that are no worse, otherwise none.
//!
//! Pure: rooms, prices and parties are arguments. A party stays whole: it gets places for all its members or none. No
//! seat is assigned twice, and no party gets a cheaper seat than it had. The offer to buyers and the refund of parties
//! without places are in `server/backoffice/src/relocation`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::layout::Layout;
use crate::pricing::PriceList;
use crate::reseat::{self, PricedSeat};
use crate::seats::{AreaIndex, SeatIndex};
use crate::time::{MINUTE_MS, Timestamp};

/// Maximum number of parties that alternatives are searched for, since each search visits every seat of the room.
/// Parties beyond it bought last and are refunded.
pub const MAX_SEARCHED_PARTIES: usize = 2_000;
/// Maximum time for a buyer's answer to an offer, milliseconds: two days.
pub const MAX_ANSWER_MS: i64 = 48 * 60 * MINUTE_MS;

/// Name of a place in any room: section, row and number as printed.
pub type PlaceName = (String, String, String);

/// The properties of a room that a move depends on.
#[derive(Clone, Debug, Default)]
pub struct PricedRoom {
    /// Its rows, each in seat order.
    pub rows: Vec<Vec<PricedSeat>>,
    /// Name of every seat, by index.
    pub names: Vec<PlaceName>,
    /// Areas without numbered seats.
    pub areas: Vec<AreaStock>,
}

/// An area without numbered seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AreaStock {
    /// Index of the area in the room.
    pub area: AreaIndex,
    /// Name of the area, by which the same area is found in the other room.
    pub name: String,
    /// Price of a place, minor units.
    pub price: i64,
    /// Number of places.
    pub capacity: u32,
}

impl PricedRoom {
    /// Builds a room with these prices; `None` if a category has no price.
    #[must_use]
    pub fn of(layout: &Layout, prices: &PriceList) -> Option<Self> {
        let categories: Option<Vec<_>> = layout
            .categories()
            .iter()
            .map(|category| Some((category.kind, prices.price(&category.name)?.minor)))
            .collect();
        let categories = categories?;
        let place = |seat: SeatIndex| {
            let ((x, y), category) = layout.place(seat)?;
            let (kind, price) = *categories.get(usize::from(category))?;
            Some(PricedSeat { seat, x, y, kind, price })
        };
        let names = layout.seats().map(|seat| (seat.zone.to_owned(), seat.row.to_owned(), seat.number.to_owned()));
        let areas = (0..).zip(layout.areas()).map(|(area, known)| {
            let price = prices.price(&known.category)?.minor;
            Some(AreaStock { area, name: known.name.clone(), price, capacity: known.capacity })
        });
        Some(Self {
            rows: layout.rows().map(|seats| seats.filter_map(place).collect()).collect(),
            names: names.collect(),
            areas: areas.collect::<Option<_>>()?,
        })
    }

    fn places(&self) -> HashMap<SeatIndex, PricedSeat> {
        self.rows.iter().flatten().map(|place| (place.seat, *place)).collect()
    }
}

/// The properties of a booking that a move depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// Its seats in the first room.
    pub seats: Vec<SeatIndex>,
    /// Its places in areas of the first room: area and number.
    pub places: Vec<(AreaIndex, u32)>,
}

/// Outcome of a move for a party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartyOutcome {
    /// The party keeps its places, matched by name.
    Kept(PlaceAssignment),
    /// The party gets other places that are no worse. The buyer must accept them.
    Offered(PlaceAssignment),
    /// The party gets no places.
    Unplaced,
}

/// The places of a party before and after a move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceAssignment {
    /// Seat in the first room and seat in the second.
    pub seats: Vec<(SeatIndex, SeatIndex)>,
    /// Area in the first room, area in the second, and the number of places.
    pub places: Vec<(AreaIndex, AreaIndex, u32)>,
}

/// Returns the deadline for a buyer's answer to an offer: half of the remaining time, two days at most.
#[must_use]
pub fn answer_until(now: Timestamp, starts_at: Timestamp) -> Timestamp {
    now.plus_ms((starts_at.since(now) / 2).clamp(0, MAX_ANSWER_MS))
}

/// Returns the outcome for each of `parties`, in the same order. Parties are sorted by time of purchase. The house
/// keeps `kept` in the second room. All parties that can keep their places are assigned before alternatives are
/// searched.
#[must_use]
pub fn relocate(
    before: &PricedRoom,
    after: &PricedRoom,
    kept: &BTreeSet<SeatIndex>,
    parties: &[Party],
) -> Vec<PartyOutcome> {
    let mut relocation = Relocation::new(before, after, kept);
    let mut fates: Vec<PartyOutcome> = parties
        .iter()
        .map(|party| relocation.keep_same(party).map_or(PartyOutcome::Unplaced, PartyOutcome::Kept))
        .collect();
    let left = fates.iter_mut().zip(parties).filter(|(fate, _)| **fate == PartyOutcome::Unplaced);
    for (fate, party) in left.take(MAX_SEARCHED_PARTIES) {
        if let Some(carried) = relocation.find_other(party) {
            *fate = PartyOutcome::Offered(carried);
        }
    }
    fates
}

/// Matches house seats to the seats of the same names in the second room.
#[must_use]
pub fn kept_by_name(before: &PricedRoom, after: &PricedRoom, kept: &[SeatIndex]) -> Vec<(SeatIndex, SeatIndex)> {
    let by_name = by_name(after);
    let same = |seat: &SeatIndex| Some((*seat, *by_name.get(before.names.get(*seat as usize)?)?));
    kept.iter().filter_map(same).collect()
}

fn by_name(room: &PricedRoom) -> HashMap<&PlaceName, SeatIndex> {
    room.names.iter().zip(0..).collect()
}

/// Assignments made so far during a move.
struct Relocation<'a> {
    before: &'a PricedRoom,
    after: &'a PricedRoom,
    old: HashMap<SeatIndex, PricedSeat>,
    new: HashMap<SeatIndex, PricedSeat>,
    by_name: HashMap<&'a PlaceName, SeatIndex>,
    taken: BTreeSet<SeatIndex>,
    left: BTreeMap<AreaIndex, u32>,
}

impl<'a> Relocation<'a> {
    fn new(before: &'a PricedRoom, after: &'a PricedRoom, kept: &BTreeSet<SeatIndex>) -> Self {
        Self {
            before,
            after,
            old: before.places(),
            new: after.places(),
            by_name: by_name(after),
            taken: kept.clone(),
            left: after.areas.iter().map(|floor| (floor.area, floor.capacity)).collect(),
        }
    }

    /// Assigns a party to the same places, if all of them are possible.
    fn keep_same(&mut self, party: &Party) -> Option<PlaceAssignment> {
        let seats: Option<Vec<_>> = party.seats.iter().map(|seat| self.same_seat(*seat)).collect();
        let places: Option<Vec<_>> = party.places.iter().map(|(area, count)| self.same_area(*area, *count)).collect();
        Some(self.assign(PlaceAssignment { seats: seats?, places: places? }))
    }

    fn same_seat(&self, seat: SeatIndex) -> Option<(SeatIndex, SeatIndex)> {
        let found = *self.by_name.get(self.before.names.get(seat as usize)?)?;
        let (old, new) = (self.old.get(&seat)?, self.new.get(&found)?);
        let is_as_good = old.kind == new.kind && old.price <= new.price;
        (is_as_good && !self.taken.contains(&found)).then_some((seat, found))
    }

    fn same_area(&self, area: AreaIndex, count: u32) -> Option<(AreaIndex, AreaIndex, u32)> {
        let old = self.floor(area)?;
        let new = self.after.areas.iter().find(|floor| floor.name == old.name)?;
        self.fits(old, new, count).then_some((area, new.area, count))
    }

    /// Assigns a party to other places: seats together, and for each area the cheapest one with enough places.
    fn find_other(&mut self, party: &Party) -> Option<PlaceAssignment> {
        let mut lost: Vec<PricedSeat> =
            party.seats.iter().map(|seat| self.old.get(seat).copied()).collect::<Option<_>>()?;
        let mut seats = Vec::new();
        if !lost.is_empty() {
            let found = reseat::find_replacement(&self.after.rows, &lost, |seat| !self.taken.contains(&seat))?;
            let mut found: Vec<PricedSeat> =
                found.iter().map(|seat| self.new.get(seat).copied()).collect::<Option<_>>()?;
            // Within each kind, match by price: the cheapest new seat replaces the cheapest old one.
            lost.sort_by_key(|place| (place.kind as u8, place.price, place.seat));
            found.sort_by_key(|place| (place.kind as u8, place.price, place.seat));
            seats = lost.iter().zip(&found).map(|(old, new)| (old.seat, new.seat)).collect();
        }
        let mut places: Vec<(AreaIndex, AreaIndex, u32)> = Vec::new();
        for (area, count) in &party.places {
            let old = self.floor(*area)?;
            let is_free = |floor: &&AreaStock| {
                self.fits(old, floor, *count) && places.iter().all(|(_, taken, _)| *taken != floor.area)
            };
            let new = self.after.areas.iter().filter(is_free).min_by_key(|floor| (floor.price, floor.area))?;
            places.push((*area, new.area, *count));
        }
        Some(self.assign(PlaceAssignment { seats, places }))
    }

    fn floor(&self, area: AreaIndex) -> Option<&'a AreaStock> {
        self.before.areas.iter().find(|floor| floor.area == area)
    }

    fn fits(&self, old: &AreaStock, new: &AreaStock, count: u32) -> bool {
        new.price >= old.price && self.left.get(&new.area).is_some_and(|left| *left >= count)
    }

    fn assign(&mut self, carried: PlaceAssignment) -> PlaceAssignment {
        self.taken.extend(carried.seats.iter().map(|(_, new)| *new));
        for (_, area, count) in &carried.places {
            if let Some(left) = self.left.get_mut(area) {
                *left = left.saturating_sub(*count);
            }
        }
        carried
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::{SEAT_PITCH, SeatKind};

    /// A room with rows of these prices. Seats are numbered from 1 in rows A, B, C…
    fn room(rows: &[&[i64]], floors: &[(&str, i64, u32)]) -> PricedRoom {
        let (mut next, mut names, mut placed) = (0, Vec::new(), Vec::new());
        for (y, prices) in (0_i32..).zip(rows) {
            let mut row = Vec::new();
            for (x, price) in (0_i32..).zip(*prices) {
                let letter = char::from(b'A' + u8::try_from(y).expect("few rows"));
                names.push((String::new(), letter.to_string(), (x + 1).to_string()));
                let (x, y) = (x * SEAT_PITCH, y * SEAT_PITCH);
                row.push(PricedSeat { seat: next, x, y, kind: SeatKind::Standard, price: *price });
                next += 1;
            }
            placed.push(row);
        }
        let floor = |(area, (name, price, capacity)): (AreaIndex, &(&str, i64, u32))| AreaStock {
            area,
            name: (*name).to_owned(),
            price: *price,
            capacity: *capacity,
        };
        PricedRoom { rows: placed, names, areas: (0..).zip(floors).map(floor).collect() }
    }

    fn of_seats(seats: &[SeatIndex]) -> Party {
        Party { seats: seats.to_vec(), places: Vec::new() }
    }

    fn seats(fate: &PartyOutcome) -> Vec<(SeatIndex, SeatIndex)> {
        match fate {
            PartyOutcome::Kept(carried) | PartyOutcome::Offered(carried) => carried.seats.clone(),
            PartyOutcome::Unplaced => Vec::new(),
        }
    }

    #[test]
    fn same_places_are_kept_and_other_parties_sit_together_nearby() {
        let before = room(&[&[10; 6], &[10; 6]], &[]);
        // The first row of the new room has four seats, so B3 has another index there.
        let after = room(&[&[10; 4], &[10; 8]], &[]);
        let parties = [of_seats(&[4, 5]), of_seats(&[8, 9]), of_seats(&[0])];
        let fates = relocate(&before, &after, &BTreeSet::new(), &parties);
        assert_eq!(
            fates[1],
            PartyOutcome::Kept(PlaceAssignment { seats: vec![(8, 6), (9, 7)], places: vec![] }),
            "B3 and B4"
        );
        assert_eq!(seats(&fates[2]), [(0, 0)]);
        assert_eq!(
            fates[0],
            PartyOutcome::Offered(PlaceAssignment { seats: vec![(4, 8), (5, 9)], places: vec![] }),
            "B5 and B6"
        );
    }

    #[test]
    fn cheaper_place_of_the_same_name_is_not_the_same() {
        let before = room(&[&[10; 4], &[20; 4]], &[]);
        let after = room(&[&[20; 4], &[10; 4]], &[]);
        let fates = relocate(&before, &after, &BTreeSet::new(), &[of_seats(&[4, 5]), of_seats(&[0])]);
        assert_eq!(seats(&fates[0]), [(4, 1), (5, 2)], "dear seats are in the first row there");
        assert_eq!(seats(&fates[1]), [(0, 0)], "a better one is");
    }

    #[test]
    fn house_seats_are_not_assigned_and_a_party_stays_whole() {
        let before = room(&[&[10; 3]], &[]);
        let after = room(&[&[10; 3]], &[]);
        let fates = relocate(&before, &after, &[1].into(), &[of_seats(&[0, 1]), of_seats(&[2])]);
        assert_eq!(fates[0], PartyOutcome::Unplaced, "0 alone is not what they bought");
        assert_eq!(seats(&fates[1]), [(2, 2)]);
        assert_eq!(kept_by_name(&before, &room(&[&[10; 2]], &[]), &[1, 2]), [(1, 1)]);
    }

    #[test]
    fn area_places_go_to_the_same_name_or_the_cheapest_that_is_no_worse() {
        let before = room(&[&[10; 1]], &[("Floor", 10, 50), ("Terrace", 20, 50)]);
        let after = room(&[&[10; 1]], &[("Terrace", 20, 3), ("Gallery", 30, 9), ("Loft", 5, 99)]);
        let party = |area, count| Party { seats: vec![], places: vec![(area, count)] };
        let fates = relocate(&before, &after, &BTreeSet::new(), &[party(0, 4), party(1, 2), party(1, 2), party(0, 9)]);
        let to = |fate: &PartyOutcome| match fate {
            PartyOutcome::Kept(carried) | PartyOutcome::Offered(carried) => carried.places[0].1,
            PartyOutcome::Unplaced => AreaIndex::MAX,
        };
        assert_eq!(fates.iter().map(to).collect::<Vec<_>>(), [1, 0, 1, AreaIndex::MAX]);
        assert!(matches!(fates[1], PartyOutcome::Kept(_)), "parties that keep their place come first");
    }

    #[test]
    fn answer_deadline_is_half_the_remaining_time_up_to_two_days() {
        let now = Timestamp(1_000_000);
        assert_eq!(answer_until(now, now.plus_ms(60 * MINUTE_MS)), now.plus_ms(30 * MINUTE_MS));
        assert_eq!(answer_until(now, now.plus_ms(60 * 24 * 60 * MINUTE_MS)), now.plus_ms(MAX_ANSWER_MS));
        assert_eq!(answer_until(now, now.plus_ms(-1)), now, "not before now");
    }

    fn any_room() -> impl Strategy<Value = PricedRoom> {
        let row = proptest::collection::vec(prop_oneof![Just(10_i64), Just(20), Just(30)], 1..8);
        let floors =
            proptest::collection::vec((prop_oneof![Just("Floor"), Just("Terrace")], 5..25_i64, 1..9_u32), 0..2);
        (proptest::collection::vec(row, 1..6), floors).prop_map(|(rows, mut floors)| {
            floors.dedup_by_key(|(name, ..)| *name);
            let rows: Vec<&[i64]> = rows.iter().map(Vec::as_slice).collect();
            room(&rows, &floors)
        })
    }

    proptest! {
        #[test]
        fn no_seat_is_assigned_twice_no_party_is_worse_off_and_none_is_split(
            before in any_room(), after in any_room(), cuts in proptest::collection::vec(1..4_usize, 1..40),
            house in proptest::collection::btree_set(0..20_u32, 0..4),
        ) {
            let mut rest: Vec<SeatIndex> = (0..).take(before.names.len()).collect();
            let mut parties: Vec<Party> = cuts
                .iter()
                .map_while(|cut| (!rest.is_empty()).then(|| of_seats(&rest.split_off(rest.len().saturating_sub(*cut)))))
                .collect();
            for floor in &before.areas {
                parties.push(Party { seats: vec![], places: vec![(floor.area, floor.capacity.div_ceil(2))] });
            }
            let fates = relocate(&before, &after, &house, &parties);
            prop_assert_eq!(fates.len(), parties.len());
            let (old, new) = (before.places(), after.places());
            let mut given = house.clone();
            let mut occupied = BTreeMap::<AreaIndex, u32>::new();
            for (fate, party) in fates.iter().zip(&parties) {
                let (carried, is_same) = match fate {
                    PartyOutcome::Kept(carried) => (carried, true),
                    PartyOutcome::Offered(carried) => (carried, false),
                    PartyOutcome::Unplaced => continue,
                };
                let mut from: Vec<SeatIndex> = carried.seats.iter().map(|(from, _)| *from).collect();
                from.sort_unstable();
                let mut theirs = party.seats.clone();
                theirs.sort_unstable();
                prop_assert_eq!(from, theirs, "exactly the seats of the party");
                for (from, to) in &carried.seats {
                    prop_assert!(given.insert(*to), "seat {} is assigned twice or a house seat", to);
                    prop_assert!(old[from].price <= new[to].price && old[from].kind == new[to].kind);
                    if is_same {
                        prop_assert_eq!(&before.names[*from as usize], &after.names[*to as usize]);
                    }
                }
                prop_assert_eq!(carried.places.len(), party.places.len());
                for (from, to, count) in &carried.places {
                    let price = |room: &PricedRoom, area| room.areas.iter().find(|floor| floor.area == area).map(|floor| floor.price);
                    prop_assert!(price(&before, *from) <= price(&after, *to));
                    *occupied.entry(*to).or_default() += count;
                }
            }
            for (area, count) in occupied {
                let floor = after.areas.iter().find(|floor| floor.area == area);
                prop_assert!(floor.is_some_and(|floor| floor.capacity >= count), "area {} is too full", area);
            }
        }
    }
}
