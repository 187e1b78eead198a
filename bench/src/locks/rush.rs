//! Many visitors, one attempt each, on a schedule.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::request::Template;
use crate::checker::Grant;
use crate::histogram::Histogram;
use crate::http::{Answer, Load, Next, number_after, text_after};
use crate::random::Random;

/// What an attempt should be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The seat: 201.
    Granted,
    /// That somebody else holds it: 423.
    Refused,
}

/// Kinds of unexpected answers told at the end.
const KINDS_TOLD: usize = 5;

/// Attempts at seats, one after the other as they fall due.
pub struct Rush<'a> {
    /// Which show (by place) and which seat, with the instant to send at.
    wishes: Vec<(usize, u32, u64)>,
    templates: &'a [Template],
    expected: Expected,
    random: Random,
    sent: usize,
    /// From the intended instant to the last byte of the answer.
    pub latencies: Histogram,
    /// From the intended instant to the sending: the generator was busy, or all connections were.
    pub delays: Histogram,
    /// Grants by show.
    pub grants: Vec<Vec<Grant>>,
    /// Seats of attempts that got no answer, by show.
    pub unsure: Vec<BTreeSet<u32>>,
    /// Unexpected answers, by kind.
    pub errors: BTreeMap<String, u64>,
}

impl<'a> Rush<'a> {
    /// A rush at these seats.
    pub fn new(wishes: Vec<(usize, u32, u64)>, templates: &'a [Template], expected: Expected) -> Self {
        Self {
            wishes,
            templates,
            expected,
            random: Random::fresh(),
            sent: 0,
            latencies: Histogram::default(),
            delays: Histogram::default(),
            grants: vec![Vec::new(); templates.len()],
            unsure: vec![BTreeSet::new(); templates.len()],
            errors: BTreeMap::new(),
        }
    }

    /// How many attempts there are.
    pub const fn attempts(&self) -> usize {
        self.wishes.len()
    }

    /// How many were not answered as expected.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The most frequent unexpected answers, in words.
    pub fn errors_told(&self) -> Vec<String> {
        let mut kinds: Vec<_> = self.errors.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        kinds.iter().take(KINDS_TOLD).map(|(kind, count)| format!("{count} × {kind}")).collect()
    }

    fn error(&mut self, kind: String) {
        *self.errors.entry(kind).or_default() += 1;
    }
}

impl Load for Rush<'_> {
    fn next(&mut self, _: usize, now: u64, out: &mut Vec<u8>) -> Next {
        let Some((show, seat, due)) = self.wishes.get(self.sent).copied() else { return Next::Done };
        if due > now {
            return Next::At(due);
        }
        self.templates[show].fill(&mut self.random, seat, out);
        self.delays.record(now - due);
        self.sent += 1;
        Next::Send((self.sent - 1) as u32)
    }

    fn answered(&mut self, ticket: u32, now: u64, answer: &Answer<'_>) {
        let (show, seat, due) = self.wishes[ticket as usize];
        self.latencies.record(now.saturating_sub(due));
        let right = match answer.status {
            201 => {
                // Every grant is written down, the unexpected ones above all.
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
                self.unsure[show].insert(seat);
            }
        }
    }

    fn lost(&mut self, ticket: u32, now: u64, why: &str) {
        let (show, seat, due) = self.wishes[ticket as usize];
        self.latencies.record(now.saturating_sub(due));
        self.unsure[show].insert(seat);
        self.error(format!("no answer: {why}"));
    }
}
