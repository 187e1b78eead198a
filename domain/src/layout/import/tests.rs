//! Tests of the import with valid, unusual and broken files.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::OVERVIEW_ABOVE_SEATS;
use crate::layout::{FocusChoice, FocusKind, FocusSide};

/// Folder with more seating plans to test, on machines that have one.
const MORE_PLANS: &str = "ROWLOCK_SEATING_PLANS";

fn seat(number: impl Into<Value>, x: f64, y: f64) -> Value {
    json!({"seat_guid": "g", "seat_number": number.into(), "position": {"x": x, "y": y}, "category": "a"})
}

fn row(label: impl Into<Value>, seats: Vec<Value>) -> Value {
    json!({"row_number": label.into(), "position": {"x": 0, "y": 0}, "seats": seats})
}

fn zone(name: impl Into<Value>, rows: Vec<Value>) -> Value {
    json!({"name": name.into(), "position": {"x": 0, "y": 0}, "rows": rows, "areas": []})
}

fn plan(zones: Vec<Value>) -> Value {
    json!({"name": "Room", "size": {"width": 100, "height": 100}, "categories": [{"name": "a", "color": "#fff"}], "zones": zones})
}

/// Number of distinct row positions that [`numbered`] uses.
const ROWS: u32 = 1_000;

/// A row of seats with these numbers, 20 apart. Each label has its own position, within the bounds of a room.
fn numbered(label: &str, numbers: &[&str]) -> Value {
    let y = 24.0 * f64::from(label.chars().map(u32::from).sum::<u32>() % ROWS);
    row(label, numbers.iter().zip(0..).map(|(number, at)| seat(*number, 20.0 * f64::from(at), y)).collect())
}

fn problems(file: Value) -> Vec<(FindingKind, String, u32)> {
    let refused = import(file, "Screen 1", false).expect_err("it must be refused");
    refused.into_iter().map(|finding| (finding.kind, finding.place, finding.count)).collect()
}

fn labels(layout: &Layout) -> Vec<String> {
    layout.seats().map(|seat| seat.label).collect()
}

fn kinds(imported: &Imported) -> Vec<FindingKind> {
    imported.remarks.iter().map(|remark| remark.kind).collect()
}

#[test]
fn all_errors_are_reported_at_once_with_their_place() {
    let stalls = zone("Stalls", vec![numbered("A", &["1", "1", "2"]), numbered("B", &["1", "", " "])]);
    let mut circle = zone("Circle", vec![numbered("A", &["1"])]);
    circle["rows"][0]["seats"][0]["category"] = json!("gold");
    circle["rows"][0]["seats"][0]["position"]["x"] = json!(1e300);
    let mut file = plan(vec![stalls, circle]);
    file["categories"].as_array_mut().expect("a list").push(json!({"name": "a"}));
    let found = problems(file.clone());
    let expected = [
        (FindingKind::OutOfBounds, "Circle A 1".to_owned(), 1),
        (FindingKind::DuplicateCategory, "a".to_owned(), 2),
        (FindingKind::UnknownCategory, "gold".to_owned(), 1),
        (FindingKind::Unnumbered, "Stalls B".to_owned(), 2),
        (FindingKind::DuplicateSeat, "Stalls A1".to_owned(), 2),
    ];
    assert_eq!(found, expected);
    file["zones"][1]["rows"][0]["seats"][0]["position"]["x"] = json!(0);
    // With `mend`, all of them are corrected and reported.
    let mended = import(file, "", true).expect("it can be mended");
    assert_eq!(
        labels(&mended.layout),
        ["Stalls A1", "Stalls A1 (2)", "Stalls A2", "Stalls B1", "Stalls B2", "Stalls B3", "Circle A1"]
    );
    for kind in [FindingKind::Normalised, FindingKind::CategoryAdded, FindingKind::SeatsRenumbered] {
        assert!(kinds(&mended).contains(&kind), "{kind:?}");
    }
}

