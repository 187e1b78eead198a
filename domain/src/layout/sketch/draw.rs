//! Computes the position of every seat of a sketch. Coordinates: y grows down the page, angles are clockwise.

use std::collections::HashMap;

use super::super::error::{LayoutError, MAX_COORDINATE};
use super::super::room::{Drawing, DrawnRow, DrawnSeat, DrawnZone};
use super::super::shapes::shape_of_area;
use super::pattern::{self, RowElement};
use super::{MAX_COPIES, Placement, RowGroup, SKETCH_VERSION, Sketch, SketchZone};
use crate::api::SeatKind;
use crate::seats::MAX_SEATS_PER_SHOW;

/// Gap between two sofas, in seats.
const SOFA_GAP: f64 = 0.4;
/// Number of steps in which the length of an oval is measured.
const OVAL_STEPS: u32 = 7_200;
/// Positions are rounded to hundredths, so that writing and parsing them is lossless.
const HUNDREDTHS: f64 = 100.0;

/// Position and rotation of a copy of a zone, radians clockwise.
struct ZoneCopy {
    name: String,
    at: [f64; 2],
    turn: f64,
}

/// A seat in coordinates of its zone: x to the right of the middle of the first row, y away from the focus.
struct LocalSeat {
    number: String,
    x: f64,
    y: f64,
    category: u8,
}

/// Lookup tables for categories that all zones of a sketch share.
struct CategoryTables<'a> {
    numbers: HashMap<&'a str, u8>,
    kinds: Vec<SeatKind>,
}

impl Sketch {
    /// Expands the sketch.
    pub(in super::super) fn draw(&self) -> Result<Drawing, LayoutError> {
        if self.sketch != SKETCH_VERSION {
            return Err(LayoutError::Shape(format!("sketch version {} is not known", self.sketch)));
        }
        if self.categories.len() > super::super::error::MAX_CATEGORIES {
            return Err(LayoutError::TooManyCategories(self.categories.len()));
        }
        let tables = CategoryTables {
            numbers: self.categories.iter().zip(0..).map(|(category, number)| (&*category.name, number)).collect(),
            kinds: self.categories.iter().map(|category| category.kind).collect(),
        };
        let mut zones = Vec::new();
        let mut seats = 0;
        for zone in &self.zones {
            let rows = tables.rows(zone)?;
            let in_zone = rows.iter().map(|(_, seats)| seats.len()).sum::<usize>();
            for zone_copy in zone_copies(zone)? {
                seats += in_zone;
                // Zones without seats count too: a short text can repeat them a million times.
                if seats > MAX_SEATS_PER_SHOW || zones.len() >= MAX_SEATS_PER_SHOW {
                    return Err(LayoutError::TooManySeats);
                }
                zones.push(zone_copy.draw(&rows));
            }
        }
        let shapes = self.areas.iter().zip(0..).filter_map(|(area, number)| shape_of_area(area, number)).collect();
        Ok(Drawing { categories: self.categories.clone(), focus: self.focus, zones, shapes })
    }
}

impl CategoryTables<'_> {
    fn rows(&self, zone: &SketchZone) -> Result<Vec<(String, Vec<LocalSeat>)>, LayoutError> {
        for size in [zone.row_gap, zone.pitch, zone.arc.unwrap_or(1.0)] {
            if size.is_nan() || size <= 0.0 || size > MAX_COORDINATE {
                let why = "row_gap, pitch and arc are distances above 0";
                return Err(LayoutError::Sketch { text: zone.name.clone(), why });
            }
        }
        let mut rows = Vec::new();
        let mut seats = 0;
        let mut depth = 0.0;
        for group in &zone.rows {
            depth += group.gap;
            let along = self.along(zone, group)?;
            for label in pattern::rows(&group.rows)? {
                seats += along.len();
                if seats > MAX_SEATS_PER_SHOW {
                    return Err(LayoutError::TooManySeats);
                }
                let row = along.iter().map(|(number, offset, category)| {
                    let (x, y) = bend(*offset, depth, zone.arc);
                    LocalSeat { number: number.clone(), x, y, category: *category }
                });
                rows.push((label, row.collect()));
                depth += zone.row_gap;
            }
        }
        Ok(rows)
    }

    /// Returns number, offset to the right of the middle, and category of each seat of such a row.
    fn along(&self, zone: &SketchZone, group: &RowGroup) -> Result<Vec<(String, f64, u8)>, LayoutError> {
        let usual = self.category(group.category.as_deref().unwrap_or(&zone.category), &group.rows)?;
        let mut seats = Vec::new();
        let mut cursor = 0.0;
        let mut on_sofa = 0_u32;
        for element in pattern::seats(&group.seats)? {
            let (number, category) = match element {
                RowElement::Aisle(width) => {
                    cursor += width;
                    on_sofa = 0;
                    continue;
                }
                RowElement::Seat { number, category: None } => (number, usual),
                RowElement::Seat { number, category: Some(name) } => (number, self.category(name, &group.rows)?),
            };
            if self.kinds[usize::from(category)].rules().is_paired {
                if on_sofa == 2 {
                    cursor += SOFA_GAP;
                    on_sofa = 0;
                }
                on_sofa += 1;
            } else {
                on_sofa = 0;
            }
            seats.push((number, cursor, category));
            cursor += 1.0;
        }
        // The cursor is one seat beyond the last centre. Aisles at either end count.
        let middle = (cursor - 1.0) / 2.0 - group.shift;
        for (_, offset, _) in &mut seats {
            *offset = (*offset - middle) * zone.pitch;
        }
        Ok(seats)
    }

    fn category(&self, name: &str, rows: &str) -> Result<u8, LayoutError> {
        self.numbers.get(name).copied().ok_or_else(|| LayoutError::UnknownCategory {
            place: format!("a seat of rows {rows:?}"),
            category: name.to_owned(),
        })
    }
}

