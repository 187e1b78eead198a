//! Interleavings of two or three concurrent actions on one booking, statement by statement.
//!
//! Each actor has a server whose connections to Postgres go through a gate ([`gate`]); a controller grants one permit
//! at a time ([`controller`]). Every schedule with up to two preemptions is enumerated: one actor runs some statements,
//! another runs some, and so on. A lock wait is no preemption; others run until the actor has the lock. Calls between
//! the statements of an actor (Redis, the gateway) happen with the statement before them. After each schedule the
//! relay's effects are performed, and the books are checked over the whole database.
//!
//! A sample runs with all other tests. `cargo xtask prove interleavings` runs every schedule; [`Selection`] describes
//! smaller runs.

mod actions;
mod controller;
mod gate;
mod schedule_runner;
mod schedule_world;

use std::time::{Duration, Instant};

use schedule_runner::{Extent, MAX_FINDINGS, RunSummary, Scenario, Schedule, explore, pairs, replay, sample, triples};

/// Selects the schedules to run instead of the sample; parsed by [`Selection`].
const SELECTION: &str = "ROWLOCK_INTERLEAVINGS";
/// Schedules with two preemptions of each pair in the sample, besides a serial one.
const SAMPLED_SCHEDULES: u32 = 2;

#[derive(Debug, PartialEq, Eq)]
enum Selection {
    /// `all`: every schedule of every pair and triple.
    All,
    /// `25m`: schedules of every pair and triple in turn, for this many minutes.
    For(Duration),
    /// `20`: this many schedules of every pair.
    Each(u32),
    /// `check-out+revise@changed`: every schedule of one scenario.
    Scenario(Scenario),
    /// `check-out+revise@changed: A7 B* A*`, as a violation is printed: one schedule.
    One(Scenario, Schedule),
}

impl Selection {
    fn read(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        if let Some((scenario, schedule)) = text.split_once(':') {
            return Ok(Self::One(scenario.parse()?, schedule.parse()?));
        }
        if text.contains('@') {
            return Ok(Self::Scenario(text.parse()?));
        }
        let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number"));
        text.strip_suffix('m').map_or_else(
            || number(text).map(Self::Each),
            |minutes| Ok(Self::For(Duration::from_secs(60 * u64::from(number(minutes)?)))),
        )
    }
}

fn assert_no_findings(summary: &RunSummary) {
    assert!(summary.schedules > 0, "no schedule was run");
    let shown = summary.findings.iter().take(MAX_FINDINGS).cloned().collect::<Vec<_>>().join("\n");
    assert!(summary.findings.is_empty(), "{} schedules leave the books wrong:\n{shown}", summary.findings.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_actions_on_a_booking_keep_the_books_balanced() {
    let asked =
        std::env::var(SELECTION).ok().map(|text| Selection::read(&text).unwrap_or_else(|wrong| panic!("{wrong}")));
    let everything = || pairs().into_iter().chain(triples()).collect();
    let summary = match asked {
        None => explore(sample(), Extent::Each(SAMPLED_SCHEDULES)).await,
        Some(Selection::All) => explore(everything(), Extent::All).await,
        Some(Selection::For(time)) => explore(everything(), Extent::Until(Instant::now() + time)).await,
        Some(Selection::Each(count)) => explore(pairs(), Extent::Each(count)).await,
        Some(Selection::Scenario(scenario)) => explore(vec![scenario], Extent::All).await,
        Some(Selection::One(scenario, schedule)) => {
            assert!(
                schedule.0.iter().all(|run| run.actor < scenario.actions.len()),
                "{scenario} has no such actor: {schedule}"
            );
            replay(&scenario, &schedule).await
        }
    };
    assert_no_findings(&summary);
}

/// Lock and lines in one statement: the lines are from before the lock wait.
#[tokio::test(flavor = "multi_thread")]
async fn revision_after_any_statement_of_a_checkout_is_charged_for_its_lines() {
    let scenario = "check-out+revise@changed".parse().expect("a scenario");
    assert_no_findings(&explore(vec![scenario], Extent::FirstPreempted).await);
}

/// A show cancelled without its lock misses a sale that is being written.
#[tokio::test(flavor = "multi_thread")]
async fn show_cancelled_after_any_statement_of_a_sale_keeps_no_sale() {
    let scenario = "submit+call-off@held".parse().expect("a scenario");
    assert_no_findings(&explore(vec![scenario], Extent::FirstPreempted).await);
}

#[test]
fn selection_is_parsed_as_documented() {
    let scenario: Scenario = "check-out+revise@changed".parse().expect("a scenario");
    let schedule: Schedule = "A7 B* A*".parse().expect("a schedule");
    assert_eq!(Selection::read("all"), Ok(Selection::All));
    assert_eq!(Selection::read("25m"), Ok(Selection::For(Duration::from_secs(1_500))));
    assert_eq!(Selection::read("20"), Ok(Selection::Each(20)));
    assert_eq!(Selection::read(&format!("{scenario}: {schedule}")), Ok(Selection::One(scenario.clone(), schedule)));
    assert_eq!(Selection::read(&scenario.to_string()), Ok(Selection::Scenario(scenario)));
    assert!(Selection::read("some").is_err());
}