#[test]
fn rows_that_look_alike_are_one_row_or_refused() {
    let rows = |one: &str, other: &str| plan(vec![zone("", vec![numbered(one, &["1"]), numbered(other, &["1"])])]);
    let found = problems(rows("e\u{301}", "\u{e9}"));
    assert_eq!(found, [(FindingKind::DuplicateSeat, "\u{e9}1".to_owned(), 2)]);
    for hidden in ["\u{202e}", "\u{200b}", "\u{2066}", "\u{feff}"] {
        let found = problems(rows("A", &format!("A{hidden}")));
        let place = format!("A[U+{:04X}]", u32::from(hidden.chars().next().expect("one")));
        assert_eq!(found, [(FindingKind::HiddenCharacters, place, 1)], "{hidden:?}");
    }
    for joiner in ["\u{200c}", "\u{200d}", "\u{fe0f}"] {
        let found = problems(rows("A", &format!("A{joiner}")));
        assert_eq!(found, [(FindingKind::DuplicateSeat, "A1".to_owned(), 2)], "{joiner:?}");
        let mended = import(rows("A", &format!("A{joiner}")), "", true).expect("it can be mended");
        assert_eq!(labels(&mended.layout)[1], format!("A{joiner}1 (2)"));
    }
    // In a list with one seat a line, such a name would be several.
    for control in ["\t", "\n", "\u{85}"] {
        let found = problems(rows("A", &format!("B{control}1")));
        let place = format!("B[U+{:04X}]1", u32::from(control.chars().next().expect("one")));
        assert_eq!(found, [(FindingKind::HiddenCharacters, place, 1)], "{control:?}");
    }
    assert!(import(rows("A", "B\n"), "", false).is_ok(), "white space around a name is no part of it");
    // Persian text needs a joiner.
    let persian = plan(vec![zone("نیم\u{200c}طبقه", vec![numbered("A", &["1"])])]);
    assert!(import(persian, "", false).is_ok());
}

#[test]
fn combining_accent_is_composed_in_a_sketch_too() {
    let sketch = |name: &str| {
        json!({"sketch": 1, "name": name, "categories": [{"name": "a"}],
               "zones": [{"category": "a", "rows": [{"rows": "A", "seats": "1-2"}]}]})
    };
    let imported = import(sketch("Cafe\u{301}"), "", false).expect("a room");
    assert_eq!(imported.layout.name(), "Caf\u{e9}");
    for hidden in ["Room \u{202e}1", "Room\t1"] {
        let refused = import(sketch(hidden), "", false).expect_err("refused");
        assert_eq!(refused[0].kind, FindingKind::HiddenCharacters);
    }
    let mut spaced = sketch("Room 1\n");
    spaced["zones"][0]["rows"][0] = json!({"rows": "A\nC", "seats": "1-2\t4"});
    assert!(import(spaced, "", false).is_ok(), "white space separates the parts of a pattern");
}

#[test]
fn duplicate_seat_names_are_refused_by_name_and_count() {
    let found = problems(plan(vec![zone("", vec![numbered("12", &["7", "7", "7"]), numbered("A", &["1", "2"])])]));
    assert_eq!(found, [(FindingKind::DuplicateSeat, "12-7".to_owned(), 3)]);
    // The rows and numbers differ, but the display names are the same.
    let found = problems(plan(vec![zone("", vec![numbered("A", &["B1"]), numbered("AB", &["1"])])]));
    assert_eq!(found, [(FindingKind::DuplicateSeat, "AB1".to_owned(), 2)]);
}

#[test]
fn same_labels_in_two_zones_are_distinct_and_clashing_zones_are_renamed() {
    let stand = |name: &str| zone(name, vec![numbered("A", &["1", "2"])]);
    let two = import(plan(vec![stand("North"), stand("South")]), "", false).expect("a room");
    assert_eq!(labels(&two.layout), ["North A1", "North A2", "South A1", "South A2"]);
    assert_eq!(kinds(&two), [FindingKind::SamePlace], "they share positions, but not names");
    let alike = import(plan(vec![stand("Stand"), stand("Stand"), stand("Stand (2)")]), "", false).expect("a room");
    assert_eq!(labels(&alike.layout)[2..4], ["Stand (3) A1", "Stand (3) A2"]);
    let nameless = import(plan(vec![stand(""), stand("")]), "", false).expect("a room");
    assert_eq!(labels(&nameless.layout), ["A1", "A2", "(2) A1", "(2) A2"]);
    // Two zones of one name without a clash stay one stand.
    let pieces = plan(vec![stand("Stand"), zone("Stand", vec![numbered("B", &["1"])])]);
    let pieces = import(pieces, "", false).expect("a room");
    assert_eq!(labels(&pieces.layout), ["Stand A1", "Stand A2", "Stand B1"]);
}

