//! Tests of layouts.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::api::{OVERVIEW_ABOVE_SEATS, SEAT_PITCH};
use crate::money::Currency;
use crate::pricing::PriceList;

const STRANGERS_HALL: &str = include_str!("fixtures/strangers-hall.json");
/// Folder with more seating plans to test, on machines that have one.
const MORE_PLANS: &str = "ROWLOCK_SEATING_PLANS";

/// Compares two JSON values, with `20` equal to `20.0`.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn one_price(layout: &Layout) -> PriceList {
    let currency = Currency::parse("EUR").expect("a valid code");
    PriceList { currency, by_category: layout.categories().iter().map(|c| (c.name.clone(), 1_000)).collect() }
}

#[test]
fn areas_of_a_sketch_are_validated_and_round_trip() {
    let sketch = |areas: Value| {
        json!({
            "sketch": 1, "name": "Club",
            "categories": [{"name": "floor"}, {"name": "gold"}],
            "zones": [{"category": "gold", "rows": [{"rows": "A", "seats": "1-4"}]}],
            "areas": areas,
        })
    };
    let floor = json!({"name": "Floor", "category": "floor", "capacity": 300});
    let no_rectangle = json!([{"name": "F", "category": "floor", "capacity": 1, "bounds": [0, 0, 0, 9]}]);
    let layout = Layout::from_json(&sketch(json!([floor])).to_string()).expect("a room with a floor");
    assert_eq!((layout.areas()[0].capacity, layout.seat_count()), (300, 4));
    let stored = serde_json::to_string(&layout).expect("JSON");
    assert_eq!(Layout::from_json(&stored).expect("the same room").areas(), layout.areas());
    for wrong in [
        json!([floor, floor]),
        json!([{"name": "", "category": "floor", "capacity": 1}]),
        json!([{"name": "F", "category": "lawn", "capacity": 1}]),
        json!([{"name": "F", "category": "floor", "capacity": 0}]),
        json!([{"name": "F", "category": "floor", "capacity": 100_001}]),
        no_rectangle,
        json!((0..65).map(|n| json!({"name": n.to_string(), "category": "floor", "capacity": 1})).collect::<Vec<_>>()),
    ] {
        assert!(Layout::from_json(&sketch(wrong.clone()).to_string()).is_err(), "{wrong}");
    }
}

/// Checks the invariants of every layout, whatever its source.
fn check_invariants(layout: &Layout) {
    let names: BTreeSet<String> = layout.seats().map(|seat| seat.label).collect();
    assert_eq!(names.len(), layout.seat_count() as usize, "names are unique");
    assert_eq!(layout.seat(layout.seat_count()), None);
    let prices = one_price(layout);
    let view = layout.plan_view(Uuid::nil(), &prices, None).expect("every category has a price");
    assert_eq!(view.overview, layout.seat_count() > OVERVIEW_ABOVE_SEATS);
    let ranges = view.sections.iter().map(|section| section.first..section.first + section.count);
    assert!(layout.sections().eq(ranges), "sections are ranges of seats, as the plan says");
    let mut next = 0;
    for (number, section) in view.sections.iter().enumerate() {
        assert_eq!(section.first, next, "sections follow without a gap");
        let full = layout.plan_view(Uuid::nil(), &prices, Some(number)).expect("the section is there");
        assert!(full.sections.iter().enumerate().all(|(other, s)| s.rows.is_empty() == (other != number)));
        let [left, top, right, bottom] = section.bounds;
        assert!(left >= MARGIN && top >= MARGIN && right <= view.width - MARGIN && bottom <= view.height - MARGIN);
        for row in &full.sections[number].rows {
            assert_eq!(row.first, next, "rows follow without a gap");
            for at in 0..row.numbers.len() {
                let seat = layout.seat(next).expect("the seat of the view");
                assert_eq!((seat.row, seat.number), (row.label.as_str(), row.numbers[at].as_str()));
                assert_eq!(seat.category, row.category[at]);
                assert!((left..=right).contains(&row.x[at]) && (top..=bottom).contains(&row.y[at]));
                next += 1;
            }
        }
        assert_eq!(section.count, next - section.first);
    }
    assert_eq!(next, view.seat_count);
}

