//! A load of many visitors with one attempt each, on a schedule.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::request::Template;
use crate::checker::Grant;
use crate::histogram::Histogram;
use crate::http::{HttpAnswer, Load, Next, number_after, text_after};
use crate::random::Random;

/// The expected answer to every attempt of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// 201: the seat is granted.
    Granted,
    /// 423: another visitor holds the seat.
    Refused,
}

/// Kinds of unexpected answers printed at the end.
const MAX_ERROR_LINES: usize = 5;

/// Attempts at seats, sent in order when they fall due.
pub struct AttemptLoad<'a> {
    /// Show (by index), seat, and instant to send at, nanoseconds from the start.
    attempts: Vec<(usize, u32, u64)>,
    templates: &'a [Template],
    expected: Expected,
    random: Random,
    sent: usize,
    /// From the intended instant to the last byte of the answer.
    pub latencies: Histogram,
    /// From the intended instant to the sending. A delay means that the generator or all connections were busy.
    pub delays: Histogram,
    /// Grants by show.
    pub grants: Vec<Vec<Grant>>,
    /// Seats of attempts that got no answer, by show.
    pub unanswered: Vec<BTreeSet<u32>>,
    /// Unexpected answers, by kind.
    pub errors: BTreeMap<String, u64>,
}

impl<'a> AttemptLoad<'a> {
    /// Creates a load of these attempts.
    pub fn new(attempts: Vec<(usize, u32, u64)>, templates: &'a [Template], expected: Expected) -> Self {
        Self {
            attempts,
            templates,
            expected,
            random: Random::fresh(),
            sent: 0,
            latencies: Histogram::default(),
            delays: Histogram::default(),
            grants: vec![Vec::new(); templates.len()],
            unanswered: vec![BTreeSet::new(); templates.len()],
            errors: BTreeMap::new(),
        }
    }

    /// Returns the number of attempts.
    pub const fn attempts(&self) -> usize {
        self.attempts.len()
    }

    /// Returns the number of unexpected answers.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Describes the most frequent unexpected answers.
    pub fn error_lines(&self) -> Vec<String> {
        let mut kinds: Vec<_> = self.errors.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        kinds.iter().take(MAX_ERROR_LINES).map(|(kind, count)| format!("{count} × {kind}")).collect()
    }

    fn error(&mut self, kind: String) {
        *self.errors.entry(kind).or_default() += 1;
    }
}

impl Load for AttemptLoad<'_> {
    fn next(&mut self, _: usize, now: u64, out: &mut Vec<u8>) -> Next {
        let Some((show, seat, due)) = self.attempts.get(self.sent).copied() else { return Next::Done };
        if due > now {
            return Next::At(due);
        }
        self.templates[show].fill(&mut self.random, seat, out);
        self.delays.record(now - due);
        self.sent += 1;
        Next::Send((self.sent - 1) as u32)
    }

    fn answered(&mut self, ticket: u32, now: u64, answer: &HttpAnswer<'_>) {
        let (show, seat, due) = self.attempts[ticket as usize];
        self.latencies.record(now.saturating_sub(due));
        let right = match answer.status {
            201 => {
                // The checker needs every grant, unexpected ones too.
                let hold = text_after(answer.body, "id").and_then(|id| Uuid::parse_str(id).ok());
                match hold {
                    Some(hold) => self.grants[show].push(Grant { seat, hold }),
                    None => self.error("201 without a hold".into()),
                }
                self.expected == Expected::Granted
            }
            423 => self.expected == Expected::Refused && number_after(answer.body, "seat") == Some(u64::from(seat)),
            _ => false,
        };
        if !right {
            let code = text_after(answer.body, "code").unwrap_or("no code");
            self.error(format!("{} {code}", answer.status));
            if answer.status >= 500 {
                self.unanswered[show].insert(seat);
            }
        }
    }

    fn lost(&mut self, ticket: u32, now: u64, why: &str) {
        let (show, seat, due) = self.attempts[ticket as usize];
        self.latencies.record(now.saturating_sub(due));
        self.unanswered[show].insert(seat);
        self.error(format!("no answer: {why}"));
    }
}
