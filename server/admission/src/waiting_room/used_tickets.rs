//! Tickets in use: those whose holders have sent a request since they joined.
//!
//! An unused ticket is called like any other, but reserves a place inside for seconds instead of minutes
//! (`entry::UNUSED_CLAIM_MS`), so that tickets taken in bulk do not delay others. A used ticket has a bit here, so that
//! it is reported once, and one in Redis, where the places are called (`lua/present.lua`). After the loss of either,
//! the holder's next request sets it again.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tickets reported per call.
const MAX_PER_CALL: usize = 2_000;
/// Maximum of tickets to be reported; beyond, a ticket is recorded with the next request of its holder.
const MAX_PENDING: usize = 200_000;

/// Used tickets known to this replica, and those not reported to Redis yet.
#[derive(Default)]
pub(super) struct UsedTickets(Mutex<UsedTicketBits>);

#[derive(Default)]
struct UsedTicketBits {
    bits: Vec<u64>,
    pending: Vec<u64>,
}

impl UsedTickets {
    /// Records a request of this ticket's holder. The number is of a genuine ticket, which bounds the memory.
    pub(super) fn note(&self, number: u64) {
        let Ok(word) = usize::try_from(number / 64) else { return };
        let mut seen = self.lock();
        if seen.pending.len() >= MAX_PENDING {
            return;
        }
        if seen.bits.len() <= word {
            seen.bits.resize(word + 1, 0);
        }
        let bit = 1_u64 << (number % 64);
        if seen.bits[word] & bit == 0 {
            seen.bits[word] |= bit;
            seen.pending.push(number);
        }
    }

    /// Takes up to [`MAX_PER_CALL`] tickets to be reported.
    pub(super) fn take_pending(&self) -> Vec<u64> {
        let mut seen = self.lock();
        let left = seen.pending.len().saturating_sub(MAX_PER_CALL);
        seen.pending.split_off(left)
    }

    /// Clears all, because Redis may have lost them. Each is reported again with the next request of its holder.
    pub(super) fn forget(&self) {
        *self.lock() = UsedTicketBits::default();
    }

    // Held for a few additions, never across an await.
    fn lock(&self) -> MutexGuard<'_, UsedTicketBits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_reported_once_until_it_is_forgotten() {
        let tickets = UsedTickets::default();
        for number in [3, 64, 3] {
            tickets.note(number);
        }
        assert_eq!(tickets.take_pending(), [3, 64]);
        tickets.note(3);
        assert_eq!(tickets.take_pending(), [0; 0]);
        tickets.forget();
        tickets.note(3);
        assert_eq!(tickets.take_pending(), [3]);
    }

    #[test]
    fn a_call_and_the_queue_are_bounded() {
        let tickets = UsedTickets::default();
        for number in 0..=MAX_PENDING as u64 {
            tickets.note(number);
        }
        assert_eq!(tickets.take_pending().len(), MAX_PER_CALL);
        assert_eq!(tickets.lock().pending.len(), MAX_PENDING - MAX_PER_CALL);
    }
}
