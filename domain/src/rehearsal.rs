//! Rehearsal of an on-sale: simulated visitors try for the seats of a copy of a show.
//!
//! A rehearsed visitor stops at the hold, which counts as a sale. Payments, tickets and mails do not occur.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::time::MINUTE_MS;

/// Maximum number of simulated visitors.
pub const MAX_PEOPLE: u32 = 2_000;
/// Maximum time in which they arrive, minutes.
pub const MAX_ARRIVAL_MINUTES: u32 = 10;
/// Time after which a rehearsal ends, milliseconds.
pub const LONGEST_MS: i64 = 20 * MINUTE_MS;
/// Duration of a rehearsed hold, milliseconds: no hold ends before its rehearsal.
pub const HOLD_MS: i64 = 2 * LONGEST_MS;

/// Share of refused visitors from which another show is advised, percent.
const MANY_REFUSED_PERCENT: u64 = 25;
/// Share of visitors who lost every race for seats from which a waiting room is advised, percent.
const MANY_RACES_PERCENT: u64 = 5;
/// Limit of seats per person above which a lower one is advised in a sold-out show: the largest usual party.
const USUAL_PER_PERSON: u32 = 4;
/// 99th percentile of the answers above which the server counts as slow, milliseconds.
const SLOW_MS: u32 = 1_000;

/// The options of a rehearsal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RehearsalRequest {
    /// Number of visitors, 1 to [`MAX_PEOPLE`].
    pub people: u32,
    /// Time in which they arrive, minutes, up to [`MAX_ARRIVAL_MINUTES`]; 0: all at once.
    pub arrival_minutes: u32,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

/// How a rehearsal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RehearsalEnd {
    /// Every seat is held.
    SoldOut,
    /// Every visitor is done, and seats are left.
    AllServed,
    /// A member of staff stopped it.
    Stopped,
    /// It took longer than [`LONGEST_MS`].
    OutOfTime,
    /// A show was about to go on sale.
    GaveWay,
    /// Its server stopped, or could not report.
    Interrupted,
}

/// Terms and figures of a rehearsal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RehearsalFigures {
    /// Number of visitors.
    pub people: u32,
    /// Time in which they arrive, minutes.
    pub arrival_minutes: u32,
    /// Seats for sale, without those that are offered on request alone.
    pub seats: u32,
    /// Seats that one person may hold.
    pub per_person: u32,
    /// Admissions per second of the waiting room; absent without one.
    pub per_second: Option<u32>,
    /// Visitors who have arrived.
    pub arrived: u32,
    /// Visitors with seats.
    pub served: u32,
    /// Their seats.
    pub taken: u32,
    /// Visitors who found no seat.
    pub no_seats: u32,
    /// Visitors who tried several times, and others took the seats first.
    pub lost_race: u32,
    /// Visitors who were refused for another reason: a limit, or an overloaded server.
    pub turned_away: u32,
    /// Median time of an answer, milliseconds.
    pub median_ms: u32,
    /// 99th percentile of the time of an answer, milliseconds.
    pub p99_ms: u32,
    /// Time from the opening until the last seat was taken, milliseconds.
    pub sold_out_ms: Option<i64>,
    /// Share of pairs of visitors who got seats in the order of their turns, percent; known at the end.
    pub in_turn_percent: Option<u32>,
}

impl RehearsalFigures {
    /// Visitors who have neither seats nor a refusal.
    #[must_use]
    pub const fn unserved(&self) -> u32 {
        self.people.saturating_sub(self.served + self.no_seats + self.lost_race + self.turned_away)
    }

    /// Recommended changes; empty if there are none.
    #[must_use]
    pub fn advice(&self, end: RehearsalEnd) -> Vec<Advice> {
        let percent = |people: u32| u64::from(people) * 100 / u64::from(self.people.max(1));
        let is_sold_out = end == RehearsalEnd::SoldOut;
        let without = self.people.saturating_sub(self.served);
        let rules = [
            (is_sold_out && percent(without) >= MANY_REFUSED_PERCENT, Advice::AnotherShow),
            (is_sold_out && without > 0 && self.per_person > USUAL_PER_PERSON, Advice::LowerPersonLimit),
            (self.per_second.is_none() && percent(self.lost_race) >= MANY_RACES_PERCENT, Advice::WaitingRoom),
            (self.per_second.is_some() && end == RehearsalEnd::OutOfTime, Advice::LetInFaster),
            (self.p99_ms > SLOW_MS, Advice::SlowAnswers),
        ];
        rules.into_iter().filter_map(|(applies, advice)| applies.then_some(advice)).collect()
    }
}

