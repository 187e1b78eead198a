use super::*;
use RequestClass::{Browsing, Choosing, Opening};

/// A controller and its clock, milliseconds.
struct Play {
    controller: Controller,
    now_ms: u64,
    changes: Vec<ClassChange>,
}

impl Play {
    fn new() -> Self {
        Self { controller: Controller::new(), now_ms: 0, changes: Vec::new() }
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.now_ms)
    }

    /// Moves the clock and judges what is over.
    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.changes.extend(self.controller.turn(self.now()));
    }

    /// So many come; when they did.
    fn come(&self, class: RequestClass, how_many: u32) -> Duration {
        (0..how_many).for_each(|_| self.controller.begin(class, self.now()));
        self.now()
    }

    /// So many of those who came then are answered.
    fn answer(&self, class: RequestClass, came: Duration, how_many: u32) {
        (0..how_many).for_each(|_| self.controller.end(class, came, self.now(), true));
    }

    /// A window in which so many are answered after so long.
    fn window(&mut self, class: RequestClass, how_many: u32, took: Duration) {
        let at = self.now();
        for _ in 0..how_many {
            self.controller.begin(class, at.saturating_sub(took));
            self.controller.end(class, at.saturating_sub(took), at, true);
        }
        self.pass(500);
    }

    /// The parts of each class that are refused.
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
/// Long enough ago for any wait to have begun after the beginning.
const LATER_MS: u64 = 60_000;

#[test]
fn a_standing_queue_raises_the_share_stepwise_and_never_to_all() {
    let mut play = Play::new();
    play.pass(LATER_MS);
    let mut shares = Vec::new();
    for _ in 0..6 {
        play.window(Browsing, ENOUGH, too_long(Browsing));
        shares.push(play.shares()[0]);
    }
    assert_eq!(shares, [2, 4, 6, 7, 7, 7]);
    assert_eq!(play.shares(), [7, 0, 0], "others are served");
    assert_eq!(play.changes, [ClassChange { class: Browsing, is_refused: true }], "said once");
}

#[test]
fn a_burst_is_not_shed() {
    let mut play = Play::new();
    play.pass(LATER_MS);
    // A thousand at once, who are answered one after the other within two seconds.
    let came = play.come(Browsing, 1_000);
    for _ in 0..19 {
        play.pass(100);
        play.answer(Browsing, came, 50);
    }
    play.pass(99);
    play.answer(Browsing, came, 50);
    play.pass(1_000);
    assert_eq!(play.shares(), [0, 0, 0]);
}

#[test]
fn one_answer_in_time_proves_that_no_queue_is_standing() {
    let mut play = Play::new();
    play.pass(LATER_MS);
    for _ in 0..10 {
        let came = play.come(Browsing, 1);
        play.answer(Browsing, came, 1);
        play.window(Browsing, 1_000, too_long(Browsing));
    }
    assert_eq!(play.shares(), [0, 0, 0]);
}

#[test]
fn few_slow_requests_are_no_queue() {
    let mut play = Play::new();
    play.pass(LATER_MS);
    for _ in 0..10 {
        play.window(Browsing, ENOUGH - 1, Duration::from_secs(29));
    }
    let came = play.come(Choosing, ENOUGH - 1);
    for _ in 0..60 {
        play.pass(500);
    }
    play.answer(Choosing, came, ENOUGH - 1);
    play.pass(500);
    assert_eq!(play.shares(), [0, 0, 0]);
    assert_eq!(play.changes, []);
}

#[test]
fn an_unanswered_request_counts_once_it_is_over_budget() {
    let mut play = Play::new();
    play.pass(LATER_MS + 499);
    let came = play.come(Browsing, ENOUGH);
    for _ in 0..4 {
        play.pass(500);
        assert_eq!(play.shares(), [0, 0, 0], "after {:?}", play.now() - came);
    }
    play.pass(500);
    assert_eq!(play.shares(), [2, 0, 0]);
    // Half of them are answered: the rest is too few to decide, and changes nothing.
    play.answer(Browsing, came, ENOUGH / 2);
    play.pass(500);
    assert_eq!(play.shares(), [4, 0, 0], "those were late");
    play.pass(500);
    assert_eq!(play.shares(), [4, 0, 0]);
    play.answer(Browsing, came, ENOUGH / 2);
    play.pass(500);
    play.pass(500);
    assert_eq!(play.shares(), [3, 0, 0], "they are gone, and it is over");
}

