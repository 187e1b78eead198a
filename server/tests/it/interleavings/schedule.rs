//! Schedules: which actor runs how many statements before another goes on.

use std::fmt;
use std::str::FromStr;

/// Statements of one actor without a preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub actor: usize,
    /// After so many steps another actor goes on; none: it runs until it waits for a lock, or is over. The first step of
    /// an action is all that it does before its first statement.
    pub steps: Option<u32>,
}

/// Runs in order. What is left after them is run to the end, the first actor first; so are those that wait for a lock,
/// once they have it. Written `A3 B5 A*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(pub Vec<Run>);

impl Schedule {
    /// One preemption after another, then this actor to its end.
    pub fn new(preempted: &[(usize, u32)], last: usize) -> Self {
        let runs = preempted.iter().map(|(actor, steps)| Run { actor: *actor, steps: Some(*steps) });
        Self(runs.chain([Run { actor: last, steps: None }]).collect())
    }
}

/// The name of an actor.
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
            Ok(Run { actor: name as usize - 'A' as usize, steps })
        };
        text.split_whitespace().map(run).collect::<Result<_, _>>().map(Self)
    }
}

#[test]
fn a_schedule_is_read_as_it_is_written() {
    let schedule = Schedule::new(&[(0, 3), (1, 15)], 0);
    assert_eq!(schedule.to_string(), "A3 B15 A*");
    assert_eq!(schedule.to_string().parse::<Schedule>(), Ok(schedule));
    assert!("A3 5".parse::<Schedule>().is_err());
}
