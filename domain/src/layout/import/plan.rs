//! Validates a plan of the right shape and corrects it if allowed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use super::{Finding, FindingKind, MAX_FINDINGS};
use crate::hidden_characters::{is_bidi_control, is_zero_width, shown, visible};
use crate::layout::areas::{self, MAX_AREA_CAPACITY};
use crate::layout::error::{MAX_CATEGORIES, MAX_NAME_CHARS};
use crate::layout::frame::is_place;
use crate::layout::room::name_of;
use crate::seats::MAX_SEATS_PER_SHOW;

/// Maximum deviation of seats from the line of their row, as a share of its length. Rows beyond it are clouds of seats
/// and keep their order.
const MAX_DEVIATION: f64 = 0.35;

/// Validates a normalised plan, and corrects it if `may_relabel` allows it. Returns the errors.
pub(super) fn validate(plan: &mut Value, may_relabel: bool, remarks: &mut Vec<Finding>) -> Vec<Finding> {
    let seats = seats_of(plan).count();
    let has_areas = drawn_areas(plan).any(|area| areas::of_drawing(area).is_some());
    if seats == 0 && !has_areas {
        return vec![Finding::new(FindingKind::NoSeats, "", 0)];
    }
    if seats > MAX_SEATS_PER_SHOW {
        return vec![Finding::new(FindingKind::TooManySeats, "", seats)];
    }
    let mut problems = Vec::new();
    check_names(plan, &mut problems);
    check_positions(plan, &mut problems);
    check_categories(plan, may_relabel, &mut problems, remarks);
    check_numbers(plan, may_relabel, &mut problems, remarks);
    rename_clashing_zones(plan, remarks);
    check_duplicates(plan, may_relabel, &mut problems, remarks);
    check_areas(plan, &mut problems);
    if problems.is_empty() {
        sort_rows(plan, remarks);
        add_remarks(plan, remarks);
    }
    problems
}

fn list<'a>(object: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    object[key].as_array().into_iter().flatten()
}

fn list_mut<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default().trim()
}

fn seats_of(plan: &Value) -> impl Iterator<Item = (&Value, &Value, &Value)> {
    list(plan, "zones")
        .flat_map(|zone| list(zone, "rows").flat_map(move |row| list(row, "seats").map(move |seat| (zone, row, seat))))
}

fn drawn_areas(plan: &Value) -> impl Iterator<Item = &serde_json::Map<String, Value>> {
    list(plan, "zones").flat_map(|zone| list(zone, "areas")).filter_map(Value::as_object)
}

