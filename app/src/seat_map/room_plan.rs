//! The room plan in the browser: position, name and price of every loaded seat.
//!
//! Built from [`PlanView`]. The rows of a large room arrive section by section. Pure.

use domain::api::{AreaView, CategoryView, PlaceLine, PlanView, RowView, SeatKind, SeatLine, ShapeView};
use domain::seats::{AreaIndex, SeatIndex};
use language::{Arg, say};

use super::appearance::SeatAppearance;

/// The focus of a room without one.
const NO_FOCUS: &str = "none";

/// One seat of a loaded section.
#[derive(Clone, Copy, Debug)]
pub struct Seat<'a> {
    /// Name of its section; empty in a room without sections.
    pub section: &'a str,
    /// Row letter or number.
    pub row: &'a str,
    /// Number as printed.
    pub number: &'a str,
    /// Centre, plan units.
    pub x: i32,
    /// Centre, plan units.
    pub y: i32,
    /// Direction in which it faces, degrees clockwise from the top.
    pub turn: i32,
    pub category_index: u8,
    pub category: &'a CategoryView,
}

impl Seat<'_> {
    /// Name for people, by the rule of [`domain::layout::Layout::label`]: `C7`, `12-3`, or `Circle C7` where the room
    /// has sections.
    pub fn name(&self) -> String {
        let digits_meet =
            self.row.ends_with(|c: char| c.is_ascii_digit()) && self.number.starts_with(|c: char| c.is_ascii_digit());
        let dash = if digits_meet { "-" } else { "" };
        let space = if self.section.is_empty() { "" } else { " " };
        format!("{}{space}{}{dash}{}", self.section, self.row, self.number)
    }

    /// Place, category and price in words: `Row C seat 7, Gold, €12.50`.
    pub fn in_words(&self) -> String {
        let (part, row, number, price) = (self.section, self.row, self.number, self.category.price);
        let what = &what_in_words(self.category.kind, &self.category.label);
        let what = Arg::Ours(what);
        match (part.is_empty(), row.is_empty()) {
            (true, true) => say!("map.seat", number = number, what = what, price = price),
            (false, true) => say!("map.seat_of_part", part = part, number = number, what = what, price = price),
            (true, false) => say!("map.seat_in_row", row = row, number = number, what = what, price = price),
            (false, false) => {
                say!("map.seat_in_row_of_part", part = part, row = row, number = number, what = what, price = price)
            }
        }
    }
}

/// The category's label, with the seat kind added where the label does not mention it.
fn what_in_words(kind: SeatKind, label: &str) -> String {
    let texts = kind.texts().for_buyers.filter(|texts| !label.to_ascii_lowercase().contains(texts.label_word));
    texts.map_or_else(|| label.to_owned(), |texts| say!(texts.in_list, category = label))
}

/// Name of a row for people.
pub(super) fn row_in_words(part: &str, row: &str) -> String {
    if part.is_empty() { say!("map.row", row = row) } else { say!("map.row_of_part", part = part, row = row) }
}

/// A seat and its state, for a screen reader.
pub(super) fn seat_and_state(seat: &str, look: SeatAppearance) -> String {
    say!("map.seat_and_state", seat = Arg::Ours(seat), state = Arg::Ours(&look.in_words()))
}

/// The name of the screen, stage or field.
pub(super) fn focus_in_words(focus: &str) -> String {
    match focus {
        "stage" => say!("map.stage"),
        "field" => say!("map.field"),
        _ => say!("map.screen"),
    }
}

/// True if the audience faces something.
pub(super) fn has_focus(plan: &PlanView) -> bool {
    plan.focus != NO_FOCUS
}

/// The area that a shape is; `None` for a drawing that is not for sale.
pub(super) fn area_of<'a>(plan: &'a PlanView, shape: &ShapeView) -> Option<&'a AreaView> {
    plan.areas.iter().find(|area| Some(area.area) == shape.area)
}

/// A room plan with the rows that are loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomPlan {
    plan: PlanView,
}

impl RoomPlan {
    /// A plan with the rows that the API delivered.
    pub fn new(plan: PlanView) -> Self {
        Self { plan }
    }

    /// The plan as the API delivered it.
    pub fn plan(&self) -> &PlanView {
        &self.plan
    }

    /// Returns true if this section's rows are loaded.
    pub fn is_loaded(&self, section: usize) -> bool {
        self.plan.sections.get(section).is_some_and(|section| !section.rows.is_empty())
    }

    /// Adds the rows of sections that were not loaded.
    pub fn merge(&mut self, other: PlanView) {
        for (mine, theirs) in self.plan.sections.iter_mut().zip(other.sections) {
            if mine.rows.is_empty() && mine.first == theirs.first {
                mine.rows = theirs.rows;
            }
        }
    }

