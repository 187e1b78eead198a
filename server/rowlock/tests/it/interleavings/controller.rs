//! Runs one schedule: grants permits to the actors' statements, one at a time.
//!
//! After each permit it waits until every actor has settled: the actor's next statement waits for a permit, the actor
//! waits for a lock of another one according to `pg_blocking_pids`, or its action is over. No decision depends on
//! timing.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use futures::future::BoxFuture;
use sqlx::PgPool;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::gate::{ConnectionId, Gate, GateEvent};
use super::schedule_runner::{Schedule, letter};

/// Interval of the queries for lock waits, while a statement has no answer.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(3);
/// A schedule without progress for this long is a finding.
const SCHEDULE_TIMEOUT: Duration = Duration::from_secs(30);

pub type ActionFuture = BoxFuture<'static, String>;

#[derive(Debug, Default)]
pub struct ScheduleResult {
    /// Actor and beginning of each statement.
    pub trace: Vec<(usize, String)>,
    /// For each run, whether it ended by a preemption: its actor could have continued.
    pub is_preempted: Vec<bool>,
    pub answers: Vec<String>,
    pub blocked: u32,
}

impl ScheduleResult {
    pub fn steps(&self, actor: usize) -> u32 {
        self.trace.iter().filter(|(other, _)| *other == actor).count() as u32
    }
}

pub struct Controller {
    events: UnboundedReceiver<GateEvent>,
    sender: UnboundedSender<GateEvent>,
    /// Queries lock waits, past any gate.
    watcher: PgPool,
}

struct WaitingStatement {
    connection: ConnectionId,
    statement: String,
    permit: oneshot::Sender<()>,
}

#[derive(Default)]
struct Actor {
    act: Option<ActionFuture>,
    waiting: VecDeque<WaitingStatement>,
    running: Option<ConnectionId>,
    is_blocked: bool,
    open: HashSet<ConnectionId>,
    answer: Option<String>,
    /// Its action is answered, and its transactions are over. Later background work of its server is not part of the
    /// schedule.
    is_over: bool,
}

impl Actor {
    fn may_be_over(&self) -> bool {
        self.answer.is_some() && self.running.is_none() && self.waiting.is_empty() && self.open.is_empty()
    }

    fn can_step(&self) -> bool {
        self.running.is_none() && (self.act.is_some() || !self.waiting.is_empty())
    }

    fn is_settled(&self) -> bool {
        self.act.is_some() || self.is_over || self.is_blocked || self.can_step()
    }
}

impl Controller {
    pub fn new(events: UnboundedReceiver<GateEvent>, sender: UnboundedSender<GateEvent>, watcher: PgPool) -> Self {
        Self { events, sender, watcher }
    }

    /// Runs a schedule of these actions, one per actor, each behind its gate.
    ///
    /// # Errors
    /// When there is no progress; the error describes the state.
    pub async fn play(
        &mut self,
        schedule: &Schedule,
        gates: &[&Gate],
        acts: Vec<ActionFuture>,
    ) -> Result<ScheduleResult, String> {
        while self.events.try_recv().is_ok() {}
        gates.iter().for_each(|gate| gate.close());
        let mut actors: Vec<Actor> = acts.into_iter().map(|act| Actor { act: Some(act), ..Actor::default() }).collect();
        let mut played = ScheduleResult::default();
        let outcome = self.run(schedule, gates, &mut actors, &mut played).await;
        gates.iter().for_each(|gate| gate.open());
        outcome.map_err(|why| format!("{why}\n{}", trace_lines(&played)))?;
        played.answers = actors.into_iter().map(|actor| actor.answer.unwrap_or_default()).collect();
        Ok(played)
    }

    async fn run(
        &mut self,
        schedule: &Schedule,
        gates: &[&Gate],
        actors: &mut [Actor],
        played: &mut ScheduleResult,
    ) -> Result<(), String> {
        for run in &schedule.0 {
            let mut left = run.steps;
            while left != Some(0) && actors[run.actor].can_step() {
                self.step(run.actor, gates, actors, played).await?;
                left = left.map(|left| left - 1);
            }
            played.is_preempted.push(left == Some(0) && actors[run.actor].can_step());
        }
        while let Some(next) = actors.iter().position(Actor::can_step) {
            self.step(next, gates, actors, played).await?;
        }
        Ok(())
    }

    /// Starts an actor's action or permits its next statement; then waits until all have settled.
    async fn step(
        &mut self,
        number: usize,
        gates: &[&Gate],
        actors: &mut [Actor],
        played: &mut ScheduleResult,
    ) -> Result<(), String> {
        let actor = &mut actors[number];
        if let Some(act) = actor.act.take() {
            played.trace.push((number, "(begins)".to_owned()));
            let events = self.sender.clone();
            tokio::spawn(async move {
                let answer = act.await;
                // The receiver is gone when the test is over.
                let _ = events.send(GateEvent::Finished { actor: number, answer });
            });
        } else if let Some(WaitingStatement { connection, statement, permit }) = actor.waiting.pop_front() {
            played.trace.push((number, statement));
            actor.running = Some(connection);
            let _ = permit.send(());
        }
        self.settle(gates, actors, played).await
    }

