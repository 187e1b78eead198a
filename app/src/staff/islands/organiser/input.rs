//! Input on the drawing. A click selects, a drag moves the selection, a drag on the background draws a selection frame;
//! arrows move the selection, also from the list, and other keys have their usual meaning.
//!
//! A finger on the background scrolls the page. Two fingers zoom, like on the customers' map (`seat_map::plan::plane`), and
//! select nothing: meanwhile the drawing is only transformed; it is laid out again at the end.

use domain::layout::editing::{Command, DrawingPoint, ObjectKey};
use leptos::ev::{KeyboardEvent, PointerEvent, TouchEvent};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

use super::board::Board;
use super::editor::{Drag, Editor};
use super::markup;
use crate::seat_map::plan::plane::two_fingers;
use crate::seat_map::plan::zoom::{self, Pinch, WindowRect};

/// Movement below this while pressed is a click, pixels.
const DRAG_PX: f64 = 4.0;
/// Dragged parts move in steps of this, in seats.
const STEP_SEATS: f64 = 0.25;
/// Step of an arrow key, in seats.
const KEY_STEP_SEATS: f64 = 0.5;
/// Step with Shift, in seats.
const SMALL_STEP_SEATS: f64 = 0.05;
/// Step of a bracket key, degrees.
const TURN_DEGREES: f64 = 5.0;

/// A pressed pointer, and the part, seat and corner under it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointerPress {
    id: i32,
    part: Option<ObjectKey>,
    seat: Option<usize>,
    corner: Option<usize>,
    /// Position of the press, units of the plan.
    from: DrawingPoint,
    /// Position of the press in the window.
    at: (f64, f64),
    /// True if the part was selected before.
    was_chosen: bool,
    adds: bool,
    moved: bool,
}

pub(super) fn press(board: Board, event: &PointerEvent) {
    let (editor, Some(from)) = (board.editor, point_of(board, event)) else { return };
    if event.button() != 0 || board.press.with_value(Option::is_some) {
        return;
    }
    let target = element_of(event);
    let number = |name: &str| target.as_ref()?.get_attribute(name)?.parse::<usize>().ok();
    let holder = target.as_ref().and_then(|target| target.closest("[data-key]").ok().flatten());
    let part: Option<ObjectKey> = holder.and_then(|holder| holder.get_attribute("data-key")?.parse().ok());
    let adds = event.shift_key() || event.ctrl_key() || event.meta_key() || editor.several.get_untracked();
    let was_chosen = part.is_some_and(|key| editor.chosen.with_untracked(|chosen| chosen.contains(&key)));
    board.before.set_value((editor.chosen.get_untracked(), editor.seats.get_untracked()));
    match part {
        Some(key) if adds => editor.toggle(key),
        Some(key) if !was_chosen => editor.choose([key]),
        _ => {}
    }
    let press = PointerPress {
        id: event.pointer_id(),
        part,
        seat: number("data-seat"),
        corner: number("data-corner"),
        from,
        at: (f64::from(event.client_x()), f64::from(event.client_y())),
        was_chosen,
        adds,
        moved: false,
    };
    // A finger on the background scrolls the page; a tap there is handled on release.
    if (part.is_some() || !is_finger(event))
        && let Some(drawing) = board.drawing.get_untracked()
    {
        // Fails for a pointer that is already gone; the press then ends.
        let _ = drawing.set_pointer_capture(event.pointer_id());
    }
    board.press.set_value(Some(press));
}

pub(super) fn drag(board: Board, event: &PointerEvent) {
    let Some(mut press) = board.press.get_value().filter(|press| press.id == event.pointer_id()) else { return };
    let way = (f64::from(event.client_x()) - press.at.0).hypot(f64::from(event.client_y()) - press.at.1);
    if !press.moved && way < DRAG_PX {
        return;
    }
    let Some([x, y]) = point_of(board, event) else { return };
    press.moved = true;
    board.press.set_value(Some(press));
    let [from_x, from_y] = press.from;
    let by = snapped(board.editor, [x - from_x, y - from_y]);
    let drag = match (press.part, press.corner) {
        (Some(key), Some(corner)) => Drag::Corner(key, corner, by),
        (Some(key), None) if board.editor.chosen.with_untracked(|chosen| chosen.contains(&key)) => Drag::Things(by),
        (Some(_), None) => return,
        (None, _) if is_finger(event) => return,
        (None, _) => Drag::Frame([x.min(from_x), y.min(from_y), x.max(from_x), y.max(from_y)]),
    };
    board.editor.drag.set(Some(drag));
}

