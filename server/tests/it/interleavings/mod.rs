//! Interleavings: what two or three people and machines do to one booking at the same moment, statement by statement.
//!
//! Each actor has a server whose connections to Postgres go through a gate ([`gate`]); a controller grants one permit
//! at a time ([`controller`]). Every schedule with up to two preemptions is enumerated: an actor runs some statements,
//! another runs some, and so on. An actor that waits for a lock is no preemption; others go on until it has the lock. What
//! is between the statements of an actor (Redis, the gateway) happens with the statement before it. After each
//! schedule the relay's work is done, and the books are checked over the whole database.
//!
//! A sample runs with all other tests ([`sample`]). `cargo xtask prove interleavings` plays everything; with a number so many schedules
//! of each pair; with a name, as a violation has it (`check-out+revise@changed/interactive: A7 B* A*`), that one alone.

mod actions;
mod called_off;
mod controller;
mod gate;
mod schedule;
mod stage;

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::future::join_all;

use actions::{Action, Scene, Start};
use controller::{Played, told};
use schedule::Schedule;
use stage::{ACTORS, Stage};

/// What is played instead of the sample: `all`, so many schedules of each pair, or one by name.
const ASKED: &str = "ROWLOCK_INTERLEAVINGS";
/// Schedules with two preemptions of each pair in the sample, besides a serial one.
const SAMPLED: u32 = 1;
/// Actions of the sample: the way from a hold to a sale, and what ends it.
const SAMPLED_ACTIONS: [Action; 7] = [
    Action::CheckOut,
    Action::Revise,
    Action::Submit,
    Action::ChangeHold,
    Action::Settle,
    Action::Cancel,
    Action::CallOff,
];
/// Where pairs of the sample start: the first of these that fits both.
const SAMPLED_STARTS: [Start; 3] = [Start::Changed, Start::Locked, Start::Paying];
/// So many schedules are played in one world: its books are read after each of them.
const SCHEDULES_PER_WORLD: u32 = 150;
/// Findings shown at most; with so many no other scenario is begun.
const SHOWN: usize = 20;

/// How servers commit sales.
const COMMITS: [&str; 2] = ["interactive", "batched"];

/// Actions that begin while a booking stands so.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Scenario {
    actions: Vec<Action>,
    start: Start,
    commits: &'static str,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.actions.iter().map(|action| action.name()).collect();
        write!(f, "{}@{}/{}", names.join("+"), self.start.name(), self.commits)
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is no scenario; `check-out+revise@changed/interactive` is");
        let (actions, rest) = text.trim().split_once('@').ok_or_else(wrong)?;
        let (start, commits) = rest.split_once('/').ok_or_else(wrong)?;
        let action = |name: &str| Action::ALL.into_iter().find(|action| action.name() == name).ok_or_else(wrong);
        let actions: Vec<_> = actions.split('+').map(action).collect::<Result<_, _>>()?;
        let start = Start::ALL.into_iter().find(|other| other.name() == start).ok_or_else(wrong)?;
        let commits = COMMITS.into_iter().find(|other| *other == commits).ok_or_else(wrong)?;
        if (2..=ACTORS).contains(&actions.len()) { Ok(Self { actions, start, commits }) } else { Err(wrong()) }
    }
}

/// Every pair of actions with every start that fits both, once for each way to commit.
fn pairs() -> Vec<Scenario> {
    let mut pairs = Vec::new();
    for commits in COMMITS {
        for start in Start::ALL {
            let fitting: Vec<Action> = Action::ALL.into_iter().filter(|action| action.fits(start)).collect();
            for (place, one) in fitting.iter().enumerate() {
                for other in &fitting[place..] {
                    // The counter has no other seats to give in a show that is sold out.
                    if (*one, *other) != (Action::Exchange, Action::Offer) {
                        pairs.push(Scenario { actions: vec![*one, *other], start, commits });
                    }
                }
            }
        }
    }
    pairs
}

/// The pairs that run with all other tests, each with one start, and each sale committed by itself.
fn sample() -> Vec<Scenario> {
    let mut pairs = Vec::new();
    for (place, one) in SAMPLED_ACTIONS.into_iter().enumerate() {
        for other in SAMPLED_ACTIONS.into_iter().skip(place) {
            let start = SAMPLED_STARTS.into_iter().find(|start| one.fits(*start) && other.fits(*start));
            let scenario = |start| Scenario { actions: vec![one, other], start, commits: COMMITS[0] };
            pairs.extend(start.map(scenario));
        }
    }
    pairs
}

