use super::*;
use RequestClass::{Browsing, Choosing, Opening};

/// A controller and its clock, milliseconds.
struct Harness {
    controller: Controller,
    now_ms: u64,
    changes: Vec<ClassChange>,
}

impl Harness {
    fn new() -> Self {
        Self { controller: Controller::new(), now_ms: 0, changes: Vec::new() }
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.now_ms)
    }

    /// Advances the clock, which ends windows.
    fn advance(&mut self, ms: u64) {
        self.now_ms += ms;
        self.changes.extend(self.controller.turn(self.now()));
    }

    /// Begins requests and returns their start.
    fn begin_requests(&self, class: RequestClass, count: u32) -> Duration {
        (0..count).for_each(|_| self.controller.begin(class, self.now()));
        self.now()
    }

    /// Answers requests that began at that time.
    fn answer_requests(&self, class: RequestClass, began_at: Duration, count: u32) {
        (0..count).for_each(|_| self.controller.end(class, began_at, self.now(), true));
    }

    /// Runs a window in which requests are answered after this time.
    fn run_window(&mut self, class: RequestClass, count: u32, took: Duration) {
        let at = self.now();
        for _ in 0..count {
            self.controller.begin(class, at.saturating_sub(took));
            self.controller.end(class, at.saturating_sub(took), at, true);
        }
        self.advance(500);
    }

    /// Returns the share of each class that is refused, in parts.
    fn shares(&self) -> [u32; RequestClass::COUNT] {
        RequestClass::ALL.map(|class| {
            let refused = (0..PARTS).filter(|drawn| self.controller.refuses(class, |_| u64::from(*drawn)));
            u32::try_from(refused.count()).expect("a few")
        })
    }
}

fn too_long(class: RequestClass) -> Duration {
    class.budget() + Duration::from_millis(1)
}

const QUICK: Duration = Duration::from_millis(20);
/// A start of the clock that is later than the longest wait.
const LATER_MS: u64 = 60_000;

#[test]
fn a_standing_queue_raises_the_share_stepwise_and_never_to_all() {
    let mut harness = Harness::new();
    harness.advance(LATER_MS);
    let mut shares = Vec::new();
    for _ in 0..6 {
        harness.run_window(Browsing, MIN_LATE, too_long(Browsing));
        shares.push(harness.shares()[0]);
    }
    assert_eq!(shares, [2, 4, 6, 7, 7, 7]);
    assert_eq!(harness.shares(), [7, 0, 0], "others are served");
    assert_eq!(harness.changes, [ClassChange { class: Browsing, is_refused: true }], "said once");
}

#[test]
fn a_burst_is_not_shed() {
    let mut harness = Harness::new();
    harness.advance(LATER_MS);
    // A thousand requests at once, answered one after the other within two seconds.
    let began_at = harness.begin_requests(Browsing, 1_000);
    for _ in 0..19 {
        harness.advance(100);
        harness.answer_requests(Browsing, began_at, 50);
    }
    harness.advance(99);
    harness.answer_requests(Browsing, began_at, 50);
    harness.advance(1_000);
    assert_eq!(harness.shares(), [0, 0, 0]);
}

#[test]
fn one_answer_in_time_proves_that_no_queue_is_standing() {
    let mut harness = Harness::new();
    harness.advance(LATER_MS);
    for _ in 0..10 {
        let began_at = harness.begin_requests(Browsing, 1);
        harness.answer_requests(Browsing, began_at, 1);
        harness.run_window(Browsing, 1_000, too_long(Browsing));
    }
    assert_eq!(harness.shares(), [0, 0, 0]);
}

#[test]
fn few_slow_requests_are_no_queue() {
    let mut harness = Harness::new();
    harness.advance(LATER_MS);
    for _ in 0..10 {
        harness.run_window(Browsing, MIN_LATE - 1, Duration::from_secs(29));
    }
    let began_at = harness.begin_requests(Choosing, MIN_LATE - 1);
    for _ in 0..60 {
        harness.advance(500);
    }
    harness.answer_requests(Choosing, began_at, MIN_LATE - 1);
    harness.advance(500);
    assert_eq!(harness.shares(), [0, 0, 0]);
    assert_eq!(harness.changes, []);
}

