//! Plays schedules of scenarios, several side by side, and counts what they lead to.

use std::collections::{HashMap, VecDeque};
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::future::join_all;

use super::actions::Scene;
use super::controller::{Played, trace_lines};
use super::scenario::Scenario;
use super::schedule::{Grid, Schedule};
use super::stage::Stage;

/// Schedules played at the same moment, a core, where many are played: much of a schedule is waiting for answers. A few are
/// not worth a world for each of so many workers.
const WORKERS_PER_CORE: usize = 3;
/// So many schedules are played in one world: its books are read after each of them.
const SCHEDULES_PER_WORLD: u32 = 50;
/// Findings shown at most; with so many no other schedule is begun.
pub const SHOWN: usize = 20;
/// The answer of a server that gave up waiting for Postgres, or was chosen to end a deadlock. It wrote nothing, and its
/// client may try again.
const GAVE_WAY: &str = "503 database_unavailable";

/// How much is played.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// Every schedule with up to two preemptions.
    All,
    /// Every schedule in which the first actor is preempted once, by the second.
    FirstPreempted,
    /// One schedule without a preemption and so many with two, spread over all there are.
    Each(u32),
    /// The same, until then: first one of each scenario, then another, and so on.
    Until(Instant),
}

/// What schedules led to.
#[derive(Default)]
pub struct Tally {
    pub schedules: u32,
    /// Schedules with two preemptions that there are of the scenarios, where they were counted.
    in_all: u32,
    /// Schedules in which an actor waited for a lock of another.
    blocked: u32,
    /// Schedules in which a server gave way.
    gave_way: u32,
    pub findings: Vec<String>,
}

#[derive(Clone, Default)]
struct SharedTally(Arc<Mutex<Tally>>);

