//! Finds the focus of an imported plan that does not state it: by a drawing with the name of a stage, or by the numbers
//! of the rows, which count away from it. If both are silent, a person is asked.

use std::collections::BTreeSet;

use crate::layout::frame::{focus_at, free_share};
use crate::layout::room::{Drawing, DrawnShape, DrawnZone, Focus, FocusKind, FocusSide};

/// Words for a stage, a screen and a field in the languages of known plans, lower case.
const NAMES: [(FocusKind, &[&str]); 3] = [
    (
        FocusKind::Stage,
        &["stage", "bühne", "scène", "scene", "escenario", "palco", "palcoscenico", "scena", "сцена", "मंच", "المسرح"],
    ),
    (
        FocusKind::Screen,
        &["screen", "leinwand", "écran", "ecran", "pantalla", "schermo", "tela", "экран", "екран", "परदा", "الشاشة"],
    ),
    (
        FocusKind::Field,
        &["field", "pitch", "court", "rink", "spielfeld", "rasen", "campo", "terrain", "поле", "मैदान", "الملعب"],
    ),
];
/// Rows that a zone needs before their numbers state a direction.
const MIN_ROWS: usize = 3;
/// Correlation between the order of rows and their positions below which the numbers state no direction.
const MIN_CORRELATION: f64 = 0.8;
/// Share of the seats whose rows must state a direction.
const MIN_SEATS: f64 = 0.5;
/// Length of the mean direction of all seats above which they face one side. 1 if all are parallel.
const ONE_SIDE: f64 = 0.85;
/// Cosine of the greatest angle between that direction and a side: 30 degrees.
const MAX_SLANT: f64 = 0.866;
/// Length of the mean direction below which seats may face one another.
const ALL_SIDES: f64 = 0.5;
/// Share of the seats in the round that face the centre.
const MIN_INWARD: f64 = 0.9;
/// Free share of a room in the round: see [`free_share`].
const FREE_MIDDLE: f64 = 0.3;
/// Free share above which its middle is a field.
const FREE_FIELD: f64 = 0.5;
/// Share of the seats on each of its sides that makes a named drawing the middle of a room in the round.
const MIN_PER_SIDE: f64 = 0.1;

/// Returns the focus of a plan, if the plan states it in any way.
pub(super) fn find_focus(drawing: &Drawing) -> Option<Focus> {
    named_focus(drawing).or_else(|| numbered_focus(drawing))
}

/// Returns the kind of focus that a drawing's text names.
pub(in super::super) fn kind_named(text: &str) -> Option<FocusKind> {
    let text = text.to_lowercase();
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphabetic() && !is_mark(c)).collect();
    NAMES.iter().find(|(_, names)| names.iter().any(|name| words.contains(name))).map(|(kind, _)| *kind)
}

/// True for the vowel signs of Devanagari, which are parts of words but not letters.
const fn is_mark(c: char) -> bool {
    matches!(c, '\u{900}'..='\u{903}' | '\u{93A}'..='\u{94F}')
}

/// Returns the first drawing that has the name of a focus and an outline, as the focus.
fn named_focus(drawing: &Drawing) -> Option<Focus> {
    // An area called "Stage left" is for the audience.
    let drawings = drawing.shapes.iter().filter(|shape| shape.area.is_none());
    let mut named = drawings.filter_map(|shape| Some((kind_named(&shape.text)?, shape)));
    let (kind, shape) = named.find(|(_, shape)| !shape.corners.is_empty())?;
    let [left, top, right, bottom] = shape.bounds();
    let (width, height) = (right - left, bottom - top);
    if width <= 0.0 || height <= 0.0 {
        return None;
    }
    let side = side_of_shape(drawing, shape);
    let is_sideways = matches!(side, FocusSide::Left | FocusSide::Right);
    let (width, depth) = if is_sideways { (height, width) } else { (width, height) };
    Some(Focus { kind, side, at: shape.at, width, depth: Some(depth) })
}

/// Returns the side of the seats that a drawing is on.
fn side_of_shape(drawing: &Drawing, shape: &DrawnShape) -> FocusSide {
    let offsets = || drawing.seats().map(|seat| [seat.x - shape.at[0], seat.y - shape.at[1]]);
    let count = drawing.seats().count().max(1) as f64;
    let facing = |side: FocusSide| offsets().filter(move |[x, y]| side_of([-x, -y]) == side).count() as f64 / count;
    let sides = [FocusSide::Top, FocusSide::Right, FocusSide::Bottom, FocusSide::Left];
    if sides.iter().all(|side| facing(*side) >= MIN_PER_SIDE) {
        return FocusSide::Round;
    }
    let [x, y] = offsets().fold([0.0, 0.0], |sum, at| [sum[0] - at[0], sum[1] - at[1]]);
    side_of([x, y])
}

/// Returns the side that a direction of the drawing leads to.
fn side_of([x, y]: [f64; 2]) -> FocusSide {
    match (x.abs() > y.abs(), x > 0.0, y > 0.0) {
        (true, true, _) => FocusSide::Right,
        (true, false, _) => FocusSide::Left,
        (false, _, true) => FocusSide::Bottom,
        (false, _, false) => FocusSide::Top,
    }
}