#[test]
fn a_cancelled_request_was_not_answered_in_time() {
    let mut play = Play::new();
    play.pass(LATER_MS);
    for _ in 0..2 {
        let came = play.come(Browsing, 5);
        (0..5).for_each(|_| play.controller.end(Browsing, came, play.now() + QUICK, false));
        play.window(Browsing, ENOUGH, too_long(Browsing));
    }
    assert_eq!(play.shares(), [4, 0, 0]);
}

#[test]
fn after_the_queue_the_share_shrinks_with_every_window() {
    let mut play = Play::new();
    play.pass(LATER_MS);
    (0..4).for_each(|_| play.window(Browsing, ENOUGH, too_long(Browsing)));
    play.window(Browsing, 1, QUICK);
    assert_eq!(play.shares(), [6, 0, 0]);
    play.window(Browsing, 1_000, QUICK);
    assert_eq!(play.shares(), [5, 0, 0]);
    // No requests for a while.
    play.pass(1_500);
    assert_eq!(play.shares(), [2, 0, 0]);
    play.pass(3_600_000);
    assert_eq!(play.shares(), [0, 0, 0]);
    let said: Vec<bool> = play.changes.iter().map(|change| change.is_refused).collect();
    assert_eq!(said, [true, false]);
}

#[test]
fn choosing_is_shed_last_and_admitted_first() {
    let mut play = Play::new();
    play.pass(LATER_MS);
    let mut shares = Vec::new();
    // No browsing, and requests of choosing are late.
    for _ in 0..10 {
        play.window(Choosing, ENOUGH, too_long(Choosing));
        shares.push(play.shares());
    }
    let one_after_the_other =
        [[2, 0, 0], [4, 0, 0], [6, 0, 0], [7, 0, 0], [7, 2, 0], [7, 4, 0], [7, 6, 0], [7, 7, 0], [7, 7, 2], [7, 7, 4]];
    assert_eq!(shares, one_after_the_other);
    for _ in 0..3 {
        play.window(Choosing, 1, QUICK);
    }
    assert_eq!(play.shares(), [7, 7, 1]);
    for _ in 0..7 {
        play.window(Choosing, 1, QUICK);
    }
    assert_eq!(play.shares(), [6, 0, 0]);
    let order: Vec<_> = play.changes.iter().map(|change| (change.class, change.is_refused)).collect();
    assert_eq!(order, [(Browsing, true), (Opening, true), (Choosing, true), (Choosing, false), (Opening, false)]);
}

/// All orders of verdicts: 3 verdicts for 3 classes, and every state that they reach.
#[test]
fn no_class_is_shed_before_the_classes_in_front_of_it() {
    let verdicts = [WindowVerdict::Easy, WindowVerdict::Unclear, WindowVerdict::Over];
    let mut seen = std::collections::BTreeSet::from([[0; RequestClass::COUNT]]);
    let mut open = vec![[0; RequestClass::COUNT]];
    while let Some(shares) = open.pop() {
        for number in 0..27 {
            let said = [verdicts[number % 3], verdicts[number / 3 % 3], verdicts[number / 9]];
            let next = step(shares, said);
            assert!(next.iter().all(|share| *share <= MOST), "{shares:?} {said:?}");
            for class in 1..RequestClass::COUNT {
                let ahead = next[..class].iter().all(|share| *share == MOST);
                assert!(next[class] == 0 || ahead, "{shares:?} {said:?} {next:?}");
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    assert!(seen.contains(&[MOST; RequestClass::COUNT]) && seen.len() > 20, "{}", seen.len());
}
