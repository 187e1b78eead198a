//! Runs schedules of scenarios concurrently, and summarises their results.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::future::join_all;

use super::actions::PreparedBooking;
use super::controller::{ScheduleResult, trace_lines};
use super::scenario::Scenario;
use super::schedule::{Grid, Schedule};
use super::schedule_world::ScheduleWorld;

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

/// The set of schedules to run.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// Every schedule with up to two preemptions.
    All,
    /// Every schedule in which the second actor preempts the first one once.
    FirstPreempted,
    /// One serial schedule and this many with two preemptions, spread over all of them.
    Each(u32),
    /// The same until this time: first one of each scenario, then another, and so on.
    Until(Instant),
}

/// Summary of the schedules that were run.
#[derive(Default)]
pub struct RunSummary {
    pub schedules: u32,
    /// Number of schedules with two preemptions of the scenarios, where it was computed.
    in_all: u32,
    /// Schedules with a lock wait between actors.
    blocked: u32,
    /// Schedules in which a server gave up.
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

/// A scenario with schedules left to run.
struct Progress {
    scenario: Scenario,
    /// Its schedules, once the length of its actions is known.
    grid: Option<Grid>,
    /// Schedules of the grid that were run.
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

    /// Runs every schedule with up to two preemptions.
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
            // One action after the other.
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

/// Runs schedules of each scenario concurrently.
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

/// Runs one schedule and prints it.
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