/// Three at once: those around money that meet most often.
fn triples() -> Vec<Scenario> {
    use Action::{CallOff, Cancel, CheckOut, Revise, Settle, Submit};
    let triples = [
        ([CheckOut, Revise, Submit], Start::Changed),
        ([CheckOut, Revise, Submit], Start::Locked),
        ([Submit, Cancel, CallOff], Start::Locked),
        ([Settle, Cancel, CallOff], Start::Paying),
    ];
    let every = |commits| triples.iter().map(move |(actions, start)| (actions.to_vec(), *start, commits));
    let every = COMMITS.into_iter().flat_map(every);
    every.map(|(actions, start, commits)| Scenario { actions, start, commits }).collect()
}

/// What schedules came to.
#[derive(Default)]
struct Tally {
    schedules: u32,
    /// Schedules in which an actor waited for a lock of another.
    blocked: u32,
    findings: Vec<String>,
}

/// Plays schedules, each in a show of its own.
struct Player {
    stage: Option<Stage>,
    commits: &'static str,
    /// Schedules that the stage has seen.
    played: u32,
    tally: Arc<Mutex<Tally>>,
}

impl Player {
    fn new(commits: &'static str, tally: Arc<Mutex<Tally>>) -> Self {
        Self { stage: None, commits, played: 0, tally }
    }

    /// Plays one schedule, and counts what it came to; nothing when it did not come to its end.
    async fn play(&mut self, scenario: &Scenario, schedule: &Schedule) -> Option<Played> {
        if self.played >= SCHEDULES_PER_WORLD || self.commits != scenario.commits {
            self.end().await;
        }
        if self.stage.is_none() {
            (self.commits, self.played) = (scenario.commits, 0);
            self.stage = Some(Stage::open(scenario.commits).await);
        }
        let stage = self.stage.as_mut().expect("it was opened");
        self.played += 1;
        let scene = Scene::prepare(stage, scenario.start, &scenario.actions).await;
        let mut acts = Vec::new();
        for (actor, action) in scenario.actions.iter().enumerate() {
            acts.push(scene.act(stage, *action, actor).await);
        }
        let (played, findings) = stage.play(schedule, acts).await;
        self.note(scenario, schedule, &played, &findings);
        // It may be broken, or its findings hide others.
        if !findings.is_empty() {
            self.end().await;
        }
        played.ok()
    }

    fn note(&self, scenario: &Scenario, schedule: &Schedule, played: &Result<Played, String>, findings: &[String]) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.schedules += 1;
        tally.blocked += u32::from(played.as_ref().is_ok_and(|played| played.blocked > 0));
        if findings.is_empty() {
            return;
        }
        let trace = played.as_ref().map(told).unwrap_or_default();
        let answers = played.as_ref().map(|played| played.answers.clone()).unwrap_or_default();
        let finding = format!("{scenario}: {schedule}\n  {}\n  answers: {answers:?}\n{trace}", findings.join("\n  "));
        println!("VIOLATION {finding}");
        tally.findings.push(finding);
    }

    /// Every schedule with up to two preemptions.
    async fn play_all(&mut self, scenario: &Scenario) {
        let actors = 0..scenario.actions.len();
        for first in actors.clone() {
            'longer: for steps in 1.. {
                for second in actors.clone().filter(|actor| *actor != first) {
                    for last in actors.clone().filter(|actor| *actor != second) {
                        for more in 1.. {
                            let schedule = Schedule::new(&[(first, steps), (second, more)], last);
                            let Some(played) = self.play(scenario, &schedule).await else {
                                break 'longer;
                            };
                            if !played.is_preempted[0] {
                                // Its action takes no longer, and one schedule of all that follow was played.
                                break 'longer;
                            }
                            if !played.is_preempted[1] {
                                break;
                            }
                        }
                    }
                }
            }
        }
    }

    /// One action after the other, and so many schedules with two preemptions, spread over all there are.
    async fn play_some(&mut self, scenario: &Scenario, count: u32) {
        let Some(serial) = self.play(scenario, &Schedule::new(&[], 0)).await else { return };
        let (one, other) = (serial.steps(0), serial.steps(1));
        for number in 0..count {
            // The golden ratio spreads them, however many they are; each scenario begins elsewhere.
            let place = number + scenario.to_string().bytes().map(u32::from).sum::<u32>();
            let spread = |place: u32, of: u32| 1 + place * 618 % 1_000 * of / 1_000;
            let preempted = [(0, spread(place, one)), (1, spread(place * 7 + 3, other))];
            let preempted = if place.is_multiple_of(2) { preempted } else { [preempted[1], preempted[0]] };
            self.play(scenario, &Schedule::new(&preempted, preempted[0].0)).await;
        }
    }

    async fn end(&mut self) {
        if let Some(stage) = self.stage.take() {
            stage.end().await;
        }
    }
}

