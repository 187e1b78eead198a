//! Tests of the editor.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::api::SeatKind;
use crate::layout::Layout;

const STRANGERS_HALL: &str = include_str!("../fixtures/strangers-hall.json");

fn numbering(first: &str, step: u32, from_right: bool) -> Numbering {
    Numbering { first: first.to_owned(), step, from_right }
}

fn rows_of(draft: &Draft, rows: usize, seats: usize) -> NewRows {
    NewRows {
        section: draft.sections[0].key,
        category: draft.categories[0].key,
        at: draft.next_place(),
        turn: 0.0,
        bow: 0.0,
        rows,
        seats,
        label: "A".to_owned(),
        numbering: numbering("1", 1, false),
        gap: 24.0,
        aisles: Vec::new(),
    }
}

fn after(draft: &Draft, command: Command) -> Draft {
    draft.apply(&command).expect("it is done")
}

/// A room with two rows of six seats.
fn small() -> Draft {
    let draft = Draft::new("Small", "standard");
    let request = rows_of(&draft, 2, 6);
    after(&draft, Command::AddRows(request))
}

fn names(draft: &Draft) -> Vec<String> {
    let layout = Layout::from_seating_plan(draft.to_seating_plan()).expect("a room");
    layout.seats().map(|seat| seat.label).collect()
}

