//! Normalises equivalent notations of other programs to the one that is parsed.

use serde_json::{Map, Value};
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::{Finding, FindingKind};

/// Normalises a plan in place. `name` is used if the plan has none.
///
/// # Errors
/// A finding if the file is not a plan.
pub(super) fn normalise_plan(file: &mut Value, name: &str, remarks: &mut Vec<Finding>) -> Result<(), Vec<Finding>> {
    let mut normaliser = Normaliser(compose(file));
    normaliser.remove_nul(file);
    let not_a_plan = |why: &str| vec![Finding::new(FindingKind::NotAPlan, why, 1)];
    let Value::Object(plan) = file else { return Err(not_a_plan("it is not a JSON object")) };
    let is_named = plan.get("name").and_then(Value::as_str).is_some_and(|name| !name.trim().is_empty());
    if !is_named {
        plan.insert("name".to_owned(), Value::String(name.to_owned()));
        normaliser.0 += 1;
    }
    let categories = normaliser.list(plan, "categories").ok_or_else(|| not_a_plan("`categories` is not a list"))?;
    for category in categories {
        if let Value::String(name) = category {
            *category = serde_json::json!({ "name": name });
            normaliser.0 += 1;
        }
        let Value::Object(category) = category else { return Err(not_a_plan("a category is not an object")) };
        normaliser.text(category, "name");
    }
    if !plan.contains_key("zones") {
        return Err(not_a_plan("it has no `zones`"));
    }
    let zones = normaliser.list(plan, "zones").ok_or_else(|| not_a_plan("`zones` is not a list"))?;
    for zone in zones {
        let Value::Object(zone) = zone else { return Err(not_a_plan("a zone is not an object")) };
        normaliser.text(zone, "name");
        normaliser.place(zone);
        for row in normaliser.list(zone, "rows").ok_or_else(|| not_a_plan("`rows` is not a list"))? {
            let Value::Object(row) = row else { return Err(not_a_plan("a row is not an object")) };
            normaliser.text(row, "row_number");
            normaliser.place(row);
            for seat in normaliser.list(row, "seats").ok_or_else(|| not_a_plan("`seats` is not a list"))? {
                let Value::Object(seat) = seat else { return Err(not_a_plan("a seat is not an object")) };
                normaliser.seat(seat);
            }
        }
    }
    if normaliser.0 > 0 {
        remarks.push(Finding::new(FindingKind::Normalised, "", normaliser.0));
    }
    Ok(())
}

/// Converts every text of a file to normalization form C, where each character has one encoding: `e` with a combining
/// accent becomes `é`. Returns the number of changed texts.
pub(super) fn compose(value: &mut Value) -> usize {
    match value {
        Value::String(text) if !is_nfc(text) => {
            *text = text.nfc().collect();
            1
        }
        Value::Array(list) => list.iter_mut().map(compose).sum(),
        Value::Object(object) => object.values_mut().map(compose).sum(),
        _ => 0,
    }
}

/// Counts normalised values.
struct Normaliser(usize);

impl Normaliser {
    /// Returns the list of that key; a missing or `null` list becomes empty. `None` for any other type.
    fn list<'a>(&mut self, object: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Vec<Value>> {
        let list = object.entry(key).or_insert(Value::Null);
        if list.is_null() {
            *list = Value::Array(Vec::new());
            self.0 += 1;
        }
        list.as_array_mut()
    }

    /// Converts a number to a text, and removes `null`.
    fn text(&mut self, object: &mut Map<String, Value>, key: &str) {
        match object.get_mut(key) {
            Some(Value::Null) => {
                object.remove(key);
                self.0 += 1;
            }
            Some(value @ Value::Number(_)) => {
                *value = Value::String(value.to_string());
                self.0 += 1;
            }
            _ => {}
        }
    }

    fn place(&mut self, object: &mut Map<String, Value>) {
        match object.get_mut("position") {
            Some(Value::Null) => {
                object.remove("position");
                self.0 += 1;
            }
            Some(Value::Object(position)) => {
                for axis in ["x", "y"] {
                    let read = match position.get(axis) {
                        Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
                        None | Some(Value::Null) => Some(0.0),
                        _ => continue,
                    };
                    if let Some(number) = read.and_then(serde_json::Number::from_f64) {
                        position.insert(axis.to_owned(), Value::Number(number));
                        self.0 += 1;
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds missing keys of a seat as empty texts, which are validated later.
    fn seat(&mut self, seat: &mut Map<String, Value>) {
        for key in ["seat_number", "category"] {
            self.text(seat, key);
            if !seat.contains_key(key) {
                seat.insert(key.to_owned(), Value::String(String::new()));
            }
        }
        self.place(seat);
    }

    /// Removes NUL characters, which Postgres cannot store in text.
    fn remove_nul(&mut self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains('\0') => {
                *text = text.replace('\0', "");
                self.0 += 1;
            }
            Value::Array(list) => list.iter_mut().for_each(|one| self.remove_nul(one)),
            Value::Object(object) => {
                if object.keys().any(|key| key.contains('\0')) {
                    object.retain(|key, _| !key.contains('\0'));
                    self.0 += 1;
                }
                object.values_mut().for_each(|one| self.remove_nul(one));
            }
            _ => {}
        }
    }
}
