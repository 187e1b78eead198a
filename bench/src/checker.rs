//! The independent checker: compares the answers clients received with Redis and Postgres.
//!
//! It uses no server code. Violations are: a seat granted twice at the same time, a lock without an
//! answer that granted it, a sale without a claim, and a reader whose final map differs. One violation
//! voids every figure of the run.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

/// Violations that are described; the rest is only counted.
const MAX_DESCRIBED: usize = 10;

/// Map byte of a free seat.
pub const AVAILABLE: u8 = 0;
/// Map byte of a held seat.
pub const LOCKED: u8 = 1;
/// Map byte of a sold seat.
pub const BOOKED: u8 = 2;

/// Violations: their number and the descriptions of the first ones.
#[derive(Debug, Default)]
pub struct Findings {
    count: u64,
    first: Vec<String>,
}

impl Findings {
    pub fn add(&mut self, describe: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < MAX_DESCRIBED {
            self.first.push(describe());
        }
    }

    pub const fn count(&self) -> u64 {
        self.count
    }

    pub fn first(&self) -> &[String] {
        &self.first
    }

    pub fn join(&mut self, other: Self) {
        self.count += other.count;
        self.first.extend(other.first);
        self.first.truncate(MAX_DESCRIBED);
    }
}

/// A seat that an answer granted to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    pub seat: u32,
    pub hold: Uuid,
}

/// State of a show in the lock store (Redis).
#[derive(Debug, Default)]
pub struct LockState {
    /// One byte per seat.
    pub map: Vec<u8>,
    pub holds: BTreeMap<Uuid, Vec<u32>>,
}

/// Compares grants, none of them released, with the lock store. `unanswered` are the seats of requests
/// without an answer: they may be held or free.
pub fn holds(grants: &[Grant], unanswered: &BTreeSet<u32>, stored: &LockState) -> Findings {
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
            found.add(|| format!("seat {} was granted to {}, which does not hold it", grant.seat, grant.hold));
        }
    }
    for (seat, state) in (0_u32..).zip(&stored.map) {
        if *state != AVAILABLE && !owner_of.contains_key(&seat) && !unanswered.contains(&seat) {
            found.add(|| format!("seat {seat} is {state} in the map, and no answer granted it"));
        }
    }
    let mut held_by: BTreeMap<u32, Uuid> = BTreeMap::new();
    for (hold, seats) in &stored.holds {
        for seat in seats {
            if let Some(other) = held_by.insert(*seat, *hold) {
                found.add(|| format!("seat {seat} is in the holds {other} and {hold}"));
            }
            if owner_of.get(seat) != Some(hold) && !unanswered.contains(seat) {
                found.add(|| format!("the hold {hold} has seat {seat}, which no answer granted to it"));
            }
        }
    }
    found
}

/// Compares a reader's map with the stored map after all changes were delivered.
pub fn view(reader: &str, seen: &[u8], stored: &[u8]) -> Findings {
    let mut found = Findings::default();
    if seen.len() != stored.len() {
        found.add(|| format!("{reader} sees {} seats of {}", seen.len(), stored.len()));
    } else if let Some(seat) = seen.iter().zip(stored).position(|(seen, stored)| seen != stored) {
        found.add(|| format!("{reader} sees seat {seat} as {}, and it is {}", seen[seat], stored[seat]));
    }
    found
}

/// State of a show in Postgres after a sale.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Seats of claims that are sold, with their bookings.
    pub sold: Vec<(u32, Uuid)>,
    /// Number of claims that are neither sold nor released.
    pub open_claims: u64,
    /// Seats of tickets, with their bookings.
    pub tickets: Vec<(u32, Uuid)>,
    /// Number of payments that succeeded and were not refunded.
    pub paid: u64,
    pub confirmed: u64,
}

/// Compares the purchases buyers got confirmed (seat and booking) with Postgres and the map.
pub fn sale(bought: &[(u32, Uuid)], ledger: &Ledger, map: &[u8]) -> Findings {
    let mut found = Findings::default();
    let confirmed: BTreeSet<_> = bought.iter().copied().collect();
    let mut seats = BTreeMap::new();
    for (seat, booking) in bought {
        if let Some(other) = seats.insert(*seat, *booking) {
            found.add(|| format!("seat {seat} was sold to {other} and to {booking}"));
        }
    }
    for (name, rows) in [("claim", &ledger.sold), ("ticket", &ledger.tickets)] {
        let known: BTreeSet<_> = rows.iter().copied().collect();
        if known.len() < rows.len() {
            found.add(|| format!("a {name} exists twice"));
        }
        for (seat, booking) in confirmed.difference(&known) {
            found.add(|| format!("{booking} bought seat {seat} and has no {name}"));
        }
        for (seat, booking) in known.difference(&confirmed) {
            found.add(|| format!("{booking} has a {name} for seat {seat}, and no buyer got it confirmed"));
        }
    }
    let bookings = bought.iter().map(|(_, booking)| booking).collect::<BTreeSet<_>>().len();
    for (name, count) in [("paid", ledger.paid), ("confirmed", ledger.confirmed)] {
        if count != bookings as u64 {
            found.add(|| format!("buyers got {bookings} bookings, and {count} are {name}"));
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

    /// Three of four seats held by two visitors, in clients and store alike.
    fn matching_state() -> (Vec<Grant>, LockState) {
        let grants = [(0, 1), (1, 1), (3, 2)].map(|(seat, hold)| Grant { seat, hold: id(hold) }).to_vec();
        let holds = BTreeMap::from([(id(1), vec![0, 1]), (id(2), vec![3])]);
        (grants, LockState { map: vec![LOCKED, LOCKED, AVAILABLE, LOCKED], holds })
    }

    fn count(grants: &[Grant], stored: &LockState) -> u64 {
        holds(grants, &BTreeSet::new(), stored).count()
    }

    #[test]
    fn equal_grants_and_store_have_no_violation() {
        let (grants, stored) = matching_state();
        assert_eq!(count(&grants, &stored), 0);
    }

    #[test]
    fn a_seat_granted_twice_is_a_violation() {
        let (mut grants, stored) = matching_state();
        grants.push(Grant { seat: 3, hold: id(9) });
        let found = holds(&grants, &BTreeSet::new(), &stored);
        assert!(found.first().iter().any(|line| line.contains("at the same time")), "{found:?}");
    }

    #[test]
    fn a_lost_lock_and_an_unanswered_lock_are_violations() {
        let (grants, mut stored) = matching_state();
        stored.map[3] = AVAILABLE;
        assert_eq!(count(&grants, &stored), 1);
        let (grants, mut stored) = matching_state();
        stored.map[2] = LOCKED;
        assert_eq!(count(&grants, &stored), 1);
        // A seat of an unanswered request may be held or free.
        assert_eq!(holds(&grants, &BTreeSet::from([2]), &stored).count(), 0);
    }

    #[test]
    fn a_seat_in_two_holds_is_a_violation() {
        let (grants, mut stored) = matching_state();
        stored.holds.insert(id(3), vec![1]);
        assert!(count(&grants, &stored) > 0);
    }

    #[test]
    fn a_differing_reader_map_is_a_violation() {
        assert_eq!(view("a reader", &[0, 1, 2], &[0, 1, 2]).count(), 0);
        assert_eq!(view("a reader", &[0, 1, 2], &[0, 2, 2]).count(), 1);
        assert_eq!(view("a reader", &[0, 1], &[0, 1, 2]).count(), 1);
    }

    #[test]
    fn a_sale_must_match_in_answers_claims_tickets_payments_and_map() {
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