    async fn settle(
        &mut self,
        gates: &[&Gate],
        actors: &mut [Actor],
        played: &mut ScheduleResult,
    ) -> Result<(), String> {
        let until = Instant::now() + SCHEDULE_TIMEOUT;
        let were_blocked: Vec<bool> = actors.iter().map(|actor| actor.is_blocked).collect();
        // A lock may have been released.
        actors.iter_mut().for_each(|actor| actor.is_blocked = false);
        loop {
            while let Ok(event) = self.events.try_recv() {
                take(event, gates, actors);
            }
            // If all wait for locks, Postgres resolves the deadlock, and one of them continues.
            let goes_on = actors.iter().any(Actor::can_step) || actors.iter().all(|actor| actor.is_over);
            if goes_on && actors.iter().all(Actor::is_settled) {
                let newly = actors.iter().zip(were_blocked).filter(|(actor, was)| actor.is_blocked && !was);
                played.blocked += newly.count() as u32;
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("no progress: {}", state(actors)));
            }
            match timeout(LOCK_POLL_INTERVAL, self.events.recv()).await {
                Ok(Some(event)) => take(event, gates, actors),
                Ok(None) => return Err("the gates are gone".to_owned()),
                Err(_) => self.query_lock_waits(actors).await?,
            }
        }
    }

    async fn query_lock_waits(&mut self, actors: &mut [Actor]) -> Result<(), String> {
        let running: HashMap<i32, usize> = (0..)
            .zip(actors.iter())
            .filter_map(|(number, actor): (usize, &Actor)| actor.running.map(|connection| (connection.pid, number)))
            .collect();
        if running.is_empty() {
            return Ok(());
        }
        let whose: HashMap<i32, usize> = actors
            .iter()
            .flat_map(|actor| actor.open.iter().chain(actor.running.iter()))
            .map(|connection| (connection.pid, connection.actor))
            .collect();
        let pids: Vec<i32> = running.keys().copied().collect();
        let waits: Vec<(i32, Vec<i32>)> =
            sqlx::query_as("SELECT pid, pg_blocking_pids(pid) FROM unnest($1::integer[]) AS asked (pid)")
                .bind(pids)
                .fetch_all(&self.watcher)
                .await
                .map_err(|cause| format!("the query for lock waits failed: {cause}"))?;
        for (pid, blockers) in waits {
            let number = running[&pid];
            actors[number].is_blocked =
                blockers.iter().any(|blocker| whose.get(blocker).is_some_and(|other| *other != number));
        }
        Ok(())
    }
}

fn take(event: GateEvent, gates: &[&Gate], actors: &mut [Actor]) {
    let number = match &event {
        GateEvent::Waits { connection, .. }
        | GateEvent::Answered { connection, .. }
        | GateEvent::Closed { connection } => connection.actor,
        GateEvent::Finished { actor, .. } => *actor,
    };
    // An actor outside this schedule.
    let Some(actor) = actors.get_mut(number) else { return };
    match event {
        // From before its start, or background work after its end.
        GateEvent::Waits { permit, .. } if actor.act.is_some() || actor.is_over => {
            let _ = permit.send(());
        }
        GateEvent::Waits { connection, statement, permit } => {
            actor.waiting.push_back(WaitingStatement { connection, statement, permit });
        }
        GateEvent::Answered { connection, is_in_transaction } => {
            if actor.running == Some(connection) {
                (actor.running, actor.is_blocked) = (None, false);
            }
            if is_in_transaction {
                actor.open.insert(connection);
            } else {
                actor.open.remove(&connection);
            }
        }
        GateEvent::Closed { connection } => {
            if actor.running == Some(connection) {
                (actor.running, actor.is_blocked) = (None, false);
            }
            actor.open.remove(&connection);
            actor.waiting.retain(|waiting| waiting.connection != connection);
        }
        GateEvent::Finished { answer, .. } => actor.answer = Some(answer),
    }
    if actor.may_be_over() && !actor.is_over {
        actor.is_over = true;
        gates[number].open();
    }
}

fn state(actors: &[Actor]) -> String {
    let each = actors.iter().enumerate().map(|(number, actor)| {
        let running = actor.running.map(|connection| connection.pid);
        format!(
            "{} waits with {} statements, runs one in {running:?}, waits for a lock: {}, has {} open transactions, answered: {:?}",
            letter(number), actor.waiting.len(), actor.is_blocked, actor.open.len(), actor.answer
        )
    });
    each.collect::<Vec<_>>().join("; ")
}

pub fn trace_lines(played: &ScheduleResult) -> String {
    let mut counts = HashMap::new();
    let lines = played.trace.iter().map(|(actor, statement)| {
        let count = counts.entry(*actor).or_insert(0);
        *count += 1;
        format!("    {}{count} {statement}", letter(*actor))
    });
    lines.collect::<Vec<_>>().join("\n")
}