impl SharedTally {
    fn get(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A scenario of which more is to be played.
struct Progress {
    scenario: Scenario,
    /// Its schedules, once the length of its actions is known.
    grid: Option<Grid>,
    /// Schedules of the grid that were played.
    played: u32,
}

/// Plays schedules, each in a show of its own.
struct Player {
    /// One for each way to commit, and how many schedules it has seen.
    stages: HashMap<&'static str, (Stage, u32)>,
    tally: SharedTally,
}

impl Player {
    fn new(tally: SharedTally) -> Self {
        Self { stages: HashMap::new(), tally }
    }

    /// Plays one schedule, and counts what it led to; nothing when it did not reach its end.
    async fn play(&mut self, scenario: &Scenario, schedule: &Schedule) -> Option<Played> {
        let commits = scenario.commits;
        if self.stages.get(commits).is_some_and(|(_, seen)| *seen >= SCHEDULES_PER_WORLD) {
            self.end(commits).await;
        }
        if !self.stages.contains_key(commits) {
            self.stages.insert(commits, (Stage::open(commits).await, 0));
        }
        let (stage, seen) = self.stages.get_mut(commits).expect("it was opened");
        *seen += 1;
        let scene = Scene::prepare(stage, scenario.start, &scenario.actions).await;
        let mut acts = Vec::new();
        for (actor, action) in scenario.actions.iter().enumerate() {
            acts.push(scene.act(stage, *action, actor).await);
        }
        let played = stage.play(schedule, acts).await;
        scene.hear_gateway(stage).await;
        let mut findings = stage.look().await;
        match &played {
            Ok(played) => {
                let failed = answers(played).filter(|answer| answer.starts_with('5') && *answer != GAVE_WAY);
                findings.extend(failed.map(|answer| format!("a server failed: {answer}")));
            }
            Err(why) => findings.push(why.clone()),
        }
        self.note(scenario, schedule, &played, &findings);
        // It may be broken, or its findings hide others.
        if !findings.is_empty() {
            self.end(commits).await;
        }
        played.ok()
    }

    fn note(&self, scenario: &Scenario, schedule: &Schedule, played: &Result<Played, String>, findings: &[String]) {
        let mut tally = self.tally.get();
        tally.schedules += 1;
        if let Ok(played) = played {
            tally.blocked += u32::from(played.blocked > 0);
            tally.gave_way += u32::from(answers(played).any(|answer| answer == GAVE_WAY));
        }
        if findings.is_empty() {
            return;
        }
        let trace = played.as_ref().map(trace_lines).unwrap_or_default();
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
                            if self.has_enough() {
                                return;
                            }
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

    /// The first actor is preempted by the second after each of its steps.
    async fn play_first_preempted(&mut self, scenario: &Scenario) {
        for steps in 1.. {
            let played = self.play(scenario, &Schedule::new(&[(0, steps)], 1)).await;
            if self.has_enough() || played.is_some_and(|played| !played.is_preempted[0]) {
                break;
            }
        }
    }

    /// One schedule more of the scenario; whether there are others.
    async fn play_next(&mut self, progress: &mut Progress) -> bool {
        let Progress { scenario, grid, played } = progress;
        let Some(grid) = grid else {
            // One action after the other.
            let serial = self.play(scenario, &Schedule::new(&[], 0)).await;
            let steps = |serial: Played| (0..scenario.actions.len()).map(|actor| serial.steps(actor)).collect();
            *grid = serial.map(|serial| Grid::new(steps(serial)));
            self.tally.get().in_all += grid.as_ref().map_or(0, Grid::len);
            return grid.is_some();
        };
        // Each scenario begins elsewhere.
        let place = *played + scenario.to_string().bytes().map(u32::from).sum::<u32>();
        self.play(scenario, &grid.spread(place)).await;
        *played += 1;
        *played < grid.len()
    }

    fn has_enough(&self) -> bool {
        self.tally.get().findings.len() >= SHOWN
    }

    async fn end(&mut self, commits: &str) {
        if let Some((stage, _)) = self.stages.remove(commits) {
            stage.end().await;
        }
    }

    async fn end_all(mut self) {
        for (_, (stage, _)) in self.stages.drain() {
            stage.end().await;
        }
    }
}

/// What each request was answered; an action may be several.
fn answers(played: &Played) -> impl Iterator<Item = &str> {
    played.answers.iter().flat_map(|answers| answers.split(", "))
}

/// Plays schedules of each scenario, several side by side.
pub async fn explore(scenarios: Vec<Scenario>, extent: Extent) -> Tally {
    let (began, count) = (Instant::now(), scenarios.len());
    let scenarios = scenarios.into_iter().map(|scenario| Progress { scenario, grid: None, played: 0 });
    let scenarios = Arc::new(Mutex::new(scenarios.collect::<VecDeque<_>>()));
    let tally = SharedTally::default();
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let per_core = if matches!(extent, Extent::All | Extent::Until(_)) { WORKERS_PER_CORE } else { 1 };
    let workers = (0..cores * per_core).map(|_| work(Arc::clone(&scenarios), tally.clone(), extent));
    join_all(workers).await;
    let tally = std::mem::take(&mut *tally.get());
    let Tally { schedules, in_all, blocked, gave_way, findings } = &tally;
    let of_all = if *in_all > 0 { format!(" of {in_all}") } else { String::new() };
    println!(
        "interleavings: {schedules}{of_all} schedules run in {:.0?} of {count} scenarios ({blocked} with a wait for a lock, \
         {gave_way} with a server that gave way), {} violations",
        began.elapsed(),
        findings.len()
    );
    tally
}

async fn work(scenarios: Arc<Mutex<VecDeque<Progress>>>, tally: SharedTally, extent: Extent) {
    let mut player = Player::new(tally);
    while !player.has_enough() {
        let next = scenarios.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(mut progress) = next else { break };
        let has_more = match extent {
            Extent::All => {
                let before = (player.tally.get().schedules, Instant::now());
                player.play_all(&progress.scenario).await;
                let of_all = player.tally.get().schedules - before.0;
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
    player.end_all().await;
}

/// Plays one schedule, and prints it.
pub async fn replay(scenario: &Scenario, schedule: &Schedule) -> Tally {
    let tally = SharedTally::default();
    let mut player = Player::new(tally.clone());
    let played = player.play(scenario, schedule).await;
    player.end_all().await;
    let tally = std::mem::take(&mut *tally.get());
    if let Some(played) = played.filter(|_| tally.findings.is_empty()) {
        println!("{scenario}: {schedule}: {:?}\n{}", played.answers, trace_lines(&played));
    }
    tally
}