#[test]
fn uploaded_plan_round_trips() {
    let hall: Value = serde_json::from_str(STRANGERS_HALL).expect("the fixture is JSON");
    let layout = Layout::from_seating_plan(hall.clone()).expect("the fixture is a seating plan");
    assert!(same(&layout.to_seating_plan(), &hall));
    let stored = serde_json::to_value(&layout).expect("a layout is JSON");
    assert!(same(&stored, &hall), "what is stored is the plan itself");
    assert_eq!(serde_json::from_value::<Layout>(stored).expect("it is read again"), layout);
    check_invariants(&layout);
}

#[test]
fn names_contain_the_zone_if_there_are_two_and_a_hyphen_between_digits() {
    let layout = Layout::from_json(STRANGERS_HALL).expect("the fixture is a seating plan");
    let names: Vec<String> = layout.seats().map(|seat| seat.label).collect();
    let wanted =
        ["Партер А13", "Партер А14", "Партер А14 bis", "Партер А15", "Партер 12-7", "Партер 12-8", "Балкон А13"];
    assert_eq!(names, wanted);
    assert_eq!(layout.find("Балкон А13"), Some(6));
    let seat = layout.seat(2).expect("the third seat");
    assert_eq!((seat.zone, seat.row, seat.number), ("Партер", "А", "14 bis"));
}

#[test]
fn room_with_one_zone_omits_it_in_names() {
    let sketch = json!({"sketch": 1, "name": "Small", "categories": [{"name": "gold"}],
        "zones": [{"name": "Stalls", "category": "gold", "rows": [{"rows": "C", "seats": "5-8"}]}]});
    let layout = Layout::from_json(&sketch.to_string()).expect("a sketch");
    assert_eq!(layout.label(2).as_deref(), Some("C7"));
}

#[test]
fn neighbours_are_scaled_to_the_seat_pitch() {
    let layout = Layout::from_json(STRANGERS_HALL).expect("the fixture is a seating plan");
    let view = layout.plan_view(Uuid::nil(), &one_price(&layout), None).expect("a view");
    let row = &view.sections[0].rows[1];
    assert_eq!((row.x[1] - row.x[0]).abs(), SEAT_PITCH);
    assert_eq!(row.y[1], row.y[0]);
}

#[test]
fn invalid_plan_is_refused_with_the_place_of_the_error() {
    let plan = |seats: Value| {
        json!({"name": "Room", "categories": [{"name": "a"}],
            "zones": [{"name": "Z", "position": {"x": 0, "y": 0}, "rows": [{"row_number": "1", "seats": seats}]}]})
    };
    let seat = |number: &str, x: f64, category: &str| json!({"seat_guid": "g", "seat_number": number, "position": {"x": x, "y": 0}, "category": category});
    let refusal = |seats| Layout::from_seating_plan(plan(seats)).expect_err("it must be refused");
    assert_eq!(refusal(json!([])), LayoutError::NoSeats);
    assert_eq!(refusal(json!([seat("1", 0.0, "a"), seat("1", 9.0, "a")])), LayoutError::DuplicateName("1-1".into()));
    assert!(matches!(refusal(json!([seat("1", 0.0, "b")])), LayoutError::UnknownCategory { .. }));
    assert!(matches!(refusal(json!([seat("1", 1e300, "a")])), LayoutError::OutOfBounds(_)));
    assert!(matches!(refusal(json!([seat(&"9".repeat(200), 0.0, "a")])), LayoutError::NameTooLong(_)));
    assert!(matches!(refusal(json!([seat(" ", 0.0, "a")])), LayoutError::Unnamed { .. }));
    assert!(matches!(refusal(json!([{"seat_number": 1}])), LayoutError::Shape(_)));
    assert!(matches!(Layout::from_json("[]"), Err(LayoutError::Shape(_))));
}