#[test]
fn many_zones_or_seats_of_one_name_get_numbers_in_order() {
    let zones = (0..5_000).map(|_| zone("Box", vec![numbered("A", &["1"])])).collect();
    let boxes = import(plan(zones), "", false).expect("a room");
    assert_eq!(labels(&boxes.layout).last().map(String::as_str), Some("Box (5000) A1"));
    let row = vec![numbered("A", &["1"; 5_000])];
    let seats = import(plan(vec![zone("", row)]), "", true).expect("a room");
    assert!(labels(&seats.layout).contains(&"A1 (5000)".to_owned()));
}

#[test]
fn numbers_in_any_script_are_kept() {
    let numbers = ["13", "14", "14 bis", "14 ter", "½", "٣", "十五", "Ü", "à", "🎭"];
    let file = plan(vec![zone("Партер", vec![numbered("Ω", &numbers)]), zone("المدرج", vec![numbered("أ", &["١"])])]);
    let imported = import(file, "", false).expect("a room");
    let all = labels(&imported.layout);
    assert_eq!(all.len(), 11);
    assert!(all.contains(&"Партер Ω14 bis".to_owned()) && all.contains(&"المدرج أ١".to_owned()), "{all:?}");
}

#[test]
fn numeric_numbers_nulls_and_missing_keys_are_normalised() {
    let file = json!({
        "categories": ["a"],
        "zones": [
            {"name": null, "rows": [{"row_number": 3, "position": null, "seats": [
                {"seat_number": 7, "position": {"x": "0", "y": 0}, "category": "a"},
                {"seat_number": 8, "position": {"x": 20}, "category": "a"},
            ]}]},
            {"name": "Bar", "position": null, "rows": null, "areas": [{"shape": "circle"}]},
        ],
    });
    let imported = import(file, "Screen 1", false).expect("a room");
    assert_eq!(imported.layout.name(), "Screen 1");
    assert_eq!(labels(&imported.layout), ["3-7", "3-8"]);
    assert_eq!(kinds(&imported), [FindingKind::Normalised, FindingKind::AreasNotSold]);
}

#[test]
fn right_to_left_odd_and_even_numbering_is_kept_and_reported() {
    let falling = numbered("A", &["5", "4", "3", "2", "1"]);
    let odd = numbered("B", &["1", "3", "5"]);
    let imported = import(plan(vec![zone("", vec![falling, odd])]), "", false).expect("a room");
    assert_eq!(labels(&imported.layout)[..2], ["A5", "A4"]);
    assert_eq!(kinds(&imported), [FindingKind::RightToLeft, FindingKind::OddOrEven]);
}

#[test]
fn seats_listed_in_another_order_are_sorted_by_position() {
    // Odd numbers to the left and even numbers to the right of the middle, listed by number.
    let at = |number: i32| f64::from(if number % 2 == 0 { 10 * number } else { -10 * (number + 1) });
    let straight = row("A", (1..=8).map(|number| seat(number.to_string(), at(number), 0.0)).collect());
    let slanted = row("B", (1..=8).map(|number| seat(number.to_string(), at(number), at(number) + 300.0)).collect());
    let imported = import(plan(vec![zone("", vec![straight, slanted])]), "", false).expect("a room");
    assert_eq!(labels(&imported.layout)[..8], ["A7", "A5", "A3", "A1", "A2", "A4", "A6", "A8"]);
    assert_eq!(labels(&imported.layout)[8], "B7");
    let found = &imported.remarks[0];
    assert_eq!((found.kind, found.count), (FindingKind::RowsReordered, 2));
}

