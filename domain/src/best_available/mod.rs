//! Finds the best available seats: n seats together, as an experienced box-office clerk would pick them.
//!
//! Every run of n free neighbours is ranked by its distance from the best spot in the room (the middle, about two
//! thirds back from a screen or a fifth back from a stage; in the round, or without a focus, the centre) and by the
//! single seats that it would leave free. If no row
//! has n seats together, two adjacent rows are tried, and then the best single seats. The caller supplies the state of
//! the seats; nothing is held here.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::api::{SEAT_PITCH, SeatKind};
use crate::layout::{FocusKind, Layout};
use crate::seats::{MAX_SEATS_PER_HOLD, SeatIndex, SeatState};

/// Maximum number of suggestions per request.
pub const MAX_SUGGESTIONS: usize = 8;
/// Maximum distance between neighbours, in seat pitches. A larger gap is an aisle.
const AISLE_PITCHES: f64 = 1.5;
/// Maximum distance between adjacent rows, in seat pitches.
const ROWS_APART_PITCHES: f64 = 3.0;
/// Number of best runs per row that are paired with runs of the adjacent row.
const PAIRED_PER_ROW: usize = 6;

/// A request for seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeatRequest {
    /// Number of seats, 1 to [`MAX_SEATS_PER_HOLD`].
    pub count: usize,
    /// Index into [`Layout::categories`] that restricts the seats. Without it, all seats are of one category, which is
    /// neither for wheelchairs nor for companions, nor, for an odd number of seats, for sofas.
    pub category: Option<u8>,
}

/// Adjacency of suggested seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Together))]
#[serde(rename_all = "snake_case")]
pub enum Adjacency {
    /// Neighbours in one row.
    Row,
    /// In two adjacent rows.
    Rows,
    /// Anywhere in the room.
    Apart,
}

/// A suggested group of seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The seats, in ascending order.
    pub seats: Vec<SeatIndex>,
    /// Adjacency of the seats.
    pub together: Adjacency,
    /// Number of single free seats that it would leave between taken seats.
    pub orphans: usize,
}

/// Returns at most `most` suggestions (up to [`MAX_SUGGESTIONS`]) without a common seat, best first. The list is empty
/// if fewer seats are free than requested. `state` returns the current state of a seat.
#[must_use]
pub fn best_available(
    layout: &Layout,
    state: impl Fn(SeatIndex) -> SeatState,
    wish: SeatRequest,
    most: usize,
) -> Vec<Suggestion> {
    let most = most.min(MAX_SUGGESTIONS);
    if wish.count == 0 || wish.count > MAX_SEATS_PER_HOLD || most == 0 {
        return Vec::new();
    }
    let free_seats = FreeSeats::of(layout, &state, wish);
    let mut found = disjoint(free_seats.candidates_in_one_row(wish.count), most);
    if found.is_empty() && wish.count > 1 {
        found = disjoint(free_seats.candidates_in_two_rows(wish.count), most);
    }
    if found.is_empty() {
        return free_seats.scattered(wish.count).into_iter().collect();
    }
    found.into_iter().map(Candidate::into_suggestion).collect()
}

/// A possible suggestion and its cost; the lower the better. A large room has a hundred thousand, so it has ranges
/// instead of a list.
#[derive(Clone, Debug)]
struct Candidate {
    /// Its seats in ascending order. The second range is empty if the first has all of them.
    seats: [Range<SeatIndex>; 2],
    orphans: usize,
    cost: f64,
}

impl Candidate {
    fn seats(&self) -> impl Iterator<Item = SeatIndex> {
        self.seats.iter().cloned().flatten()
    }

    /// Orders by cost. Ties are broken by the lower seat, so that the result is deterministic.
    fn order(&self, other: &Self) -> Ordering {
        self.cost.total_cmp(&other.cost).then_with(|| self.seats().cmp(other.seats()))
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.seats.iter().any(|one| other.seats.iter().any(|other| one.start < other.end && other.start < one.end))
    }