#[test]
fn categories_fit_in_a_byte_and_are_unique() {
    let plan = |categories: Vec<Value>| {
        let room = json!({"name": "Room", "categories": categories, "zones": [{"rows": [{"row_number": "A", "seats": [
            {"seat_guid": "g", "seat_number": "1", "position": {"x": 0, "y": 0}, "category": "0"}]}]}]});
        Layout::from_seating_plan(room)
    };
    let many = |count: usize| (0..count).map(|number| json!({"name": number.to_string()})).collect::<Vec<_>>();
    assert!(plan(many(255)).is_ok());
    assert_eq!(plan(many(256)), Err(LayoutError::TooManyCategories(256)));
    assert_eq!(plan(vec![json!({"name": "0"}), json!({"name": "0"})]), Err(LayoutError::DuplicateCategory("0".into())));
}

#[test]
fn sketch_exported_as_a_seating_plan_is_the_same_room() {
    let sketch = json!({"sketch": 1, "name": "Both", "focus": {"kind": "screen", "at": [0, -60], "width": 200},
        "categories": [{"name": "gold", "label": "Gold", "color": "#fc0"}, {"name": "sofa", "kind": "couple"}],
        "zones": [
            {"name": "Stalls", "category": "gold", "arc": 300, "rows": [{"rows": "A-D", "seats": "1-4 . 5-8"}]},
            {"name": "Circle", "at": [0, 200], "turn": 10, "category": "gold", "rows": [{"rows": "A", "seats": "@sofa 1-4 @ 5"}]},
            {"name": "Box {n}", "at": [0, 300], "category": "gold", "rows": [{"rows": "A", "seats": "1 2"}],
             "repeat": {"from": 1, "grid": {"count": [2, 2], "step": [90, 60]}}}]});
    let layout = Layout::from_json(&sketch.to_string()).expect("a sketch");
    assert_eq!(layout.seat_count(), 32 + 5 + 8);
    assert!(layout.find("Box 4 A2").is_some());
    let written = Layout::from_seating_plan(layout.to_seating_plan()).expect("a plan");
    let view = |layout: &Layout| layout.plan_view(Uuid::nil(), &one_price(layout), None).expect("a view");
    assert_eq!(view(&written), view(&layout));
    assert_eq!(serde_json::from_value::<Layout>(serde_json::to_value(&layout).expect("JSON")).expect("it"), layout);
    check_invariants(&layout);
}

#[test]
fn focus_is_drawn_at_the_top_or_in_the_middle_and_never_over_a_seat() {
    let layout = Layout::from_json(STRANGERS_HALL).expect("the fixture is a seating plan");
    assert_eq!(layout.known_focus(), None, "the file does not state it");
    for kind in [FocusKind::Screen, FocusKind::Stage, FocusKind::Field, FocusKind::None] {
        for side in [FocusSide::Top, FocusSide::Right, FocusSide::Bottom, FocusSide::Left, FocusSide::Round] {
            let choice = FocusChoice { kind, side };
            let turned = layout.with_focus(choice).expect("the same room");
            check_invariants(&turned);
            let stored = serde_json::to_value(&turned).expect("JSON");
            let stored = serde_json::from_value::<Layout>(stored).expect("it is read again");
            assert_eq!((stored.known_focus(), stored.focus()), (Some(choice), turned.focus()));
            let focus = turned.focus();
            if !focus.is_in_front() {
                continue;
            }
            let seats: Vec<(i32, i32)> =
                (0..turned.seat_count()).map(|seat| turned.place(seat).expect("one").0).collect();
            assert!(seats.iter().all(|(_, y)| *y > focus.at[1] + focus.depth / 2), "{choice:?}: {focus:?}");
        }
    }
}