#[test]
fn cloud_of_seats_keeps_its_order_and_shared_positions_are_reported() {
    let cloud: Vec<Value> =
        (0..900).map(|n| seat((n + 1).to_string(), f64::from(n % 30) * 22.0, f64::from(n / 30) * 22.0)).collect();
    let mut file = plan(vec![zone("Floor", vec![row(" ", cloud)])]);
    let imported = import(file.clone(), "", false).expect("a room");
    assert_eq!((imported.layout.seat_count(), labels(&imported.layout)[30].as_str()), (900, "31"));
    assert!(imported.remarks.is_empty(), "{:?}", imported.remarks);
    file["zones"][0]["rows"][0]["seats"][1]["position"] = json!({"x": 0, "y": 0});
    let imported = import(file, "", false).expect("a room");
    let found = imported.remarks.iter().find(|found| found.kind == FindingKind::SamePlace).expect("it is reported");
    assert_eq!((found.place.as_str(), found.count), ("Floor 2", 1));
}

fn large(zones: u32, rows: u32, seats: u32) -> Value {
    let zones = (0..zones).map(|z| {
        let rows = (0..rows).map(|r| {
            let at = |s: u32| (f64::from(s) * 20.0 + f64::from(z) * 4_000.0, f64::from(r) * 24.0);
            row((r + 1).to_string(), (0..seats).map(|s| seat((s + 1).to_string(), at(s).0, at(s).1)).collect())
        });
        zone(format!("Block {z}"), rows.collect())
    });
    plan(zones.collect())
}

/// A zone whose rows, from `labels`, begin at `front` and follow one another along `back`. A row has five seats across.
fn stand(name: &str, labels: &[&str], front: [f64; 2], back: [f64; 2]) -> Value {
    let rows = labels.iter().zip(0_i32..).map(|(label, deep)| {
        let at = |side: i32| {
            let (deep, beside) = (24.0 * f64::from(deep), 20.0 * f64::from(side - 2));
            (front[0] + deep * back[0] - beside * back[1], front[1] + deep * back[1] + beside * back[0])
        };
        row(*label, (0..5).map(|side| seat((side + 1).to_string(), at(side).0, at(side).1)).collect())
    });
    zone(name, rows.collect())
}

fn focus_of(file: Value) -> Option<(FocusKind, FocusSide)> {
    import(file, "", false).expect("a room").layout.known_focus().map(|FocusChoice { kind, side }| (kind, side))
}

const STAGE: FocusKind = FocusKind::Stage;

#[test]
fn row_numbers_state_the_side_of_the_stage() {
    for (back, side) in [
        ([0.0, 1.0], FocusSide::Top),
        ([0.0, -1.0], FocusSide::Bottom),
        ([1.0, 0.0], FocusSide::Left),
        ([-1.0, 0.0], FocusSide::Right),
    ] {
        for labels in [["1", "2", "10", "11"], ["A", "B", "Z", "AA"], ["Ряд А", "Ряд Б", "Ряд В", "Ряд Г"]]
        {
            let found = focus_of(plan(vec![stand("", &labels, [0.0, 0.0], back)]));
            // Words are no row letters.
            let wanted = (!labels[0].starts_with("Ряд")).then_some((STAGE, side));
            assert_eq!(found, wanted, "{labels:?}");
        }
    }
    // Stalls and a circle behind them, both counted from the stage below.
    let theatre = vec![
        stand("Stalls", &["A", "B", "C"], [0.0, 0.0], [0.0, -1.0]),
        stand("Circle", &["A", "B", "C"], [0.0, -200.0], [0.2, -0.98]),
    ];
    let imported = import(plan(theatre), "", false).expect("a room");
    assert_eq!(imported.layout.known_focus(), Some(FocusChoice { kind: STAGE, side: FocusSide::Bottom }));
    let y = |seat| imported.layout.place(seat).expect("a seat").0.1;
    assert!(imported.layout.focus().at[1] < y(0) && y(0) < y(5) && y(5) < y(29), "it is shown from the stage");
    let file = imported.layout.to_seating_plan();
    assert_eq!(file["zones"][0]["rows"][1]["seats"][0]["position"]["y"], json!(-24), "the file keeps its positions");
}

