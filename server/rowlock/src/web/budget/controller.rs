//! The controller: detects a standing queue in front of a class, and sets the share of its requests that is shed.
//!
//! In the spirit of CoDel (Nichols and Jacobson, "Controlling Queue Delay", 2012): a short queue is harmless, however long it
//! is for a moment; a standing queue delays all requests and increases no throughput. The fastest answer tells them apart: as
//! long as one in a window came within the budget, no queue is standing. If none did and enough requests waited longer, a
//! share of new requests is shed, more with every window, until answers are in time again. Requests without an answer yet
//! count as well: where everything hangs there are no answers to measure.
//!
//! Pure: time and randomness are arguments. A request costs two additions and a few reads, no lock.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::RequestClass;

/// Length of a window.
const WINDOW: Duration = Duration::from_millis(500);
/// Minimum number of late requests that counts as a queue; fewer are only slow requests.
const MIN_LATE: u32 = 20;
/// Shares are counted in this many parts of all requests.
pub const PARTS: u32 = 8;
/// Highest share, in parts. Some requests are always served: their answers show when the queue has gone.
const MAX_SHARE: u32 = PARTS - 1;
/// Parts by which the share grows with each window over budget. With each other window it shrinks by one.
const STEP: u32 = 2;
/// Windows that are distinguished by the start of their requests: longer than any request may take (30 s).
const MAX_WINDOWS: usize = 64;

#[derive(Debug)]
pub struct Controller {
    /// The number of the current window.
    window: AtomicU64,
    lanes: [Lane; RequestClass::COUNT],
}

#[derive(Debug)]
struct Lane {
    /// The share that is refused, in parts.
    share: AtomicU32,
    /// True if an answer of this window came within the budget.
    has_answer_in_time: AtomicBool,
    /// Requests of this window that waited longer.
    late: AtomicU32,
    /// Requests that are not answered yet, by the window they began in.
    open: [AtomicU32; MAX_WINDOWS],
}

/// The result of a window for a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowVerdict {
    /// Answers are in time, or there are no requests.
    WithinBudget,
    /// Some waited too long, too few to decide.
    Unclear,
    /// A queue is standing.
    OverBudget,
}

/// A class whose requests are shed from now on, or no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassChange {
    pub class: RequestClass,
    /// True if some requests are shed from now on.
    pub is_refused: bool,
}

impl Controller {
    pub fn new() -> Self {
        let lane = |_| Lane {
            share: AtomicU32::new(0),
            has_answer_in_time: AtomicBool::new(false),
            late: AtomicU32::new(0),
            open: [const { AtomicU32::new(0) }; MAX_WINDOWS],
        };
        Self { window: AtomicU64::new(0), lanes: std::array::from_fn(lane) }
    }

    /// True if this request of a class is shed; `draw` draws from `0..=limit`.
    pub fn refuses(&self, class: RequestClass, draw: impl FnOnce(u64) -> u64) -> bool {
        let share = self.lane(class).share.load(Relaxed);
        share > 0 && draw(u64::from(PARTS - 1)) < u64::from(share)
    }

    /// Records the start of a request. All instants are since the server began.
    pub fn begin(&self, class: RequestClass, at: Duration) {
        self.lane(class).begun_in(window_of(at)).fetch_add(1, Relaxed);
    }

    /// Records the end of a request. A cancelled request never counts as answered in time.
    pub fn end(&self, class: RequestClass, began: Duration, at: Duration, is_answered: bool) {
        let lane = self.lane(class);
        lane.begun_in(window_of(began)).fetch_sub(1, Relaxed);
        if at.saturating_sub(began) >= class.budget() {
            lane.late.fetch_add(1, Relaxed);
        } else if is_answered && !lane.has_answer_in_time.load(Relaxed) {
            lane.has_answer_in_time.store(true, Relaxed);
        }
    }