    /// A copy with this section turned so that its rows are horizontal and the screen or stage is above them.
    pub fn turned_upright(&self, section: usize) -> Self {
        let mut turned = self.clone();
        let Some(part) = turned.plan.sections.get_mut(section) else { return turned };
        let Some(turn) = Turn::upright(&part.rows, self.plan.focus_at) else { return turned };
        for row in &mut part.rows {
            for (x, y) in row.x.iter_mut().zip(&mut row.y) {
                (*x, *y) = turn.apply((*x, *y));
            }
        }
        let [x, y, width] = self.plan.focus_at;
        let (x, y) = turn.apply((x, y));
        turned.plan.focus_at = [x, y, width];
        turned
    }

    pub fn section_of(&self, seat: SeatIndex) -> Option<usize> {
        let after = self.plan.sections.partition_point(|section| section.first <= seat);
        let place = after.checked_sub(1)?;
        let section = &self.plan.sections[place];
        (seat - section.first < section.count).then_some(place)
    }

    /// A seat, if its section is loaded.
    pub fn seat(&self, seat: SeatIndex) -> Option<Seat<'_>> {
        let section = &self.plan.sections[self.section_of(seat)?];
        let after = section.rows.partition_point(|row| row.first <= seat);
        let row = section.rows.get(after.checked_sub(1)?)?;
        let place = (seat - row.first) as usize;
        let category_index = *row.category.get(place)?;
        Some(Seat {
            section: &section.name,
            row: &row.label,
            number: row.numbers.get(place)?,
            x: *row.x.get(place)?,
            y: *row.y.get(place)?,
            turn: row.turn.get(place).copied().unwrap_or_default(),
            category_index,
            category: self.plan.categories.get(usize::from(category_index))?,
        })
    }

    /// A cart line for a seat, built without the server.
    pub fn line(&self, seat: SeatIndex) -> Option<SeatLine> {
        let facts = self.seat(seat)?;
        let CategoryView { label, price, .. } = facts.category;
        Some(SeatLine { seat, label: facts.name(), category: label.clone(), price: *price })
    }

    /// An area without numbered seats.
    pub fn area(&self, area: AreaIndex) -> Option<&AreaView> {
        self.plan.areas.iter().find(|known| known.area == area)
    }

    /// A cart line for this many places in an area, built without the server.
    pub fn place_line(&self, area: AreaIndex, quantity: u32) -> Option<PlaceLine> {
        let AreaView { name, category_label, price, .. } = self.area(area)?;
        Some(PlaceLine { area, label: name.clone(), category: category_label.clone(), price: *price, quantity })
    }

    /// The rows to draw: of one section, or of the whole room.
    pub fn rows(&self, section: Option<usize>) -> impl Iterator<Item = (&str, &RowView)> {
        let chosen = move |place: usize| section.is_none_or(|section| section == place);
        let sections = self.plan.sections.iter().enumerate().filter(move |(place, _)| chosen(*place));
        sections.flat_map(|(_, section)| section.rows.iter().map(|row| (section.name.as_str(), row)))
    }
}

/// A rotation about a point.
struct Turn {
    about: (f64, f64),
    /// Cosine and sine of the angle.
    direction: (f64, f64),
}

impl Turn {
    /// The rotation that makes rows horizontal and puts `focus` (centre x, y, width) above them. `None` for no seats, and
    /// for rows that have no common direction.
    fn upright(rows: &[RowView], focus: [i32; 3]) -> Option<Self> {
        let points =
            || rows.iter().flat_map(|row| row.x.iter().zip(&row.y)).map(|(x, y)| (f64::from(*x), f64::from(*y)));
        let count = points().count() as f64;
        let (sum_x, sum_y) = points().fold((0.0, 0.0), |(sum_x, sum_y), (x, y)| (sum_x + x, sum_y + y));
        let about = (sum_x / count, sum_y / count);
        let ends = rows.iter().filter_map(|row| {
            let (first, last) = ((row.x.first()?, row.y.first()?), (row.x.last()?, row.y.last()?));
            Some((f64::from(last.0 - first.0), f64::from(last.1 - first.1)))
        });
        // Rows are numbered from either end: all are added in the direction of the first.
        let (dx, dy) = ends.fold(
            (0.0, 0.0),
            |(dx, dy), (x, y)| {
                if dx * x + dy * y < 0.0 { (dx - x, dy - y) } else { (dx + x, dy + y) }
            },
        );
        let length = f64::hypot(dx, dy);
        if count < 1.0 || length < 1.0 {
            return None;
        }
        let direction = (dx / length, -dy / length);
        let turn = Self { about, direction };
        let focus_y = turn.turned((f64::from(focus[0]), f64::from(focus[1]))).1;
        Some(if focus_y > about.1 { Self { direction: (-direction.0, -direction.1), ..turn } } else { turn })
    }

    fn turned(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let ((x, y), (cos, sin)) = ((x - self.about.0, y - self.about.1), self.direction);
        (self.about.0 + x * cos - y * sin, self.about.1 + x * sin + y * cos)
    }