#[test]
fn stands_that_face_one_another_are_in_the_round() {
    let labels = ["1", "2", "3", "4"];
    let ground = vec![
        stand("north", &labels, [0.0, -300.0], [0.0, -1.0]),
        stand("east", &labels, [400.0, 0.0], [1.0, 0.0]),
        stand("south", &labels, [0.0, 300.0], [0.1, 0.99]),
        stand("west", &labels, [-400.0, 0.0], [-1.0, 0.1]),
    ];
    let layout = import(plan(ground), "", false).expect("a room").layout;
    assert_eq!(layout.known_focus(), Some(FocusChoice { kind: FocusKind::Field, side: FocusSide::Round }));
    let focus = layout.focus();
    let covers =
        |x: i32, y: i32| (x - focus.at[0]).abs() <= focus.width / 2 && (y - focus.at[1]).abs() <= focus.depth / 2;
    assert!(layout.dots().iter().all(|dot| !covers(dot.x, dot.y)), "{focus:?}");
    assert!(focus.width > 400 && focus.depth > 300, "{focus:?}");
}

#[test]
fn plans_that_state_no_focus_leave_it_open() {
    // Stands of a race track, which look at different places.
    let track = vec![
        stand("Goal 3", &["A", "B", "C"], [3000.0, 500.0], [0.93, 0.37]),
        stand("Goal 4", &["A", "B", "C"], [2800.0, 770.0], [0.64, 0.77]),
        stand("MT1", &["A", "B", "C", "D", "E"], [100.0, 0.0], [-0.5, 0.86]),
        stand("MT3", &["A", "B", "C", "D", "E"], [30.0, 260.0], [-0.51, 0.86]),
    ];
    assert_eq!(focus_of(plan(track)), None);
    // A club: a floor without rows, and tables around it.
    let floor: Vec<Value> =
        (0..90).map(|n| seat((n + 1).to_string(), f64::from(n % 10) * 22.0, f64::from(n / 10) * 22.0)).collect();
    let club = vec![zone("Floor", vec![row(" ", floor)]), stand("VIP", &["1", "2", "3"], [100.0, 260.0], [0.0, 1.0])];
    assert_eq!(focus_of(plan(club)), None);
    // Two rows, and rows whose numbers say nothing.
    assert_eq!(focus_of(plan(vec![stand("", &["A", "B"], [0.0, 0.0], [0.0, 1.0])])), None);
    assert_eq!(focus_of(plan(vec![stand("", &["3", "1", "4", "2"], [0.0, 0.0], [0.0, 1.0])])), None);
    // Halfway between two sides.
    assert_eq!(focus_of(plan(vec![stand("", &["A", "B", "C"], [0.0, 0.0], [0.7, 0.7])])), None);
}

#[test]
fn drawing_with_the_name_of_a_stage_is_the_focus() {
    let room = |text: &str, y: f64| {
        let mut stalls = stand("", &["A", "B", "C"], [0.0, 0.0], [0.0, 1.0]);
        stalls["areas"] = json!([{ "shape": "rectangle", "position": {"x": -60, "y": y}, "rectangle": {"width": 120, "height": 40},
            "text": {"text": text, "position": {"x": 0, "y": 0}, "color": "#fff"} }]);
        plan(vec![stalls])
    };
    assert_eq!(focus_of(room("Bühne", 100.0)), Some((STAGE, FocusSide::Bottom)), "though the rows count from the top");
    assert_eq!(focus_of(room("Screen 1", -100.0)), Some((FocusKind::Screen, FocusSide::Top)));
    assert_eq!(focus_of(room("ЭКРАН", 100.0)), Some((FocusKind::Screen, FocusSide::Bottom)));
    assert_eq!(focus_of(room("मंच", 100.0)), Some((STAGE, FocusSide::Bottom)));
    assert_eq!(focus_of(room("Backstage bar", 100.0)), Some((STAGE, FocusSide::Top)), "part of a word is no name");
    let focus = import(room("Bühne", 100.0), "", false).expect("a room").layout.focus();
    assert_eq!((focus.width, focus.depth), (120, 40), "as it is drawn");
    let around = ["1", "2", "3"];
    let mut ring = plan(vec![
        stand("n", &around, [0.0, -100.0], [0.0, -1.0]),
        stand("e", &around, [100.0, 0.0], [1.0, 0.0]),
        stand("s", &around, [0.0, 100.0], [0.0, 1.0]),
        stand("w", &around, [-100.0, 0.0], [-1.0, 0.0]),
    ]);
    ring["zones"][0]["areas"] = json!([{ "shape": "circle", "position": {"x": 0, "y": 0}, "circle": {"radius": 40}, "text": {"text": "Scène"} }]);
    assert_eq!(focus_of(ring), Some((STAGE, FocusSide::Round)));
}

