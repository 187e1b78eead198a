//! Waiting room of a show: admission order and expected wait.
//!
//! Visitors who join before opening get numbered tickets and are drawn at opening ([`draw`]). Later visitors follow
//! them, first come, first served. Positions are called in order, at a limited rate and only while there is room
//! inside. Visitors who left are skipped.
//!
//! A draw is fair only if a person cannot have many tickets. An address may take [`TicketLimit::burst`] tickets at
//! once; its token bucket refills within [`REFILL_MS`]. The first ones are free, and each of the rest costs a puzzle.
//! The network around an address has a bucket of [`ADDRESSES_PER_NETWORK`] addresses. It limits an owner of many
//! addresses and leaves room for the shared addresses of a mobile carrier.

pub mod draw;

pub use draw::Draw;

use serde::{Deserialize, Serialize};

use crate::puzzle::MAX_BITS;
use crate::time::MINUTE_MS;

/// Maximum number of visitors who wait at once. Visitors who were called or who left do not count.
pub const MAX_WAITING: u64 = 20_000_000;
/// Maximum number of tickets issued by a waiting room. Each takes one bit of storage, 12.5 MB in total.
pub const MAX_TICKETS: u64 = 100_000_000;
/// Maximum admissions per second.
pub const MAX_PER_SECOND: u32 = 1_000;
/// Validity of a pass, milliseconds: the time to choose seats. Seats held by then can still be paid for afterwards.
pub const PASS_MS: i64 = 10 * MINUTE_MS;
/// Visitors inside per unsold seat: for every visitor with a hold, one more may look.
const INSIDE_PER_SEAT: u64 = 2;
/// Safety margin on the expected wait, percent: the next minutes may be slower than the last one.
const SPARE_PERCENT: u64 = 25;
/// Length of the window in which recent admissions are counted, seconds.
pub const ADMISSION_WINDOW_S: u64 = 60;

/// Returns the maximum number of visitors inside for `unsold` seats and places. Visitors in `bought` have a purchase;
/// they count as inside until their pass expires, but need no seats, so that as many others may enter.
#[must_use]
pub const fn inside_limit(unsold: u64, bought: u64) -> u64 {
    if unsold == 0 { 0 } else { unsold.saturating_mul(INSIDE_PER_SEAT).saturating_add(bought) }
}

/// State of a waiting room, the same for all its visitors. It is published at most a few times per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Queue))]
pub struct WaitingRoomStatus {
    /// True once the room has opened: early visitors are drawn, and admission runs.
    pub is_open: bool,
    /// True while every seat is sold or not for sale. Admission is suspended.
    pub is_sold_out: bool,
    /// Number of tickets issued.
    pub joined: u64,
    /// Number of positions called: lower positions have had their turn.
    pub called: u64,
    /// Number of visitors who left, among the positions that have not been called.
    pub gone: u64,
    /// Maximum admissions per second.
    pub per_second: u32,
    /// Admissions within the last minute.
    pub lately: u32,
}

/// Expected wait at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Outlook))]
pub struct ExpectedWait {
    /// Minimum number of visitors ahead.
    pub ahead_least: u64,
    /// Maximum number of visitors ahead.
    pub ahead_most: u64,
    /// Minimum wait, seconds: at the maximum rate of admissions.
    pub wait_least_s: u64,
    /// Maximum wait, seconds, at the rate of the last minute with a margin of 25 percent; `None` while there were no
    /// admissions.
    pub wait_most_s: Option<u64>,
}

impl WaitingRoomStatus {
    /// True if the position has been called.
    #[must_use]
    pub const fn has_called(&self, place: u64) -> bool {
        self.is_open && place < self.called
    }