/// Display name of a row: `Circle A`.
fn row_name(zone: &Value, row: &Value) -> String {
    [text(zone, "name"), text(row, "row_number")]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// True if a name contains invisible or control characters. Joiners are allowed, because some scripts need them.
fn has_hidden(name: &str) -> bool {
    name.chars().any(|c| c.is_control() || is_bidi_control(c) || is_zero_width(c))
}

/// Finds texts with invisible or control characters in a sketch. White space may surround a text, and separate the parts of
/// a pattern of rows or seats.
pub(super) fn hidden_in_texts(value: &Value) -> Vec<Finding> {
    let in_text = |text: &str| has_hidden(text).then(|| Finding::new(FindingKind::HiddenCharacters, shown(text), 1));
    match value {
        Value::String(text) => in_text(text.trim()).into_iter().collect(),
        Value::Array(list) => list.iter().flat_map(hidden_in_texts).collect(),
        Value::Object(object) => {
            let in_entry = |(key, value): (&String, &Value)| match value {
                Value::String(pattern) if key == "rows" || key == "seats" => {
                    pattern.split_whitespace().filter_map(in_text).collect()
                }
                _ => hidden_in_texts(value),
            };
            object.iter().flat_map(in_entry).collect()
        }
        _ => Vec::new(),
    }
}

fn check_names(plan: &Value, problems: &mut Vec<Finding>) {
    let (mut long, mut hidden) = (BTreeSet::new(), BTreeSet::new());
    let mut check = |name: &str| {
        if has_hidden(name) && hidden.len() < MAX_FINDINGS {
            hidden.insert(shown(name));
        }
        if name.len() > MAX_NAME_CHARS && name.chars().count() > MAX_NAME_CHARS && long.len() < MAX_FINDINGS {
            long.insert(name.chars().take(20).collect::<String>());
        }
    };
    check(text(plan, "name"));
    list(plan, "categories").for_each(|category| check(text(category, "name")));
    for zone in list(plan, "zones") {
        check(text(zone, "name"));
        for row in list(zone, "rows") {
            check(text(row, "row_number"));
            for seat in list(row, "seats") {
                check(text(seat, "seat_number"));
                // `check_categories` may define a category of this name.
                check(text(seat, "category"));
            }
        }
        list(zone, "areas").for_each(|area| check(text(area, "name")));
    }
    problems.extend(hidden.into_iter().map(|name| Finding::new(FindingKind::HiddenCharacters, name, 1)));
    problems.extend(long.into_iter().map(|name| Finding::new(FindingKind::NameTooLong, name, 1)));
}

fn point(object: &Value) -> Option<(f64, f64)> {
    Some((object["position"]["x"].as_f64()?, object["position"]["y"].as_f64()?))
}

/// Returns the absolute position of a seat; `None` if it has none or it is out of range.
fn absolute_position(zone: &Value, row: &Value, seat: &Value) -> Option<(f64, f64)> {
    let at = |object| point(object).unwrap_or_default();
    let ((zx, zy), (rx, ry), (x, y)) = (at(zone), at(row), point(seat)?);
    let (x, y) = (zx + rx + x, zy + ry + y);
    (is_place(x) && is_place(y)).then_some((x, y))
}

fn check_positions(plan: &Value, problems: &mut Vec<Finding>) {
    let mut unplaced: BTreeMap<String, usize> = BTreeMap::new();
    for (zone, row, seat) in seats_of(plan) {
        if absolute_position(zone, row, seat).is_none() {
            *unplaced
                .entry(format!("{} {}", row_name(zone, row), text(seat, "seat_number")).trim().to_owned())
                .or_default() += 1;
        }
    }
    problems.extend(unplaced.into_iter().map(|(place, count)| Finding::new(FindingKind::OutOfBounds, place, count)));
}

fn check_categories(plan: &mut Value, may_relabel: bool, problems: &mut Vec<Finding>, remarks: &mut Vec<Finding>) {
    let mut defined: BTreeMap<String, usize> = BTreeMap::new();
    for category in list(plan, "categories") {
        // Not trimmed: seats refer to the exact name.
        *defined.entry(category["name"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    let twice: Vec<(&String, &usize)> = defined.iter().filter(|(_, count)| **count > 1).collect();
    if may_relabel && !twice.is_empty() {
        let mut seen = BTreeSet::new();
        if let Some(all) = plan["categories"].as_array_mut() {
            all.retain(|category| seen.insert(category["name"].as_str().unwrap_or_default().to_owned()));
        }
        remarks.push(Finding::new(FindingKind::Normalised, "", twice.len()));
    } else {
        let found = twice.into_iter().map(|(name, count)| Finding::new(FindingKind::DuplicateCategory, name, *count));
        problems.extend(found);
    }
    let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
    for (_, _, seat) in seats_of(plan) {
        let name = seat["category"].as_str().unwrap_or_default();
        if !defined.contains_key(name) {
            *unknown.entry(name.to_owned()).or_default() += 1;
        }
    }
    if may_relabel {
        for (name, count) in &unknown {
            // An empty name cannot have a price.
            let named = if name.is_empty() { "standard" } else { name };
            if let Some(all) = plan["categories"].as_array_mut().filter(|_| !defined.contains_key(named)) {
                all.push(json!({ "name": named }));
            }
            remarks.push(Finding::new(FindingKind::CategoryAdded, named, *count));
        }
        if unknown.contains_key("") {
            for seat in seats_mut(plan).filter(|seat| seat["category"] == "") {
                seat["category"] = json!("standard");
            }
        }
    } else {
        let found = unknown.into_iter().map(|(name, count)| Finding::new(FindingKind::UnknownCategory, name, count));
        problems.extend(found);
    }
    let count = list(plan, "categories").count();
    if count > MAX_CATEGORIES {
        problems.push(Finding::new(FindingKind::TooManyCategories, "", count));
    }
}

fn seats_mut(plan: &mut Value) -> impl Iterator<Item = &mut Value> {
    list_mut(plan, "zones").flat_map(|zone| list_mut(zone, "rows")).flat_map(|row| list_mut(row, "seats"))
}

/// Reports seats without a number by row, or numbers them with the next free numbers of the row.
fn check_numbers(plan: &mut Value, may_relabel: bool, problems: &mut Vec<Finding>, remarks: &mut Vec<Finding>) {
    let mut missing: BTreeMap<String, usize> = BTreeMap::new();
    for (zone, row, seat) in seats_of(plan) {
        if text(seat, "seat_number").is_empty() {
            *missing.entry(row_name(zone, row)).or_default() += 1;
        }
    }
    if missing.is_empty() {
        return;
    }
    if !may_relabel {
        problems.extend(missing.into_iter().map(|(row, count)| Finding::new(FindingKind::Unnumbered, row, count)));
        return;
    }
    for row in list_mut(plan, "zones").flat_map(|zone| list_mut(zone, "rows")) {
        let mut used: BTreeSet<String> = list(row, "seats").map(|seat| text(seat, "seat_number").to_owned()).collect();
        let mut next = 1_u32;
        for seat in list_mut(row, "seats") {
            if !text(seat, "seat_number").is_empty() {
                continue;
            }
            while !used.insert(next.to_string()) {
                next += 1;
            }
            seat["seat_number"] = json!(next.to_string());
        }
    }
    remarks.push(Finding::new(FindingKind::SeatsRenumbered, "", missing.values().sum()));
}

/// Returns row and number of every seat in a zone.
fn row_and_seat_numbers(zone: &Value) -> BTreeSet<(String, String)> {
    let rows = list(zone, "rows");
    rows.flat_map(|row| {
        let label = text(row, "row_number");
        list(row, "seats").map(move |seat| (label.to_owned(), text(seat, "seat_number").to_owned()))
    })
    .collect()
}

/// Renames zones of the same name if their seats would have the same names: a number is appended to the zone's name.
/// The printed names of seats do not change.
fn rename_clashing_zones(plan: &mut Value, remarks: &mut Vec<Finding>) {
    let mut taken: BTreeSet<String> = list(plan, "zones").map(|zone| text(zone, "name").to_owned()).collect();
    let mut seen: HashMap<String, BTreeSet<(String, String)>> = HashMap::new();
    // Where the search of each name continues: from the beginning, many zones of one name would take quadratic time.
    let mut next: HashMap<String, u32> = HashMap::new();
    for zone in list_mut(plan, "zones") {
        let (name, own) = (text(zone, "name").to_owned(), row_and_seat_numbers(zone));
        if own.is_empty() {
            continue;
        }
        let Some(others) = seen.get_mut(&name) else {
            seen.insert(name, own);
            continue;
        };
        if others.is_disjoint(&own) {
            others.extend(own);
            continue;
        }
        let number = next.entry(name.clone()).or_insert(2);
        let renamed = loop {
            let wanted = format!("{name} ({number})").trim().to_owned();
            *number += 1;
            if taken.insert(wanted.clone()) {
                break wanted;
            }
        };
        zone["name"] = json!(renamed);
        remarks.push(Finding::new(FindingKind::ZoneRenamed, renamed.clone(), own.len()));
        seen.insert(renamed, own);
    }
}

/// Reports or renumbers seats whose display names would look the same: they may differ by joiners alone.
fn check_duplicates(plan: &mut Value, may_relabel: bool, problems: &mut Vec<Finding>, remarks: &mut Vec<Finding>) {
    let parts = list(plan, "zones").filter(|zone| list(zone, "rows").any(|row| list(row, "seats").next().is_some()));
    let has_parts = parts.count() > 1;
    let looks = |zone: &str, row: &str, number: &str| visible(name_of(zone, row, number));
    let name = |zone: &Value, row: &Value, seat: &Value| {
        let zone = if has_parts { text(zone, "name") } else { "" };
        looks(zone, text(row, "row_number"), text(seat, "seat_number"))
    };
    let mut count: HashMap<String, usize> = HashMap::new();
    // Seats without a number, and names with invisible characters, are reported separately.
    for (zone, row, seat) in seats_of(plan) {
        let (number, own_texts) = (text(seat, "seat_number"), [text(zone, "name"), text(row, "row_number")]);
        if !number.is_empty() && !has_hidden(number) && !own_texts.into_iter().any(has_hidden) {
            *count.entry(name(zone, row, seat)).or_default() += 1;
        }
    }
    let mut twice: BTreeMap<String, usize> =
        count.iter().filter(|(_, count)| **count > 1).map(|(name, count)| (name.clone(), *count)).collect();
    if !may_relabel {
        problems.extend(twice.into_iter().map(|(name, count)| Finding::new(FindingKind::DuplicateSeat, name, count)));
        return;
    }
    let mut renumbered = 0;
    let mut seen = BTreeSet::new();
    // As for zones: where the search of each name continues.
    let mut next: HashMap<String, u32> = HashMap::new();
    for zone in list_mut(plan, "zones") {
        let zone_name = if has_parts { text(zone, "name").to_owned() } else { String::new() };
        for row in list_mut(zone, "rows") {
            let label = text(row, "row_number").to_owned();
            for seat in list_mut(row, "seats") {
                let number = text(seat, "seat_number").to_owned();
                let own = looks(&zone_name, &label, &number);
                // The first of them keeps its number.
                if !twice.contains_key(&own) || seen.insert(own.clone()) {
                    continue;
                }
                let copy = next.entry(own).or_insert(2);
                let renamed = loop {
                    let wanted = format!("{number} ({copy})");
                    *copy += 1;
                    let name = looks(&zone_name, &label, &wanted);
                    if !count.contains_key(&name) && !twice.contains_key(&name) {
                        twice.insert(name.clone(), 1);
                        seen.insert(name);
                        break wanted;
                    }
                };
                seat["seat_number"] = json!(renamed);
                renumbered += 1;
            }
        }
    }
    if renumbered > 0 {
        remarks.push(Finding::new(FindingKind::SeatsRenumbered, "", renumbered));
    }
}

/// Reports areas that cannot be sold: duplicate names, an invalid capacity, an undefined category.
fn check_areas(plan: &Value, problems: &mut Vec<Finding>) {
    let defined: BTreeSet<&str> = list(plan, "categories").filter_map(|category| category["name"].as_str()).collect();
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    for area in drawn_areas(plan).filter_map(areas::of_drawing) {
        if !(1..=MAX_AREA_CAPACITY).contains(&area.capacity) {
            problems.push(Finding::new(FindingKind::AreaCapacity, area.name.clone(), 1));
        }
        if !defined.contains(area.category.as_str()) {
            problems.push(Finding::new(FindingKind::UnknownCategory, area.category, 1));
        }
        *named.entry(area.name).or_default() += 1;
    }
    let twice = named.into_iter().filter(|(_, count)| *count > 1);
    problems.extend(twice.map(|(name, count)| Finding::new(FindingKind::DuplicateArea, name, count)));
}

/// Sorts the seats of each row by position, so that neighbours in the room are neighbours in the list. The search for
/// adjacent seats relies on this.
fn sort_rows(plan: &mut Value, remarks: &mut Vec<Finding>) {
    let mut reordered = 0;
    for row in list_mut(plan, "zones").flat_map(|zone| list_mut(zone, "rows")) {
        let Some(seats) = row.get_mut("seats").and_then(Value::as_array_mut) else { continue };
        let points: Vec<(f64, f64)> = seats.iter().filter_map(point).collect();
        let Some(along) = positions_along_line(&points).filter(|_| points.len() == seats.len()) else { continue };
        let rises = along.windows(2).filter(|pair| pair[0] < pair[1]).count();
        let falls = along.windows(2).filter(|pair| pair[0] > pair[1]).count();
        if rises == 0 || falls == 0 {
            continue;
        }
        let mut sorted: Vec<(f64, Value)> = along.into_iter().zip(seats.drain(..)).collect();
        sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
        if falls > rises {
            sorted.reverse();
        }
        seats.extend(sorted.into_iter().map(|(_, seat)| seat));
        reordered += 1;
    }
    if reordered > 0 {
        remarks.push(Finding::new(FindingKind::RowsReordered, "", reordered));
    }
}

/// Returns the position of each point along the line of the row; `None` for a cloud.
fn positions_along_line(points: &[(f64, f64)]) -> Option<Vec<f64>> {
    let far_from = |from: (f64, f64)| {
        let away = |point: &(f64, f64)| (point.0 - from.0).powi(2) + (point.1 - from.1).powi(2);
        points.iter().copied().max_by(|one, other| away(one).total_cmp(&away(other)))
    };
    if points.len() < 3 {
        return None;
    }
    let start = far_from(points[0])?;
    let end = far_from(start)?;
    let (dx, dy) = (end.0 - start.0, end.1 - start.1);
    let length = dx.hypot(dy);
    if length <= 0.0 {
        return None;
    }
    // The direction is from left to right, as rows are read.
    let side = if dx < 0.0 || (dx == 0.0 && dy < 0.0) { -1.0 } else { 1.0 };
    let deviation = |point: &(f64, f64)| ((point.0 - start.0) * dy - (point.1 - start.1) * dx).abs() / length;
    if points.iter().any(|point| deviation(point) > MAX_DEVIATION * length) {
        return None;
    }
    Some(points.iter().map(|point| side * ((point.0 - start.0) * dx + (point.1 - start.1) * dy) / length).collect())
}

/// Adds remarks about correct but unusual properties of the plan.
fn add_remarks(plan: &Value, remarks: &mut Vec<Finding>) {
    let (mut right_to_left, mut odd_or_even) = (0, 0);
    for row in list(plan, "zones").flat_map(|zone| list(zone, "rows")) {
        let numbered: Vec<(f64, u32)> = list(row, "seats")
            .filter_map(|seat| Some((point(seat)?.0, text(seat, "seat_number").parse().ok()?)))
            .collect();
        let steps = || numbered.windows(2).filter(|pair| pair[0].0 != pair[1].0 && pair[0].1 != pair[1].1);
        right_to_left += usize::from(
            steps().next().is_some() && steps().all(|pair| (pair[0].0 < pair[1].0) == (pair[0].1 > pair[1].1)),
        );
        let (first, others) = (numbered.first(), numbered.iter().skip(1));
        odd_or_even += usize::from(
            numbered.len() > 2 && first.is_some_and(|first| others.clone().all(|other| other.1 % 2 == first.1 % 2)),
        );
    }
    let mut places = HashMap::new();
    let (mut on_another, mut first) = (0, String::new());
    for (zone, row, seat) in seats_of(plan) {
        // Positions that agree to a thousandth of a unit are the same position.
        let Some((x, y)) = absolute_position(zone, row, seat) else { continue };
        let key = ((x * 1_000.0).round() as i64, (y * 1_000.0).round() as i64);
        if places.insert(key, ()).is_some() {
            on_another += 1;
            if first.is_empty() {
                first = format!("{} {}", row_name(zone, row), text(seat, "seat_number"));
            }
        }
    }
    let drawn = list(plan, "zones").flat_map(|zone| list(zone, "areas"));
    let areas = drawn.filter(|area| area.as_object().and_then(areas::of_drawing).is_none()).count();
    for (kind, place, count) in [
        (FindingKind::RightToLeft, String::new(), right_to_left),
        (FindingKind::OddOrEven, String::new(), odd_or_even),
        (FindingKind::SamePlace, first, on_another),
        (FindingKind::AreasNotSold, String::new(), areas),
    ] {
        if count > 0 {
            remarks.push(Finding::new(kind, place, count));
        }
    }
}