/// A change that a rehearsal advises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Demand is far above the seats: sell another show.
    AnotherShow,
    /// Fewer seats per person serve more people.
    LowerPersonLimit,
    /// Visitors race for the same seats: let them in one after the other.
    WaitingRoom,
    /// The waiting room admits so few that seats are left at the end.
    LetInFaster,
    /// The server is slow: let in fewer at once, or add servers.
    SlowAnswers,
}

/// Share of pairs in ascending order, percent; `None` without a pair. `turns` are places in the waiting room, or ranks
/// of arrival, in the order in which their visitors got seats.
#[must_use]
pub fn in_turn_percent(turns: &[u64]) -> Option<u32> {
    let count = turns.len() as u64;
    let pairs = count * count.saturating_sub(1) / 2;
    let later = |(place, turn): (usize, &u64)| turns[place..].iter().filter(|other| *other > turn).count() as u64;
    let ordered: u64 = turns.iter().enumerate().map(later).sum();
    (ordered * 100).checked_div(pairs).and_then(|percent| u32::try_from(percent).ok())
}

/// Returns the value below which `percent` of the sorted values are; 0 without values.
#[must_use]
pub fn percentile(sorted: &[u32], percent: usize) -> u32 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((sorted.len() * percent / 100).min(last)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOLD_OUT: RehearsalFigures = RehearsalFigures {
        people: 100,
        arrival_minutes: 1,
        seats: 120,
        per_person: 4,
        per_second: Some(10),
        arrived: 100,
        served: 80,
        taken: 120,
        no_seats: 20,
        lost_race: 0,
        turned_away: 0,
        median_ms: 5,
        p99_ms: 50,
        sold_out_ms: Some(60_000),
        in_turn_percent: Some(98),
    };

    #[test]
    fn good_on_sale_needs_no_change() {
        assert_eq!(SOLD_OUT.advice(RehearsalEnd::SoldOut), []);
        assert_eq!(SOLD_OUT.unserved(), 0);
        assert_eq!(RehearsalFigures::default().advice(RehearsalEnd::Stopped), []);
    }

    #[test]
    fn advice_follows_from_the_figures() {
        let advice = |figures: RehearsalFigures, end| figures.advice(end);
        let crowded = RehearsalFigures { people: 400, ..SOLD_OUT };
        assert_eq!(advice(crowded.clone(), RehearsalEnd::SoldOut), [Advice::AnotherShow]);
        assert_eq!(advice(crowded, RehearsalEnd::Stopped), [], "an early end says nothing about demand");
        let generous = RehearsalFigures { per_person: 10, ..SOLD_OUT };
        assert_eq!(advice(generous, RehearsalEnd::SoldOut), [Advice::LowerPersonLimit]);
        let race = RehearsalFigures { per_second: None, lost_race: 5, no_seats: 15, ..SOLD_OUT };
        assert_eq!(advice(race, RehearsalEnd::SoldOut), [Advice::WaitingRoom]);
        let late = RehearsalFigures { no_seats: 0, p99_ms: 1_001, ..SOLD_OUT };
        assert_eq!(late.unserved(), 20);
        assert_eq!(advice(late, RehearsalEnd::OutOfTime), [Advice::LetInFaster, Advice::SlowAnswers]);
    }

    #[test]
    fn order_of_service_is_the_share_of_pairs_in_turn() {
        assert_eq!(in_turn_percent(&[]), None);
        assert_eq!(in_turn_percent(&[7]), None);
        assert_eq!(in_turn_percent(&[0, 1, 2, 9]), Some(100));
        assert_eq!(in_turn_percent(&[9, 2, 1, 0]), Some(0));
        assert_eq!(in_turn_percent(&[1, 0, 2]), Some(66));
    }

    #[test]
    fn percentiles_are_values_of_the_list() {
        let sorted: Vec<u32> = (1..=200).collect();
        assert_eq!((percentile(&sorted, 50), percentile(&sorted, 99)), (101, 199));
        assert_eq!((percentile(&[4], 99), percentile(&[], 99)), (4, 0));
    }
}
