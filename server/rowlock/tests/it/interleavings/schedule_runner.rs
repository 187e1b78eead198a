//! Scenarios are concurrent actions and the booking's initial state; a schedule says how many statements each actor runs
//! before another one continues. The runner explores schedules concurrently and summarises their results.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::VariantName;
use strum::VariantArray;

use super::actions::{Action, InitialState, PreparedBooking};
use super::controller::{ScheduleResult, trace_lines};
use super::schedule_world::{ACTORS, ScheduleWorld};
use crate::prelude::*;

/// Concurrent schedules per core in long runs, because much of a schedule is waiting. Short runs are not worth a world
/// for each worker.
const WORKERS_PER_CORE: usize = 3;
/// Schedules per world, because the books of the whole world are checked after each.
const SCHEDULES_PER_WORLD: u32 = 50;
/// Maximum of printed findings; with this many no further schedule starts.
pub const MAX_FINDINGS: usize = 20;
/// Answer of a server that timed out waiting for Postgres, or lost a deadlock. It wrote nothing, and its client may
/// retry.
const GAVE_UP: &str = "503 database_unavailable";

#[derive(Clone, Copy, Debug)]
pub enum Extent {
    All,
    /// Every schedule in which the second actor preempts the first one once.
    FirstPreempted,
    /// One serial schedule and this many with two preemptions, spread over all of them.
    Each(u32),
    /// The same until this time: first one of each scenario, then another, and so on.
    Until(Instant),
}

#[derive(Default)]
pub struct RunSummary {
    pub schedules: u32,
    /// Number of schedules with two preemptions of the scenarios, where it was computed.
    in_all: u32,
    blocked: u32,
    gave_up: u32,
    pub findings: Vec<String>,
}

#[derive(Clone, Default)]
struct SharedSummary(Arc<Mutex<RunSummary>>);

impl SharedSummary {
    fn get(&self) -> MutexGuard<'_, RunSummary> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Progress {
    scenario: Scenario,
    /// Its schedules, once the length of its actions is known.
    grid: Option<Grid>,
    played: u32,
}

/// Runs schedules, each in its own show.
struct ScheduleRunner {
    /// The open world, and its number of schedules so far.
    stage: Option<(ScheduleWorld, u32)>,
    summary: SharedSummary,
}

impl ScheduleRunner {
    fn new(summary: SharedSummary) -> Self {
        Self { stage: None, summary }
    }

    /// Runs one schedule and records its result; `None` when it did not finish.
    async fn play(&mut self, scenario: &Scenario, schedule: &Schedule) -> Option<ScheduleResult> {
        if self.stage.as_ref().is_some_and(|(_, seen)| *seen >= SCHEDULES_PER_WORLD) {
            self.end().await;
        }
        let (setup, seen) = match &mut self.stage {
            Some(stage) => stage,
            none => none.insert((ScheduleWorld::open().await, 0)),
        };
        *seen += 1;
        let scene = PreparedBooking::prepare(setup, scenario.start, &scenario.actions).await;
        let mut acts = Vec::new();
        for (actor, action) in scenario.actions.iter().enumerate() {
            acts.push(scene.action_future(setup, *action, actor).await);
        }
        let played = setup.play(schedule, acts).await;
        scene.send_gateway_webhook(setup).await;
        let mut findings = setup.finish_and_check().await;
        match &played {
            Ok(played) => {
                let failed = answers(played).filter(|answer| answer.starts_with('5') && *answer != GAVE_UP);
                findings.extend(failed.map(|answer| format!("a server failed: {answer}")));
            }
            Err(why) => findings.push(why.clone()),
        }
        self.note(scenario, schedule, &played, &findings);
        // The world may be broken, or its findings hide others.
        if !findings.is_empty() {
            self.end().await;
        }
        played.ok()
    }

    fn note(
        &self,
        scenario: &Scenario,
        schedule: &Schedule,
        played: &Result<ScheduleResult, String>,
        findings: &[String],
    ) {
        let mut summary = self.summary.get();
        summary.schedules += 1;
        if let Ok(played) = played {
            summary.blocked += u32::from(played.blocked > 0);
            summary.gave_up += u32::from(answers(played).any(|answer| answer == GAVE_UP));
        }
        if findings.is_empty() {
            return;
        }
        let trace = played.as_ref().map(trace_lines).unwrap_or_default();
        let answers = played.as_ref().map(|played| played.answers.clone()).unwrap_or_default();
        let finding = format!("{scenario}: {schedule}\n  {}\n  answers: {answers:?}\n{trace}", findings.join("\n  "));
        println!("VIOLATION {finding}");
        summary.findings.push(finding);
    }