    fn into_suggestion(self) -> Suggestion {
        let together = if self.seats[1].is_empty() { Adjacency::Row } else { Adjacency::Rows };
        Suggestion { seats: self.seats().collect(), together, orphans: self.orphans }
    }
}

/// Chooses the best candidates without a common seat. A few passes cost less than sorting all candidates.
fn disjoint(mut candidates: Vec<Candidate>, most: usize) -> Vec<Candidate> {
    let mut chosen = Vec::with_capacity(most);
    while chosen.len() < most
        && let Some(best) = candidates.iter().min_by(|one, other| one.order(other)).cloned()
    {
        candidates.retain(|candidate| !candidate.overlaps(&best));
        chosen.push(best);
    }
    chosen
}

/// A free seat that matches the request.
#[derive(Clone, Copy, Debug)]
struct FreeSeat {
    seat: SeatIndex,
    at: (f64, f64),
    category: u8,
    /// The half of a sofa that it is, if it belongs to one.
    half: Option<SofaHalf>,
    cost: f64,
}

/// Half of a two-seat sofa. Sofas follow one another along a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SofaHalf {
    First,
    Second,
}

impl SofaHalf {
    const fn after(before: Option<Self>) -> Self {
        match before {
            Some(Self::First) => Self::Second,
            Some(Self::Second) | None => Self::First,
        }
    }
}

/// A run of free neighbours of one category, without an aisle or a taken seat between them. Their indices are
/// consecutive.
#[derive(Clone, Debug)]
struct SeatRun {
    row: usize,
    places: Vec<FreeSeat>,
}

/// Neighbours in a run.
#[derive(Clone, Debug)]
struct SeatWindow<'r> {
    run: &'r SeatRun,
    places: &'r [FreeSeat],
    orphans: usize,
    cost: f64,
}

/// The free seats that match a request, as runs.
struct FreeSeats {
    runs: Vec<SeatRun>,
}

impl FreeSeats {
    fn of(layout: &Layout, state: &impl Fn(SeatIndex) -> SeatState, wish: SeatRequest) -> Self {
        let rank = Rank::of(layout);
        let mut runs = Vec::new();
        for (row, seats) in layout.rows().enumerate() {
            let (mut open, mut half) = (Vec::<FreeSeat>::new(), None);
            for seat in seats {
                let kind = layout.seat_kind(seat);
                // A taken seat counts as well: it is still half of a sofa.
                half = kind.rules().is_paired.then(|| SofaHalf::after(half));
                let free = state(seat) == SeatState::Available;
                let place =
                    layout.place(seat).filter(|(_, own)| free && matches_request(wish, kind, *own)).map(|(at, own)| {
                        let at = (f64::from(at.0), f64::from(at.1));
                        FreeSeat { seat, at, category: own, half, cost: rank.cost(at) }
                    });
                let extends_run = match (open.last(), &place) {
                    (Some(before), Some(place)) => before.category == place.category && are_neighbours(before, place),
                    _ => false,
                };
                if !extends_run && !open.is_empty() {
                    runs.push(SeatRun { row, places: std::mem::take(&mut open) });
                }
                open.extend(place);
            }
            if !open.is_empty() {
                runs.push(SeatRun { row, places: open });
            }
        }
        Self { runs }
    }