/// Bends a point of a row around a centre in front of the zone.
fn bend(offset: f64, depth: f64, arc: Option<f64>) -> (f64, f64) {
    let Some(radius) = arc else { return (offset, depth) };
    let own = radius + depth;
    let angle = offset / own;
    (own * angle.sin(), own * angle.cos() - radius)
}

/// Returns the copies of a zone; a single one for a zone without `repeat`.
fn zone_copies(zone: &SketchZone) -> Result<Vec<ZoneCopy>, LayoutError> {
    let refuse = |why| Err(LayoutError::Sketch { text: zone.name.clone(), why });
    let turn = zone.turn.to_radians();
    let Some(repeat) = &zone.repeat else {
        return Ok(vec![ZoneCopy { name: zone.name.clone(), at: zone.at, turn }]);
    };
    let name = |copy: u32| zone.name.replace("{n}", &repeat.from.saturating_add(copy).to_string());
    match &repeat.place {
        Placement::Around { count, radius, degrees } => {
            if !(1..=MAX_COPIES).contains(count) {
                return refuse("a zone is repeated 1 to 1000 times");
            }
            if radius.iter().any(|half| half.is_nan() || *half <= 0.0 || *half > MAX_COORDINATE) {
                return refuse("both radii of an oval are distances above 0");
            }
            let [from, to] = degrees.map(f64::to_radians);
            let zone_copy = |(copy, angle): (u32, f64)| {
                let (sin, cos) = angle.sin_cos();
                // Seats face along the normal of the oval, which points approximately to the focus.
                let normal = [sin / radius[0], -cos / radius[1]];
                ZoneCopy {
                    name: name(copy),
                    at: [zone.at[0] + radius[0] * sin, zone.at[1] - radius[1] * cos],
                    turn: (-normal[0]).atan2(normal[1]) + turn,
                }
            };
            Ok((0..).zip(even_angles(*radius, from, to, *count)).map(zone_copy).collect())
        }
        Placement::Grid { count: [columns, lines], step } => {
            let count = columns.saturating_mul(*lines);
            if !(1..=MAX_COPIES).contains(&count) {
                return refuse("a zone is repeated 1 to 1000 times");
            }
            let place = |number: u32, of: u32, step: f64| (f64::from(number) - f64::from(of - 1) / 2.0) * step;
            let zone_copy = |copy: u32| ZoneCopy {
                name: name(copy),
                at: [
                    zone.at[0] + place(copy % columns, *columns, step[0]),
                    zone.at[1] + place(copy / columns, *lines, step[1]),
                ],
                turn,
            };
            Ok((0..count).map(zone_copy).collect())
        }
    }
}

/// Returns the angles of `count` points that divide an arc of the oval into parts of equal length, each in the middle
/// of its part. There is no closed form, so the length is measured in small steps.
fn even_angles(radius: [f64; 2], from: f64, to: f64, count: u32) -> Vec<f64> {
    let step = (to - from) / f64::from(OVAL_STEPS);
    let length_at = |number: u32| {
        let (sin, cos) = (from + (f64::from(number) + 0.5) * step).sin_cos();
        (radius[0] * cos).hypot(radius[1] * sin) * step.abs()
    };
    let total: f64 = (0..OVAL_STEPS).map(length_at).sum();
    let mut angles = Vec::with_capacity(count as usize);
    let mut passed = 0.0;
    for number in 0..OVAL_STEPS {
        let wanted = (angles.len() as f64 + 0.5) / f64::from(count) * total;
        passed += length_at(number);
        if passed >= wanted && angles.len() < count as usize {
            angles.push(from + (f64::from(number) + 0.5) * step);
        }
    }
    angles
}

impl ZoneCopy {
    fn draw(&self, rows: &[(String, Vec<LocalSeat>)]) -> DrawnZone {
        let (sin, cos) = self.turn.sin_cos();
        let rounded = |value: f64| (value * HUNDREDTHS).round() / HUNDREDTHS;
        let rows = rows.iter().map(|(label, seats)| DrawnRow {
            label: label.clone(),
            seats: seats
                .iter()
                .map(|seat| DrawnSeat {
                    number: seat.number.clone(),
                    x: rounded(self.at[0] + seat.x * cos - seat.y * sin),
                    y: rounded(self.at[1] + seat.x * sin + seat.y * cos),
                    category: seat.category,
                })
                .collect(),
        });
        DrawnZone { name: self.name.clone(), rows: rows.collect() }
    }
}
