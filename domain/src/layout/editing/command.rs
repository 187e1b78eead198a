//! Commands that change a draft. A refused command changes nothing and returns the reason.

use std::sync::Arc;

use serde_json::Map;

use super::curve::{add, normalise_angle, rotate};
use super::{
    Draft, DraftArea, DraftCategory, DraftRow, DraftSection, DrawingPoint, MAX_EDITED_SEATS, MAX_ROWS_AT_ONCE,
    MAX_SEATS_PER_ROW, Numbering, ObjectKey, Outline, label_after, valid_name,
};
use crate::api::SeatKind;
use crate::layout::areas::MAX_AREA_CAPACITY;
use crate::layout::error::MAX_NAME_CHARS;
use crate::layout::room::{Category, Focus};

/// Rows to draw, one behind the other.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRows {
    /// Section of the rows.
    pub section: ObjectKey,
    /// Category of the seats.
    pub category: ObjectKey,
    /// Middle of the first row.
    pub at: DrawingPoint,
    /// Rotation, degrees clockwise.
    pub turn: f64,
    /// Distance by which the ends are in front of the middle.
    pub bow: f64,
    /// Number of rows, 1 to [`MAX_ROWS_AT_ONCE`].
    pub rows: usize,
    /// Seats per row, 1 to [`MAX_SEATS_PER_ROW`].
    pub seats: usize,
    /// Label of the first row. The others continue from it.
    pub label: String,
    /// Numbering of the seats.
    pub numbering: Numbering,
    /// Distance between rows.
    pub gap: f64,
    /// Aisles one seat wide: each value is the number of seats to the left of an aisle.
    pub aisles: Vec<usize>,
}

/// A change of a draft.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Renames the room.
    Rename(String),
    /// Changes the focus.
    Focus(Focus),
    /// Draws rows.
    AddRows(NewRows),
    /// Removes rows and areas.
    Remove(Vec<ObjectKey>),
    /// Copies rows with an offset. Their labels continue from the last copied row.
    Copy(Vec<ObjectKey>, DrawingPoint),
    /// Moves rows and areas.
    Move(Vec<ObjectKey>, DrawingPoint),
    /// Rotates rows and areas about their common middle, degrees clockwise.
    Turn(Vec<ObjectKey>, f64),
    /// Sets the bow of rows.
    Bend(Vec<ObjectKey>, f64),
    /// Labels rows, starting with this label.
    Relabel(Vec<ObjectKey>, String),
    /// Numbers the seats of rows.
    Number(Vec<ObjectKey>, Numbering),
    /// Sets the number of seats in rows.
    Resize(Vec<ObjectKey>, usize),
    /// Sets the distance from seat to seat behind the given number of seats from the left.
    Space(Vec<ObjectKey>, usize, f64),
    /// Sets the number of one seat in a row.
    SetNumber(ObjectKey, usize, String),
    /// Removes seats from a row. The other seats keep their positions.
    TakeOut(ObjectKey, Vec<usize>),
    /// Sets the category of rows and areas.
    Categorise(Vec<ObjectKey>, ObjectKey),
    /// Sets the category of some seats in a row.
    CategoriseSeats(ObjectKey, Vec<usize>, ObjectKey),
    /// Moves rows and areas to a section.
    Assign(Vec<ObjectKey>, ObjectKey),
    /// Adds a section.
    AddSection(String),
    /// Renames a section.
    RenameSection(ObjectKey, String),
    /// Removes an empty section.
    RemoveSection(ObjectKey),
    /// Adds a category.
    AddCategory(String, SeatKind),
    /// Changes label and kind of a category. The name that prices refer to stays.
    ChangeCategory(ObjectKey, String, SeatKind),
    /// Removes an unused category.
    RemoveCategory(ObjectKey),
    /// Adds a rectangular area: section, name, category, capacity, middle, size.
    AddArea(ObjectKey, String, ObjectKey, u32, DrawingPoint, DrawingPoint),
    /// Changes name, capacity and outline of an area.
    ChangeArea(ObjectKey, String, u32, Outline),
}

