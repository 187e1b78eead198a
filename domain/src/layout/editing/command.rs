//! What can be done to a draft. A command that is refused changes nothing, and says why.

use std::sync::Arc;

use serde_json::Map;

use super::super::areas::MAX_AREA_CAPACITY;
use super::super::error::MAX_NAME_CHARS;
use super::super::room::{Category, Focus};
use super::curve::{even, plus, turned};
use super::limits::named;
use super::{
    Draft, DraftArea, DraftCategory, DraftRow, DraftSection, Key, MAX_EDITED_SEATS, MAX_ROWS_AT_ONCE,
    MAX_SEATS_PER_ROW, Numbering, Outline, Point, label_after,
};
use crate::api::SeatKind;

/// Rows to be drawn, one behind the other.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRows {
    /// The section they are in.
    pub section: Key,
    /// What their seats are.
    pub category: Key,
    /// The middle of the first row.
    pub at: Point,
    /// Degrees clockwise.
    pub turn: f64,
    /// How far their ends come forward.
    pub bow: f64,
    /// How many rows, 1 to [`MAX_ROWS_AT_ONCE`].
    pub rows: usize,
    /// Seats in each, 1 to [`MAX_SEATS_PER_ROW`].
    pub seats: usize,
    /// The first row's letter or number; the others count on.
    pub label: String,
    /// How seats are numbered.
    pub numbering: Numbering,
    /// From row to row.
    pub gap: f64,
    /// An aisle one seat wide behind so many seats from the left.
    pub aisles: Vec<usize>,
}

/// One thing to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Another name for the room.
    Rename(String),
    /// Another place, width or kind of what people look at.
    Focus(Focus),
    /// Draws rows.
    AddRows(NewRows),
    /// Takes rows and areas away.
    Remove(Vec<Key>),
    /// Draws rows once more, so far away, with letters counted on.
    Copy(Vec<Key>, Point),
    /// Moves rows and areas.
    Move(Vec<Key>, Point),
    /// Turns rows and areas about their common middle, degrees clockwise.
    Turn(Vec<Key>, f64),
    /// Bends rows so far.
    Bend(Vec<Key>, f64),
    /// Rows get this letter or number, counting on from the first.
    Relabel(Vec<Key>, String),
    /// Numbers the seats of rows.
    Number(Vec<Key>, Numbering),
    /// Gives rows so many seats.
    Resize(Vec<Key>, usize),
    /// The distance, from seat to seat, behind the first so many seats from the left.
    Space(Vec<Key>, usize, f64),
    /// Writes a number on one seat of a row.
    SetNumber(Key, usize, String),
    /// Takes seats out of a row; the others stay where they are.
    TakeOut(Key, Vec<usize>),
    /// Rows and areas are of this category.
    Categorise(Vec<Key>, Key),
    /// These seats of a row are.
    CategoriseSeats(Key, Vec<usize>, Key),
    /// Rows and areas go into this section.
    Assign(Vec<Key>, Key),
    /// A new section.
    AddSection(String),
    /// Another name for a section.
    RenameSection(Key, String),
    /// Takes away a section that has nothing in it.
    RemoveSection(Key),
    /// A new category.
    AddCategory(String, SeatKind),
    /// Other words for a category, or another kind. What prices go by stays.
    ChangeCategory(Key, String, SeatKind),
    /// Takes away a category that nothing is of.
    RemoveCategory(Key),
    /// Draws an area, a rectangle so wide and so deep: section, name, category, capacity, middle, size.
    AddArea(Key, String, Key, u32, Point, Point),
    /// Another name, capacity or outline of an area.
    ChangeArea(Key, String, u32, Outline),
}

/// Why something is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// More seats than are edited.
    #[error("more than {MAX_EDITED_SEATS} seats")]
    TooManySeats,
    /// More rows, areas, sections, categories or corners than there may be.
    #[error("too many of them")]
    TooMany,
    /// A name that is empty or too long.
    #[error("a name has 1 to {MAX_NAME_CHARS} characters")]
    NoName,
    /// Nobody can count on from that label.
    #[error("nobody can count on from that")]
    NotCountable,
    /// Outside of any room, or no number.
    #[error("outside of any room")]
    OutOfBounds,
    /// A number of people that is none.
    #[error("an area has 1 to {MAX_AREA_CAPACITY} places")]
    Capacity,
    /// Something is still of that category, or in that section.
    #[error("something is still in it")]
    InUse,
    /// The last of them stays.
    #[error("the last one stays")]
    LastOne,
    /// What it is about is not there.
    #[error("it is not there")]
    Gone,
}

type Done = Result<(), Refused>;

