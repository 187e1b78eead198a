//! Finds the best available seats: n seats together, as an experienced box-office clerk would pick them.
//!
//! Every run of n free neighbours is ranked by its distance from the best spot in the room (the middle, about two
//! thirds back from a screen or a fifth back from a stage; in the round, or without a focus, the centre) and by the
//! single seats that it would leave free. If no row
//! has n seats together, two adjacent rows are tried, and then the best single seats. The caller supplies the state of
//! the seats; nothing is held here.

#[cfg(test)]
mod tests;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        found = free_seats.scattered(wish.count).into_iter().collect();
    }
    found.into_iter().map(|candidate| candidate.suggestion).collect()
}

/// A suggestion and its cost; the lower the better.
#[derive(Clone, Debug)]
struct Candidate {
    suggestion: Suggestion,
    cost: f64,
}

fn disjoint(mut candidates: Vec<Candidate>, most: usize) -> Vec<Candidate> {
    candidates.sort_by(|one, other| {
        // Ties are broken by the lower seat, so that the result is deterministic.
        one.cost.total_cmp(&other.cost).then_with(|| one.suggestion.seats.cmp(&other.suggestion.seats))
    });
    let mut chosen: Vec<Candidate> = Vec::with_capacity(most);
    for candidate in candidates {
        if chosen.len() == most {
            break;
        }
        let taken = |seat: &SeatIndex| chosen.iter().any(|other| other.suggestion.seats.contains(seat));
        if !candidate.suggestion.seats.iter().any(taken) {
            chosen.push(candidate);
        }
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

/// A run of free neighbours of one category, without an aisle or a taken seat between them.
#[derive(Clone, Debug)]
struct SeatRun {
    row: usize,
    places: Vec<FreeSeat>,
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
        self.runs.iter().flat_map(|run| run.windows(count)).collect()
    }

    /// Seats the larger half in one row and the rest in the row behind or in front of it.
    fn candidates_in_two_rows(&self, count: usize) -> Vec<Candidate> {
        let mut found = Vec::new();
        for larger in count.div_ceil(2)..count {
            let windows = self.best_windows_by_row(larger);
            let others = self.best_windows_by_row(count - larger);
            for (row, ours) in &windows {
                for (_, theirs) in others.iter().filter(|(other, _)| other.abs_diff(*row) == 1) {
                    let pairs = ours.iter().flat_map(|one| theirs.iter().map(move |other| (one, other)));
                    found.extend(pairs.filter_map(|(one, other)| self.pair(one, other)));
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        found
    }

    fn best_windows_by_row(&self, count: usize) -> Vec<(usize, Vec<Candidate>)> {
        let mut by_row: Vec<(usize, Vec<Candidate>)> = Vec::new();
        for run in &self.runs {
            let windows = run.windows(count);
            match by_row.last_mut() {
                Some((row, list)) if *row == run.row => list.extend(windows),
                _ => by_row.push((run.row, windows)),
            }
        }
        for (_, windows) in &mut by_row {
            windows.sort_by(|one, other| one.cost.total_cmp(&other.cost));
            windows.truncate(PAIRED_PER_ROW);
        }
        by_row
    }

    /// Joins two runs into one suggestion if they have the same category and are close.
    fn pair(&self, one: &Candidate, other: &Candidate) -> Option<Candidate> {
        let (ours, theirs) = (self.place(one.suggestion.seats[0])?, self.place(other.suggestion.seats[0])?);
        if ours.category != theirs.category {
            return None;
        }
        let (a, b) = (self.middle(one)?, self.middle(other)?);
        let (across, along) = (b.0 - a.0, b.1 - a.1);
        let (right, down) = self.row_direction(one.suggestion.seats[0]);
        let (aside, behind) = ((across * right + along * down).abs(), (along * right - across * down).abs());
        let pitch = f64::from(SEAT_PITCH);
        if behind > ROWS_APART_PITCHES * pitch || aside > one.suggestion.seats.len() as f64 * pitch {
            return None;
        }
        let mut seats = [one.suggestion.seats.as_slice(), other.suggestion.seats.as_slice()].concat();
        seats.sort_unstable();
        let orphans = one.suggestion.orphans + other.suggestion.orphans;
        let cost = one.cost.midpoint(other.cost) + OFFSET_COST_PER_PITCH * aside / pitch;
        Some(Candidate { suggestion: Suggestion { seats, together: Adjacency::Rows, orphans }, cost })
    }

    /// Picks the best single seats, of one category if it has enough.
    fn scattered(&self, count: usize) -> Option<Candidate> {
        let mut places: Vec<FreeSeat> = self.runs.iter().flat_map(|run| run.places.iter().copied()).collect();
        places.sort_by(|one, other| one.cost.total_cmp(&other.cost));
        let categories: Vec<u8> = places.iter().map(|place| place.category).collect();
        let of_one = categories
            .iter()
            .find(|category| categories.iter().filter(|other| other == category).count() >= count)
            .copied();
        let fitting = places.iter().filter(|place| of_one.is_none_or(|category| place.category == category));
        let mut seats: Vec<SeatIndex> = fitting.take(count).map(|place| place.seat).collect();
        if seats.len() < count {
            return None;
        }
        seats.sort_unstable();
        Some(Candidate { suggestion: Suggestion { seats, together: Adjacency::Apart, orphans: 0 }, cost: 0.0 })
    }

    fn run(&self, seat: SeatIndex) -> Option<&SeatRun> {
        // Runs are sorted by seat index.
        let at = self.runs.partition_point(|run| run.places[0].seat <= seat).checked_sub(1)?;
        Some(&self.runs[at])
    }

    fn place(&self, seat: SeatIndex) -> Option<&FreeSeat> {
        self.run(seat)?.places.iter().find(|place| place.seat == seat)
    }

    /// Returns the direction of the row of a free seat as a unit vector; to the right if no neighbour is free.
    fn row_direction(&self, seat: SeatIndex) -> (f64, f64) {
        let ends = self.run(seat).and_then(|run| Some((run.places.first()?.at, run.places.last()?.at)));
        let (across, along) = ends.map_or((0.0, 0.0), |(first, last)| (last.0 - first.0, last.1 - first.1));
        let length = across.hypot(along);
        if length > 0.0 { (across / length, along / length) } else { (1.0, 0.0) }
    }

    fn middle(&self, candidate: &Candidate) -> Option<(f64, f64)> {
        let seats = &candidate.suggestion.seats;
        let (first, last) = (self.place(*seats.first()?)?, self.place(*seats.last()?)?);
        Some((first.at.0.midpoint(last.at.0), first.at.1.midpoint(last.at.1)))
    }
}

impl SeatRun {
    /// Returns every group of `count` neighbours in this run.
    fn windows(&self, count: usize) -> Vec<Candidate> {
        if self.places.len() < count {
            return Vec::new();
        }
        (0..=self.places.len() - count).filter_map(|from| self.window(from, count)).collect()
    }

    fn window(&self, from: usize, count: usize) -> Option<Candidate> {
        let window = &self.places[from..from + count];
        let (before, after) = (from, self.places.len() - from - count);
        let sofas = window[0].half.is_some();
        // Strangers never share a sofa.
        if window[0].half == Some(SofaHalf::Second) {
            return None;
        }
        let orphans = if sofas { count % 2 } else { usize::from(before == 1) + usize::from(after == 1) };
        let mean = window.iter().map(|place| place.cost).sum::<f64>() / count as f64;
        let suggestion =
            Suggestion { seats: window.iter().map(|place| place.seat).collect(), together: Adjacency::Row, orphans };
        Some(Candidate { suggestion, cost: mean + ORPHAN_COST * orphans as f64 })
    }
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
