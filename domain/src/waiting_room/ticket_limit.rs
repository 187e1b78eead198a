//! Limits the tickets per network address in a waiting room, and the tickets without a puzzle.
//!
//! A draw is fair only if a person cannot have many tickets. An address may take [`TicketLimit::burst`] tickets at
//! once; its token bucket refills within [`REFILL_MS`]. The first ones are free, and each of the rest costs a puzzle.
//! The network around an address has a bucket of [`ADDRESSES_PER_NETWORK`] addresses. It limits an owner of many
//! addresses and leaves room for the shared addresses of a mobile carrier.

use crate::puzzle::MAX_BITS;
use crate::time::MINUTE_MS;

/// Time to refill an empty bucket, milliseconds.
pub const REFILL_MS: i64 = 20 * MINUTE_MS;
/// Divisor of the burst that gives the number of tickets without a puzzle.
pub const FREE_TICKETS_DIVISOR: u32 = 6;
/// Tickets of a network (IPv4 /24, IPv6 /48), as a multiple of those of an address.
pub const ADDRESSES_PER_NETWORK: u32 = 16;
/// Difficulty of the puzzle for a ticket: about a second on a phone. It is constant, so that solving puzzles in advance
/// has no advantage.
pub const TICKET_BITS: u8 = MAX_BITS;

/// Parameters of a token bucket for tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketLimit {
    /// Tickets allowed at once.
    pub burst: u32,
    /// Refill time of one ticket, milliseconds.
    pub each_ms: i64,
    /// Number of tickets of a full bucket that cost no puzzle.
    pub free: u32,
}

impl TicketLimit {
    /// Returns the limit of an address with a burst of `tickets`; `None`, which means no limit and no puzzles, for 0.
    #[must_use]
    pub fn of_address(tickets: u32) -> Option<Self> {
        (tickets > 0).then(|| Self {
            burst: tickets,
            each_ms: (REFILL_MS / i64::from(tickets)).max(1),
            free: (tickets / FREE_TICKETS_DIVISOR).max(1),
        })
    }

    /// Returns the limit of the network around an address with this limit.
    #[must_use]
    pub fn of_network(self) -> Self {
        Self {
            burst: self.burst.saturating_mul(ADDRESSES_PER_NETWORK),
            each_ms: (self.each_ms / i64::from(ADDRESSES_PER_NETWORK)).max(1),
            free: self.free.saturating_mul(ADDRESSES_PER_NETWORK),
        }
    }

    /// Fill level of the bucket at and below which a ticket costs a puzzle.
    #[must_use]
    pub const fn reserved(self) -> u32 {
        self.burst - self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_takes_its_burst_and_refills_in_twenty_minutes() {
        let limit = TicketLimit::of_address(120).expect("a limit");
        assert_eq!(limit, TicketLimit { burst: 120, each_ms: 10_000, free: 20 });
        assert_eq!(limit.reserved(), 100);
        assert_eq!(limit.of_network(), TicketLimit { burst: 1_920, each_ms: 625, free: 320 });
    }

    #[test]
    fn zero_means_no_limit_and_the_smallest_limit_has_one_free_ticket() {
        assert_eq!(TicketLimit::of_address(0), None);
        let least = TicketLimit::of_address(1).expect("a limit");
        assert_eq!((least.burst, least.free, least.reserved()), (1, 1, 0));
        let most = TicketLimit::of_address(u32::MAX).expect("a limit");
        assert!(most.each_ms >= 1 && most.of_network().each_ms >= 1);
    }
}
