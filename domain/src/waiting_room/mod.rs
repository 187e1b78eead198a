//! The waiting room of a show: who is let in next, and how long it may take until one's turn comes.
//!
//! Before opening people get tickets with growing numbers; at opening they are drawn ([`draw`]). Whoever comes later
//! stands behind them, first come first served. Places are called in order, so many a second and only while there is
//! room inside; whoever left is passed over.

pub mod draw;
mod ticket_limit;

pub use draw::Draw;
pub use ticket_limit::{TICKET_BITS, TicketLimit};

use serde::{Deserialize, Serialize};

use crate::time::MINUTE_MS;

/// People who may wait at once. Who was called, or left, makes room for another.
pub const MAX_WAITING: u64 = 20_000_000;
/// Tickets a waiting room gives out in its life: a bit each is kept of them, 12.5 MB in all.
pub const MAX_TICKETS: u64 = 100_000_000;
/// People let in a second at most.
pub const MAX_PER_SECOND: u32 = 1_000;
/// How long one is inside, milliseconds: to choose seats. What one holds by then may be paid for in peace.
pub const PASS_MS: i64 = 10 * MINUTE_MS;
/// People inside at once, for each seat that is not sold yet: as many again look as hold.
const INSIDE_PER_SEAT: u64 = 2;
/// Waiting is told with this much to spare, percent: the next minutes may be slower than the last one.
const SPARE_PERCENT: u64 = 25;
/// Seconds in the time over which people let in lately are counted.
pub const LATELY_S: u64 = 60;

/// How many may be inside while so many seats and places are not sold. Those who `bought` lately count as inside until
/// their time is over, and want nothing any more: others may come in their place.
#[must_use]
pub const fn inside_limit(unsold: u64, bought: u64) -> u64 {
    if unsold == 0 { 0 } else { unsold.saturating_mul(INSIDE_PER_SEAT).saturating_add(bought) }
}

/// How a waiting room stands: the same for everyone in it, told a few times a second at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Queue {
    /// Whether it has opened: those who came before are drawn, and people are let in.
    pub is_open: bool,
    /// Whether every seat is sold or not for sale just now: nobody is let in.
    pub is_sold_out: bool,
    /// Tickets given out.
    pub joined: u64,
    /// Places called: those below had their turn.
    pub called: u64,
    /// People who left before their turn, of those not called yet.
    pub gone: u64,
    /// People let in a second at most.
    pub per_second: u32,
    /// People let in within the last minute.
    pub lately: u32,
}

/// What somebody at a place can expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Outlook {
    /// At least so many are before them.
    pub ahead_least: u64,
    /// At most so many are.
    pub ahead_most: u64,
    /// They wait at least so many seconds: as if everybody were let in as fast as can be.
    pub wait_least_s: u64,
    /// They wait at most so many seconds if it goes on as in the last minute, with a quarter to spare; `None` while
    /// nobody is let in.
    pub wait_most_s: Option<u64>,
}

impl Queue {
    /// Whether a place was called.
    #[must_use]
    pub const fn has_called(&self, place: u64) -> bool {
        self.is_open && place < self.called
    }

    /// What somebody at `place` can expect, who was not called yet. Where those who left stood is not known: the
    /// range holds wherever it was.
    #[must_use]
    pub fn outlook(&self, place: u64) -> Outlook {
        let before = place.saturating_sub(self.called);
        let behind = self.joined.saturating_sub(place.saturating_add(1));
        let ahead_least = before.saturating_sub(self.gone);
        let ahead_most = before.saturating_sub(self.gone.saturating_sub(behind));
        let wait_least_s = ahead_least / u64::from(self.per_second.max(1));
        let lately = u64::from(self.lately);
        let at_this_pace =
            ahead_most.saturating_add(1).saturating_mul(LATELY_S * (100 + SPARE_PERCENT)) / (lately.max(1) * 100);
        let wait_most_s = (lately > 0).then_some(at_this_pace.max(wait_least_s));
        Outlook { ahead_least, ahead_most, wait_least_s, wait_most_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QUEUE: Queue =
        Queue { is_open: true, is_sold_out: false, joined: 1_000, called: 100, gone: 0, per_second: 10, lately: 300 };

    #[test]
    fn the_next_has_nobody_before_them_and_the_last_everybody() {
        let next = QUEUE.outlook(100);
        assert_eq!((next.ahead_least, next.ahead_most, next.wait_least_s), (0, 0, 0));
        let last = QUEUE.outlook(999);
        assert_eq!((last.ahead_least, last.ahead_most), (899, 899));
        // 899 at ten a second, or at five a second as in the last minute and a quarter to spare.
        assert_eq!((last.wait_least_s, last.wait_most_s), (89, Some(225)));
        assert!(QUEUE.has_called(99) && !QUEUE.has_called(100));
        assert!(!Queue { is_open: false, ..QUEUE }.has_called(0));
    }

    #[test]
    fn those_who_left_may_have_stood_before_or_behind() {
        let queue = Queue { gone: 50, ..QUEUE };
        let middle = queue.outlook(500);
        assert_eq!((middle.ahead_least, middle.ahead_most), (350, 400));
        // Behind the last nobody can have left.
        let last = queue.outlook(999);
        assert_eq!((last.ahead_least, last.ahead_most), (849, 849));
    }

    #[test]
    fn while_nobody_is_let_in_no_longest_wait_is_promised() {
        assert_eq!(Queue { lately: 0, ..QUEUE }.outlook(500).wait_most_s, None);
    }

    #[test]
    fn twice_as_many_are_inside_as_seats_are_left_and_nobody_when_none_is() {
        assert_eq!(inside_limit(300, 0), 600);
        assert_eq!(inside_limit(0, 40), 0);
    }

    #[test]
    fn who_has_bought_keeps_nobody_waiting() {
        assert_eq!(inside_limit(10, 40), 60, "forty are done, twenty may choose among ten seats");
        assert_eq!(inside_limit(u64::MAX, 1), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_range_is_a_range_and_holds_wherever_the_gone_stood(
            called in 0..5_000_u64, before in 0..5_000_u64, behind in 0..5_000_u64, some in any::<u64>(), others in any::<u64>(),
            per_second in 0..100_u32, lately in 0..9_000_u32,
        ) {
            let (gone_before, gone_behind) = (some % (before + 1), others % (behind + 1));
            let (place, joined, gone) = (called + before, called + before + 1 + behind, gone_before + gone_behind);
            let queue = Queue { is_open: true, is_sold_out: false, joined, called, gone, per_second, lately };
            let outlook = queue.outlook(place);
            let truth = before - gone_before;
            prop_assert!(outlook.ahead_least <= truth && truth <= outlook.ahead_most, "{:?}", outlook);
            prop_assert!(outlook.wait_most_s.is_none_or(|most| most >= outlook.wait_least_s));
        }

        #[test]
        fn no_figures_make_it_panic(joined: u64, called: u64, place: u64, gone: u64, per_second: u32, lately: u32) {
            let queue = Queue { is_open: true, is_sold_out: true, joined, called, gone, per_second, lately };
            let _ = queue.outlook(place);
        }
    }
}
