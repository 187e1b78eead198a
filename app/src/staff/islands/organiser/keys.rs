//! Keyboard input: arrows move the selection, from the drawing and from the list; other keys have their usual meaning.

use domain::layout::editing::Command;
use leptos::ev::KeyboardEvent;
use leptos::prelude::*;
use web_sys::Element;

use super::board::element_of;
use super::editor::Editor;

/// Step of an arrow key, in seats.
const STEP_SEATS: f64 = 0.5;
/// Step with Shift, in seats.
const SMALL_STEP_SEATS: f64 = 0.05;
/// Step of a bracket key, degrees.
const TURN_DEGREES: f64 = 5.0;

/// Handles a key in the editor, except in form fields.
pub(super) fn on_key(editor: Editor, event: &KeyboardEvent) {
    let Some(target) = element_of(event) else { return };
    if ["INPUT", "SELECT", "TEXTAREA"].contains(&target.tag_name().as_str()) {
        return;
    }
    let is_done = if event.ctrl_key() || event.meta_key() {
        with_control(editor, event, &target)
    } else {
        is_on_parts(&target) && !event.alt_key() && on_parts_key(editor, event)
    };
    if is_done {
        event.prevent_default();
    }
}

/// Returns true if the focus is on the drawing or the list of its parts.
fn is_on_parts(target: &Element) -> bool {
    target.closest("[data-moves]").ok().flatten().is_some()
}

fn with_control(editor: Editor, event: &KeyboardEvent, target: &Element) -> bool {
    match event.key().to_ascii_lowercase().as_str() {
        "z" if event.shift_key() => editor.redo(),
        "z" => editor.undo(),
        "y" => editor.redo(),
        "a" if is_on_parts(target) => {
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

fn on_parts_key(editor: Editor, event: &KeyboardEvent) -> bool {
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