    /// Ends the window if it is over, at the start or end of a request. Returns the changes.
    pub fn turn(&self, at: Duration) -> Vec<ClassChange> {
        let (now, last) = (window_of(at), self.window.load(Relaxed));
        // Other threads may have a later time: the thread that moves the window judges it.
        if now <= last || self.window.compare_exchange(last, now, Relaxed, Relaxed).is_err() {
            return Vec::new();
        }
        let before = self.lanes.each_ref().map(|lane| lane.share.load(Relaxed));
        let stuck = RequestClass::ALL.map(|class| self.lane(class).stuck(now, class.budget()));
        let judged = RequestClass::ALL.map(|class| self.lane(class).judge(stuck[class as usize]));
        let mut after = step(before, judged);
        // In the windows between, no request started or ended.
        let quiet = stuck.map(|stuck| if stuck > 0 { WindowVerdict::Unclear } else { WindowVerdict::WithinBudget });
        for _ in 0..(now - last - 1).min(u64::from(MAX_SHARE) * RequestClass::COUNT as u64) {
            after = step(after, quiet);
        }
        for (lane, share) in self.lanes.iter().zip(after) {
            lane.share.store(share, Relaxed);
        }
        let changed = |class: &RequestClass| (before[*class as usize] > 0) != (after[*class as usize] > 0);
        let changes = RequestClass::ALL.into_iter().filter(changed);
        changes.map(|class| ClassChange { class, is_refused: after[class as usize] > 0 }).collect()
    }

    fn lane(&self, class: RequestClass) -> &Lane {
        &self.lanes[class as usize]
    }
}

impl Lane {
    fn begun_in(&self, window: u64) -> &AtomicU32 {
        &self.open[(window % MAX_WINDOWS as u64) as usize]
    }

    /// Requests that began longer ago than the budget and are not answered yet.
    fn stuck(&self, now: u64, budget: Duration) -> u32 {
        // One more than fit into the budget: a request may have begun at the end of its window.
        let oldest = window_of(budget) + 1..MAX_WINDOWS as u64;
        oldest.map(|ago| self.begun_in(now.wrapping_sub(ago)).load(Relaxed)).fold(0, u32::saturating_add)
    }

    /// Judges the ended window, and begins the next.
    fn judge(&self, stuck: u32) -> WindowVerdict {
        let (has_answer_in_time, late) = (self.has_answer_in_time.swap(false, Relaxed), self.late.swap(0, Relaxed));
        match late.saturating_add(stuck) {
            0 => WindowVerdict::WithinBudget,
            _ if has_answer_in_time => WindowVerdict::WithinBudget,
            MIN_LATE.. => WindowVerdict::OverBudget,
            _ => WindowVerdict::Unclear,
        }
    }
}

fn window_of(at: Duration) -> u64 {
    u64::try_from(at.as_millis() / WINDOW.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the shares after a window. Whichever class has a queue, a class is shed only while all classes before it are
/// shed at the highest share, and it recovers before them.
fn step(
    shares: [u32; RequestClass::COUNT],
    verdicts: [WindowVerdict; RequestClass::COUNT],
) -> [u32; RequestClass::COUNT] {
    let mut next = shares;
    for class in (0..RequestClass::COUNT).rev() {
        let have_later_classes_recovered = (class + 1..RequestClass::COUNT)
            .all(|later| next[later] == 0 && verdicts[later] != WindowVerdict::OverBudget);
        match verdicts[class] {
            WindowVerdict::OverBudget => {
                let first = (0..=class).find(|earlier| next[*earlier] < MAX_SHARE);
                // The share of a class grows once per window, even if two classes have a queue.
                if let Some(first) = first.filter(|first| next[*first] == shares[*first]) {
                    next[first] = (next[first] + STEP).min(MAX_SHARE);
                }
            }
            WindowVerdict::WithinBudget if have_later_classes_recovered => next[class] = next[class].saturating_sub(1),
            WindowVerdict::WithinBudget | WindowVerdict::Unclear => {}
        }
    }
    next
}

#[cfg(test)]
mod tests;
