//! Best available: n seats together, as a good person at the box office would pick them.
//!
//! Every stretch of n free neighbours is ranked by how far its seats are from the best place in the room
//! (the middle; for a screen two thirds back, for a stage a quarter) and by the single seats it would leave
//! between strangers. When no row has n together, two rows one behind the other do; when that cannot be
//! either, the best seats there are. Which seats are free comes in; nothing here holds anything.

mod rank;
#[cfg(test)]
mod tests;

use crate::api::{SEAT_PITCH, SeatKind};
use crate::layout::{FocusKind, Layout};
use crate::seats::{MAX_SEATS_PER_HOLD, SeatIndex, SeatState};
use rank::Rank;
use serde::{Deserialize, Serialize};

/// Suggestions one wish gets at most.
pub const MAX_SUGGESTIONS: usize = 8;
/// Neighbours sit at most this far apart, in seat pitches: beyond is an aisle.
const AISLE_PITCHES: f64 = 1.5;
/// Rows one behind the other are at most this far apart, in seat pitches.
const ROWS_APART_PITCHES: f64 = 3.0;
/// Stretches of one row that are paired with those of the next, the best of them.
const PAIRED_PER_ROW: usize = 6;

/// What somebody would like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// How many seats, 1 to [`MAX_SEATS_PER_HOLD`].
    pub count: usize,
    /// Only seats of this category, an index into [`Layout::categories`]. Without it seats of any one
    /// category that is not for wheelchairs or their companions, nor, for an odd number, sofas for two.
    pub category: Option<u8>,
}

/// How close the seats of a suggestion are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Together {
    /// Neighbours in one row.
    Row,
    /// In two rows, one behind the other.
    Rows,
    /// Wherever seats are left.
    Apart,
}

/// Seats worth offering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The seats, in ascending order.
    pub seats: Vec<SeatIndex>,
    /// How close they are to each other.
    pub together: Together,
    /// Single free seats this would leave with nobody's party beside them.
    pub orphans: usize,
}

/// Up to `most` (at most [`MAX_SUGGESTIONS`]) suggestions that share no seat, the best first; none when
/// fewer seats than wished for are free. `state` tells what a seat is doing right now.
#[must_use]
pub fn best_available(
    layout: &Layout,
    state: impl Fn(SeatIndex) -> SeatState,
    wish: Wish,
    most: usize,
) -> Vec<Suggestion> {
    let most = most.min(MAX_SUGGESTIONS);
    if wish.count == 0 || wish.count > MAX_SEATS_PER_HOLD || most == 0 {
        return Vec::new();
    }
    let hall = Hall::of(layout, &state, wish);
    let mut found = disjoint(hall.in_one_row(wish.count), most);
    if found.is_empty() && wish.count > 1 {
        found = disjoint(hall.in_two_rows(wish.count), most);
    }
    if found.is_empty() {
        found = hall.apart(wish.count).into_iter().collect();
    }
    found.into_iter().map(|candidate| candidate.suggestion).collect()
}

/// A suggestion and its cost; the lower the better.
#[derive(Clone, Debug)]
struct Candidate {
    suggestion: Suggestion,
    cost: f64,
}