#[test]
fn chairs_face_their_table_and_walls_turn_none() {
    let seat = |number: u32, x: i32, y: i32| json!({"seat_number": number.to_string(), "position": {"x": x, "y": y}, "category": "a"});
    let row = |label: &str, seats: Vec<Value>| json!({"row_number": label, "seats": seats});
    let text = |text: &str| json!({"text": text});
    let plan = json!({"name": "Supper club", "categories": [{"name": "a"}], "zones": [{
    "rows": [
        row("Table", vec![seat(1, 0, -25), seat(2, 25, 0), seat(3, 0, 25), seat(4, -25, 0)]),
        row("Z", (1..=6).map(|n| seat(n, 20 * n.cast_signed() - 70, 200)).collect()),
    ],
    "areas": [
        {"shape": "circle", "position": {"x": 0, "y": 0}, "circle": {"radius": 12}, "text": text("7")},
        {"shape": "rectangle", "position": {"x": -45, "y": 215}, "rectangle": {"width": 90, "height": 8}},
        {"shape": "rectangle", "position": {"x": -30, "y": -120}, "rectangle": {"width": 60, "height": 20}, "text": text("Stage")},
        {"shape": "text", "position": {"x": 90, "y": 100}, "text": text("Bar")},
        {"shape": "rectangle", "position": {"x": 0, "y": 0}, "rectangle": {"width": 9, "height": 9},
         "name": "Floor", "category": "a", "capacity": 5},
    ]}]});
    let layout = Layout::from_seating_plan(plan).expect("a room");
    let view = layout.plan_view(Uuid::nil(), &one_price(&layout), None).expect("a view");
    let rows = &view.sections[0].rows;
    assert_eq!((rows[0].turn.as_slice(), rows[1].turn.as_slice()), (&[180, -90, 0, 90][..], &[][..]));
    let texts = |view: &crate::api::PlanView| {
        view.shapes.iter().filter(|shape| shape.area.is_none()).map(|shape| shape.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&view), ["7", "", "Stage", "Bar"], "an area for sale is no decoration");
    assert!(view.shapes[3].corners.is_empty() && view.shapes[0].corners.len() == 48);
    assert!(view.shapes.iter().all(|shape| shape.at[0] <= view.width && shape.at[1] <= view.height));
    let imported = import::import(layout.to_seating_plan(), "", false).expect("a room").layout;
    let view = imported.plan_view(Uuid::nil(), &one_price(&imported), None).expect("a view");
    assert_eq!((texts(&view), view.focus_at[2]), (["7", "", "Bar"].map(str::to_owned).to_vec(), 60), "it is the stage");
}

#[test]
fn areas_are_drawn_at_their_place_in_a_sketch_and_in_a_plan() {
    let sketch = json!({"sketch": 1, "name": "Club", "focus": {"kind": "stage", "at": [30, -100], "width": 60},
        "categories": [{"name": "floor"}, {"name": "gold"}],
        "zones": [{"category": "gold", "rows": [{"rows": "A", "seats": "1-4"}]}],
        "areas": [{"name": "Bar", "category": "floor", "capacity": 5},
            {"name": "Stage left", "category": "floor", "capacity": 300, "bounds": [-40, -80, 40, -20]}]});
    let view = |layout: &Layout| layout.plan_view(Uuid::nil(), &one_price(layout), None).expect("a view");
    let layout = Layout::from_json(&sketch.to_string()).expect("a sketch");
    let drawn = view(&layout);
    let [floor] = drawn.shapes.as_slice() else { panic!("the bar has no place: {:?}", drawn.shapes) };
    let (row, [x, y]) = (&drawn.sections[0].rows[0], floor.at);
    assert_eq!((floor.text.as_str(), floor.area, floor.corners.len()), ("Stage left", Some(1), 8));
    assert_eq!((y, x), (row.y[0] - 50, i32::midpoint(row.x[1], row.x[2])), "between the stage and the row");
    // The exported plan has the same place, and one for the bar. The name of an area is no stage.
    let mut plan = layout.to_seating_plan();
    plan.as_object_mut().expect("an object").remove("focus");
    let imported = import::import(plan, "", false).expect("a room").layout;
    assert_eq!(imported.known_focus(), None);
    let areas: Vec<_> = view(&imported).shapes.iter().map(|shape| (shape.text.clone(), shape.area)).collect();
    assert_eq!(areas, [("Bar".to_owned(), Some(0)), ("Stage left".to_owned(), Some(1))]);
}

