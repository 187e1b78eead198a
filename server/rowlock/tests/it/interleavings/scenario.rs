//! Scenarios: concurrent actions, and the booking's initial state.

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

/// Actions that start while a booking is in this state.
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

/// Pairs that run with all other tests, each with one initial state.
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
