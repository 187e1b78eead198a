//! The independent checker: compares what clients were told with what Redis and Postgres have.
//!
//! It knows no server code. A seat granted twice at the same time, a lock nobody was told of, a sale
//! without a claim, a reader whose map differs once all is quiet: each is a violation, and one is
//! enough to void every figure of the run.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

/// How many violations are told in words.
const TOLD: usize = 10;

/// A map byte: nobody's.
pub const AVAILABLE: u8 = 0;
/// A map byte: held.
pub const LOCKED: u8 = 1;
/// A map byte: sold.
pub const BOOKED: u8 = 2;

/// What was found wrong.
#[derive(Debug, Default)]
pub struct Findings {
    count: u64,
    first: Vec<String>,
}

impl Findings {
    /// Notes one violation.
    pub fn add(&mut self, words: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < TOLD {
            self.first.push(words());
        }
    }

    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The first of them, in words.
    pub fn first(&self) -> &[String] {
        &self.first
    }

    /// Takes over another's.
    pub fn join(&mut self, other: Self) {
        self.count += other.count;
        self.first.extend(other.first);
        self.first.truncate(TOLD);
    }
}

/// A seat of a show that a client was told is theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The seat.
    pub seat: u32,
    /// The hold it was told of.
    pub hold: Uuid,
}

/// What the lock store has of a show.
#[derive(Debug, Default)]
pub struct Stored {
    /// A byte a seat.
    pub map: Vec<u8>,
    /// Seats of every hold.
    pub holds: BTreeMap<Uuid, Vec<u32>>,
}

/// Compares grants that all still stand with the lock store. `unsure` are seats asked for in requests
/// that got no answer: either outcome is right for them.
pub fn holds(grants: &[Grant], unsure: &BTreeSet<u32>, stored: &Stored) -> Findings {
    let mut found = Findings::default();
    let mut owner_of: BTreeMap<u32, Uuid> = BTreeMap::new();
    for grant in grants {
        if let Some(other) = owner_of.insert(grant.seat, grant.hold) {
            found.add(|| format!("seat {} was granted to {other} and to {} at the same time", grant.seat, grant.hold));
        }
        if stored.map.get(grant.seat as usize) != Some(&LOCKED) {
            found.add(|| {
                format!("seat {} was granted, and the map has {:?}", grant.seat, stored.map.get(grant.seat as usize))
            });
        }
        if !stored.holds.get(&grant.hold).is_some_and(|seats| seats.contains(&grant.seat)) {
            found.add(|| format!("seat {} was granted to {}, who does not hold it", grant.seat, grant.hold));
        }
    }
    for (seat, state) in (0_u32..).zip(&stored.map) {
        if *state != AVAILABLE && !owner_of.contains_key(&seat) && !unsure.contains(&seat) {
            found.add(|| format!("seat {seat} is {state} in the map, and nobody was told so"));
        }
    }
    let mut held_by: BTreeMap<u32, Uuid> = BTreeMap::new();
    for (hold, seats) in &stored.holds {
        for seat in seats {
            if let Some(other) = held_by.insert(*seat, *hold) {
                found.add(|| format!("seat {seat} is in the holds {other} and {hold}"));
            }
            if owner_of.get(seat) != Some(hold) && !unsure.contains(seat) {
                found.add(|| format!("the hold {hold} has seat {seat}, which it was never told"));
            }
        }
    }
    found
}

/// Compares a reader's map with the truth, once all is quiet.
pub fn view(who: &str, seen: &[u8], truth: &[u8]) -> Findings {
    let mut found = Findings::default();
    if seen.len() != truth.len() {
        found.add(|| format!("{who} sees {} seats of {}", seen.len(), truth.len()));
    } else if let Some(seat) = seen.iter().zip(truth).position(|(seen, truth)| seen != truth) {
        found.add(|| format!("{who} sees seat {seat} as {}, and it is {}", seen[seat], truth[seat]));
    }
    found
}

/// What Postgres has of a show after a sale.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Seats of claims that are sold, with their bookings.
    pub sold: Vec<(u32, Uuid)>,
    /// Claims that are neither sold nor released.
    pub open_claims: u64,
    /// Seats of tickets, with their bookings.
    pub tickets: Vec<(u32, Uuid)>,
    /// Payments that succeeded and were not sent back.
    pub paid: u64,
    /// Bookings that are confirmed.
    pub confirmed: u64,
}