impl Draft {
    /// What becomes of it by a command.
    ///
    /// # Errors
    /// [`Refused`]; then it stays as it is.
    pub fn after(&self, command: &Command) -> Result<Self, Refused> {
        let mut draft = self.clone();
        match command {
            Command::Rename(name) => draft.name = named(name)?,
            Command::Focus(focus) => draft.focus = *focus,
            Command::AddRows(wish) => draft.add_rows(wish)?,
            Command::Remove(keys) => {
                draft.rows.retain(|row| !keys.contains(&row.key));
                draft.areas.retain(|area| !keys.contains(&area.key));
            }
            Command::Copy(keys, by) => draft.copy(keys, *by)?,
            Command::Move(keys, by) => {
                draft.each_row(keys, |row| row.at = plus(row.at, *by));
                draft.each_area(keys, |area| area.at = plus(area.at, *by));
            }
            Command::Turn(keys, degrees) => draft.turn(keys, *degrees),
            Command::Bend(keys, bow) => draft.each_row(keys, |row| row.bow = *bow),
            Command::Relabel(keys, first) => draft.relabel(keys, first)?,
            Command::Number(keys, numbering) => draft.number(keys, numbering)?,
            Command::Resize(keys, count) => draft.resize(keys, *count)?,
            Command::Space(keys, after, distance) => {
                if !distance.is_finite() || *distance <= 0.0 {
                    return Err(Refused::OutOfBounds);
                }
                draft.each_row(keys, |row| row.space(*after, *distance));
            }
            Command::SetNumber(key, seat, number) => draft.set_number(*key, *seat, number)?,
            Command::TakeOut(key, seats) => draft.take_out(*key, seats),
            Command::Categorise(keys, category) => {
                draft.has_category(*category)?;
                draft.each_row(keys, |row| row.seats.iter_mut().for_each(|seat| seat.category = *category));
                draft.each_area(keys, |area| area.category = *category);
            }
            Command::CategoriseSeats(key, seats, category) => {
                draft.has_category(*category)?;
                draft.each_row(&[*key], |row| {
                    let chosen = row.seats.iter_mut().enumerate().filter(|(number, _)| seats.contains(number));
                    chosen.for_each(|(_, seat)| seat.category = *category);
                });
            }
            Command::Assign(keys, section) => {
                draft.has_section(*section)?;
                draft.each_row(keys, |row| row.section = *section);
                draft.each_area(keys, |area| area.section = *section);
            }
            other => draft.change_parts(other)?,
        }
        draft.check(self)?;
        Ok(draft)
    }

