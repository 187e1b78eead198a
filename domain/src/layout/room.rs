//! The measured room: seats numbered densely, each with a position, a category and a unique name.
//!
//! A seating plan or a sketch arrives as a [`Drawing`]. This module validates it, and numbers and names its seats. It
//! has no dependency on JSON or prices; `frame` converts coordinates to plan units.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::areas::Area;
use super::error::{LayoutError, MAX_CATEGORIES, MAX_NAME_CHARS};
use super::frame::{PlanTransform, is_place};
use super::shapes;
use crate::api::{OVERVIEW_ABOVE_SEATS, SeatKind, ShapeView};
use crate::hidden_characters::visible;
use crate::seats::{AreaIndex, MAX_SEATS_PER_SHOW};

/// Kind of the focus that the audience faces.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FocusKind {
    /// A cinema's screen.
    Screen,
    /// A stage.
    #[default]
    Stage,
    /// A sports field, a track or a ring.
    Field,
    /// No focus: the room has no front.
    None,
}

/// Side of the drawing that the focus is on.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FocusSide {
    /// Above the seats, as rooms are shown.
    #[default]
    Top,
    /// To their right.
    Right,
    /// Below them.
    Bottom,
    /// To their left.
    Left,
    /// In the middle, with seats all around.
    Round,
}

impl FocusSide {
    /// Sides in clockwise order, a quarter turn apart.
    const CLOCKWISE: [Self; 4] = [Self::Top, Self::Right, Self::Bottom, Self::Left];

    /// Rotates a point or vector of the drawing about the origin, so that this side is at the top. A quarter turn is
    /// exact, and never mirrors: left and right of a seat stay what they are.
    #[must_use]
    pub fn turn_to_top(self, [x, y]: [f64; 2]) -> [f64; 2] {
        match self {
            Self::Top | Self::Round => [x, y],
            Self::Right => [y, -x],
            Self::Bottom => [-x, -y],
            Self::Left => [-y, x],
        }
    }

    /// Returns the point of the drawing that [`FocusSide::turn_to_top`] turns to this one.
    #[must_use]
    pub fn turn_back(self, point: [f64; 2]) -> [f64; 2] {
        match self {
            Self::Right => Self::Left.turn_to_top(point),
            Self::Left => Self::Right.turn_to_top(point),
            Self::Top | Self::Bottom | Self::Round => self.turn_to_top(point),
        }
    }

    /// Returns the side of the drawing that is at `shown` while this side is at the top.
    #[must_use]
    pub fn behind(self, shown: Self) -> Self {
        let quarters = |side| Self::CLOCKWISE.iter().position(|other| *other == side);
        let Some(turns) = quarters(shown) else { return shown };
        Self::CLOCKWISE[(quarters(self).unwrap_or_default() + turns) % Self::CLOCKWISE.len()]
    }

    /// True for [`FocusSide::Top`].
    #[must_use]
    pub fn is_top(&self) -> bool {
        *self == Self::Top
    }
}

/// Kind and side of a focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FocusChoice {
    /// Kind of the focus.
    pub kind: FocusKind,
    /// Side of the drawing that it is on.
    #[serde(default)]
    pub side: FocusSide,
}

/// The focus, in units of the drawing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Focus {
    /// Kind of the focus.
    pub kind: FocusKind,
    /// Side of the drawing that it is on. The room is shown with this side at the top.
    #[serde(default, skip_serializing_if = "FocusSide::is_top")]
    pub side: FocusSide,
    /// Centre: x, y.
    pub at: [f64; 2],
    /// Width, from left to right as the audience faces it.
    pub width: f64,
    /// Depth. Without it the focus is as deep as the seats leave space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<f64>,
}

/// The focus in plan units, as the room is shown: at the top, or in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedFocus {
    /// Kind of the focus.
    pub kind: FocusKind,
    /// Side of the drawing that it is on.
    pub side: FocusSide,
    /// Centre: x, y.
    pub at: [i32; 2],
    /// Width.
    pub width: i32,
    /// Depth. No seat is within width and depth, unless the drawing has one at the very centre.
    pub depth: i32,
}