    async fn play_all(&mut self, scenario: &Scenario) {
        let actors = 0..scenario.actions.len();
        for first in actors.clone() {
            'longer: for steps in 1.. {
                for second in actors.clone().filter(|actor| *actor != first) {
                    for last in actors.clone().filter(|actor| *actor != second) {
                        for more in 1.. {
                            if self.has_enough() {
                                return;
                            }
                            let schedule = Schedule::new(&[(first, steps), (second, more)], last);
                            let Some(played) = self.play(scenario, &schedule).await else {
                                break 'longer;
                            };
                            if !played.is_preempted[0] {
                                // The action is over sooner, and one of the longer schedules was run.
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

    /// Runs the schedules in which the second actor preempts the first after each of its steps.
    async fn play_first_preempted(&mut self, scenario: &Scenario) {
        for steps in 1.. {
            let played = self.play(scenario, &Schedule::new(&[(0, steps)], 1)).await;
            if self.has_enough() || played.is_some_and(|played| !played.is_preempted[0]) {
                break;
            }
        }
    }

    /// Runs one more schedule of the scenario; returns whether others are left.
    async fn play_next(&mut self, progress: &mut Progress) -> bool {
        let Progress { scenario, grid, played } = progress;
        let Some(grid) = grid else {
            let serial = self.play(scenario, &Schedule::new(&[], 0)).await;
            let steps = |serial: ScheduleResult| (0..scenario.actions.len()).map(|actor| serial.steps(actor)).collect();
            *grid = serial.map(|serial| Grid::new(steps(serial)));
            self.summary.get().in_all += grid.as_ref().map_or(0, Grid::len);
            return grid.is_some();
        };
        // Each scenario starts at another index.
        let place = *played + scenario.to_string().bytes().map(u32::from).sum::<u32>();
        self.play(scenario, &grid.spread(place)).await;
        *played += 1;
        *played < grid.len()
    }

    fn has_enough(&self) -> bool {
        self.summary.get().findings.len() >= MAX_FINDINGS
    }

    async fn end(&mut self) {
        if let Some((setup, _)) = self.stage.take() {
            setup.end().await;
        }
    }
}

/// Answers of all requests; an action may send several.
fn answers(played: &ScheduleResult) -> impl Iterator<Item = &str> {
    played.answers.iter().flat_map(|answers| answers.split(", "))
}

pub async fn explore(scenarios: Vec<Scenario>, extent: Extent) -> RunSummary {
    let (began, count) = (Instant::now(), scenarios.len());
    let scenarios = scenarios.into_iter().map(|scenario| Progress { scenario, grid: None, played: 0 });
    let scenarios = Arc::new(Mutex::new(scenarios.collect::<VecDeque<_>>()));
    let summary = SharedSummary::default();
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let per_core = if matches!(extent, Extent::All | Extent::Until(_)) { WORKERS_PER_CORE } else { 1 };
    let workers = (0..cores * per_core).map(|_| work(Arc::clone(&scenarios), summary.clone(), extent));
    join_all(workers).await;
    let summary = std::mem::take(&mut *summary.get());
    let RunSummary { schedules, in_all, blocked, gave_up, findings } = &summary;
    let of_all = if *in_all > 0 { format!(" of {in_all}") } else { String::new() };
    println!(
        "interleavings: {schedules}{of_all} schedules run in {:.0?} of {count} scenarios ({blocked} with a wait for a lock, \
         {gave_up} with a server that gave way), {} violations",
        began.elapsed(),
        findings.len()
    );
    summary
}

async fn work(scenarios: Arc<Mutex<VecDeque<Progress>>>, summary: SharedSummary, extent: Extent) {
    let mut player = ScheduleRunner::new(summary);
    while !player.has_enough() {
        let next = scenarios.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(mut progress) = next else { break };
        let has_more = match extent {
            Extent::All => {
                let before = (player.summary.get().schedules, Instant::now());
                player.play_all(&progress.scenario).await;
                let of_all = player.summary.get().schedules - before.0;
                println!("{}: {:.0?}; {of_all} schedules of all since", progress.scenario, before.1.elapsed());
                false
            }
            Extent::FirstPreempted => {
                player.play_first_preempted(&progress.scenario).await;
                false
            }
            Extent::Each(count) => player.play_next(&mut progress).await && progress.played < count,
            Extent::Until(end) => {
                if Instant::now() >= end {
                    break;
                }
                player.play_next(&mut progress).await
            }
        };
        if has_more {
            scenarios.lock().unwrap_or_else(PoisonError::into_inner).push_back(progress);
        }
    }
    player.end().await;
}

pub async fn replay(scenario: &Scenario, schedule: &Schedule) -> RunSummary {
    let summary = SharedSummary::default();
    let mut player = ScheduleRunner::new(summary.clone());
    let played = player.play(scenario, schedule).await;
    player.end().await;
    let summary = std::mem::take(&mut *summary.get());
    if let Some(played) = played.filter(|_| summary.findings.is_empty()) {
        println!("{scenario}: {schedule}: {:?}\n{}", played.answers, trace_lines(&played));
    }
    summary
}

/// Actions of the sample: the steps from a hold to a sale, and its cancellation.
pub const SAMPLED_ACTIONS: [Action; 7] = [
    Action::CheckOut,
    Action::Revise,
    Action::Submit,
    Action::ChangeHold,
    Action::Settle,
    Action::Cancel,
    Action::CallOff,
];
/// Initial states of the sample's pairs: the first of these that fits both.
const SAMPLED_STARTS: [InitialState; 3] = [InitialState::Changed, InitialState::Locked, InitialState::Paying];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    pub actions: Vec<Action>,
    pub start: InitialState,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.actions.iter().map(Action::as_str).collect();
        write!(f, "{}@{}", names.join("+"), self.start.as_str())
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is no scenario; `check-out+revise@changed` is");
        let (actions, start) = text.trim().split_once('@').ok_or_else(wrong)?;
        let action = |name: &str| name.parse::<Action>().map_err(|_| wrong());
        let actions: Vec<_> = actions.split('+').map(action).collect::<Result<_, _>>()?;
        let start = start.parse().map_err(|_| wrong())?;
        if (2..=ACTORS).contains(&actions.len()) { Ok(Self { actions, start }) } else { Err(wrong()) }
    }
}

/// Every pair of actions with every initial state that fits both.
pub fn pairs() -> Vec<Scenario> {
    let mut pairs = Vec::new();
    for &start in InitialState::VARIANTS {
        let fitting: Vec<Action> = Action::VARIANTS.iter().copied().filter(|action| action.fits(start)).collect();
        for (place, one) in fitting.iter().enumerate() {
            for other in &fitting[place..] {
                // A sold-out show has no seats for an exchange.
                if (*one, *other) != (Action::Exchange, Action::Offer) {
                    pairs.push(Scenario { actions: vec![*one, *other], start });
                }
            }
        }
    }
    pairs
}

/// Triples of actions around payments that often coincide.
pub fn triples() -> Vec<Scenario> {
    use Action::{CallOff, Cancel, CheckOut, Revise, Settle, Submit};
    let triples = [
        ([CheckOut, Revise, Submit], InitialState::Changed),
        ([CheckOut, Revise, Submit], InitialState::Locked),
        ([Submit, Cancel, CallOff], InitialState::Locked),
        ([Settle, Cancel, CallOff], InitialState::Paying),
    ];
    Vec::from(triples.map(|(actions, start)| Scenario { actions: actions.to_vec(), start }))
}

/// Pairs that run with all other tests, each with one initial state. Bookings with places are committed in a transaction
/// of their own, those without (`Locked`) in a batch.
pub fn sample() -> Vec<Scenario> {
    let mut pairs = Vec::new();
    for (place, one) in SAMPLED_ACTIONS.into_iter().enumerate() {
        for other in SAMPLED_ACTIONS.into_iter().skip(place) {
            let start = SAMPLED_STARTS.into_iter().find(|start| one.fits(*start) && other.fits(*start));
            let scenario = |start| Scenario { actions: vec![one, other], start };
            pairs.extend(start.map(scenario));
        }
    }
    pairs
}

#[test]
fn sample_has_each_of_its_actions_and_is_short() {
    let sample = sample();
    for action in SAMPLED_ACTIONS {
        assert!(sample.iter().any(|scenario| scenario.actions.contains(&action)), "{action:?}");
    }
    let pairs = pairs();
    assert!(sample.iter().all(|scenario| pairs.contains(scenario)));
    // A revision needs an unpaid booking, and a settlement a paid one.
    assert_eq!(sample.len(), 27);
}

#[test]
fn scenario_is_parsed_as_printed() {
    for scenario in pairs().into_iter().chain(triples()) {
        assert_eq!(scenario.to_string().parse::<Scenario>(), Ok(scenario));
    }
    assert!("revise@held".parse::<Scenario>().is_err());
}

/// Statements of one actor without a preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRun {
    pub actor: usize,
    /// Steps until another actor continues; `None` until it waits for a lock or is over. The first step of an action is
    /// everything before its first statement.
    pub steps: Option<u32>,
}

/// Runs in order. After them the actors run to the end, the first actor first; so does an actor that waited for a lock.
/// Printed as `A3 B5 A*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(pub Vec<StepRun>);

impl Schedule {
    /// Preempts these actors in turn, then runs this actor to its end.
    pub fn new(preempted: &[(usize, u32)], last: usize) -> Self {
        let runs = preempted.iter().map(|(actor, steps)| StepRun { actor: *actor, steps: Some(*steps) });
        Self(runs.chain([StepRun { actor: last, steps: None }]).collect())
    }
}

/// All schedules with two preemptions of actors with these step counts in a serial run.
#[derive(Clone, Debug)]
pub struct Grid {
    steps: Vec<u32>,
    /// Actors of the first run, of the second, and of the last.
    orders: Vec<(usize, usize, usize)>,
}

impl Grid {
    pub fn new(steps: Vec<u32>) -> Self {
        let actors = 0..steps.len();
        let others = |one: usize| actors.clone().filter(move |other| *other != one);
        let orders = actors.clone().flat_map(|first| {
            others(first).flat_map(move |second| others(second).map(move |last| (first, second, last)))
        });
        Self { orders: orders.collect(), steps }
    }

    pub fn len(&self) -> u32 {
        self.orders.iter().map(|(first, second, _)| self.steps[*first] * self.steps[*second]).sum()
    }

    /// Returns a schedule by number, counted from 0; consecutive numbers are far apart.
    pub fn spread(&self, number: u32) -> Schedule {
        let len = self.len();
        // The golden ratio spreads them, however many are run.
        let stride = (len * 618 / 1_000..).find(|stride| greatest_common_divisor(*stride, len) == 1).unwrap_or(1);
        let index = u64::from(number) * u64::from(stride) % u64::from(len);
        self.at(u32::try_from(index).expect("the index is below the length"))
    }

    fn at(&self, mut index: u32) -> Schedule {
        for &(first, second, last) in &self.orders {
            let of_order = self.steps[first] * self.steps[second];
            if index < of_order {
                let (steps, more) = (1 + index / self.steps[second], 1 + index % self.steps[second]);
                return Schedule::new(&[(first, steps), (second, more)], last);
            }
            index -= of_order;
        }
        unreachable!("the index is below the length")
    }
}

const fn greatest_common_divisor(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

pub fn letter(actor: usize) -> char {
    char::from(b'A' + u8::try_from(actor).expect("few actors"))
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, run) in self.0.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            match run.steps {
                Some(steps) => write!(f, "{space}{}{steps}", letter(run.actor))?,
                None => write!(f, "{space}{}*", letter(run.actor))?,
            }
        }
        Ok(())
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let run = |word: &str| {
            let wrong = || format!("{word:?} is no run; `A3` or `A*` is");
            let mut chars = word.chars();
            let name = chars.next().filter(char::is_ascii_uppercase).ok_or_else(wrong)?;
            let steps = match chars.as_str() {
                "*" => None,
                number => Some(number.parse().map_err(|_| wrong())?),
            };
            Ok(StepRun { actor: name as usize - 'A' as usize, steps })
        };
        text.split_whitespace().map(run).collect::<Result<_, _>>().map(Self)
    }
}

#[test]
fn schedule_is_parsed_as_printed() {
    let schedule = Schedule::new(&[(0, 3), (1, 15)], 0);
    assert_eq!(schedule.to_string(), "A3 B15 A*");
    assert_eq!(schedule.to_string().parse::<Schedule>(), Ok(schedule));
    assert!("A3 5".parse::<Schedule>().is_err());
}

#[test]
fn grid_has_every_schedule_once() {
    for steps in [vec![1, 1], vec![3, 4], vec![7, 12], vec![2, 3, 5]] {
        let grid = Grid::new(steps);
        let all: BTreeSet<String> = (0..grid.len()).map(|number| grid.spread(number).to_string()).collect();
        assert_eq!(all.len(), grid.len() as usize, "{grid:?}");
    }
    let two = Grid::new(vec![2, 1]);
    let all: BTreeSet<String> = (0..two.len()).map(|number| two.spread(number).to_string()).collect();
    assert_eq!(all.into_iter().collect::<Vec<_>>(), ["A1 B1 A*", "A2 B1 A*", "B1 A1 B*", "B1 A2 B*"]);
}