#[test]
fn sides_are_turned_to_the_top_and_composed() {
    for side in [FocusSide::Top, FocusSide::Right, FocusSide::Bottom, FocusSide::Left] {
        assert_eq!(side.turn_back(side.turn_to_top([3.0, 7.0])), [3.0, 7.0]);
        assert_eq!(side.behind(FocusSide::Top), side);
        assert_eq!(side.behind(FocusSide::Round), FocusSide::Round);
    }
    assert_eq!(FocusSide::Right.turn_to_top([1.0, 0.0]), [0.0, -1.0], "up");
    assert_eq!(FocusSide::Left.turn_to_top([-1.0, 0.0]), [0.0, -1.0], "up");
    // The drawing is shown upside down: what is on the left there is on the right in the file.
    assert_eq!(FocusSide::Bottom.behind(FocusSide::Left), FocusSide::Right);
    assert_eq!(FocusSide::Round.behind(FocusSide::Left), FocusSide::Left);
}

#[test]
fn ring_of_blocks_faces_inwards_and_is_evenly_spaced() {
    let sketch = json!({"sketch": 1, "name": "Ring", "categories": [{"name": "a"}], "zones": [
        {"name": "Block {n}", "category": "a", "rows": [{"rows": "1-2", "seats": "1-3"}],
         "repeat": {"from": 101, "around": {"count": 4, "radius": [500, 500], "degrees": [-45, 315]}}}]});
    let layout = Layout::from_json(&sketch.to_string()).expect("a sketch");
    let view = layout.plan_view(Uuid::nil(), &one_price(&layout), None).expect("a view");
    let names: Vec<&str> = view.sections.iter().map(|section| section.name.as_str()).collect();
    assert_eq!(names, ["Block 101", "Block 102", "Block 103", "Block 104"]);
    let front_and_back = |section: usize| {
        let rows = &view.sections[section].rows;
        ((rows[0].x[1], rows[0].y[1]), (rows[1].x[1], rows[1].y[1]))
    };
    let (front, back) = front_and_back(0);
    assert!(front.0 == back.0 && back.1 < front.1, "the top block's second row is further up");
    let (front, back) = front_and_back(1);
    assert!(front.1 == back.1 && back.0 > front.0, "the right block's second row is further right");
}

#[test]
fn invalid_sketch_is_refused_with_the_place_of_the_error() {
    let zone = |zone: Value| {
        let sketch = json!({"sketch": 1, "name": "Bad", "categories": [{"name": "a"}], "zones": [zone]});
        Layout::from_json(&sketch.to_string()).expect_err("it must be refused")
    };
    let rows = json!([{"rows": "A", "seats": "1-3"}]);
    let typo = zone(json!({"category": "a", "rows": [{"rows": "A", "seat": "1"}]}));
    assert!(typo.to_string().contains("seat"), "{typo}");
    assert!(matches!(zone(json!({"category": "b", "rows": rows})), LayoutError::UnknownCategory { .. }));
    assert!(matches!(zone(json!({"category": "a", "pitch": 0, "rows": rows})), LayoutError::Sketch { .. }));
    let endless = json!({"from": 1, "grid": {"count": [4_000_000_000_u32, 2], "step": [1, 1]}});
    assert!(matches!(zone(json!({"category": "a", "rows": rows, "repeat": endless})), LayoutError::Sketch { .. }));
    let huge = json!([{"rows": "1-50000", "seats": "1-50000"}]);
    assert_eq!(zone(json!({"category": "a", "rows": huge})), LayoutError::TooManySeats);
    let newer = json!({"sketch": 2, "name": "New", "categories": [], "zones": []});
    assert!(matches!(Layout::from_json(&newer.to_string()), Err(LayoutError::Shape(_))));
}

#[test]
fn plans_of_the_local_folder_round_trip() {
    let Some(folder) = std::env::var_os(MORE_PLANS) else { return };
    for entry in std::fs::read_dir(folder).expect("the folder named is there") {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let plan: Value = serde_json::from_slice(&std::fs::read(&path).expect("a readable file")).expect("JSON");
        let layout = Layout::from_seating_plan(plan.clone()).expect("a seating plan");
        assert!(same(&layout.to_seating_plan(), &plan), "{}", path.display());
        check_invariants(&layout);
    }
}

