//! Money as it moved: every charge and every refund, in order, to be listed page by page.

use std::collections::VecDeque;
use std::ops::Range;

use super::{Book, Ledger, MAX_PAYMENTS};
use crate::payment::Payment;

/// Movements remembered; the oldest go first.
const MAX_MOVEMENTS: usize = 2 * MAX_PAYMENTS;

/// The kind of a movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// A payment was charged.
    Charge,
    /// The refund at that place of the payment was asked for.
    Refund(usize),
}

/// A movement and the payment as it stands now.
#[derive(Clone, Debug)]
pub struct Line {
    /// Grows with every movement.
    pub number: u64,
    /// When, milliseconds since 1970.
    pub at_ms: i64,
    /// Its kind.
    pub movement: Movement,
    /// The payment, as it stands now.
    pub payment: Payment,
}

/// Movements in the order of time.
#[derive(Default)]
pub(super) struct Movements {
    lines: VecDeque<(i64, String, Movement)>,
    /// Movements that were forgotten before the first line.
    forgotten: u64,
}

impl Movements {
    fn push(&mut self, id: &str, movement: Movement, now_ms: i64) {
        if self.lines.len() == MAX_MOVEMENTS {
            self.lines.pop_front();
            self.forgotten += 1;
        }
        // Two requests may read the clock in one order and get here in the other.
        let at_ms = self.lines.back().map_or(now_ms, |(last, ..)| now_ms.max(*last));
        self.lines.push_back((at_ms, id.to_owned(), movement));
    }
}

impl Book {
    fn line(&self, place: usize) -> Option<Line> {
        let (at_ms, id, movement) = self.movements.lines.get(place)?;
        let payment = self.payments.get(id)?.clone();
        Some(Line { number: self.movements.forgotten + place as u64, at_ms: *at_ms, movement: *movement, payment })
    }

    /// Places of the movements in these milliseconds.
    fn places(&self, window_ms: &Range<i64>) -> Range<usize> {
        let lines = &self.movements.lines;
        let start = lines.partition_point(|(at_ms, ..)| *at_ms < window_ms.start);
        start..lines.partition_point(|(at_ms, ..)| *at_ms < window_ms.end).max(start)
    }
}

impl Ledger {
    /// Notes that money of a payment moved.
    pub fn note_movement(&self, id: &str, movement: Movement, now_ms: i64) {
        self.book().movements.push(id, movement, now_ms);
    }

    /// Up to `limit` movements in these milliseconds that `is_asked_for` and that come after the one of that number, the
    /// oldest first. The flag says if there are more.
    #[must_use]
    pub fn movements_after(
        &self,
        window_ms: &Range<i64>,
        after: Option<u64>,
        limit: usize,
        is_asked_for: impl Fn(&Line) -> bool,
    ) -> (Vec<Line>, bool) {
        let book = self.book();
        let mut places = book.places(window_ms);
        if let Some(after) = after {
            let next = usize::try_from((after + 1).saturating_sub(book.movements.forgotten)).unwrap_or(usize::MAX);
            places.start = places.start.max(next).min(places.end);
        }
        page(places.filter_map(|place| book.line(place)).filter(is_asked_for), limit)
    }

    /// The same with the newest first, beginning after the first that `is_last` selects.
    #[must_use]
    pub fn movements_before(
        &self,
        window_ms: &Range<i64>,
        is_last: Option<impl Fn(&Line) -> bool>,
        limit: usize,
        is_asked_for: impl Fn(&Line) -> bool,
    ) -> (Vec<Line>, bool) {
        let book = self.book();
        let mut lines = book.places(window_ms).rev().filter_map(|place| book.line(place)).filter(is_asked_for);
        if let Some(is_last) = is_last {
            lines.by_ref().find(is_last);
        }
        page(lines, limit)
    }

    /// Makes every movement older by so many milliseconds.
    pub fn time_passes(&self, by_ms: i64) {
        self.book().movements.lines.iter_mut().for_each(|(at_ms, ..)| *at_ms -= by_ms);
    }
}

fn page(mut lines: impl Iterator<Item = Line>, limit: usize) -> (Vec<Line>, bool) {
    let listed: Vec<Line> = lines.by_ref().take(limit).collect();
    let has_more = lines.next().is_some();
    (listed, has_more)
}