#[test]
fn stated_focus_is_kept() {
    let mut file = plan(vec![stand("", &["A", "B", "C"], [0.0, 0.0], [0.0, -1.0])]);
    file["focus"] = json!({"kind": "screen", "at": [0, 60], "width": 100});
    assert_eq!(focus_of(file.clone()), Some((FocusKind::Screen, FocusSide::Top)));
    file["focus"]["kind"] = json!("none");
    assert_eq!(focus_of(file), Some((FocusKind::None, FocusSide::Top)));
}

#[test]
fn room_for_standing_only_is_imported() {
    let floor = json!({"shape": "rectangle", "position": {"x": 0, "y": 0}, "rectangle": {"width": 200, "height": 80},
        "name": "Floor", "category": "a", "capacity": 800});
    let mut hall = plan(vec![zone("", vec![])]);
    hall["zones"][0]["areas"] = json!([floor]);
    let layout = import(hall.clone(), "", false).expect("a room").layout;
    assert_eq!((layout.seat_count(), layout.areas()[0].capacity, layout.known_focus()), (0, 800, None));
    let turned = layout.with_focus(FocusChoice { kind: STAGE, side: FocusSide::Left }).expect("a room");
    assert_eq!(turned.focus().width, 40, "there is no seat to measure it by");
    let stored = serde_json::to_value(&turned).expect("JSON");
    assert_eq!(serde_json::from_value::<Layout>(stored).expect("it is read again").areas(), layout.areas());
    let prices = crate::pricing::PriceList {
        currency: crate::money::Currency::parse("EUR").expect("a code"),
        by_category: [("a".to_owned(), 100)].into(),
    };
    let view = turned.plan_view(uuid::Uuid::nil(), &prices, None).expect("a view");
    assert!(view.sections.is_empty() && !view.overview);
    assert!(view.width > 140 && view.height > 250, "the floor is in the room, turned with its stage: {view:?}");
    hall["zones"][0]["areas"][0]["capacity"] = json!(null);
    assert_eq!(problems(hall)[0].0, FindingKind::NoSeats, "a drawing is not for sale");
    let sketch = json!({"sketch": 1, "name": "Hall", "categories": [{"name": "a"}], "zones": [],
        "areas": [{"name": "Floor", "category": "a", "capacity": 5}]});
    let sketch = import(sketch, "", false).expect("a room").layout;
    let written = import(sketch.to_seating_plan(), "", false).expect("a room").layout;
    assert_eq!((written.seat_count(), written.areas()), (0, sketch.areas()));
}

#[test]
fn no_seats_and_too_many_seats_are_refused() {
    assert_eq!(problems(plan(vec![]))[0].0, FindingKind::NoSeats);
    assert_eq!(problems(plan(vec![zone("Bar", vec![])]))[0].0, FindingKind::NoSeats);
    let many = large(20, 100, 100);
    assert_eq!(problems(many), [(FindingKind::TooManySeats, String::new(), 200_000)]);
}

#[test]
fn zone_of_sixty_thousand_seats_is_divided_into_drawable_sections() {
    let imported = import(large(1, 450, 139), "", false).expect("a room");
    let layout = imported.layout;
    assert_eq!(layout.seat_count(), 62_550);
    assert!(layout.sections().all(|seats| seats.len() <= OVERVIEW_ABOVE_SEATS as usize));
    assert_eq!(layout.sections().map(|seats| seats.len()).sum::<usize>(), 62_550);
    assert_eq!(layout.label(0).as_deref(), Some("1-1"), "a room of one zone needs no zone in its names");
    let prices = crate::pricing::PriceList {
        currency: crate::money::Currency::parse("EUR").expect("a code"),
        by_category: [("a".to_owned(), 100)].into(),
    };
    let view = layout.plan_view(uuid::Uuid::nil(), &prices, None).expect("a view");
    assert_eq!((view.sections[0].name.as_str(), view.sections[0].part.as_str()), ("", "1–17"));
}

