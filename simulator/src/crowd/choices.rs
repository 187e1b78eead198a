//! The choices of simulated visitors: pure functions of seat states, show lists and random draws.

use std::collections::BTreeSet;

use domain::api::BestView;
use domain::api::catalogue::{ShowStatus, ShowView};
use domain::best_available::Adjacency;
use domain::seats::SeatIndex;

/// Visitors who pay, percent. The others give their seats back.
const PAYING_PERCENT: u64 = 12;
/// Visitors who close the tab, percent. The rest release their seats.
const LEAVING_PERCENT: u64 = 38;
/// Sold seats of a show, percent, from which on visitors pay no more: a demo left open is never sold out by them.
const MAX_SOLD_PERCENT: u64 = 70;
/// Free seats of a show, percent, below which visitors hold none: the last seats are for people.
const MIN_FREE_PERCENT: u64 = 20;

/// Sold seats, percent, of the shows that start part sold, in turn.
const PART_SOLD_PERCENT: [u64; 4] = [35, 60, 20, 50];
/// Local time of the first evening show, `HH:MM`.
const EVENING: &str = "17:00";
/// Minimum time until such a show begins, milliseconds: people can still watch it sell.
const MIN_LEAD_MS: i64 = 2 * 60 * 60 * 1_000;
/// Most seats of a room that is sold in part at the start.
const MAX_PART_SOLD_SEATS: u32 = 600;
/// Concerts have places without numbers, which simulated visitors do not take.
const CONCERT: &str = "LIVE";

/// The end of a simulated visit that holds seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Pays with a test card.
    Pays,
    /// Closes the tab: the seats return after the grace period.
    Leaves,
    /// Releases the seats: they return at once.
    Releases,
}

impl Ending {
    /// Returns the ending for a draw of 0 to 99.
    pub(super) const fn of_draw(draw: u64) -> Self {
        match draw {
            0..PAYING_PERCENT => Self::Pays,
            _ if draw < PAYING_PERCENT + LEAVING_PERCENT => Self::Leaves,
            _ => Self::Releases,
        }
    }

    /// Returns the ending in a show with these shares: in a well sold one, seats are released and not paid.
    pub(super) const fn in_show(self, shares: SeatShares) -> Self {
        match self {
            Self::Pays if shares.sold_percent >= MAX_SOLD_PERCENT => Self::Releases,
            ending => ending,
        }
    }
}

/// Shares of a show's seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeatShares {
    pub sold_percent: u64,
    free_percent: u64,
}

impl SeatShares {
    /// Counts the digits of `GET …/seats`.
    pub fn of(states: &str) -> Self {
        let percent = |digit| states.bytes().filter(|state| *state == digit).count() * 100 / states.len().max(1);
        Self { sold_percent: percent(b'2') as u64, free_percent: percent(b'0') as u64 }
    }

    /// True if simulated visitors may hold seats.
    pub const fn has_room(self) -> bool {
        self.free_percent >= MIN_FREE_PERCENT
    }
}

/// Picks one of the suggested groups that sit side by side in a row.
pub(super) fn pick_suggestion(best: &BestView, draw: u64) -> Option<Vec<SeatIndex>> {
    let in_a_row: Vec<_> = best.suggestions.iter().filter(|group| group.together == Adjacency::Row).collect();
    let at = draw.checked_rem(in_a_row.len() as u64)?;
    in_a_row.get(usize::try_from(at).ok()?).map(|group| group.seats.iter().map(|line| line.seat).collect())
}

/// Finds `size` free seats with consecutive numbers, at `from` or after it. Numbers follow the rows.
pub(super) fn find_free_run(states: &str, size: usize, from: usize) -> Option<Vec<SeatIndex>> {
    let later = states.as_bytes().get(from..)?;
    let at = later.windows(size).position(|run| run.iter().all(|state| *state == b'0'))?;
    let first = SeatIndex::try_from(from + at).ok()?;
    Some((first..).take(size).collect())
}

/// The shows with sold seats at the start.
#[derive(Debug, PartialEq)]
pub(super) struct EarlySales<'a> {
    pub sold_out: Option<&'a ShowView>,
    /// With their sold seats in percent.
    pub part_sold: Vec<(&'a ShowView, u64)>,
}

impl<'a> EarlySales<'a> {
    /// Selects the next evening's smallest room as sold out, and of each theatre another evening show as part sold.
    /// `shows` of a theatre are in the order of their start. Until they are about to begin, later runs select the same
    /// shows.
    pub fn of(shows: &'a [ShowView], now_ms: i64) -> Self {
        let evening: Vec<&ShowView> = shows.iter().filter(|show| is_evening_film(show, now_ms)).collect();
        let sold_out = evening
            .iter()
            .min_by_key(|show| (show.local_date.as_str(), show.seat_count, show.starts_at_ms, show.id))
            .copied();
        let mut theatres = BTreeSet::new();
        let others = evening.into_iter().filter(|show| Some(*show) != sold_out);
        let firsts = others.filter(|show| theatres.insert(show.theatre.as_str()));
        Self { sold_out, part_sold: firsts.zip(PART_SOLD_PERCENT.into_iter().cycle()).collect() }
    }
}