    /// Commands about sections, categories and areas.
    fn change_parts(&mut self, command: &Command) -> Done {
        match command {
            Command::AddSection(name) => {
                let (key, name) = (self.new_key(), named(name)?);
                let (drawings, rest) = (Vec::new(), Map::new());
                self.sections.push(DraftSection { key, name, origin: [0.0, 0.0], drawings, rest });
            }
            Command::RenameSection(key, name) => {
                let section = self.sections.iter_mut().find(|section| section.key == *key).ok_or(Refused::Gone)?;
                section.name = named(name)?;
            }
            Command::RemoveSection(key) => self.remove_section(*key)?,
            Command::AddCategory(name, kind) => {
                let (key, name) = (self.new_key(), named(name)?);
                let category = Category { name, label: None, kind: *kind, color: None };
                self.categories.push(DraftCategory { key, category, rest: Map::new() });
            }
            Command::ChangeCategory(key, label, kind) => {
                let label = named(label)?;
                let found = self.categories.iter_mut().find(|category| category.key == *key).ok_or(Refused::Gone)?;
                found.category.label = (label != found.category.name).then_some(label);
                found.category.kind = *kind;
            }
            Command::RemoveCategory(key) => self.remove_category(*key)?,
            Command::AddArea(section, name, category, capacity, at, size) => {
                self.has_section(*section)?;
                self.has_category(*category)?;
                let area = DraftArea {
                    key: self.new_key(),
                    section: *section,
                    name: named(name)?,
                    category: *category,
                    capacity: *capacity,
                    at: *at,
                    outline: Outline::Rectangle(*size),
                    rest: Map::new(),
                };
                self.areas.push(Arc::new(area));
            }
            Command::ChangeArea(key, name, capacity, outline) => {
                let name = named(name)?;
                self.each_area(&[*key], |area| {
                    (area.name, area.capacity, area.outline) = (name.clone(), *capacity, outline.clone());
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn each_row(&mut self, keys: &[Key], mut change: impl FnMut(&mut DraftRow)) {
        for row in self.rows.iter_mut().filter(|row| keys.contains(&row.key)) {
            change(Arc::make_mut(row));
        }
    }

    fn each_area(&mut self, keys: &[Key], mut change: impl FnMut(&mut DraftArea)) {
        for area in self.areas.iter_mut().filter(|area| keys.contains(&area.key)) {
            change(Arc::make_mut(area));
        }
    }

    fn has_category(&self, key: Key) -> Done {
        self.categories.iter().any(|category| category.key == key).then_some(()).ok_or(Refused::Gone)
    }

    fn has_section(&self, key: Key) -> Done {
        self.sections.iter().any(|section| section.key == key).then_some(()).ok_or(Refused::Gone)
    }

    fn add_rows(&mut self, wish: &NewRows) -> Done {
        self.has_category(wish.category)?;
        self.has_section(wish.section)?;
        if !(1..=MAX_ROWS_AT_ONCE).contains(&wish.rows) || !(1..=MAX_SEATS_PER_ROW).contains(&wish.seats) {
            return Err(Refused::TooMany);
        }
        let labels = Numbering { first: wish.label.clone(), step: 1, from_right: false }.labels(wish.rows);
        for (number, label) in (0_u32..).zip(labels.ok_or(Refused::NotCountable)?) {
            let behind = turned([0.0, wish.gap * f64::from(number)], wish.turn);
            let (key, at) = (self.new_key(), plus(wish.at, behind));
            let row = DraftRow::drawn(wish, key, label, at, self.pitch).ok_or(Refused::NotCountable)?;
            self.rows.push(Arc::new(row));
        }
        Ok(())
    }

    /// Copies of seats are new seats; their row counts on from the last of the rows that are copied.
    fn copy(&mut self, keys: &[Key], by: Point) -> Done {
        let rows: Vec<Arc<DraftRow>> = self.rows.iter().filter(|row| keys.contains(&row.key)).cloned().collect();
        let mut label = rows.last().map(|row| row.label.clone()).unwrap_or_default();
        for row in rows {
            label = label_after(&label, 1).ok_or(Refused::NotCountable)?;
            let mut copy = DraftRow::clone(&row);
            (copy.key, copy.label, copy.at) = (self.new_key(), label.clone(), plus(copy.at, by));
            copy.rest.clear();
            for seat in &mut copy.seats {
                seat.origin = None;
                seat.rest.clear();
            }
            self.rows.push(Arc::new(copy));
        }
        Ok(())
    }

    fn turn(&mut self, keys: &[Key], degrees: f64) {
        let Some(middle) = self.middle_of(keys) else { return };
        let about = |at: Point| plus(middle, turned([at[0] - middle[0], at[1] - middle[1]], degrees));
        self.each_row(keys, |row| {
            row.at = about(row.at);
            row.turn = even(row.turn + degrees);
        });
        self.each_area(keys, |area| {
            area.at = about(area.at);
            if degrees % 180.0 != 0.0 {
                let corners = area.outline.corners();
                area.outline = Outline::Polygon(corners.into_iter().map(|at| turned(at, degrees)).collect());
            }
        });
    }

    fn relabel(&mut self, keys: &[Key], first: &str) -> Done {
        let mut next = Some(named(first)?);
        for row in self.rows.iter_mut().filter(|row| keys.contains(&row.key)) {
            let label = next.ok_or(Refused::NotCountable)?;
            next = label_after(&label, 1);
            Arc::make_mut(row).label = label;
        }
        Ok(())
    }

    fn number(&mut self, keys: &[Key], numbering: &Numbering) -> Done {
        for row in self.rows.iter_mut().filter(|row| keys.contains(&row.key)) {
            let labels = numbering.labels(row.seats.len()).ok_or(Refused::NotCountable)?;
            let order = row.from_left();
            let row = Arc::make_mut(row);
            for (seat, label) in order.into_iter().zip(labels) {
                row.seats[seat].number = label;
            }
        }
        Ok(())
    }

    fn resize(&mut self, keys: &[Key], count: usize) -> Done {
        if !(1..=MAX_SEATS_PER_ROW).contains(&count) {
            return Err(Refused::TooMany);
        }
        let pitch = self.pitch;
        self.each_row(keys, |row| row.resize(count, pitch));
        Ok(())
    }

    /// An empty number is a mistake that is named while one goes on.
    fn set_number(&mut self, key: Key, seat: usize, number: &str) -> Done {
        if number.chars().count() > MAX_NAME_CHARS {
            return Err(Refused::NoName);
        }
        self.each_row(&[key], |row| {
            if let Some(seat) = row.seats.get_mut(seat) {
                number.trim().clone_into(&mut seat.number);
            }
        });
        Ok(())
    }

    /// A row without seats is none.
    fn take_out(&mut self, key: Key, seats: &[usize]) {
        self.each_row(&[key], |row| {
            let mut number = 0;
            row.seats.retain(|_| {
                number += 1;
                !seats.contains(&(number - 1))
            });
        });
        self.rows.retain(|row| !row.seats.is_empty());
    }

    fn remove_section(&mut self, key: Key) -> Done {
        self.has_section(key)?;
        let is_used =
            self.rows.iter().any(|row| row.section == key) || self.areas.iter().any(|area| area.section == key);
        let has_drawings = self.sections.iter().any(|section| section.key == key && !section.drawings.is_empty());
        if is_used || has_drawings {
            return Err(Refused::InUse);
        }
        if self.sections.len() == 1 {
            return Err(Refused::LastOne);
        }
        self.sections.retain(|section| section.key != key);
        Ok(())
    }

    fn remove_category(&mut self, key: Key) -> Done {
        self.has_category(key)?;
        let mut seats = self.rows.iter().flat_map(|row| &row.seats);
        if seats.any(|seat| seat.category == key) || self.areas.iter().any(|area| area.category == key) {
            return Err(Refused::InUse);
        }
        if self.categories.len() == 1 {
            return Err(Refused::LastOne);
        }
        self.categories.retain(|category| category.key != key);
        Ok(())
    }
}