fn kinds(findings: &[Finding]) -> Vec<FindingKind> {
    findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn rows_are_drawn_with_aisles_bows_and_numbers() {
    let draft = Draft::new("Saal", "standard");
    let mut request = rows_of(&draft, 3, 8);
    (request.bow, request.aisles) = (16.0, vec![4]);
    request.numbering = numbering("1", 2, true);
    let draft = after(&draft, Command::AddRows(request));
    assert_eq!(draft.seat_count(), 24);
    assert_eq!(names(&draft)[..8], ["A15", "A13", "A11", "A9", "A7", "A5", "A3", "A1"]);
    assert_eq!(names(&draft)[16], "C15");
    let points = draft.rows[0].points();
    assert!((points[4][0] - points[3][0] - 40.0).abs() < 1.0, "an aisle one seat wide");
    let middle = f64::midpoint(points[3][1], points[4][1]);
    assert!((middle - points[0][1] - 16.0).abs() < 1.5, "the ends come forward");
    assert!((points[0][1] - points[7][1]).abs() < 1e-9, "the same on both sides");
    assert_eq!(kinds(&draft.validate().expect("it passes")), [FindingKind::RightToLeft, FindingKind::OddOrEven]);
}

#[test]
fn empty_room_duplicate_names_and_missing_numbers_are_reported() {
    let empty = Draft::new("Leer", "standard");
    assert_eq!(kinds(&empty.validate().expect_err("no seats")), [FindingKind::NoSeats]);
    let draft = small();
    let (first, second) = (draft.rows[0].key, draft.rows[1].key);
    let draft = after(&draft, Command::Relabel(vec![second], "A".to_owned()));
    let findings = draft.validate().expect_err("two rows A");
    assert_eq!(findings.len(), 6);
    assert_eq!(draft.rows_called(&findings[0].place), [first, second]);
    let draft = after(&draft, Command::Relabel(vec![second], "B".to_owned()));
    let draft = after(&draft, Command::SetNumber(first, 2, " ".to_owned()));
    let findings = draft.validate().expect_err("a seat without a number");
    assert_eq!((kinds(&findings), draft.rows_called(&findings[0].place)), (vec![FindingKind::Unnumbered], vec![first]));
    assert!(after(&draft, Command::Number(vec![first], numbering("1", 1, false))).validate().is_ok());
}

#[test]
fn areas_need_a_capacity_and_a_unique_name() {
    let draft = small();
    let (section, category) = (draft.sections[0].key, draft.categories[0].key);
    let floor =
        |capacity| Command::AddArea(section, "Floor".to_owned(), category, capacity, [0.0, 300.0], [200.0, 80.0]);
    assert_eq!(draft.apply(&floor(0)), Err(CommandError::Capacity));
    let draft = after(&draft, floor(250));
    let layout = Layout::from_seating_plan(draft.to_seating_plan()).expect("a room");
    assert_eq!((layout.areas()[0].name.as_str(), layout.areas()[0].capacity), ("Floor", 250));
    let twice = after(&draft, floor(10));
    assert_eq!(kinds(&twice.validate().expect_err("two floors")), [FindingKind::DuplicateArea]);
    let key = draft.areas[0].key;
    let turned = after(&draft, Command::Turn(vec![key], 30.0));
    let again = Draft::read(turned.to_seating_plan()).expect("a plan");
    assert!(matches!(&again.areas[0].outline, Outline::Polygon(corners) if corners.len() == 4));
    assert!((again.areas[0].at[1] - 300.0).abs() < 0.02);
    assert_eq!(again.to_seating_plan(), turned.to_seating_plan());
}

#[test]
fn invalid_commands_are_refused_and_change_nothing() {
    let draft = small();
    let row = draft.rows[0].key;
    let (section, category) = (draft.sections[0].key, draft.categories[0].key);
    let mut uncounted = rows_of(&draft, 2, 4);
    uncounted.label = "Loge".to_owned();
    let mut elsewhere = rows_of(&draft, 1, 4);
    elsewhere.at = [f64::NAN, 0.0];
    for (command, why) in [
        (Command::AddRows(uncounted), CommandError::NotCountable),
        (Command::AddRows(elsewhere), CommandError::OutOfBounds),
        (Command::AddRows(rows_of(&draft, 100, 300)), CommandError::TooManySeats),
        (Command::AddRows(rows_of(&draft, 0, 300)), CommandError::TooMany),
        (Command::Resize(vec![row], 301), CommandError::TooMany),
        (Command::Move(vec![row], [2e6, 0.0]), CommandError::OutOfBounds),
        (Command::Bend(vec![row], f64::INFINITY), CommandError::OutOfBounds),
        (Command::RemoveCategory(category), CommandError::InUse),
        (Command::RemoveSection(section), CommandError::InUse),
        (Command::AddSection("  ".to_owned()), CommandError::NoName),
        (Command::Categorise(vec![row], 999), CommandError::Gone),
    ] {
        assert_eq!(draft.apply(&command), Err(why), "{command:?}");
    }
    let empty = Draft::new("Leer", "standard");
    assert_eq!(empty.apply(&Command::RemoveCategory(0)), Err(CommandError::LastOne));
}

#[test]
fn uploaded_plan_keeps_all_its_data() {
    let plan: Value = serde_json::from_str(STRANGERS_HALL).expect("JSON");
    let draft = Draft::read(plan.clone()).expect("a plan");
    assert_eq!((draft.rows.len(), draft.seat_count()), (3, 7));
    assert_eq!(draft.rows[2].seats[0].origin, Some(6));
    let written = draft.to_seating_plan();
    assert_eq!(written["editor"], plan["editor"]);
    assert_eq!(written["zones"][0]["areas"], plan["zones"][0]["areas"], "drawings that are not for sale are unchanged");
    assert_eq!(written["zones"][0]["rows"][0]["seats"][3]["note"], plan["zones"][0]["rows"][0]["seats"][3]["note"]);
    assert_eq!(written["zones"][0]["rows"][0]["seats"][0]["seat_guid"], "g1");
    let places = |plan: Value| {
        let layout = Layout::from_seating_plan(plan).expect("a room");
        layout.seats().map(|seat| seat.label).zip(layout.dots()).collect::<Vec<_>>()
    };
    for ((name, dot), (other_name, other)) in places(written).into_iter().zip(places(plan)) {
        assert_eq!((name, dot.category), (other_name, other.category));
        assert!((dot.x - other.x).abs() <= 1 && (dot.y - other.y).abs() <= 1);
    }
}

#[test]
fn sketch_with_an_area_is_edited_with_its_area() {
    let sketch = json!({"sketch": 1, "name": "Club", "categories": [{"name": "floor"}, {"name": "gold"}],
        "zones": [{"category": "gold", "arc": 300, "rows": [{"rows": "A-B", "seats": "1-8"}]}],
        "areas": [{"name": "Floor", "category": "floor", "capacity": 300}]});
    let layout = Layout::from_json(&sketch.to_string()).expect("a sketch");
    let draft = Draft::read(layout.to_seating_plan()).expect("a plan");
    assert_eq!((draft.areas[0].name.as_str(), draft.areas[0].capacity), ("Floor", 300));
    assert!(draft.rows[0].bow > 5.0, "the arc is found: {}", draft.rows[0].bow);
    let again = Layout::from_seating_plan(draft.to_seating_plan()).expect("a room");
    assert_eq!(again.areas(), layout.areas());
    assert_eq!(names(&draft), layout.seats().map(|seat| seat.label).collect::<Vec<_>>());
}

#[test]
fn too_large_room_is_not_editable() {
    let seats: Vec<Value> = (0..=MAX_EDITED_SEATS)
        .map(|at| json!({"seat_number": at.to_string(), "position": {"x": at, "y": 0}, "category": "a"}))
        .collect();
    let plan = json!({"name": "Arena", "categories": [{"name": "a"}], "zones": [{"rows": [{"row_number": "1", "seats": seats}]}]});
    assert_eq!(Draft::read(plan), Err(DraftError::TooLarge(MAX_EDITED_SEATS + 1)));
}

/// Three sections of 3,000 seats, two of the same name.
fn three_blocks() -> Layout {
    let zone = |name: &str, category: &str, rows: &str| json!({"name": name, "category": category, "rows": [{"rows": rows, "seats": "1-60"}]});
    let zones = [zone("Block", "gold", "1-50"), zone("Block", "gold", "51-100"), zone("Ring", "silver", "1-50")];
    let sketch =
        json!({"sketch": 1, "name": "Arena", "categories": [{"name": "gold"}, {"name": "silver"}], "zones": zones});
    Layout::from_json(&sketch.to_string()).expect("a sketch")
}

#[test]
fn section_of_a_large_room_is_edited_between_the_others() {
    let layout = three_blocks();
    let sizes =
        [("Block", 3_000_usize), ("Block", 3_000), ("Ring", 3_000)].map(|(name, seats)| (name.to_owned(), seats));
    assert_eq!(layout.zones(), sizes);
    let plan = layout.to_seating_plan();
    assert_eq!(Draft::read(plan.clone()), Err(DraftError::TooLarge(9_000)));
    assert!(matches!(Draft::read_section(plan.clone(), 3), Err(DraftError::NotAPlan(_))));
    let draft = Draft::read_section(plan.clone(), 1).expect("a section");
    assert_eq!(
        (draft.seat_count(), draft.rows[0].seats[0].origin, draft.other_seats().len()),
        (3_000, Some(3_000), 6_000)
    );
    let mut history = History::new(draft.clone());
    history.apply(&Command::Relabel(vec![draft.rows[0].key], "VIP".to_owned())).expect("a label");
    history.apply(&Command::AddRows(rows_of(&draft, 1, 4))).expect("a row");
    let written = history.draft().to_seating_plan();
    assert_eq!((&written["zones"][0], &written["zones"][2]), (&plan["zones"][0], &plan["zones"][2]));
    assert_eq!(written["zones"][1]["rows"][0]["row_number"], "VIP");
    let ids = written["zones"].as_array().into_iter().flatten().flat_map(|zone| zone["rows"].as_array()).flatten();
    let ids: std::collections::HashSet<&str> =
        ids.flat_map(|row| row["seats"].as_array()).flatten().filter_map(|seat| seat["seat_guid"].as_str()).collect();
    assert_eq!(ids.len(), 9_004, "new seats have ids that no other section has");
    assert!(history.undo() && history.undo());
    assert_eq!(*history.draft(), draft);
}

#[test]
fn other_sections_keep_their_categories_and_the_names_of_their_seats() {
    let draft = Draft::read_section(three_blocks().to_seating_plan(), 0).expect("a section");
    assert_eq!(draft.apply(&Command::RemoveCategory(draft.categories[1].key)), Err(CommandError::InUse));
    let all = draft.rows.iter().map(|row| row.key).collect();
    assert_eq!(after(&draft, Command::Remove(all)).validate(), Ok(Vec::new()), "the others have seats");
    // Row "X A" of "Block" and row "A" of "Block X" are different sections with the same names of seats.
    let draft = after(&draft, Command::Relabel(vec![draft.rows[0].key], "X A".to_owned()));
    let ring = Draft::read_section(draft.to_seating_plan(), 2).expect("a section");
    let ring = after(&ring, Command::RenameSection(ring.sections[0].key, "Block X".to_owned()));
    let ring = after(&ring, Command::Relabel(vec![ring.rows[0].key], "A".to_owned()));
    assert!(ring.validate().is_ok());
    let findings = import(ring.to_seating_plan(), "Arena", false).expect_err("two seats of the same name");
    assert_eq!(kinds(&findings), [FindingKind::DuplicateSeat; 60]);
}

#[test]
fn consecutive_nudges_of_the_same_row_are_one_step() {
    let mut history = History::new(small());
    let before = history.draft().clone();
    let row = before.rows[0].key;
    for _ in 0..7 {
        history.nudge(&Command::Move(vec![row], [1.0, 0.0])).expect("it moves");
    }
    assert!((history.draft().rows[0].at[0] - before.rows[0].at[0] - 7.0).abs() < 1e-9);
    assert!(history.undo() && !history.can_undo());
    assert_eq!(*history.draft(), before);
    assert!(history.redo() && !history.redo());
    history.apply(&Command::Move(vec![row], [0.0, 0.0])).expect("nothing");
    history.undo();
    assert!(!history.can_undo(), "a command without an effect adds no step");
}

#[test]
fn resize_adds_seats_at_the_right_and_continues_the_numbering() {
    let draft = small();
    let row = draft.rows[0].key;
    let numbers =
        |draft: &Draft| draft.rows[0].seats.iter().map(|seat| seat.number.clone()).collect::<Vec<_>>().join(" ");
    assert_eq!(numbers(&after(&draft, Command::Resize(vec![row], 8))), "1 2 3 4 5 6 7 8");
    assert_eq!(numbers(&after(&draft, Command::Resize(vec![row], 3))), "1 2 3");
    let even = after(&draft, Command::Number(vec![row], numbering("2", 2, false)));
    assert_eq!(numbers(&after(&even, Command::Resize(vec![row], 7))), "2 4 6 8 10 12 14");
    let down = after(&draft, Command::Number(vec![row], numbering("1", 1, true)));
    assert_eq!(numbers(&after(&down, Command::Resize(vec![row], 7))), "6 5 4 3 2 1 ", "there is no number below 1");
    let gap = after(&draft, Command::TakeOut(row, vec![1, 2]));
    assert_eq!(numbers(&gap), "1 4 5 6");
    let spaced = after(&gap, Command::Space(vec![row], 1, 20.0));
    let points = spaced.rows[0].points();
    assert!((points[1][0] - points[0][0] - 20.0).abs() < 1e-9);
}

/// Commands on objects that may or may not exist.
fn any_command() -> impl Strategy<Value = Command> {
    let keys = || proptest::collection::vec(0..12_u32, 0..4);
    let point = || (-400.0..400.0_f64, -400.0..400.0_f64).prop_map(|(x, y)| [x, y]);
    let name =
        || prop_oneof![Just("A"), Just("7"), Just(""), Just("Loge"), Just("ложа 14 bis")].prop_map(str::to_owned);
    let numbering = || {
        (name(), 1..3_u32, any::<bool>()).prop_map(|(first, step, from_right)| Numbering { first, step, from_right })
    };
    let drawn = (keys(), 1..4_usize, 1..9_usize, name(), numbering(), point(), -60.0..60.0_f64).prop_map(
        |(aisles, rows, seats, label, numbering, at, bow)| {
            let aisles = aisles.into_iter().map(|at| at as usize).collect();
            Command::AddRows(NewRows {
                section: 1,
                category: 0,
                at,
                turn: bow,
                bow,
                rows,
                seats,
                label,
                numbering,
                gap: 24.0,
                aisles,
            })
        },
    );
    prop_oneof![
        3 => drawn,
        1 => (keys(), point()).prop_map(|(keys, by)| Command::Move(keys, by)),
        1 => (keys(), point()).prop_map(|(keys, by)| Command::Copy(keys, by)),
        1 => (keys(), -200.0..200.0_f64).prop_map(|(keys, degrees)| Command::Turn(keys, degrees)),
        1 => (keys(), -500.0..500.0_f64).prop_map(|(keys, bow)| Command::Bend(keys, bow)),
        1 => keys().prop_map(Command::Remove),
        1 => (keys(), name()).prop_map(|(keys, first)| Command::Relabel(keys, first)),
        1 => (keys(), numbering()).prop_map(|(keys, numbering)| Command::Number(keys, numbering)),
        1 => (keys(), 0..12_usize).prop_map(|(keys, count)| Command::Resize(keys, count)),
        1 => (keys(), 0..9_usize, -5.0..80.0_f64).prop_map(|(keys, after, distance)| Command::Space(keys, after, distance)),
        1 => (0..12_u32, 0..9_usize, name()).prop_map(|(row, seat, number)| Command::SetNumber(row, seat, number)),
        1 => (0..12_u32, keys()).prop_map(|(row, seats)| Command::TakeOut(row, seats.into_iter().map(|at| at as usize).collect())),
        1 => name().prop_map(Command::AddSection),
        1 => (keys(), 0..6_u32).prop_map(|(keys, section)| Command::Assign(keys, section)),
        1 => name().prop_map(|name| Command::AddCategory(name, SeatKind::Couple)),
        1 => (keys(), 0..6_u32).prop_map(|(keys, category)| Command::Categorise(keys, category)),
        1 => (0..12_u32).prop_map(Command::RemoveCategory),
        1 => (0..12_u32).prop_map(Command::RemoveSection),
        1 => (name(), 0..300_u32, point()).prop_map(|(name, capacity, at)| Command::AddArea(1, name, 0, capacity, at, [60.0, 40.0])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn undo_and_redo_restore_every_draft(commands in proptest::collection::vec(any_command(), 0..24)) {
        let first = Draft::new("Any", "standard");
        let mut history = History::new(first.clone());
        for command in &commands {
            let before = history.draft().clone();
            if history.apply(command).is_err() {
                prop_assert_eq!(history.draft(), &before);
            }
        }
        let last = history.draft().clone();
        while history.undo() {}
        prop_assert_eq!(history.draft(), &first);
        while history.redo() {}
        prop_assert_eq!(history.draft(), &last);
    }

    #[test]
    fn any_draft_passes_the_import_or_has_findings(commands in proptest::collection::vec(any_command(), 0..24)) {
        let mut draft = Draft::new("Any", "standard");
        for command in &commands {
            if let Ok(next) = draft.apply(command) {
                draft = next;
            }
        }
        let plan = draft.to_seating_plan();
        match import(plan.clone(), "Any", false) {
            Err(findings) => prop_assert!(!findings.is_empty()),
            Ok(read) => {
                let layout = read.layout;
                prop_assert_eq!(layout.seat_count() as usize, draft.seat_count());
                prop_assert_eq!(layout.areas().len(), draft.areas.len());
            }
        }
        // Parsed and written once more, every position is the same.
        let again = Draft::read(plan).expect("a plan");
        prop_assert_eq!(again.seat_count(), draft.seat_count());
        let sorted = |draft: &Draft| {
            let mut rows: Vec<_> = draft.rows.to_vec();
            rows.sort_by_key(|row| draft.sections.iter().position(|section| section.key == row.section));
            rows.iter().flat_map(|row| row.points()).collect::<Vec<_>>()
        };
        for ([x, y], [other_x, other_y]) in sorted(&draft).into_iter().zip(sorted(&again)) {
            prop_assert!((x - other_x).abs() < 0.02 && (y - other_y).abs() < 0.02);
        }
    }
}