fn is_evening_film(show: &ShowView, now_ms: i64) -> bool {
    show.status == ShowStatus::OnSale
        && show.format != CONCERT
        && show.seat_count <= MAX_PART_SOLD_SEATS
        && show.local_time.as_str() >= EVENING
        && show.starts_at_ms - now_ms >= MIN_LEAD_MS
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn endings_have_their_shares() {
        let share = |ending| (0..100).filter(|draw| Ending::of_draw(*draw) == ending).count() as u64;
        assert_eq!([share(Ending::Pays), share(Ending::Leaves)], [PAYING_PERCENT, LEAVING_PERCENT]);
        assert!(share(Ending::Releases) > share(Ending::Pays), "most seats come back");
    }

    #[test]
    fn well_sold_show_is_not_sold_further_and_the_last_seats_stay_free() {
        let ending = |states| Ending::Pays.in_show(SeatShares::of(states));
        assert_eq!(ending("2222220000"), Ending::Pays);
        assert_eq!(ending("2222222000"), Ending::Releases);
        assert!(SeatShares::of("2222222100").has_room());
        assert!(!SeatShares::of("2222222110").has_room());
        assert!(!SeatShares::of("").has_room());
    }

    #[test]
    fn only_seats_side_by_side_are_picked() {
        let line = |seat: u32| json!({ "seat": seat, "label": "C7", "category": "Gold", "price": { "minor": 1, "currency": "EUR" } });
        let group = |seats: &[u32], together: &str| {
            let lines: Vec<_> = seats.iter().map(|seat| line(*seat)).collect();
            json!({ "seats": lines, "total": { "minor": 2, "currency": "EUR" }, "together": together, "orphans": 0 })
        };
        let groups = [group(&[4, 9], "apart"), group(&[20, 21], "row"), group(&[40, 41], "row")];
        let best = |groups: &[serde_json::Value]| -> BestView {
            serde_json::from_value(json!({ "epoch": 1, "version": 1, "suggestions": groups })).expect("suggestions")
        };
        let picked = [0, 1, 2].map(|draw| pick_suggestion(&best(&groups), draw));
        assert_eq!(picked, [Some(vec![20, 21]), Some(vec![40, 41]), Some(vec![20, 21])]);
        assert_eq!(pick_suggestion(&best(&groups[..1]), 0), None);
    }

    #[test]
    fn free_run_has_consecutive_free_seats_from_a_place_on() {
        assert_eq!(find_free_run("00100230", 2, 0), Some(vec![0, 1]));
        assert_eq!(find_free_run("00100230", 2, 1), Some(vec![3, 4]));
        assert_eq!(find_free_run("00100230", 1, 5), Some(vec![7]));
        assert_eq!(find_free_run("00100230", 3, 0), None);
        assert_eq!(find_free_run("00", 1, 9), None);
    }

    /// An evening show in Aurora or Borealis, a day from 0.
    fn show(number: u128, theatre: &str, local_time: &str, seats: u32) -> ShowView {
        serde_json::from_value(json!({
            "id": Uuid::from_u128(number), "film": "tide", "film_title": "Tide", "running_minutes": 100,
            "theatre": theatre, "theatre_name": theatre, "screen": "1", "city": "lisbon", "city_name": "Lisbon",
            "starts_at": "1970-01-02T20:00:00Z", "starts_at_ms": 24 * 60 * 60 * 1_000, "local_date": "1970-01-02",
            "local_time": local_time, "language": "English", "format": "2D",
            "from_price": { "minor": 1_000, "currency": "EUR" }, "seat_count": seats, "seats_left": seats,
            "availability": "available", "status": "on_sale",
        }))
        .expect("a show")
    }

    #[test]
    fn smallest_evening_room_is_sold_out_and_one_other_show_of_each_theatre_part_sold() {
        let mut shows = [
            show(1, "aurora", "15:00", 40),
            show(2, "aurora", "18:00", 60),
            show(3, "borealis", "18:30", 180),
            show(4, "aurora", "19:00", 420),
            show(5, "aurora", "20:00", 180),
            show(6, "arena", "20:00", 50_000),
        ];
        let sales = EarlySales::of(&shows, 0);
        assert_eq!(sales.sold_out.map(|show| show.id.as_u128()), Some(2));
        let part_sold: Vec<_> = sales.part_sold.iter().map(|(show, percent)| (show.id.as_u128(), *percent)).collect();
        assert_eq!(part_sold, [(3, PART_SOLD_PERCENT[0]), (4, PART_SOLD_PERCENT[1])]);
        let an_hour_before = shows[0].starts_at_ms - MIN_LEAD_MS / 2;
        assert_eq!(EarlySales::of(&shows, an_hour_before).sold_out, None);
        shows[1].status = ShowStatus::Paused;
        assert_eq!(EarlySales::of(&shows, 0).sold_out.map(|show| show.id.as_u128()), Some(3));
    }
}