impl PlacedFocus {
    /// True if the focus is in front of all seats; false without a focus and in the round.
    #[must_use]
    pub fn is_in_front(&self) -> bool {
        self.kind != FocusKind::None && self.side != FocusSide::Round
    }
}

/// A price category of a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Category {
    /// Name that prices refer to, for example `gold`.
    pub name: String,
    /// Display name; defaults to `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Kind of its seats.
    #[serde(default, skip_serializing_if = "is_standard")]
    pub kind: SeatKind,
    /// A CSS colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
}

fn is_standard(kind: &SeatKind) -> bool {
    *kind == SeatKind::Standard
}

impl Category {
    /// Display name.
    #[must_use]
    pub fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }
}

/// A room in units of the drawing.
#[derive(Clone, Debug, Default)]
pub(super) struct Drawing {
    pub categories: Vec<Category>,
    pub focus: Option<Focus>,
    pub zones: Vec<DrawnZone>,
    pub shapes: Vec<DrawnShape>,
}

/// A drawing beside the seats: an area for sale, a table, a bar, a text.
#[derive(Clone, Debug)]
pub(super) struct DrawnShape {
    /// Its middle.
    pub at: [f64; 2],
    /// Corners of its outline; empty for a text alone.
    pub corners: Vec<[f64; 2]>,
    /// Its text; may be empty.
    pub text: String,
    /// The area for sale that it is. It has an outline.
    pub area: Option<AreaIndex>,
}

impl DrawnShape {
    /// Returns left, top, right and bottom; its middle if it has no outline.
    pub fn bounds(&self) -> [f64; 4] {
        let [x, y] = self.at;
        self.corners.iter().fold([x, y, x, y], |[left, top, right, bottom], [x, y]| {
            [left.min(*x), top.min(*y), right.max(*x), bottom.max(*y)]
        })
    }
}

impl Drawing {
    /// All seats, in order.
    pub fn seats(&self) -> impl Iterator<Item = &DrawnSeat> {
        self.zones.iter().flat_map(|zone| &zone.rows).flat_map(|row| &row.seats)
    }
}

#[derive(Clone, Debug)]
pub(super) struct DrawnZone {
    pub name: String,
    pub rows: Vec<DrawnRow>,
}

#[derive(Clone, Debug)]
pub(super) struct DrawnRow {
    pub label: String,
    pub seats: Vec<DrawnSeat>,
}

#[derive(Clone, Debug)]
pub(super) struct DrawnSeat {
    pub number: String,
    pub x: f64,
    pub y: f64,
    pub category: u8,
}

/// A zone with seats, or a part of a zone that has more seats than a browser shows at once.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub name: String,
    /// Row range of the part, for display; empty if it is the whole zone.
    pub part: String,
    pub first: u32,
    pub count: u32,
    /// Bounding box of the seats' centres: left, top, right, bottom.
    pub bounds: [i32; 4],
    pub rows: std::ops::Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct SeatRow {
    pub label: String,
    pub zone: usize,
    pub first: u32,
    pub count: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub number: String,
    pub x: i32,
    pub y: i32,
    pub category: u8,
    /// Direction in which it faces, degrees clockwise from the top.
    pub turn: i32,
}

/// A room that is measured, validated and numbered.
#[derive(Clone, Debug)]
pub(super) struct MeasuredRoom {
    pub categories: Vec<Category>,
    pub width: i32,
    pub height: i32,
    pub focus: PlacedFocus,
    /// Areas for sale and other drawings, without the one that is the focus.
    pub shapes: Vec<ShapeView>,
    /// Number of zones with seats in the drawing. `zones` is longer if a zone is divided into parts.
    pub drawn_zones: usize,
    pub zones: Vec<Zone>,
    pub rows: Vec<SeatRow>,
    pub seats: Vec<Seat>,
}