/// Direction in which the seats of a zone face.
struct Facing {
    /// Unit vector.
    direction: [f64; 2],
    /// Middle of the zone's rows.
    middle: [f64; 2],
    /// Number of seats.
    seats: f64,
}

/// Returns the focus that the rows' numbers state: the first rows are the nearest.
fn numbered_focus(drawing: &Drawing) -> Option<Focus> {
    let facings: Vec<Facing> = drawing.zones.iter().filter_map(facing_of).collect();
    let seats: f64 = facings.iter().map(|zone| zone.seats).sum();
    if seats <= 0.0 || seats < MIN_SEATS * drawing.seats().count() as f64 {
        return None;
    }
    let mean = facings.iter().fold([0.0, 0.0], |[x, y], zone| {
        let share = zone.seats / seats;
        [x + share * zone.direction[0], y + share * zone.direction[1]]
    });
    let length = mean[0].hypot(mean[1]);
    if length >= ONE_SIDE {
        let is_straight = mean[0].abs().max(mean[1].abs()) >= MAX_SLANT * length;
        return is_straight.then(|| focus_at(drawing, FocusKind::default(), side_of(mean)));
    }
    let points: Vec<[f64; 2]> = drawing.seats().map(|seat| [seat.x, seat.y]).collect();
    let free = free_share(&points);
    if length > ALL_SIDES || free < FREE_MIDDLE || inward_share(&facings, seats) < MIN_INWARD {
        return None;
    }
    let kind = if free >= FREE_FIELD { FocusKind::Field } else { FocusKind::Stage };
    Some(focus_at(drawing, kind, FocusSide::Round))
}

/// Returns the share of seats whose zone faces the middle of all zones.
fn inward_share(zones: &[Facing], seats: f64) -> f64 {
    let middle = zones.iter().fold([0.0, 0.0], |[x, y], zone| {
        [x + zone.middle[0] * zone.seats / seats, y + zone.middle[1] * zone.seats / seats]
    });
    let faces_middle = |zone: &&Facing| {
        let [x, y] = [middle[0] - zone.middle[0], middle[1] - zone.middle[1]];
        x * zone.direction[0] + y * zone.direction[1] > 0.0
    };
    zones.iter().filter(faces_middle).map(|zone| zone.seats).sum::<f64>() / seats
}

/// Returns the direction from a zone's last row to its first, by least squares; `None` if its numbers state none.
fn facing_of(zone: &DrawnZone) -> Option<Facing> {
    let rows = zone.rows.iter().filter(|row| !row.seats.is_empty());
    let ranked: Vec<(u64, [f64; 2])> = rows
        .filter_map(|row| {
            let count = row.seats.len() as f64;
            let sum = row.seats.iter().fold([0.0, 0.0], |[x, y], seat| [x + seat.x, y + seat.y]);
            Some((rank_of(&row.label)?, sum.map(|along| along / count)))
        })
        .collect();
    // Two rows of the same number are one row with an aisle.
    let mut ranks: Vec<u64> = ranked.iter().map(|(rank, _)| *rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    if ranks.len() < MIN_ROWS {
        return None;
    }
    let order = |rank: u64| ranks.partition_point(|other| *other < rank) as f64;
    let rows: Vec<[f64; 3]> = ranked.iter().map(|(rank, [x, y])| [order(*rank), *x, *y]).collect();
    let count = rows.len() as f64;
    let mean = [0, 1, 2].map(|of| rows.iter().map(|row| row[of]).sum::<f64>() / count);
    let spread = |one: usize, other: usize| {
        rows.iter().map(|row| (row[one] - mean[one]) * (row[other] - mean[other])).sum::<f64>()
    };
    let (across, down) = (spread(0, 1), spread(0, 2));
    let length = across.hypot(down);
    if length <= 0.0 {
        return None;
    }
    let [x, y] = [across / length, down / length];
    let along = x * x * spread(1, 1) + 2.0 * x * y * spread(1, 2) + y * y * spread(2, 2);
    let correlation = length / (spread(0, 0) * along).sqrt();
    (correlation >= MIN_CORRELATION).then(|| Facing {
        direction: [-x, -y],
        middle: [mean[1], mean[2]],
        seats: zone.rows.iter().map(|row| row.seats.len()).sum::<usize>() as f64,
    })
}

/// Returns a number that orders row labels: `2` before `10`, `B` before `AA`. `None` for other labels.
fn rank_of(label: &str) -> Option<u64> {
    let digits: String = label.chars().filter(char::is_ascii_digit).collect();
    if !digits.is_empty() {
        return digits.parse().ok();
    }
    let letters = || label.trim().chars();
    let is_short = (1..=3).contains(&letters().count()) && letters().all(char::is_alphabetic);
    let code = |c: char| u64::from(u32::from(c.to_uppercase().next().unwrap_or(c)));
    is_short.then(|| letters().fold(0, |rank, c| rank * (u64::from(u32::from(char::MAX)) + 1) + code(c)))
}