/// The best candidates that have no seat in common.
fn disjoint(mut candidates: Vec<Candidate>, most: usize) -> Vec<Candidate> {
    candidates.sort_by(|one, other| {
        // Equal places: the lower seat, so that everybody gets the same answer to the same question.
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

/// A free seat that fits the wish.
#[derive(Clone, Copy, Debug)]
struct Place {
    seat: SeatIndex,
    at: (f64, f64),
    category: u8,
    /// Which half of a sofa, where it is one.
    half: Option<Half>,
    cost: f64,
}

/// Sofas for two follow one another along a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

impl Half {
    const fn after(before: Option<Self>) -> Self {
        match before {
            Some(Self::First) => Self::Second,
            Some(Self::Second) | None => Self::First,
        }
    }
}

/// Free neighbours of one category: no aisle, no stranger between them.
#[derive(Clone, Debug)]
struct Stretch {
    row: usize,
    places: Vec<Place>,
}

/// The free seats of a room that fit a wish, in stretches.
struct Hall {
    stretches: Vec<Stretch>,
}

impl Hall {
    fn of(layout: &Layout, state: &impl Fn(SeatIndex) -> SeatState, wish: Wish) -> Self {
        let rank = Rank::of(layout);
        let mut stretches = Vec::new();
        for (row, seats) in layout.rows().enumerate() {
            let (mut open, mut half) = (Vec::<Place>::new(), None);
            for seat in seats {
                let kind = kind_of(layout, seat);
                // Also past a seat that is taken: it is half of a sofa all the same.
                half = (kind == SeatKind::Couple).then(|| Half::after(half));
                let free = state(seat) == SeatState::Available;
                let place =
                    layout.place(seat).filter(|(_, own)| free && is_meant(wish, kind, *own)).map(|(at, own)| {
                        let at = (f64::from(at.0), f64::from(at.1));
                        Place { seat, at, category: own, half, cost: rank.cost(at) }
                    });
                let goes_on = match (open.last(), &place) {
                    (Some(before), Some(place)) => before.category == place.category && are_neighbours(before, place),
                    _ => false,
                };
                if !goes_on && !open.is_empty() {
                    stretches.push(Stretch { row, places: std::mem::take(&mut open) });
                }
                open.extend(place);
            }
            if !open.is_empty() {
                stretches.push(Stretch { row, places: open });
            }
        }
        Self { stretches }
    }

    fn in_one_row(&self, count: usize) -> Vec<Candidate> {
        self.stretches.iter().flat_map(|stretch| stretch.windows(count)).collect()
    }

    /// The larger half in one row, the rest right behind or in front of it.
    fn in_two_rows(&self, count: usize) -> Vec<Candidate> {
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
        for stretch in &self.stretches {
            let windows = stretch.windows(count);
            match by_row.last_mut() {
                Some((row, list)) if *row == stretch.row => list.extend(windows),
                _ => by_row.push((stretch.row, windows)),
            }
        }
        for (_, windows) in &mut by_row {
            windows.sort_by(|one, other| one.cost.total_cmp(&other.cost));
            windows.truncate(PAIRED_PER_ROW);
        }
        by_row
    }

    /// Two stretches as one suggestion, when they are of one category and close.
    fn pair(&self, one: &Candidate, other: &Candidate) -> Option<Candidate> {
        let (ours, theirs) = (self.place(one.suggestion.seats[0])?, self.place(other.suggestion.seats[0])?);
        if ours.category != theirs.category {
            return None;
        }
        let (a, b) = (self.middle(one)?, self.middle(other)?);
        let (aside, behind) = ((a.0 - b.0).abs(), (a.1 - b.1).abs());
        let pitch = f64::from(SEAT_PITCH);
        if behind > ROWS_APART_PITCHES * pitch || aside > one.suggestion.seats.len() as f64 * pitch {
            return None;
        }
        let mut seats = [one.suggestion.seats.as_slice(), other.suggestion.seats.as_slice()].concat();
        seats.sort_unstable();
        let orphans = one.suggestion.orphans + other.suggestion.orphans;
        let cost = one.cost.midpoint(other.cost) + rank::COST_A_PITCH_ASIDE * aside / pitch;
        Some(Candidate { suggestion: Suggestion { seats, together: Together::Rows, orphans }, cost })
    }

    /// The best seats there are, of one category if one has enough.
    fn apart(&self, count: usize) -> Option<Candidate> {
        let mut places: Vec<Place> = self.stretches.iter().flat_map(|stretch| stretch.places.iter().copied()).collect();
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
        Some(Candidate { suggestion: Suggestion { seats, together: Together::Apart, orphans: 0 }, cost: 0.0 })
    }

    fn place(&self, seat: SeatIndex) -> Option<&Place> {
        // Stretches lie in the order of the seats' numbers.
        let at = self.stretches.partition_point(|stretch| stretch.places[0].seat <= seat).checked_sub(1)?;
        self.stretches[at].places.iter().find(|place| place.seat == seat)
    }

    fn middle(&self, candidate: &Candidate) -> Option<(f64, f64)> {
        let seats = &candidate.suggestion.seats;
        let (first, last) = (self.place(*seats.first()?)?, self.place(*seats.last()?)?);
        Some((first.at.0.midpoint(last.at.0), first.at.1.midpoint(last.at.1)))
    }
}

impl Stretch {
    /// Every way to seat `count` here.
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
        // Nobody shares a sofa with a stranger.
        if window[0].half == Some(Half::Second) {
            return None;
        }
        let orphans = if sofas { count % 2 } else { usize::from(before == 1) + usize::from(after == 1) };
        let mean = window.iter().map(|place| place.cost).sum::<f64>() / count as f64;
        let suggestion =
            Suggestion { seats: window.iter().map(|place| place.seat).collect(), together: Together::Row, orphans };
        Some(Candidate { suggestion, cost: mean + rank::COST_AN_ORPHAN * orphans as f64 })
    }
}

fn kind_of(layout: &Layout, seat: SeatIndex) -> SeatKind {
    let category = layout.place(seat).and_then(|(_, own)| layout.categories().get(usize::from(own)));
    category.map_or(SeatKind::Standard, |category| category.kind)
}

/// Whether a seat of this kind and category is what somebody wishes for.
fn is_meant(wish: Wish, kind: SeatKind, own: u8) -> bool {
    match (wish.category, kind) {
        (Some(category), _) => own == category,
        (None, SeatKind::Wheelchair | SeatKind::Companion) => false,
        (None, SeatKind::Couple) => wish.count.is_multiple_of(2),
        (None, SeatKind::Standard | SeatKind::Recliner) => true,
    }
}

fn are_neighbours(one: &Place, other: &Place) -> bool {
    let (across, along) = (one.at.0 - other.at.0, one.at.1 - other.at.1);
    across.hypot(along) <= AISLE_PITCHES * f64::from(SEAT_PITCH)
}