    /// Returns the expected wait at `place`, which has not been called. The positions of visitors who left are unknown;
    /// the range covers all possibilities.
    #[must_use]
    pub fn outlook(&self, place: u64) -> ExpectedWait {
        let before = place.saturating_sub(self.called);
        let behind = self.joined.saturating_sub(place.saturating_add(1));
        let ahead_least = before.saturating_sub(self.gone);
        let ahead_most = before.saturating_sub(self.gone.saturating_sub(behind));
        let wait_least_s = ahead_least / u64::from(self.per_second.max(1));
        let lately = u64::from(self.lately);
        let at_this_pace = ahead_most.saturating_add(1).saturating_mul(ADMISSION_WINDOW_S * (100 + SPARE_PERCENT))
            / (lately.max(1) * 100);
        let wait_most_s = (lately > 0).then_some(at_this_pace.max(wait_least_s));
        ExpectedWait { ahead_least, ahead_most, wait_least_s, wait_most_s }
    }
}

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
    use proptest::prelude::*;

    const QUEUE: WaitingRoomStatus = WaitingRoomStatus {
        is_open: true,
        is_sold_out: false,
        joined: 1_000,
        called: 100,
        gone: 0,
        per_second: 10,
        lately: 300,
    };

    #[test]
    fn first_position_has_none_ahead_and_last_has_all() {
        let next = QUEUE.outlook(100);
        assert_eq!((next.ahead_least, next.ahead_most, next.wait_least_s), (0, 0, 0));
        let last = QUEUE.outlook(999);
        assert_eq!((last.ahead_least, last.ahead_most), (899, 899));
        // 899 at ten per second, or at five per second as in the last minute plus 25 percent.
        assert_eq!((last.wait_least_s, last.wait_most_s), (89, Some(225)));
        assert!(QUEUE.has_called(99) && !QUEUE.has_called(100));
        assert!(!WaitingRoomStatus { is_open: false, ..QUEUE }.has_called(0));
    }

    #[test]
    fn visitors_who_left_may_have_been_ahead_or_behind() {
        let queue = WaitingRoomStatus { gone: 50, ..QUEUE };
        let middle = queue.outlook(500);
        assert_eq!((middle.ahead_least, middle.ahead_most), (350, 400));
        // There are no positions behind the last one.
        let last = queue.outlook(999);
        assert_eq!((last.ahead_least, last.ahead_most), (849, 849));
    }

    #[test]
    fn maximum_wait_is_unknown_without_recent_admissions() {
        assert_eq!(WaitingRoomStatus { lately: 0, ..QUEUE }.outlook(500).wait_most_s, None);
    }

    #[test]
    fn inside_limit_is_twice_the_unsold_seats_and_zero_when_sold_out() {
        assert_eq!(inside_limit(300, 0), 600);
        assert_eq!(inside_limit(0, 40), 0);
    }

    #[test]
    fn visitors_with_a_purchase_do_not_block_others() {
        assert_eq!(inside_limit(10, 40), 60, "40 are done, 20 may choose among 10 seats");
        assert_eq!(inside_limit(u64::MAX, 1), u64::MAX);
    }

    proptest! {
        #[test]
        fn range_contains_the_true_count_for_every_distribution_of_leavers(
            called in 0..5_000_u64, before in 0..5_000_u64, behind in 0..5_000_u64, some in any::<u64>(), others in any::<u64>(),
            per_second in 0..100_u32, lately in 0..9_000_u32,
        ) {
            let (gone_before, gone_behind) = (some % (before + 1), others % (behind + 1));
            let (place, joined, gone) = (called + before, called + before + 1 + behind, gone_before + gone_behind);
            let queue = WaitingRoomStatus { is_open: true, is_sold_out: false, joined, called, gone, per_second, lately };
            let outlook = queue.outlook(place);
            let truth = before - gone_before;
            prop_assert!(outlook.ahead_least <= truth && truth <= outlook.ahead_most, "{:?}", outlook);
            prop_assert!(outlook.wait_most_s.is_none_or(|most| most >= outlook.wait_least_s));
        }

        #[test]
        fn arbitrary_figures_never_panic(joined: u64, called: u64, place: u64, gone: u64, per_second: u32, lately: u32) {
            let queue = WaitingRoomStatus { is_open: true, is_sold_out: true, joined, called, gone, per_second, lately };
            let _ = queue.outlook(place);
        }
    }

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
