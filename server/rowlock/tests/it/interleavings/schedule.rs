//! Schedules: how many statements each actor runs before another one continues.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

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

/// Name of an actor.
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
