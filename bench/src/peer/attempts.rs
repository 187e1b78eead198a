//! Attempts to hold one seat, each by another visitor: for free seats, for held seats, and a storm.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;

use super::{ComparedServer, Meter, RATE, Size, Turn, load_shows};
use crate::checker::{self, Findings, Grant};
use crate::histogram::Histogram;
use crate::http::{self, ErrorCounts, HttpAnswer, Load, LoadLimits, Next};
use crate::purchase::{Api, PurchaseStep, StepOutcome};
use crate::random::Random;
use crate::report::ReportRow;
use crate::world::Show;

/// The phases.
pub const GRANTED: &str = "granted";
pub const REFUSED: &str = "refused";
pub const STORM: &str = "storm";

/// Seats of a show for attempts and sales.
pub const SHOW_SEATS: u32 = 2_000;
/// Seats of the storm.
const STORM_SEATS: u32 = 300;
/// Timeout of a load until its last answer.
pub const TIMEOUT: Duration = Duration::from_secs(120);
/// Distance in seats between consecutive attempts at a show: a prime, so that every seat is used.
const STRIDE: usize = 7_919;

pub fn turn(server: &mut dyn ComparedServer, size: &Size) -> Result<Turn> {
    let mut turn = Turn::default();
    let shows = server.create_shows(SHOW_SEATS, size.shows)?;
    load_shows(server, &shows)?;
    let mut granted = Attempts::new(server.api(), &shows, size.shows * SHOW_SEATS as usize);
    turn.rows.push(measure(server, GRANTED, size.connections, &mut granted)?);
    let mut refused = Attempts::new(server.api(), &shows, size.shows * SHOW_SEATS as usize);
    turn.rows.push(measure(server, REFUSED, size.connections, &mut refused)?);
    // Without an error every free seat is granted, and then none is left.
    let (first, second) = (granted.refused, refused.granted());
    if granted.errors.count() == 0 && (first > 0 || second > 0) {
        turn.found.add(|| format!("{first} attempts were refused a free seat, and {second} granted a held one"));
    }
    turn.found.join(check(server, &shows, &[&granted, &refused])?);
    server.clear(&shows)?;

    let storm_shows = server.create_shows(STORM_SEATS, 1)?;
    load_shows(server, &storm_shows)?;
    let mut storm = Attempts::new(server.api(), &storm_shows, size.storm_attempts as usize);
    turn.rows.push(measure(server, STORM, size.storm_connections, &mut storm)?);
    if storm.errors.count() == 0 && storm.granted() != STORM_SEATS as usize {
        turn.found.add(|| format!("{} of {STORM_SEATS} seats were granted in the storm", storm.granted()));
    }
    turn.found.join(check(server, &storm_shows, &[&storm])?);
    server.clear(&storm_shows)?;
    Ok(turn)
}

fn measure(
    server: &dyn ComparedServer,
    phase: &str,
    connections: usize,
    attempts: &mut Attempts<'_>,
) -> Result<ReportRow> {
    let meter = Meter::start(server)?;
    http::run(&[server.address()], &LoadLimits { connections, timeout: TIMEOUT }, attempts)?;
    let count = attempts.count as f64;
    let row = ReportRow::of("locks", server.name())
        .with("phase", phase)
        .with("attempts", attempts.count)
        .figure(RATE, count / attempts.seconds())
        .latencies(&attempts.latencies);
    attempts.errors.lines().iter().for_each(|line| eprintln!("        {}, {phase}: {line}", server.name()));
    meter.add_to(row.with("errors", attempts.errors.count()), count)
}

/// Compares the grants of loads at the same shows with Redis and the server's map.
pub fn check(server: &mut dyn ComparedServer, shows: &[Show], loads: &[&Attempts<'_>]) -> Result<Findings> {
    let mut found = server.settle()?;
    for (place, show) in shows.iter().enumerate() {
        let grants: Vec<Grant> = loads.iter().flat_map(|load| load.grants[place].iter().copied()).collect();
        let unanswered = loads.iter().flat_map(|load| load.unanswered[place].iter().copied()).collect();
        let stored = server.stored(show)?;
        found.join(checker::holds(&grants, &unanswered, &stored));
        found.join(checker::view(server.name(), &server.seat_states(show)?, &stored.map));
    }
    Ok(found)
}

/// A load of attempts in turns at all seats of all shows. A connection sends its next attempt when one is answered.
pub struct Attempts<'a> {
    api: &'a dyn Api,
    shows: &'a [Show],
    count: usize,
    random: Random,
    /// When each attempt was sent, nanoseconds from the start.
    sent: Vec<u64>,
    last_answer: u64,
    /// From the sending to the last byte of the answer.
    pub latencies: Histogram,
    /// Grants by show.
    grants: Vec<Vec<Grant>>,
    refused: u64,
    /// Seats of attempts without an answer, by show.
    unanswered: Vec<BTreeSet<u32>>,
    pub errors: ErrorCounts,
}

