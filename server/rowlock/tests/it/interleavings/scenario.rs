//! Scenarios: concurrent actions, the booking's initial state, and the commit mode.

use std::fmt;
use std::str::FromStr;

use domain::VariantName;
use strum::VariantArray;

use super::actions::{Action, InitialState};
use super::schedule_world::ACTORS;

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

/// Values of COMMITS.
pub const COMMITS: [&str; 2] = ["interactive", "batched"];

/// Actions that start while a booking is in this state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    pub actions: Vec<Action>,
    pub start: InitialState,
    pub commits: &'static str,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.actions.iter().map(Action::as_str).collect();
        write!(f, "{}@{}/{}", names.join("+"), self.start.as_str(), self.commits)
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is no scenario; `check-out+revise@changed/interactive` is");
        let (actions, rest) = text.trim().split_once('@').ok_or_else(wrong)?;
        let (start, commits) = rest.split_once('/').ok_or_else(wrong)?;
        let action = |name: &str| name.parse::<Action>().map_err(|_| wrong());
        let actions: Vec<_> = actions.split('+').map(action).collect::<Result<_, _>>()?;
        let start = start.parse().map_err(|_| wrong())?;
        let commits = COMMITS.into_iter().find(|other| *other == commits).ok_or_else(wrong)?;
        if (2..=ACTORS).contains(&actions.len()) { Ok(Self { actions, start, commits }) } else { Err(wrong()) }
    }
}

/// Every pair of actions with every initial state that fits both, once per commit mode.
pub fn pairs() -> Vec<Scenario> {
    let mut pairs = Vec::new();
    for commits in COMMITS {
        for &start in InitialState::VARIANTS {
            let fitting: Vec<Action> = Action::VARIANTS.iter().copied().filter(|action| action.fits(start)).collect();
            for (place, one) in fitting.iter().enumerate() {
                for other in &fitting[place..] {
                    // A sold-out show has no seats for an exchange.
                    if (*one, *other) != (Action::Exchange, Action::Offer) {
                        pairs.push(Scenario { actions: vec![*one, *other], start, commits });
                    }
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
    let every = |commits| triples.iter().map(move |(actions, start)| (actions.to_vec(), *start, commits));
    let every = COMMITS.into_iter().flat_map(every);
    every.map(|(actions, start, commits)| Scenario { actions, start, commits }).collect()
}

/// Pairs that run with all other tests, each with one initial state and interactive commits.
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
    assert!("revise@held/batched".parse::<Scenario>().is_err());
}