#[test]
fn an_unanswered_request_counts_once_it_is_over_budget() {
    let mut harness = Harness::new();
    harness.advance(LATER_MS + 499);
    let began_at = harness.begin_requests(Browsing, MIN_LATE);
    for _ in 0..4 {
        harness.advance(500);
        assert_eq!(harness.shares(), [0, 0, 0], "after {:?}", harness.now() - began_at);
    }
    harness.advance(500);
    assert_eq!(harness.shares(), [2, 0, 0]);
    // Half of them are answered: the rest is too few to decide, and changes nothing.
    harness.answer_requests(Browsing, began_at, MIN_LATE / 2);
    harness.advance(500);
    assert_eq!(harness.shares(), [4, 0, 0], "those were late");
    harness.advance(500);
    assert_eq!(harness.shares(), [4, 0, 0]);
    harness.answer_requests(Browsing, began_at, MIN_LATE / 2);
    harness.advance(500);
    harness.advance(500);
    assert_eq!(harness.shares(), [3, 0, 0], "they are gone, and it is over");
}

#[test]
fn a_cancelled_request_was_not_answered_in_time() {
    let mut harness = Harness::new();
    harness.advance(LATER_MS);
    for _ in 0..2 {
        let began_at = harness.begin_requests(Browsing, 5);
        (0..5).for_each(|_| harness.controller.end(Browsing, began_at, harness.now() + QUICK, false));
        harness.run_window(Browsing, MIN_LATE, too_long(Browsing));
    }
    assert_eq!(harness.shares(), [4, 0, 0]);
}

#[test]
fn after_the_queue_the_share_shrinks_with_every_window() {
    let mut harness = Harness::new();
    harness.advance(LATER_MS);
    (0..4).for_each(|_| harness.run_window(Browsing, MIN_LATE, too_long(Browsing)));
    harness.run_window(Browsing, 1, QUICK);
    assert_eq!(harness.shares(), [6, 0, 0]);
    harness.run_window(Browsing, 1_000, QUICK);
    assert_eq!(harness.shares(), [5, 0, 0]);
    // No requests for a while.
    harness.advance(1_500);
    assert_eq!(harness.shares(), [2, 0, 0]);
    harness.advance(3_600_000);
    assert_eq!(harness.shares(), [0, 0, 0]);
    let said: Vec<bool> = harness.changes.iter().map(|change| change.is_refused).collect();
    assert_eq!(said, [true, false]);
}

#[test]
fn choosing_is_shed_last_and_admitted_first() {
    let mut harness = Harness::new();
    harness.advance(LATER_MS);
    let mut shares = Vec::new();
    // No browsing, and requests of choosing are late.
    for _ in 0..10 {
        harness.run_window(Choosing, MIN_LATE, too_long(Choosing));
        shares.push(harness.shares());
    }
    let one_after_the_other =
        [[2, 0, 0], [4, 0, 0], [6, 0, 0], [7, 0, 0], [7, 2, 0], [7, 4, 0], [7, 6, 0], [7, 7, 0], [7, 7, 2], [7, 7, 4]];
    assert_eq!(shares, one_after_the_other);
    for _ in 0..3 {
        harness.run_window(Choosing, 1, QUICK);
    }
    assert_eq!(harness.shares(), [7, 7, 1]);
    for _ in 0..7 {
        harness.run_window(Choosing, 1, QUICK);
    }
    assert_eq!(harness.shares(), [6, 0, 0]);
    let order: Vec<_> = harness.changes.iter().map(|change| (change.class, change.is_refused)).collect();
    assert_eq!(order, [(Browsing, true), (Opening, true), (Choosing, true), (Choosing, false), (Opening, false)]);
}

/// All orders of verdicts: 3 verdicts for 3 classes, and every state that they reach.
#[test]
fn no_class_is_shed_before_the_classes_in_front_of_it() {
    let verdicts = [WindowVerdict::WithinBudget, WindowVerdict::Unclear, WindowVerdict::OverBudget];
    let mut seen = std::collections::BTreeSet::from([[0; RequestClass::COUNT]]);
    let mut open = vec![[0; RequestClass::COUNT]];
    while let Some(shares) = open.pop() {
        for number in 0..27 {
            let said = [verdicts[number % 3], verdicts[number / 3 % 3], verdicts[number / 9]];
            let next = step(shares, said);
            assert!(next.iter().all(|share| *share <= MAX_SHARE), "{shares:?} {said:?}");
            for class in 1..RequestClass::COUNT {
                let ahead = next[..class].iter().all(|share| *share == MAX_SHARE);
                assert!(next[class] == 0 || ahead, "{shares:?} {said:?} {next:?}");
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    assert!(seen.contains(&[MAX_SHARE; RequestClass::COUNT]) && seen.len() > 20, "{}", seen.len());
}