/// Reason why a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// More seats than an editable room may have.
    #[error("the room would have more than {MAX_EDITED_SEATS} seats")]
    TooManySeats,
    /// More rows, areas, sections, categories or corners than allowed.
    #[error("too many objects")]
    TooMany,
    /// The name is empty or too long.
    #[error("a name has 1 to {MAX_NAME_CHARS} characters")]
    NoName,
    /// The label has no successor.
    #[error("the label has no successor")]
    NotCountable,
    /// A position or length is out of range or not a number.
    #[error("a position is out of range")]
    OutOfBounds,
    /// The capacity is out of range.
    #[error("an area has 1 to {MAX_AREA_CAPACITY} places")]
    Capacity,
    /// The category or section is still in use.
    #[error("it is still in use")]
    InUse,
    /// The last category or section cannot be removed.
    #[error("the last one cannot be removed")]
    LastOne,
    /// The row, area, section or category does not exist.
    #[error("it does not exist")]
    Gone,
}

type CommandResult = Result<(), CommandError>;

impl Draft {
    /// Returns the draft after a command.
    ///
    /// # Errors
    /// [`CommandError`] gives the reason why the command does not apply.
    pub fn apply(&self, command: &Command) -> Result<Self, CommandError> {
        let mut draft = self.clone();
        match command {
            Command::Rename(name) => draft.name = valid_name(name)?,
            Command::Focus(focus) => draft.focus = *focus,
            Command::AddRows(request) => draft.add_rows(request)?,
            Command::Remove(keys) => {
                draft.rows.retain(|row| !keys.contains(&row.key));
                draft.areas.retain(|area| !keys.contains(&area.key));
            }
            Command::Copy(keys, by) => draft.copy(keys, *by)?,
            Command::Move(keys, by) => {
                draft.update_rows(keys, |row| row.at = add(row.at, *by));
                draft.update_areas(keys, |area| area.at = add(area.at, *by));
            }
            Command::Turn(keys, degrees) => draft.turn(keys, *degrees),
            Command::Bend(keys, bow) => draft.update_rows(keys, |row| row.bow = *bow),
            Command::Relabel(keys, first) => draft.relabel(keys, first)?,
            Command::Number(keys, numbering) => draft.number(keys, numbering)?,
            Command::Resize(keys, count) => draft.resize(keys, *count)?,
            Command::Space(keys, after, distance) => {
                if !distance.is_finite() || *distance <= 0.0 {
                    return Err(CommandError::OutOfBounds);
                }
                draft.update_rows(keys, |row| row.space(*after, *distance));
            }
            Command::SetNumber(key, seat, number) => draft.set_number(*key, *seat, number)?,
            Command::TakeOut(key, seats) => draft.take_out(*key, seats),
            Command::Categorise(keys, category) => {
                draft.require_category(*category)?;
                draft.update_rows(keys, |row| row.seats.iter_mut().for_each(|seat| seat.category = *category));
                draft.update_areas(keys, |area| area.category = *category);
            }
            Command::CategoriseSeats(key, seats, category) => {
                draft.require_category(*category)?;
                draft.update_rows(&[*key], |row| {
                    let chosen = row.seats.iter_mut().enumerate().filter(|(number, _)| seats.contains(number));
                    chosen.for_each(|(_, seat)| seat.category = *category);
                });
            }
            Command::Assign(keys, section) => {
                draft.require_section(*section)?;
                draft.update_rows(keys, |row| row.section = *section);
                draft.update_areas(keys, |area| area.section = *section);
            }
            other => draft.apply_to_parts(other)?,
        }
        draft.check(self)?;
        Ok(draft)
    }