    fn candidates_in_one_row(&self, count: usize) -> Vec<Candidate> {
        let windows = self.runs.iter().flat_map(|run| run.windows(count));
        let candidate = |window: SeatWindow<'_>| Candidate {
            seats: [window.seats(), 0..0],
            orphans: window.orphans,
            cost: window.cost,
        };
        windows.map(candidate).collect()
    }

    /// Seats the larger half in one row and the rest in the row behind or in front of it.
    fn candidates_in_two_rows(&self, count: usize) -> Vec<Candidate> {
        let mut found = Vec::new();
        for larger in count.div_ceil(2)..count {
            let (windows, others) = (self.best_windows(larger), self.best_windows(count - larger));
            for one in &windows {
                // Both lists are in the order of rows.
                let near = others.partition_point(|other| other.run.row + 1 < one.run.row);
                let near = others[near..].iter().take_while(|other| other.run.row <= one.run.row + 1);
                found.extend(near.filter_map(|other| one.pair(other)));
            }
            if !found.is_empty() {
                break;
            }
        }
        found
    }

    /// Returns the best windows of each row, [`PAIRED_PER_ROW`] at most, row by row.
    fn best_windows(&self, count: usize) -> Vec<SeatWindow<'_>> {
        let mut best = Vec::new();
        for row in self.runs.chunk_by(|one, other| one.row == other.row) {
            let mut windows: Vec<SeatWindow<'_>> = row.iter().flat_map(|run| run.windows(count)).collect();
            windows.sort_by(|one, other| one.cost.total_cmp(&other.cost));
            windows.truncate(PAIRED_PER_ROW);
            best.append(&mut windows);
        }
        best
    }

    /// Picks the best single seats, of one category if it has enough.
    fn scattered(&self, count: usize) -> Option<Suggestion> {
        let mut places: Vec<FreeSeat> = self.runs.iter().flat_map(|run| run.places.iter().copied()).collect();
        places.sort_by(|one, other| one.cost.total_cmp(&other.cost));
        let mut of_category = [0; 256];
        for place in &places {
            of_category[usize::from(place.category)] += 1;
        }
        let has_enough = |category: &u8| of_category[usize::from(*category)] >= count;
        let of_one = places.iter().map(|place| place.category).find(has_enough);
        let fitting = places.iter().filter(|place| of_one.is_none_or(|category| place.category == category));
        let mut seats: Vec<SeatIndex> = fitting.take(count).map(|place| place.seat).collect();
        if seats.len() < count {
            return None;
        }
        seats.sort_unstable();
        Some(Suggestion { seats, together: Adjacency::Apart, orphans: 0 })
    }
}

impl SeatRun {
    /// Returns every group of `count` neighbours in this run.
    fn windows(&self, count: usize) -> impl Iterator<Item = SeatWindow<'_>> {
        self.places.windows(count).enumerate().filter_map(move |(before, places)| self.window(before, places))
    }

    /// Returns the window that has `before` places of the run before it.
    fn window<'r>(&'r self, before: usize, places: &'r [FreeSeat]) -> Option<SeatWindow<'r>> {
        let count = places.len();
        let after = self.places.len() - before - count;
        let sofas = places[0].half.is_some();
        // Strangers never share a sofa.
        if places[0].half == Some(SofaHalf::Second) {
            return None;
        }
        let orphans = if sofas { count % 2 } else { usize::from(before == 1) + usize::from(after == 1) };
        let mean = places.iter().map(|place| place.cost).sum::<f64>() / count as f64;
        Some(SeatWindow { run: self, places, orphans, cost: mean + ORPHAN_COST * orphans as f64 })
    }

    /// Returns the direction of the row as a unit vector; to the right if the run is a single seat.
    fn direction(&self) -> (f64, f64) {
        let (first, last) = ends(&self.places);
        let (across, along) = (last.0 - first.0, last.1 - first.1);
        let length = across.hypot(along);
        if length > 0.0 { (across / length, along / length) } else { (1.0, 0.0) }
    }
}

impl SeatWindow<'_> {
    fn seats(&self) -> Range<SeatIndex> {
        let first = self.places[0].seat;
        first..first + self.places.len() as SeatIndex
    }

    fn middle(&self) -> (f64, f64) {
        let (first, last) = ends(self.places);
        (first.0.midpoint(last.0), first.1.midpoint(last.1))
    }

    /// Joins two windows into one candidate if they are of one category, close, and in different rows.
    fn pair(&self, other: &Self) -> Option<Candidate> {
        if self.places[0].category != other.places[0].category || self.run.row == other.run.row {
            return None;
        }
        let (a, b) = (self.middle(), other.middle());
        let (across, along) = (b.0 - a.0, b.1 - a.1);
        let (right, down) = self.run.direction();
        let (aside, behind) = ((across * right + along * down).abs(), (along * right - across * down).abs());
        let pitch = f64::from(SEAT_PITCH);
        if behind > ROWS_APART_PITCHES * pitch || aside > self.places.len() as f64 * pitch {
            return None;
        }
        let (ours, theirs) = (self.seats(), other.seats());
        let seats = if ours.start < theirs.start { [ours, theirs] } else { [theirs, ours] };
        let cost = self.cost.midpoint(other.cost) + OFFSET_COST_PER_PITCH * aside / pitch;
        Some(Candidate { seats, orphans: self.orphans + other.orphans, cost })
    }
}