/// Compares what buyers were told (seat and booking) with Postgres and the map.
pub fn sale(bought: &[(u32, Uuid)], ledger: &Ledger, map: &[u8]) -> Findings {
    let mut found = Findings::default();
    let told: BTreeSet<_> = bought.iter().copied().collect();
    let mut seats = BTreeMap::new();
    for (seat, booking) in bought {
        if let Some(other) = seats.insert(*seat, *booking) {
            found.add(|| format!("seat {seat} was sold to {other} and to {booking}"));
        }
    }
    for (name, rows) in [("claim", &ledger.sold), ("ticket", &ledger.tickets)] {
        let known: BTreeSet<_> = rows.iter().copied().collect();
        if known.len() < rows.len() {
            found.add(|| format!("a {name} stands twice"));
        }
        for (seat, booking) in told.difference(&known) {
            found.add(|| format!("{booking} bought seat {seat} and has no {name}"));
        }
        for (seat, booking) in known.difference(&told) {
            found.add(|| format!("{booking} has a {name} for seat {seat}, and nobody was told"));
        }
    }
    let bookings = bought.iter().map(|(_, booking)| booking).collect::<BTreeSet<_>>().len();
    for (name, count) in [("paid", ledger.paid), ("confirmed", ledger.confirmed)] {
        if count != bookings as u64 {
            found.add(|| format!("{bookings} bookings were told, and {count} are {name}"));
        }
    }
    if ledger.open_claims > 0 {
        found.add(|| format!("{} claims are open after the sale", ledger.open_claims));
    }
    for (seat, state) in (0_u32..).zip(map) {
        if (*state == BOOKED) != seats.contains_key(&seat) {
            found.add(|| format!("seat {seat} is {state} in the map, and sold: {}", seats.contains_key(&seat)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    /// Three seats of four, held by two people.
    fn in_order() -> (Vec<Grant>, Stored) {
        let grants = [(0, 1), (1, 1), (3, 2)].map(|(seat, hold)| Grant { seat, hold: id(hold) }).to_vec();
        let holds = BTreeMap::from([(id(1), vec![0, 1]), (id(2), vec![3])]);
        (grants, Stored { map: vec![LOCKED, LOCKED, AVAILABLE, LOCKED], holds })
    }

    fn count(grants: &[Grant], stored: &Stored) -> u64 {
        holds(grants, &BTreeSet::new(), stored).count()
    }

    #[test]
    fn what_is_in_order_is_left_alone() {
        let (grants, stored) = in_order();
        assert_eq!(count(&grants, &stored), 0);
    }

    #[test]
    fn a_seat_granted_twice_is_found() {
        let (mut grants, stored) = in_order();
        grants.push(Grant { seat: 3, hold: id(9) });
        let found = holds(&grants, &BTreeSet::new(), &stored);
        assert!(found.first().iter().any(|line| line.contains("at the same time")), "{found:?}");
    }

    #[test]
    fn a_lost_lock_and_a_lock_nobody_was_told_of_are_found() {
        let (grants, mut stored) = in_order();
        stored.map[3] = AVAILABLE;
        assert_eq!(count(&grants, &stored), 1);
        let (grants, mut stored) = in_order();
        stored.map[2] = LOCKED;
        assert_eq!(count(&grants, &stored), 1);
        // Whoever got no answer may have it or not.
        assert_eq!(holds(&grants, &BTreeSet::from([2]), &stored).count(), 0);
    }

    #[test]
    fn a_seat_in_two_holds_is_found() {
        let (grants, mut stored) = in_order();
        stored.holds.insert(id(3), vec![1]);
        assert!(count(&grants, &stored) > 0);
    }

    #[test]
    fn a_reader_who_sees_another_map_is_found() {
        assert_eq!(view("a reader", &[0, 1, 2], &[0, 1, 2]).count(), 0);
        assert_eq!(view("a reader", &[0, 1, 2], &[0, 2, 2]).count(), 1);
        assert_eq!(view("a reader", &[0, 1], &[0, 1, 2]).count(), 1);
    }

    #[test]
    fn a_sale_is_the_same_for_buyers_claims_tickets_money_and_map() {
        let bought = [(0, id(1)), (1, id(2))];
        let ledger =
            || Ledger { sold: bought.to_vec(), tickets: bought.to_vec(), open_claims: 0, paid: 2, confirmed: 2 };
        assert_eq!(sale(&bought, &ledger(), &[BOOKED, BOOKED]).count(), 0);
        assert!(sale(&bought, &ledger(), &[BOOKED, AVAILABLE]).count() > 0);
        assert!(
            sale(&bought, &Ledger { sold: vec![(0, id(1)), (1, id(3))], ..ledger() }, &[BOOKED, BOOKED]).count() > 0
        );
        assert!(sale(&bought, &Ledger { tickets: vec![(0, id(1))], ..ledger() }, &[BOOKED, BOOKED]).count() > 0);
        assert!(sale(&bought, &Ledger { paid: 3, ..ledger() }, &[BOOKED, BOOKED]).count() > 0);
        assert!(sale(&bought, &Ledger { open_claims: 1, ..ledger() }, &[BOOKED, BOOKED]).count() > 0);
        let twice = [(0, id(1)), (0, id(2))];
        let found = sale(&twice, &Ledger { sold: vec![(0, id(1))], ..ledger() }, &[BOOKED]);
        assert!(found.first()[0].contains("was sold to"), "{found:?}");
    }
}