/// Handles a release: moves the dragged part or selects the clicked one.
pub(super) fn release(board: Board, event: &PointerEvent) {
    let Some(press) = board.press.get_value().filter(|press| press.id == event.pointer_id()) else { return };
    let (editor, drag) = (board.editor, board.editor.drag.get_untracked());
    cancel(board);
    match drag {
        Some(Drag::Things(by)) => {
            editor.apply(&Command::Move(editor.keys(), by));
        }
        Some(Drag::Corner(key, corner, by)) => {
            let area = editor.now(|draft| draft.area(key).cloned());
            if let Some(area) = area {
                let outline = area.outline.with_corner(corner, by);
                editor.apply(&Command::ChangeArea(key, area.name.clone(), area.capacity, outline));
            }
        }
        Some(Drag::Frame(sides)) => {
            let inside = editor.now(|draft| draft.inside(sides));
            let before = if press.adds { editor.keys() } else { Vec::new() };
            editor.choose(before.into_iter().chain(inside));
        }
        None if press.moved => {}
        None => click(editor, press),
    }
}

fn click(editor: Editor, press: PointerPress) {
    match press.part {
        // On the background: clears the selection.
        None if !press.adds => editor.choose([]),
        // In a row that was selected before: selects its seats.
        Some(key) if press.was_chosen && !press.adds => {
            if editor.only_row() == Some(key) {
                if let Some(seat) = press.seat {
                    editor.toggle_seat(seat);
                }
            } else {
                editor.choose([key]);
            }
        }
        _ => {}
    }
}

/// Cancels the press, for example because the browser scrolls the page.
pub(super) fn cancel(board: Board) {
    board.press.set_value(None);
    board.editor.drag.set(None);
}

/// Cancels the press and restores the selection: a second finger started a pinch.
fn cancel_for_pinch(board: Board) {
    let was_down = board.press.with_value(Option::is_some);
    cancel(board);
    let (chosen, seats) = board.before.get_value();
    if was_down && board.editor.chosen.with_untracked(|now| *now != chosen) {
        board.editor.choose(chosen);
        board.editor.seats.set(seats);
    }
}

fn is_finger(event: &PointerEvent) -> bool {
    event.pointer_type() == "touch"
}

/// Rounds to the step size.
fn snapped(editor: Editor, way: DrawingPoint) -> DrawingPoint {
    let step = editor.pitch() * STEP_SEATS;
    way.map(|side| (side / step).round() * step)
}

/// Position of the pointer, units of the plan.
fn point_of(board: Board, event: &PointerEvent) -> Option<DrawingPoint> {
    let (place, [left, top, width, height]) = (board.place()?, board.frame.get_untracked());
    let scale = markup::scale(board.editor.pitch());
    let x = (f64::from(event.client_x()) - place.left) / place.width.max(1.0) * width + left;
    let y = (f64::from(event.client_y()) - place.top) / place.height.max(1.0) * height + top;
    Some([x / scale, y / scale])
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ActivePinch {
    pinch: Pinch,
    factor: f64,
    /// The drawing's current apparent place.
    looks: WindowRect,
}

/// Handles a new finger; the second one starts a pinch.
pub(super) fn touch(board: Board, event: &TouchEvent) {
    let Some((one, other)) = two_fingers(event) else { return };
    keep_from_browser(event);
    cancel_for_pinch(board);
    board.transform("none");
    let begun =
        board.place().map(|place| ActivePinch { pinch: Pinch::new(place, one, other), factor: 1.0, looks: place });
    board.pinching.set_value(begun);
}

pub(super) fn pinch(board: Board, event: &TouchEvent) {
    let (Some(pinching), Some((one, other))) = (board.pinching.get_value(), two_fingers(event)) else { return };
    keep_from_browser(event);
    let (factor, looks) = pinching.pinch.looks(one, other, |factor| board.limited(factor));
    board.pinching.set_value(Some(ActivePinch { factor, looks, ..pinching }));
    board.transform(&zoom::transform(pinching.pinch.start, looks));
}

/// Ends the pinch when a finger is lifted or the browser takes over.
pub(super) fn end_pinch(board: Board) {
    let Some(ActivePinch { factor, looks, .. }) = board.pinching.try_update_value(Option::take).flatten() else {
        return;
    };
    board.zoom_with(factor, move |now| (now.left - looks.left, now.top - looks.top));
}

/// Prevents the browser from scrolling or zooming the page. Once it scrolls, events cannot be cancelled.
fn keep_from_browser(event: &TouchEvent) {
    if event.cancelable() {
        event.prevent_default();
    }
}

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
    let step = editor.pitch() * if event.shift_key() { SMALL_STEP_SEATS } else { KEY_STEP_SEATS };
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

fn element_of(event: &web_sys::Event) -> Option<Element> {
    event.target()?.dyn_into().ok()
}