impl MeasuredRoom {
    /// Measures, validates, numbers and names the seats of a drawing.
    pub fn build(drawing: Drawing, areas: &[Area]) -> Result<Self, LayoutError> {
        check_categories(&drawing.categories)?;
        check_seats(&drawing, areas)?;
        let frame = PlanTransform::around(&drawing)?;
        let mut room = Self {
            width: frame.width,
            height: frame.height,
            focus: frame.focus,
            shapes: drawing.shapes.iter().filter_map(|shape| shapes::placed(shape, &frame)).collect(),
            categories: drawing.categories,
            drawn_zones: 0,
            zones: Vec::with_capacity(drawing.zones.len()),
            rows: Vec::new(),
            seats: Vec::new(),
        };
        for zone in drawing.zones {
            room.push_zone(zone, &frame);
        }
        room.check_names()?;
        room.turn_seats();
        Ok(room)
    }

    /// Numbers the seats of a zone. A zone without seats, which has only areas, is skipped.
    fn push_zone(&mut self, zone: DrawnZone, frame: &PlanTransform) {
        let rows: Vec<DrawnRow> = zone.rows.into_iter().filter(|row| !row.seats.is_empty()).collect();
        if rows.is_empty() {
            return;
        }
        self.drawn_zones += 1;
        let parts = split_into_parts(rows);
        let is_whole = parts.len() == 1;
        for rows in parts {
            let part = if is_whole { String::new() } else { part_name(&rows) };
            self.push_part(zone.name.trim(), part, rows, frame);
        }
    }

    /// Turns seats at a table towards it, and in the round the others towards the focus.
    fn turn_seats(&mut self) {
        let focus = self.focus;
        if focus.kind != FocusKind::None && focus.side == FocusSide::Round {
            let reach = [focus.width / 2, focus.depth / 2];
            let bounds = [0, 1].map(|axis| [focus.at[axis] - reach[axis], focus.at[axis] + reach[axis]]);
            for seat in &mut self.seats {
                seat.turn = shapes::turn_towards([seat.x, seat.y], bounds);
            }
        }
        for shape in &self.shapes {
            shapes::turn_to_table(shape, &mut self.seats);
        }
    }

    fn push_part(&mut self, name: &str, part: String, rows: Vec<DrawnRow>, frame: &PlanTransform) {
        let first = self.seats.len();
        let first_row = self.rows.len();
        let mut bounds = [i32::MAX, i32::MAX, i32::MIN, i32::MIN];
        for row in rows {
            let count = row.seats.len() as u32;
            self.rows.push(SeatRow {
                label: row.label.trim().to_owned(),
                zone: self.zones.len(),
                first: self.seats.len() as u32,
                count,
            });
            for seat in row.seats {
                let (x, y) = frame.place(seat.x, seat.y);
                bounds = [bounds[0].min(x), bounds[1].min(y), bounds[2].max(x), bounds[3].max(y)];
                self.seats.push(Seat { number: seat.number.trim().to_owned(), x, y, category: seat.category, turn: 0 });
            }
        }
        self.zones.push(Zone {
            name: name.to_owned(),
            part,
            first: first as u32,
            count: (self.seats.len() - first) as u32,
            bounds,
            rows: first_row..self.rows.len(),
        });
    }

    /// Returns the row of a seat; `None` beyond the last seat.
    pub fn row_of(&self, seat: u32) -> Option<&SeatRow> {
        if seat as usize >= self.seats.len() {
            return None;
        }
        // Rows are contiguous and not empty: the seat belongs to the last row that starts at or before it.
        let after = self.rows.partition_point(|row| row.first <= seat);
        self.rows.get(after.checked_sub(1)?)
    }

    /// Name of the zone; empty if the room has only one.
    pub fn section_name(&self, zone: usize) -> &str {
        if self.drawn_zones > 1 { &self.zones[zone].name } else { "" }
    }

    /// Display name of a seat: see [`super::Layout::label`].
    pub fn label(&self, row: &SeatRow, seat: &Seat) -> String {
        name_of(self.section_name(row.zone), &row.label, &seat.number)
    }