/// Labels in several scripts.
fn any_label() -> impl Strategy<Value = String> {
    prop_oneof!["[A-Z]{1,2}", "[0-9]{1,3}", "[А-Я][а-я]{0,6}", Just("مقصورة".to_owned()), Just("🎭 <i>".to_owned())]
}

/// Keys and values outside the schema.
fn any_rest() -> impl Strategy<Value = serde_json::Map<String, Value>> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!([{"shape": "circle", "circle": {"radius": 4.5}}, []])),
    ];
    proptest::collection::vec(("x_[a-z]{1,4}", value), 0..3).prop_map(|pairs| pairs.into_iter().collect())
}

fn any_position() -> impl Strategy<Value = Value> {
    let along = || prop_oneof![(-5_000..5_000_i32).prop_map(Value::from), (-5e3..5e3_f64).prop_map(Value::from)];
    (along(), along(), any_rest()).prop_map(|(x, y, rest)| with(json!({"x": x, "y": y}), rest))
}

fn with(mut object: Value, rest: serde_json::Map<String, Value>) -> Value {
    object.as_object_mut().expect("an object").extend(rest);
    object
}

/// A plan with unique names: names of zones and seats contain a counter.
fn any_plan() -> impl Strategy<Value = Value> {
    let seat = (any_label(), any_position(), 0..3_usize, any_rest());
    let row = (any_label(), proptest::option::of(any_position()), proptest::collection::vec(seat, 0..6), any_rest());
    let zone = (any_label(), proptest::option::of(any_position()), proptest::collection::vec(row, 1..4), any_rest());
    (proptest::collection::vec(zone, 1..4), any_rest()).prop_filter_map("no seats", |(zones, rest)| {
        let mut seats = 0;
        let mut plan_zones = Vec::new();
        for (zone_number, (name, position, rows, rest)) in zones.into_iter().enumerate() {
            let mut plan_rows = Vec::new();
            for (label, position, row_seats, rest) in rows {
                let mut plan_seats = Vec::new();
                for (number, position, category, rest) in row_seats {
                    seats += 1;
                    let category = ["a", "b", "ц"][category];
                    let seat = json!({"seat_guid": seats.to_string(), "seat_number": format!("{number} #{seats}"),
                        "position": position, "category": category});
                    plan_seats.push(with(seat, rest));
                }
                let mut row = json!({"row_number": label, "seats": plan_seats});
                row.as_object_mut().expect("an object").extend(position.map(|at| ("position".to_owned(), at)));
                plan_rows.push(with(row, rest));
            }
            let mut zone = json!({"name": format!("{name} {zone_number}"), "rows": plan_rows});
            zone.as_object_mut().expect("an object").extend(position.map(|at| ("position".to_owned(), at)));
            plan_zones.push(with(zone, rest));
        }
        let categories = json!([{"name": "a"}, {"name": "b", "color": "#123456"}, {"name": "ц", "x_y": [1, 2.5]}]);
        let plan = json!({"name": "Any", "categories": categories, "zones": plan_zones});
        (seats > 0).then(|| with(plan, rest))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_plan_round_trips(plan in any_plan()) {
        let layout = Layout::from_seating_plan(plan.clone()).expect("a valid plan");
        prop_assert!(same(&layout.to_seating_plan(), &plan));
        check_invariants(&layout);
    }

    #[test]
    fn arbitrary_files_never_panic(text in ".{0,200}", pattern in "[0-9A-Z@.:/ _-]{0,24}") {
        let _ = Layout::from_json(&text);
        let sketch = json!({"sketch": 1, "name": "Any", "categories": [{"name": "a"}],
            "zones": [{"category": "a", "rows": [{"rows": pattern.clone(), "seats": pattern}]}]});
        let _ = Layout::from_json(&sketch.to_string());
    }
}
