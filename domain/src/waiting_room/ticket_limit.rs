//! The limit of tickets that one address may take in a waiting room, and the number of them without a puzzle.
//!
//! A draw is fair only while a person cannot have many tickets. An address takes [`TicketLimit::burst`] tickets in a
//! row; a bucket gives as many again within [`REFILL_MS`]. The first of them are free, the rest cost a puzzle each. The
//! network around an address has a bucket of [`ADDRESSES_PER_NETWORK`] addresses: it bounds an owner of many addresses,
//! and leaves room for the shared addresses of a mobile carrier.

use crate::puzzle::MOST_BITS;
use crate::time::MINUTE_MS;

/// An empty bucket is full again after so long, milliseconds.
pub const REFILL_MS: i64 = 20 * MINUTE_MS;
/// One ticket in so many costs no puzzle: the first ones.
pub const FREE_SHARE: u32 = 6;
/// A network (IPv4 /24, IPv6 /48) takes as many tickets as so many addresses.
pub const ADDRESSES_PER_NETWORK: u32 = 16;
/// Zero bits of the puzzle for a ticket: about a second of a phone. It is one number for everyone, so that collecting
/// puzzles early is of no use.
pub const TICKET_BITS: u8 = MOST_BITS;

/// A bucket of tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketLimit {
    /// Tickets in a row.
    pub burst: u32,
    /// Each is back after so long, milliseconds.
    pub each_ms: i64,
    /// The first so many of a full bucket cost no puzzle.
    pub free: u32,
}

impl TicketLimit {
    /// The limit of an address that takes `tickets` in a row; `None` for zero: no limit, and no puzzles.
    #[must_use]
    pub fn of_address(tickets: u32) -> Option<Self> {
        (tickets > 0).then(|| Self {
            burst: tickets,
            each_ms: (REFILL_MS / i64::from(tickets)).max(1),
            free: (tickets / FREE_SHARE).max(1),
        })
    }

    /// The limit of the network around such an address.
    #[must_use]
    pub fn of_network(self) -> Self {
        Self {
            burst: self.burst.saturating_mul(ADDRESSES_PER_NETWORK),
            each_ms: (self.each_ms / i64::from(ADDRESSES_PER_NETWORK)).max(1),
            free: self.free.saturating_mul(ADDRESSES_PER_NETWORK),
        }
    }

    /// Tickets left in the bucket from which on each costs a puzzle.
    #[must_use]
    pub const fn reserved(self) -> u32 {
        self.burst - self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_takes_its_burst_and_as_many_again_in_twenty_minutes() {
        let limit = TicketLimit::of_address(120).expect("a limit");
        assert_eq!(limit, TicketLimit { burst: 120, each_ms: 10_000, free: 20 });
        assert_eq!(limit.reserved(), 100);
        assert_eq!(limit.of_network(), TicketLimit { burst: 1_920, each_ms: 625, free: 320 });
    }

    #[test]
    fn zero_is_no_limit_and_the_smallest_limit_lets_one_in_without_a_puzzle() {
        assert_eq!(TicketLimit::of_address(0), None);
        let least = TicketLimit::of_address(1).expect("a limit");
        assert_eq!((least.burst, least.free, least.reserved()), (1, 1, 0));
        let most = TicketLimit::of_address(u32::MAX).expect("a limit");
        assert!(most.each_ms >= 1 && most.of_network().each_ms >= 1);
    }
}