#[test]
fn files_that_are_no_plan_are_refused() {
    for file in [
        json!(null),
        json!([]),
        json!("plan"),
        json!({}),
        json!({"zones": 3}),
        json!({"zones": [3]}),
        json!({"zones": [{"rows": "A"}]}),
        json!({"zones": [{"rows": [{"seats": [[]]}]}]}),
        json!({"zones": [], "categories": {}}),
        json!({"sketch": 1}),
        json!({"sketch": {"a": []}, "zones": []}),
    ] {
        let refused = import(file.clone(), "Room", true).expect_err("no plan");
        assert!([FindingKind::NotAPlan, FindingKind::NoSeats].contains(&refused[0].kind), "{file}: {refused:?}");
    }
}

#[test]
fn findings_are_capped() {
    let rows = (0..1_000).map(|n| numbered(&format!("R{n}"), &["1", "1"])).collect();
    assert_eq!(problems(plan(vec![zone("", rows)])).len(), MAX_FINDINGS);
}

#[test]
fn nul_characters_are_removed() {
    let mut file = plan(vec![zone("A\0B", vec![numbered("A", &["1"])])]);
    file["x\0y"] = json!({"z": "\0"});
    let imported = import(file, "", false).expect("a room");
    assert!(!serde_json::to_string(&imported.layout).expect("JSON").contains("u0000"));
}

#[test]
fn plans_of_the_local_folder_are_imported() {
    let Some(folder) = std::env::var_os(MORE_PLANS) else { return };
    for entry in std::fs::read_dir(folder).expect("the folder named is there") {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let file: Value = serde_json::from_slice(&std::fs::read(&path).expect("a readable file")).expect("JSON");
            let imported = import(file, "Room", false).unwrap_or_else(|why| panic!("{}: {why:?}", path.display()));
            assert!(imported.layout.sections().count() > 0, "{}", path.display());
        }
    }
}

/// Any value that a program may write in place of a text, a number or a list.
fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
    ]
}

fn any_seat() -> impl Strategy<Value = Value> {
    let number = prop_oneof!["[0-9]{1,2}".prop_map(Value::from), anything()];
    let along = || prop_oneof![(-500..500_i32).prop_map(Value::from), anything()];
    let category = prop_oneof![Just(json!("a")), Just(json!("a")), Just(json!("b")), anything()];
    (number, along(), along(), category).prop_map(
        |(number, x, y, category)| json!({"seat_number": number, "position": {"x": x, "y": y}, "category": category}),
    )
}

fn any_file() -> impl Strategy<Value = Value> {
    let rows = prop_oneof![
        proptest::collection::vec(
            (prop_oneof!["[A-B]".prop_map(Value::from), anything()], proptest::collection::vec(any_seat(), 0..5))
                .prop_map(|(label, seats)| json!({"row_number": label, "seats": seats})),
            0..4,
        )
        .prop_map(Value::from),
        anything(),
    ];
    let zones = proptest::collection::vec(
        (prop_oneof!["[A-B]".prop_map(Value::from), anything()], rows)
            .prop_map(|(name, rows)| json!({"name": name, "rows": rows})),
        0..4,
    );
    (anything(), zones).prop_map(|(name, zones)| json!({"name": name, "categories": [{"name": "a"}], "zones": zones}))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_file_is_imported_with_unique_names_or_refused(file in any_file(), may_relabel in any::<bool>()) {
        match import(file.clone(), "Room", may_relabel) {
            Ok(imported) => {
                let mut names = labels(&imported.layout);
                prop_assert!(names.iter().all(|name| !name.trim().is_empty()));
                let count = names.len();
                names.sort();
                names.dedup();
                prop_assert_eq!(names.len(), count, "names are unique");
                // The stored layout is parsed as the same room.
                let stored = serde_json::to_value(&imported.layout).expect("JSON");
                let again = import(stored, "Room", false).expect("it was good before");
                prop_assert_eq!(labels(&again.layout), labels(&imported.layout));
            }
            Err(problems) => prop_assert!(!problems.is_empty() && problems.len() <= MAX_FINDINGS),
        }
    }
}