impl<'a> Attempts<'a> {
    pub fn new(api: &'a dyn Api, shows: &'a [Show], count: usize) -> Self {
        Self {
            api,
            shows,
            count,
            random: Random::fresh(),
            sent: Vec::with_capacity(count),
            last_answer: 0,
            latencies: Histogram::default(),
            grants: vec![Vec::new(); shows.len()],
            refused: 0,
            unanswered: vec![BTreeSet::new(); shows.len()],
            errors: ErrorCounts::default(),
        }
    }

    /// Returns the number of attempts sent so far, which is the number of the next one.
    pub const fn sent(&self) -> usize {
        self.sent.len()
    }

    /// Returns the number of grants.
    pub fn granted(&self) -> usize {
        self.grants.iter().map(Vec::len).sum()
    }

    /// Returns the show (by index) and the seat of an attempt.
    pub fn target(&self, number: usize) -> (usize, u32) {
        let show = number % self.shows.len();
        let seats = self.shows[show].seats as usize;
        (show, (number / self.shows.len() * STRIDE % seats) as u32)
    }

    /// Returns the time until the last answer.
    fn seconds(&self) -> f64 {
        (self.last_answer as f64 / 1e9).max(1e-3)
    }
}

impl Load for Attempts<'_> {
    fn next(&mut self, _: usize, now: u64, out: &mut Vec<u8>) -> Next {
        let number = self.sent.len();
        if number == self.count {
            return Next::Done;
        }
        let (show, seat) = self.target(number);
        let visitor = self.random.hex();
        self.api.write(PurchaseStep::Hold, self.shows[show].id, seat..seat + 1, &visitor, out);
        self.sent.push(now);
        Next::Send(number as u32)
    }

    fn answered(&mut self, ticket: u32, now: u64, answer: &HttpAnswer<'_>) {
        let (show, seat) = self.target(ticket as usize);
        self.latencies.record(now.saturating_sub(self.sent[ticket as usize]));
        self.last_answer = now;
        match self.api.outcome(PurchaseStep::Hold, answer) {
            StepOutcome::Held(hold, _) => self.grants[show].push(Grant { seat, hold }),
            _ if self.api.refused_seat(answer) == Some(seat) => self.refused += 1,
            _ => {
                self.errors.add(answer.status.to_string());
                if answer.status >= 500 {
                    self.unanswered[show].insert(seat);
                }
            }
        }
    }

    fn lost(&mut self, ticket: u32, _: u64, why: &str) {
        let (show, seat) = self.target(ticket as usize);
        self.unanswered[show].insert(seat);
        self.errors.add(format!("no answer: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purchase::RowlockApi;
    use uuid::Uuid;

    #[test]
    fn every_seat_of_every_show_is_wanted_once_before_any_is_wanted_again() {
        let shows = [1, 2, 3].map(|id| Show { id: Uuid::from_u128(id), seats: STORM_SEATS });
        let attempts = Attempts::new(&RowlockApi, &shows, 0);
        let all = shows.len() * STORM_SEATS as usize;
        let wanted: BTreeSet<_> = (0..all).map(|number| attempts.target(number)).collect();
        assert_eq!(wanted.len(), all);
        assert_eq!(attempts.target(all), attempts.target(0));
    }

    #[test]
    fn grants_refusals_and_errors_are_told_apart() {
        let shows = [Show { id: Uuid::from_u128(1), seats: 100 }];
        let mut attempts = Attempts::new(&RowlockApi, &shows, 4);
        let hold = Uuid::from_u128(9);
        for _ in 0..4 {
            assert!(matches!(attempts.next(0, 5, &mut Vec::new()), Next::Send(_)));
        }
        assert!(matches!(attempts.next(0, 5, &mut Vec::new()), Next::Done));
        let other_seat = r#"{"code":"seats_locked","seats":[{"seat":0}]}"#;
        let own_seat = format!(r#"{{"code":"seats_locked","seats":[{{"seat":{}}}]}}"#, attempts.target(1).1);
        let answers =
            [(201, format!(r#"{{"id":"{hold}"}}"#)), (423, own_seat), (423, other_seat.into()), (503, "{}".into())];
        for (ticket, (status, body)) in (0..).zip(&answers) {
            attempts.answered(ticket, 10, &HttpAnswer { status: *status, body: body.as_bytes() });
        }
        assert_eq!(attempts.grants[0], [Grant { seat: 0, hold }]);
        assert_eq!((attempts.refused, attempts.errors.count()), (1, 2));
        assert_eq!(attempts.unanswered[0], BTreeSet::from([attempts.target(3).1]));
    }
}