    fn apply(&self, (x, y): (i32, i32)) -> (i32, i32) {
        let (x, y) = self.turned((f64::from(x), f64::from(y)));
        (x.round() as i32, y.round() as i32)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use domain::api::SectionView;
    use domain::money::{Currency, Money};
    use uuid::Uuid;

    /// Two sections: stalls A1 to A4 and B1 to B4, circle A1 to A2 behind them.
    pub fn two_sections() -> PlanView {
        let row = |label: &str, first, count: u32, y| RowView {
            label: label.to_owned(),
            first,
            numbers: (1..=count).map(|number| number.to_string()).collect(),
            x: (0..count).map(|place| 20 * i32::try_from(place).expect("small")).collect(),
            y: vec![y; count as usize],
            category: vec![0; count as usize],
            turn: Vec::new(),
        };
        let section = |name: &str, first, count, rows| SectionView {
            name: name.to_owned(),
            part: String::new(),
            first,
            count,
            bounds: [0, 0, 80, 40],
            category: 0,
            rows,
        };
        let price = Money::new(1_250, Currency::parse("EUR").expect("a code"));
        PlanView {
            show: Uuid::nil(),
            seat_count: 10,
            width: 100,
            height: 100,
            focus: "screen".to_owned(),
            focus_at: [50, 0, 80],
            focus_depth: 10,
            is_round: false,
            shapes: Vec::new(),
            categories: vec![CategoryView {
                name: "gold".to_owned(),
                label: "Gold".to_owned(),
                kind: SeatKind::Standard,
                price,
            }],
            sections: vec![
                section("Stalls", 0, 8, vec![row("A", 0, 4, 20), row("B", 4, 4, 40)]),
                section("Circle", 8, 2, vec![row("A", 8, 2, 80)]),
            ],
            overview: false,
            areas: Vec::new(),
            room: None,
        }
    }

    #[test]
    fn a_seat_is_found_by_its_index_and_named_with_its_section() {
        let room = RoomPlan::new(two_sections());
        let seat = room.seat(5).expect("loaded");
        assert_eq!((seat.row, seat.number, seat.x, seat.y), ("B", "2", 20, 40));
        assert_eq!(room.seat(9).expect("loaded").name(), "Circle A2");
        assert_eq!(room.seat(9).expect("loaded").in_words(), "Circle, row A seat 2, Gold, €12.50");
        assert!(room.seat(10).is_none());
    }

    #[test]
    fn a_room_without_sections_has_no_section_in_seat_names() {
        let mut plan = two_sections();
        plan.sections[0].name.clear();
        let room = RoomPlan::new(plan);
        assert_eq!(room.seat(0).expect("loaded").name(), "A1");
        assert_eq!(room.seat(0).expect("loaded").in_words(), "Row A seat 1, Gold, €12.50");
    }

    #[test]
    fn seat_names_follow_the_layout_rule() {
        let mut plan = two_sections();
        plan.sections[0].name.clear();
        plan.sections[0].rows[0].label = "12".to_owned();
        plan.sections[0].rows[1].label.clear();
        let room = RoomPlan::new(plan);
        assert_eq!(room.seat(2).expect("loaded").name(), "12-3");
        assert_eq!(room.seat(4).expect("loaded").in_words(), "Seat 1, Gold, €12.50");
    }

    #[test]
    fn merge_adds_rows_of_missing_sections_only() {
        let full = two_sections();
        let mut bare = full.clone();
        bare.sections.iter_mut().for_each(|section| section.rows.clear());
        let mut room = RoomPlan::new(bare.clone());
        assert!(!room.is_loaded(1) && room.seat(8).is_none());
        let mut answer = bare;
        answer.sections[1].rows = full.sections[1].rows.clone();
        room.merge(answer);
        assert!(room.is_loaded(1) && !room.is_loaded(0) && room.seat(8).is_some());
        assert_eq!(room.section_of(8), Some(1));
    }

    #[test]
    fn a_section_beside_the_stage_is_turned_upright() {
        let mut plan = two_sections();
        // The stalls as a block to the right of the stage: rows run up, the stage is to the left.
        for row in &mut plan.sections[0].rows {
            let (x, y) = (row.x.clone(), row.y.clone());
            row.x = y.iter().map(|y| y + 400).collect();
            row.y = x.iter().map(|x| 200 - x).collect();
        }
        plan.focus_at = [0, 150, 200];
        let turned = RoomPlan::new(plan).turned_upright(0);
        let rows = &turned.plan().sections[0].rows;
        assert!(rows.iter().all(|row| row.y.iter().all(|y| *y == row.y[0])), "{rows:?}");
        assert!(turned.plan().focus_at[1] < rows[0].y[0] && rows[0].y[0] < rows[1].y[0], "the first row is nearest");
        assert!(rows[0].x.windows(2).all(|pair| (pair[1] - pair[0]).abs() == 20), "{rows:?}");
    }

    #[test]
    fn an_upright_section_keeps_its_place() {
        let room = RoomPlan::new(two_sections());
        assert_eq!(room.turned_upright(0), room);
        assert_eq!(room.turned_upright(9), room);
    }
}