    /// Applies commands about sections, categories and areas.
    fn apply_to_parts(&mut self, command: &Command) -> CommandResult {
        match command {
            Command::AddSection(name) => {
                let (key, name) = (self.new_key(), valid_name(name)?);
                let (drawings, rest) = (Vec::new(), Map::new());
                self.sections.push(DraftSection { key, name, origin: [0.0, 0.0], drawings, rest });
            }
            Command::RenameSection(key, name) => {
                let section = self.sections.iter_mut().find(|section| section.key == *key).ok_or(CommandError::Gone)?;
                section.name = valid_name(name)?;
            }
            Command::RemoveSection(key) => self.remove_section(*key)?,
            Command::AddCategory(name, kind) => {
                let (key, name) = (self.new_key(), valid_name(name)?);
                let category = Category { name, label: None, kind: *kind, color: None };
                self.categories.push(DraftCategory { key, category, rest: Map::new() });
            }
            Command::ChangeCategory(key, label, kind) => {
                let label = valid_name(label)?;
                let found =
                    self.categories.iter_mut().find(|category| category.key == *key).ok_or(CommandError::Gone)?;
                found.category.label = (label != found.category.name).then_some(label);
                found.category.kind = *kind;
            }
            Command::RemoveCategory(key) => self.remove_category(*key)?,
            Command::AddArea(section, name, category, capacity, at, size) => {
                self.require_section(*section)?;
                self.require_category(*category)?;
                let area = DraftArea {
                    key: self.new_key(),
                    section: *section,
                    name: valid_name(name)?,
                    category: *category,
                    capacity: *capacity,
                    at: *at,
                    outline: Outline::Rectangle(*size),
                    rest: Map::new(),
                };
                self.areas.push(Arc::new(area));
            }
            Command::ChangeArea(key, name, capacity, outline) => {
                let name = valid_name(name)?;
                self.update_areas(&[*key], |area| {
                    (area.name, area.capacity, area.outline) = (name.clone(), *capacity, outline.clone());
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn update_rows(&mut self, keys: &[ObjectKey], mut change: impl FnMut(&mut DraftRow)) {
        for row in self.rows.iter_mut().filter(|row| keys.contains(&row.key)) {
            change(Arc::make_mut(row));
        }
    }

    fn update_areas(&mut self, keys: &[ObjectKey], mut change: impl FnMut(&mut DraftArea)) {
        for area in self.areas.iter_mut().filter(|area| keys.contains(&area.key)) {
            change(Arc::make_mut(area));
        }
    }

    fn require_category(&self, key: ObjectKey) -> CommandResult {
        self.categories.iter().any(|category| category.key == key).then_some(()).ok_or(CommandError::Gone)
    }

    fn require_section(&self, key: ObjectKey) -> CommandResult {
        self.sections.iter().any(|section| section.key == key).then_some(()).ok_or(CommandError::Gone)
    }

    fn add_rows(&mut self, request: &NewRows) -> CommandResult {
        self.require_category(request.category)?;
        self.require_section(request.section)?;
        if !(1..=MAX_ROWS_AT_ONCE).contains(&request.rows) || !(1..=MAX_SEATS_PER_ROW).contains(&request.seats) {
            return Err(CommandError::TooMany);
        }
        let labels = Numbering { first: request.label.clone(), step: 1, from_right: false }.labels(request.rows);
        for (number, label) in (0_u32..).zip(labels.ok_or(CommandError::NotCountable)?) {
            let behind = rotate([0.0, request.gap * f64::from(number)], request.turn);
            let (key, at) = (self.new_key(), add(request.at, behind));
            let row = DraftRow::from_request(request, key, label, at, self.pitch).ok_or(CommandError::NotCountable)?;
            self.rows.push(Arc::new(row));
        }
        Ok(())
    }

    /// Copied seats are new seats. The labels of the copies continue from the last copied row.
    fn copy(&mut self, keys: &[ObjectKey], by: DrawingPoint) -> CommandResult {
        let rows: Vec<Arc<DraftRow>> = self.rows.iter().filter(|row| keys.contains(&row.key)).cloned().collect();
        let mut label = rows.last().map(|row| row.label.clone()).unwrap_or_default();
        for row in rows {
            label = label_after(&label, 1).ok_or(CommandError::NotCountable)?;
            let mut copy = DraftRow::clone(&row);
            (copy.key, copy.label, copy.at) = (self.new_key(), label.clone(), add(copy.at, by));
            copy.rest.clear();
            for seat in &mut copy.seats {
                seat.origin = None;
                seat.rest.clear();
            }
            self.rows.push(Arc::new(copy));
        }
        Ok(())
    }

    fn turn(&mut self, keys: &[ObjectKey], degrees: f64) {
        let Some(middle) = self.middle_of(keys) else { return };
        let about = |at: DrawingPoint| add(middle, rotate([at[0] - middle[0], at[1] - middle[1]], degrees));
        self.update_rows(keys, |row| {
            row.at = about(row.at);
            row.turn = normalise_angle(row.turn + degrees);
        });
        self.update_areas(keys, |area| {
            area.at = about(area.at);
            if degrees % 180.0 != 0.0 {
                let corners = area.outline.corners();
                area.outline = Outline::Polygon(corners.into_iter().map(|at| rotate(at, degrees)).collect());
            }
        });
    }

    fn relabel(&mut self, keys: &[ObjectKey], first: &str) -> CommandResult {
        let mut next = Some(valid_name(first)?);
        for row in self.rows.iter_mut().filter(|row| keys.contains(&row.key)) {
            let label = next.ok_or(CommandError::NotCountable)?;
            next = label_after(&label, 1);
            Arc::make_mut(row).label = label;
        }
        Ok(())
    }

    fn number(&mut self, keys: &[ObjectKey], numbering: &Numbering) -> CommandResult {
        for row in self.rows.iter_mut().filter(|row| keys.contains(&row.key)) {
            let labels = numbering.labels(row.seats.len()).ok_or(CommandError::NotCountable)?;
            let order = row.from_left();
            let row = Arc::make_mut(row);
            for (seat, label) in order.into_iter().zip(labels) {
                row.seats[seat].number = label;
            }
        }
        Ok(())
    }

    fn resize(&mut self, keys: &[ObjectKey], count: usize) -> CommandResult {
        if !(1..=MAX_SEATS_PER_ROW).contains(&count) {
            return Err(CommandError::TooMany);
        }
        let pitch = self.pitch;
        self.update_rows(keys, |row| row.resize(count, pitch));
        Ok(())
    }

    /// An empty number is allowed and reported as a finding, so that editing can continue.
    fn set_number(&mut self, key: ObjectKey, seat: usize, number: &str) -> CommandResult {
        if number.chars().count() > MAX_NAME_CHARS {
            return Err(CommandError::NoName);
        }
        self.update_rows(&[key], |row| {
            if let Some(seat) = row.seats.get_mut(seat) {
                number.trim().clone_into(&mut seat.number);
            }
        });
        Ok(())
    }

    /// A row without seats is removed.
    fn take_out(&mut self, key: ObjectKey, seats: &[usize]) {
        self.update_rows(&[key], |row| {
            let mut number = 0;
            row.seats.retain(|_| {
                number += 1;
                !seats.contains(&(number - 1))
            });
        });
        self.rows.retain(|row| !row.seats.is_empty());
    }

    fn remove_section(&mut self, key: ObjectKey) -> CommandResult {
        self.require_section(key)?;
        let is_used =
            self.rows.iter().any(|row| row.section == key) || self.areas.iter().any(|area| area.section == key);
        let has_drawings = self.sections.iter().any(|section| section.key == key && !section.drawings.is_empty());
        if is_used || has_drawings {
            return Err(CommandError::InUse);
        }
        if self.sections.len() == 1 {
            return Err(CommandError::LastOne);
        }
        self.sections.retain(|section| section.key != key);
        Ok(())
    }

    fn remove_category(&mut self, key: ObjectKey) -> CommandResult {
        let found = self.categories.iter().find(|category| category.key == key).ok_or(CommandError::Gone)?;
        let mut seats = self.rows.iter().flat_map(|row| &row.seats);
        let is_used = seats.any(|seat| seat.category == key) || self.areas.iter().any(|area| area.category == key);
        if is_used || self.others.has_category(&found.category.name) {
            return Err(CommandError::InUse);
        }
        if self.categories.len() == 1 {
            return Err(CommandError::LastOne);
        }
        self.categories.retain(|category| category.key != key);
        Ok(())
    }
}