/// Returns the positions of the first and the last of these seats.
fn ends(places: &[FreeSeat]) -> ((f64, f64), (f64, f64)) {
    (places[0].at, places[places.len() - 1].at)
}

/// True if a seat of this kind and category matches the request.
fn matches_request(wish: SeatRequest, kind: SeatKind, own: u8) -> bool {
    let rules = kind.rules();
    match wish.category {
        Some(category) => own == category,
        None => rules.is_offered_unasked && (!rules.is_paired || wish.count.is_multiple_of(2)),
    }
}

fn are_neighbours(one: &FreeSeat, other: &FreeSeat) -> bool {
    let (across, along) = (one.at.0 - other.at.0, one.at.1 - other.at.1);
    across.hypot(along) <= AISLE_PITCHES * f64::from(SEAT_PITCH)
}

/// Cost of leaving a single seat free: about a third of the distance from the middle to the side.
const ORPHAN_COST: f64 = 0.1;
/// Cost per seat pitch between the centres of the two groups, if a party sits in two rows.
const OFFSET_COST_PER_PITCH: f64 = 0.02;
/// Best distance from a screen as a share of the room's depth: near the middle of the rows that SMPTE EG 18 recommends.
const SCREEN_DEPTH: f64 = 0.62;
/// Best distance from a stage as a share of the room's depth.
const STAGE_DEPTH: f64 = 0.2;
/// Weight of the distance sideways relative to the distance in depth.
const ASIDE_WEIGHT: f64 = 1.3;

/// Best spot of a room and the scale of distances from it.
enum Rank {
    /// All seats are behind one another, with the focus at the top.
    Front { best_spot: (f64, f64), half_width: f64, depth: f64 },
    /// Seats are all around, or the room has no focus: the nearer to the centre, the better.
    Around { centre: (f64, f64), near: f64, depth: f64 },
}

impl Rank {
    fn of(layout: &Layout) -> Self {
        let focus = layout.focus();
        let (middle, front) = (f64::from(focus.at[0]), f64::from(focus.at[1]));
        let (mut left, mut right) = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut near, mut far) = (f64::INFINITY, 0.0_f64);
        for seat in 0..layout.seat_count() {
            let Some(((x, y), _)) = layout.place(seat) else { continue };
            let (x, y) = (f64::from(x), f64::from(y));
            (left, right) = (left.min(x), right.max(x));
            let away = if focus.is_in_front() { (y - front).abs() } else { (x - middle).hypot(y - front) };
            (near, far) = (near.min(away), far.max(away));
        }
        let depth = (far - near).max(1.0);
        if !focus.is_in_front() {
            return Self::Around { centre: (middle, front), near, depth };
        }
        let share = match focus.kind {
            FocusKind::Screen => SCREEN_DEPTH,
            FocusKind::Stage | FocusKind::Field | FocusKind::None => STAGE_DEPTH,
        };
        let best_spot = (middle, front + near + (far - near) * share);
        Self::Front { best_spot, half_width: ((right - left) / 2.0).max(1.0), depth }
    }

    /// Cost of a position: 0 at the best spot, about 1 at the sides or furthest away.
    fn cost(&self, at: (f64, f64)) -> f64 {
        match *self {
            Self::Front { best_spot, half_width, depth } => {
                let aside = (at.0 - best_spot.0) / half_width;
                let along = (at.1 - best_spot.1) / depth;
                (ASIDE_WEIGHT * aside * aside + along * along).sqrt()
            }
            Self::Around { centre, near, depth } => ((at.0 - centre.0).hypot(at.1 - centre.1) - near) / depth,
        }
    }
}
