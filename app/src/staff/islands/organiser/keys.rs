//! The keyboard: arrows move what is chosen, from the drawing and from the list beside it; the rest as everywhere.

use domain::layout::editing::Command;
use leptos::ev::KeyboardEvent;
use leptos::prelude::*;
use web_sys::Element;

use super::board::element_of;
use super::editor::Editor;

/// An arrow moves so far, in seats.
const STEP_SEATS: f64 = 0.5;
/// With Shift.
const SMALL_STEP_SEATS: f64 = 0.05;
/// A bracket turns so far, degrees.
const TURN_DEGREES: f64 = 5.0;

/// A key on the desk. Fields keep their own.
pub(super) fn pressed(editor: Editor, event: &KeyboardEvent) {
    let Some(target) = element_of(event) else { return };
    if ["INPUT", "SELECT", "TEXTAREA"].contains(&target.tag_name().as_str()) {
        return;
    }
    let is_done = if event.ctrl_key() || event.meta_key() {
        with_control(editor, event, &target)
    } else {
        is_on_things(&target) && !event.alt_key() && on_things(editor, event)
    };
    if is_done {
        event.prevent_default();
    }
}

/// Whether the focus is on the drawing or on the list of what is in it.
fn is_on_things(target: &Element) -> bool {
    target.closest("[data-moves]").ok().flatten().is_some()
}

fn with_control(editor: Editor, event: &KeyboardEvent, target: &Element) -> bool {
    match event.key().to_ascii_lowercase().as_str() {
        "z" if event.shift_key() => editor.redo(),
        "z" => editor.undo(),
        "y" => editor.redo(),
        "a" if is_on_things(target) => {
            let all = editor.now(|draft| {
                let areas = draft.areas.iter().map(|area| area.key);
                draft.rows.iter().map(|row| row.key).chain(areas).collect::<Vec<_>>()
            });
            editor.choose(all);
        }
        _ => return false,
    }
    true
}

fn on_things(editor: Editor, event: &KeyboardEvent) -> bool {
    if editor.chosen.with_untracked(|chosen| chosen.is_empty()) {
        return false;
    }
    let step = editor.pitch() * if event.shift_key() { SMALL_STEP_SEATS } else { STEP_SEATS };
    match event.key().as_str() {
        "ArrowLeft" => editor.nudge([-step, 0.0]),
        "ArrowRight" => editor.nudge([step, 0.0]),
        "ArrowUp" => editor.nudge([0.0, -step]),
        "ArrowDown" => editor.nudge([0.0, step]),
        "[" => {
            editor.apply(&Command::Turn(editor.keys(), -TURN_DEGREES));
        }
        "]" => {
            editor.apply(&Command::Turn(editor.keys(), TURN_DEGREES));
        }
        "Delete" | "Backspace" => editor.remove_chosen(),
        "Escape" => editor.choose([]),
        _ => return false,
    }
    true
}
