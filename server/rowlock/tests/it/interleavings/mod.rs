//! Interleavings: what two or three people and machines do to one booking at the same moment, statement by statement.
//!
//! Each actor has a server whose connections to Postgres go through a gate ([`gate`]); a controller grants one permit
//! at a time ([`controller`]). Every schedule with up to two preemptions is enumerated: an actor runs some statements,
//! another runs some, and so on. An actor that waits for a lock is no preemption; others go on until it has the lock. What
//! is between the statements of an actor (Redis, the gateway) happens with the statement before it. After each
//! schedule the relay's work is done, and the books are checked over the whole database.
//!
//! A sample runs with all other tests. `cargo xtask prove interleavings` plays everything; see [`Asked`] for less.

mod actions;
mod called_off;
mod controller;
mod gate;
mod player;
mod scenario;
mod schedule;
mod stage;

use std::time::{Duration, Instant};

use player::{Extent, SHOWN, Tally, explore, replay};
use scenario::{Scenario, pairs, sample, triples};
use schedule::Schedule;

/// What is played instead of the sample, as [`Asked`] reads it.
const ASKED: &str = "ROWLOCK_INTERLEAVINGS";
/// Schedules with two preemptions of each pair in the sample, besides a serial one.
const SAMPLED: u32 = 2;

/// What is to be played.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// `all`: every schedule of every pair and triple.
    All,
    /// `25m`: schedules of every pair and triple in turn, for so many minutes.
    For(Duration),
    /// `20`: so many schedules of every pair.
    Each(u32),
    /// `check-out+revise@changed/interactive`: every schedule of one scenario.
    Scenario(Scenario),
    /// `check-out+revise@changed/interactive: A7 B* A*`, as a violation is printed: one schedule.
    One(Scenario, Schedule),
}

impl Asked {
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

fn assert_in_order(tally: &Tally) {
    assert!(tally.schedules > 0, "something is played");
    let shown = tally.findings.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
    assert!(tally.findings.is_empty(), "{} schedules leave the books wrong:\n{shown}", tally.findings.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_of_two_actions_on_one_booking_leave_the_books_right() {
    let asked = std::env::var(ASKED).ok().map(|text| Asked::read(&text).unwrap_or_else(|wrong| panic!("{wrong}")));
    let everything = || pairs().into_iter().chain(triples()).collect();
    let tally = match asked {
        None => explore(sample(), Extent::Each(SAMPLED)).await,
        Some(Asked::All) => explore(everything(), Extent::All).await,
        Some(Asked::For(time)) => explore(everything(), Extent::Until(Instant::now() + time)).await,
        Some(Asked::Each(count)) => explore(pairs(), Extent::Each(count)).await,
        Some(Asked::Scenario(scenario)) => explore(vec![scenario], Extent::All).await,
        Some(Asked::One(scenario, schedule)) => {
            assert!(
                schedule.0.iter().all(|run| run.actor < scenario.actions.len()),
                "{scenario} has no such actor: {schedule}"
            );
            replay(&scenario, &schedule).await
        }
    };
    assert_in_order(&tally);
}

/// A lock and the lines read in one statement: the lines are as of before the wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_revision_after_any_statement_of_a_check_out_is_charged_for_what_it_leaves() {
    let scenario = "check-out+revise@changed/interactive".parse().expect("a scenario");
    assert_in_order(&explore(vec![scenario], Extent::FirstPreempted).await);
}

/// A show marked without its lock: the sale that is being written is not seen, and stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_show_called_off_after_any_statement_of_a_sale_keeps_no_sale() {
    let scenario = "submit+call-off@held/interactive".parse().expect("a scenario");
    assert_in_order(&explore(vec![scenario], Extent::FirstPreempted).await);
}

#[test]
fn an_extent_is_read_as_it_is_documented() {
    let scenario: Scenario = "check-out+revise@changed/interactive".parse().expect("a scenario");
    let schedule: Schedule = "A7 B* A*".parse().expect("a schedule");
    assert_eq!(Asked::read("all"), Ok(Asked::All));
    assert_eq!(Asked::read("25m"), Ok(Asked::For(Duration::from_secs(1_500))));
    assert_eq!(Asked::read("20"), Ok(Asked::Each(20)));
    assert_eq!(Asked::read(&format!("{scenario}: {schedule}")), Ok(Asked::One(scenario.clone(), schedule)));
    assert_eq!(Asked::read(&scenario.to_string()), Ok(Asked::Scenario(scenario)));
    assert!(Asked::read("some").is_err());
}