/// Plays so many schedules of each scenario (all without a number), side by side on as many cores as there are.
async fn explore(scenarios: Vec<Scenario>, count: Option<u32>) -> Tally {
    let began = Instant::now();
    let scenarios = Arc::new(Mutex::new(VecDeque::from(scenarios)));
    let tally = Arc::<Mutex<Tally>>::default();
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
    let workers = (0..workers).map(|_| {
        let (scenarios, tally) = (Arc::clone(&scenarios), Arc::clone(&tally));
        async move {
            let mut player = Player::new(COMMITS[0], tally);
            loop {
                if player.tally.lock().unwrap_or_else(PoisonError::into_inner).findings.len() >= SHOWN {
                    break;
                }
                let next = scenarios.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some(scenario) = next else { break };
                let before = (player.tally.lock().unwrap_or_else(PoisonError::into_inner).schedules, Instant::now());
                match count {
                    None => {
                        player.play_all(&scenario).await;
                        let tally = player.tally.lock().unwrap_or_else(PoisonError::into_inner);
                        println!(
                            "{scenario}: {:?}; {} schedules of all since",
                            before.1.elapsed(),
                            tally.schedules - before.0
                        );
                    }
                    Some(count) => player.play_some(&scenario, count).await,
                }
            }
            player.end().await;
        }
    });
    join_all(workers).await;
    let tally = std::mem::take(&mut *tally.lock().unwrap_or_else(PoisonError::into_inner));
    println!(
        "interleavings: {} schedules run ({} with a wait for a lock) in {:?}, {} violations",
        tally.schedules,
        tally.blocked,
        began.elapsed(),
        tally.findings.len()
    );
    tally
}

fn assert_in_order(tally: &Tally) {
    let shown = tally.findings.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
    assert!(tally.findings.is_empty(), "{} schedules leave the books wrong:\n{shown}", tally.findings.len());
}

/// Plays one schedule by name.
async fn replay(name: &str) -> Tally {
    let (scenario, schedule) = name.split_once(':').expect("`scenario: schedule`");
    let (scenario, schedule): (Scenario, Schedule) =
        (scenario.parse().expect("a scenario"), schedule.parse().expect("a schedule"));
    assert!(
        schedule.0.iter().all(|run| run.actor < scenario.actions.len()),
        "{scenario} has no such actor: {schedule}"
    );
    let tally = Arc::<Mutex<Tally>>::default();
    let mut player = Player::new(scenario.commits, Arc::clone(&tally));
    let played = player.play(&scenario, &schedule).await;
    player.end().await;
    if let Some(played) = played {
        println!("{scenario}: {schedule}: {:?}\n{}", played.answers, told(&played));
    }
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *tally)
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_of_two_actions_on_one_booking_leave_the_books_right() {
    let tally = match std::env::var(ASKED).ok().as_deref() {
        None => explore(sample(), Some(SAMPLED)).await,
        Some("all") => explore(pairs().into_iter().chain(triples()).collect(), None).await,
        Some(name) if name.contains(':') => replay(name).await,
        Some(number) => explore(pairs(), Some(number.parse().expect("all, a number, or a schedule"))).await,
    };
    assert_in_order(&tally);
}

#[test]
fn the_sample_has_each_of_its_actions_and_is_short() {
    let sample = sample();
    for action in SAMPLED_ACTIONS {
        assert!(sample.iter().any(|scenario| scenario.actions.contains(&action)), "{action:?}");
    }
    let pairs = pairs();
    assert!(sample.iter().all(|scenario| pairs.contains(scenario)));
    // Revising needs a booking that is not paid for, and settling one that is.
    assert_eq!(sample.len(), 27);
}

#[test]
fn a_scenario_is_read_as_it_is_written() {
    for scenario in pairs().into_iter().chain(triples()) {
        assert_eq!(scenario.to_string().parse::<Scenario>(), Ok(scenario));
    }
    assert!("revise@held/batched".parse::<Scenario>().is_err());
}
