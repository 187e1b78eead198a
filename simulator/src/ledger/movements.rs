//! Money movements: every charge and every refund, in order, listed page by page.

use std::collections::VecDeque;
use std::ops::Range;

use super::{Ledger, LedgerState, MAX_PAYMENTS};
use crate::payment::Payment;

/// Maximum number of movements; the oldest are evicted first.
const MAX_MOVEMENTS: usize = 2 * MAX_PAYMENTS;

/// The kind of a movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// A payment was charged.
    Charge,
    /// The refund with this index was requested.
    Refund(usize),
}

/// A movement with the current state of its payment.
#[derive(Clone, Debug)]
pub struct MovementRecord {
    /// Sequence number.
    pub number: u64,
    /// Time of the movement, milliseconds since 1970.
    pub at_ms: i64,
    /// The kind.
    pub movement: Movement,
    /// The current state of the payment.
    pub payment: Payment,
}

/// The movements in order of time.
#[derive(Default)]
pub(super) struct Movements {
    entries: VecDeque<(i64, String, Movement)>,
    /// Number of evicted movements.
    evicted: u64,
}

impl Movements {
    fn push(&mut self, id: &str, movement: Movement, now_ms: i64) {
        if self.entries.len() == MAX_MOVEMENTS {
            self.entries.pop_front();
            self.evicted += 1;
        }
        // Two requests may read the clock and arrive here in different orders.
        let at_ms = self.entries.back().map_or(now_ms, |(last, ..)| now_ms.max(*last));
        self.entries.push_back((at_ms, id.to_owned(), movement));
    }
}

impl LedgerState {
    fn record(&self, index: usize) -> Option<MovementRecord> {
        let (at_ms, id, movement) = self.movements.entries.get(index)?;
        let payment = self.payments.get(id)?.clone();
        Some(MovementRecord {
            number: self.movements.evicted + index as u64,
            at_ms: *at_ms,
            movement: *movement,
            payment,
        })
    }

    /// Returns the indexes of the movements in the window.
    fn indexes(&self, window_ms: &Range<i64>) -> Range<usize> {
        let entries = &self.movements.entries;
        let start = entries.partition_point(|(at_ms, ..)| *at_ms < window_ms.start);
        start..entries.partition_point(|(at_ms, ..)| *at_ms < window_ms.end).max(start)
    }
}

impl Ledger {
    /// Appends a movement of a payment.
    pub fn note_movement(&self, id: &str, movement: Movement, now_ms: i64) {
        self.state().movements.push(id, movement, now_ms);
    }

    /// Returns up to `limit` matching movements of the window after number `after`, the oldest first, and whether there
    /// are more.
    #[must_use]
    pub fn movements_after(
        &self,
        window_ms: &Range<i64>,
        after: Option<u64>,
        limit: usize,
        matches: impl Fn(&MovementRecord) -> bool,
    ) -> (Vec<MovementRecord>, bool) {
        let state = self.state();
        let mut indexes = state.indexes(window_ms);
        if let Some(after) = after {
            let next = usize::try_from((after + 1).saturating_sub(state.movements.evicted)).unwrap_or(usize::MAX);
            indexes.start = indexes.start.max(next).min(indexes.end);
        }
        page(indexes.filter_map(|index| state.record(index)).filter(matches), limit)
    }

    /// Returns the same with the newest first, after the first movement that `is_last` selects.
    #[must_use]
    pub fn movements_before(
        &self,
        window_ms: &Range<i64>,
        is_last: Option<impl Fn(&MovementRecord) -> bool>,
        limit: usize,
        matches: impl Fn(&MovementRecord) -> bool,
    ) -> (Vec<MovementRecord>, bool) {
        let state = self.state();
        let mut entries = state.indexes(window_ms).rev().filter_map(|index| state.record(index)).filter(matches);
        if let Some(is_last) = is_last {
            entries.by_ref().find(is_last);
        }
        page(entries, limit)
    }

    /// Makes every movement older by `by_ms` milliseconds.
    pub fn age_movements(&self, by_ms: i64) {
        self.state().movements.entries.iter_mut().for_each(|(at_ms, ..)| *at_ms -= by_ms);
    }
}

fn page(mut entries: impl Iterator<Item = MovementRecord>, limit: usize) -> (Vec<MovementRecord>, bool) {
    let listed: Vec<MovementRecord> = entries.by_ref().take(limit).collect();
    let has_more = entries.next().is_some();
    (listed, has_more)
}