    fn check_names(&self) -> Result<(), LayoutError> {
        let mut seen = HashSet::with_capacity(self.seats.len());
        for row in &self.rows {
            let from = row.first as usize;
            for seat in &self.seats[from..from + row.count as usize] {
                if seat.number.is_empty() {
                    return Err(LayoutError::Unnamed { row: row.label.clone() });
                }
                // Two names that differ by invisible characters alone look the same.
                let name = visible(self.label(row, seat));
                if let Some(name) = seen.replace(name) {
                    return Err(LayoutError::DuplicateName(name));
                }
            }
        }
        Ok(())
    }
}

/// Builds the display name of a seat from its zone (empty if not needed), row and number.
pub(super) fn name_of(zone: &str, row: &str, number: &str) -> String {
    let mut name = String::with_capacity(zone.len() + row.len() + number.len() + 2);
    name.push_str(zone);
    if !zone.is_empty() {
        name.push(' ');
    }
    name.push_str(row);
    let digits_meet = row.ends_with(|c: char| c.is_ascii_digit()) && number.starts_with(|c: char| c.is_ascii_digit());
    if digits_meet {
        name.push('-');
    }
    name.push_str(number);
    name
}

/// Divides the rows of a zone into parts of similar size, each with at most as many seats as are drawn at once. Rows
/// are not divided, so a longer row is a part by itself.
fn split_into_parts(rows: Vec<DrawnRow>) -> Vec<Vec<DrawnRow>> {
    let max = OVERVIEW_ABOVE_SEATS as usize;
    let total: usize = rows.iter().map(|row| row.seats.len()).sum();
    let target = total.div_ceil(total.div_ceil(max).max(1));
    let mut parts: Vec<Vec<DrawnRow>> = vec![Vec::new()];
    let mut count = 0;
    for row in rows {
        if count > 0 && (count >= target || count + row.seats.len() > max) {
            parts.push(Vec::new());
            count = 0;
        }
        count += row.seats.len();
        parts.last_mut().expect("there is one").push(row);
    }
    parts
}

/// Range of rows for display, `A–K`.
fn part_name(rows: &[DrawnRow]) -> String {
    match rows {
        [] => String::new(),
        [only] => only.label.trim().to_owned(),
        [first, .., last] => format!("{}–{}", first.label.trim(), last.label.trim()),
    }
}

fn check_categories(categories: &[Category]) -> Result<(), LayoutError> {
    if categories.len() > MAX_CATEGORIES {
        return Err(LayoutError::TooManyCategories(categories.len()));
    }
    let mut seen = HashSet::new();
    for category in categories {
        check_name(&category.name)?;
        check_name(category.label())?;
        if !seen.insert(category.name.as_str()) {
            return Err(LayoutError::DuplicateCategory(category.name.clone()));
        }
    }
    Ok(())
}

fn check_seats(drawing: &Drawing, areas: &[Area]) -> Result<(), LayoutError> {
    let mut count = 0;
    for zone in &drawing.zones {
        check_name(&zone.name)?;
        for row in &zone.rows {
            check_name(&row.label)?;
            count += row.seats.len();
            for seat in &row.seats {
                check_name(&seat.number)?;
                if !is_place(seat.x) || !is_place(seat.y) {
                    return Err(LayoutError::OutOfBounds(format!("seat {} of row {:?}", seat.number, row.label)));
                }
            }
        }
    }
    match count {
        0 if areas.is_empty() => Err(LayoutError::NoSeats),
        0..=MAX_SEATS_PER_SHOW => Ok(()),
        _ => Err(LayoutError::TooManySeats),
    }
}

fn check_name(name: &str) -> Result<(), LayoutError> {
    if name.contains('\0') {
        return Err(LayoutError::Unreadable(name.replace('\0', "\u{fffd}").chars().take(20).collect()));
    }
    // Characters are counted only if the number of bytes exceeds the limit.
    if name.len() > MAX_NAME_CHARS && name.chars().count() > MAX_NAME_CHARS {
        return Err(LayoutError::NameTooLong(name.chars().take(20).collect()));
    }
    Ok(())
}
