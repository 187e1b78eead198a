//! Scenarios: which actions meet, how the booking stands when they begin, and how servers commit sales.

use std::fmt;
use std::str::FromStr;

use super::actions::{Action, Start};
use super::stage::ACTORS;

/// Actions of the sample: the way from a hold to a sale, and what ends it.
pub const SAMPLED_ACTIONS: [Action; 7] = [
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

/// How servers commit sales.
pub const COMMITS: [&str; 2] = ["interactive", "batched"];

/// Actions that begin while a booking is in that state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    pub actions: Vec<Action>,
    pub start: Start,
    pub commits: &'static str,
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
pub fn pairs() -> Vec<Scenario> {
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

/// Three at once: those around money that meet most often.
pub fn triples() -> Vec<Scenario> {
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

/// The pairs that run with all other tests, each with one start, and each sale committed by itself.
pub fn sample() -> Vec<Scenario> {
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
