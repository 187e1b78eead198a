//! The drawing. Each row and area is a separate part, redrawn only when it changes.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use domain::api::SeatKind;
use domain::layout::editing::{DraftArea, DraftRow, ObjectKey};
use domain::layout::{FocusKind, FocusSide};
use language::say;
use leptos::html::Div;
use leptos::prelude::*;
use leptos::svg::Svg;

use super::editor::{Drag, Editor};
use super::input::{self, ActivePinch, PointerPress};
use super::markup::{self, SeatLook, tenth};
use super::parts::focus_kind;
use crate::seat_map::plan::zoom::{self, WindowRect};

/// Free space around the drawing, units of the drawing.
const MARGIN: f64 = 70.0;
/// The frame grows in steps of this, so that the drawing does not jump with each row.
const FRAME_STEP: f64 = 100.0;
/// Smallest width and height of the frame.
const SMALLEST_FRAME: [f64; 2] = [800.0, 500.0];
const LARGEST_ZOOM: f64 = 12.0;
/// Magnifications below this count as 1: factors do not multiply to exactly 1.
const WHOLE_ZOOM: f64 = 1.001;

/// The drawing's state. A bundle of handles: copy it.
#[derive(Clone, Copy)]
pub(super) struct Board {
    pub(super) editor: Editor,
    /// The frame: left, top, width, height, units of the drawing.
    pub(super) frame: Memo<[f64; 4]>,
    /// Pixels per unit that fit the whole room.
    fit: RwSignal<f64>,
    pub(super) drawing: NodeRef<Svg>,
    scroller: NodeRef<Div>,
    pub(super) press: StoredValue<Option<PointerPress>>,
    /// The selection at the pointer's press: rows and areas, and seats.
    pub(super) before: StoredValue<(BTreeSet<ObjectKey>, BTreeSet<usize>)>,
    pub(super) pinching: StoredValue<Option<ActivePinch>>,
}

/// The drawing with its toolbar.
pub(super) fn board(editor: Editor) -> impl IntoView {
    let board = Board {
        editor,
        frame: Memo::new(move |_| frame_of(editor)),
        fit: RwSignal::new(1.0),
        drawing: NodeRef::new(),
        scroller: NodeRef::new(),
        press: StoredValue::new(None),
        before: StoredValue::new(Default::default()),
        pinching: StoredValue::new(None),
    };
    // The whole room stays in view as it grows.
    Effect::new(move |_| {
        board.frame.track();
        if board.scroller.get().is_some() && editor.zoom.get_untracked() <= 1.0 {
            board.fit_in();
        }
    });
    let pixels = move |side: usize| tenth(board.frame.get()[side] * board.fit.get() * editor.zoom.get());
    let view_box = move || board.frame.get().map(tenth).join(" ");
    view! {
        {bar(board)}
        <div class="layout-board" dir="ltr" node_ref=board.scroller
            on:wheel=move |event| {
                if event.ctrl_key() {
                    event.prevent_default();
                    let point = (f64::from(event.client_x()), f64::from(event.client_y()));
                    board.zoom(zoom::wheel_factor(event.delta_y()), Some(point));
                }
            }
            on:touchstart=move |event| input::touch(board, &event) on:touchmove=move |event| input::pinch(board, &event)
            on:touchend=move |_| input::end_pinch(board) on:touchcancel=move |_| input::end_pinch(board)>
            <svg class="layout-drawing" data-testid="layout-board" data-moves="" node_ref=board.drawing tabindex="0" role="application"
                aria-label=say!("editor.board") aria-describedby="layout-help"
                width=move || pixels(2) height=move || pixels(3) viewBox=view_box
                on:pointerdown=move |event| input::press(board, &event) on:pointermove=move |event| input::drag(board, &event)
                on:pointerup=move |event| input::release(board, &event) on:pointercancel=move |_| input::cancel(board)>
                <g aria-hidden="true">
                    <path class="layout-others" d=move || others_path(board) />
                    <path class="layout-focus" d=move || focus_path(editor) />
                    <text class="layout-focus-words" x=move || focus_at(editor, 0) y=move || focus_at(editor, 1)>{move || focus_words(editor)}</text>
                    <For each=move || editor.draft(|draft| draft.areas.iter().map(|area| area.key).collect::<Vec<_>>()) key=|key| *key let:key>
                        {area(editor, key)}
                    </For>
                    <For each=move || editor.draft(|draft| draft.rows.iter().map(|row| row.key).collect::<Vec<_>>()) key=|key| *key let:key>
                        {row(editor, key)}
                    </For>
                    {move || drawn_frame(editor)}
                </g>
            </svg>
        </div>
        <p id="layout-help" class="quiet small">{say!("editor.help")}</p>
    }
}

fn bar(board: Board) -> impl IntoView {
    let editor = board.editor;
    let can_undo = Memo::new(move |_| editor.history.with(|history| history.can_undo()));
    let can_redo = Memo::new(move |_| editor.history.with(|history| history.can_redo()));
    let idle = |can: bool| if can { "false" } else { "true" };
    let count = move || {
        let places = editor.draft(|draft| draft.areas.iter().map(|area| area.capacity).sum::<u32>());
        say!("editor.count", seats = editor.draft(|draft| draft.seat_count()), places = places)
    };
    view! {
        <div class="layout-bar">
            <div role="group" class="layout-tools" aria-label=say!("editor.steps")>
                <button type="button" class="button button-quiet" data-testid="layout-undo" aria-disabled=move || idle(can_undo.get())
                    on:click=move |_| editor.undo()>{say!("editor.undo")}</button>
                <button type="button" class="button button-quiet" data-testid="layout-redo" aria-disabled=move || idle(can_redo.get())
                    on:click=move |_| editor.redo()>{say!("editor.redo")}</button>
                <button type="button" class="button button-quiet" data-testid="layout-several"
                    aria-pressed=move || if editor.several.get() { "true" } else { "false" }
                    on:click=move |_| editor.several.update(|several| *several = !*several)>{say!("editor.several")}</button>
            </div>
            <p class="layout-count" data-testid="layout-count" data-seats=move || editor.draft(|draft| draft.seat_count())>{count}</p>
            <div class="layout-tools room-zoom" role="group" aria-label=say!("map.size")>
                <button type="button" class="button button-quiet" aria-label=say!("map.zoom_out") data-testid="layout-zoom-out"
                    on:click=move |_| board.zoom(1.0 / zoom::STEP, None)>"−"</button>
                <button type="button" class="button button-quiet" data-testid="layout-zoom-whole"
                    on:click=move |_| board.fit_in()>{say!("map.zoom_whole")}</button>
                <button type="button" class="button button-quiet" aria-label=say!("map.zoom_in") data-testid="layout-zoom-in"
                    on:click=move |_| board.zoom(zoom::STEP, None)>"+"</button>
            </div>
        </div>
    }
}

impl Board {
    fn fit_in(self) {
        let Some(scroller) = self.scroller.get_untracked() else { return };
        let [_, _, width, height] = self.frame.get_untracked();
        let (wide, high) = (f64::from(scroller.client_width()), f64::from(scroller.client_height()));
        self.fit.set((wide / width).min(high / height).max(0.01));
        self.editor.zoom.set(1.0);
    }

    /// Zooms by a factor around a point, or around the middle.
    fn zoom(self, factor: f64, point: Option<(f64, f64)>) {
        let (Some(scroller), Some(before)) = (self.scroller.get_untracked(), self.place()) else { return };
        let view = box_of(&scroller);
        let point = point.unwrap_or_else(|| view.middle());
        let factor = self.limited(factor);
        self.zoom_with(factor, move |after| zoom::drift(before, after, point));
    }

    pub(super) fn limited(self, factor: f64) -> f64 {
        let zoom = self.editor.zoom.get_untracked();
        (zoom * factor).clamp(1.0, LARGEST_ZOOM) / zoom
    }

    /// Zooms by a factor. `drift` then returns how far to scroll, given the drawing's place in the window.
    pub(super) fn zoom_with(self, factor: f64, drift: impl FnOnce(WindowRect) -> (f64, f64) + 'static) {
        self.editor.zoom.update(|zoom| {
            let closer = *zoom * factor;
            *zoom = if closer < WHOLE_ZOOM { 1.0 } else { closer };
        });
        // The drawing has its new size in the next frame.
        request_animation_frame(move || {
            self.transform("none");
            if let (Some(scroller), Some(after)) = (self.scroller.get_untracked(), self.place()) {
                let (x, y) = drift(after);
                scroller.set_scroll_left(scroller.scroll_left() + x.round() as i32);
                scroller.set_scroll_top(scroller.scroll_top() + y.round() as i32);
            }
        });
    }

    pub(super) fn transform(self, how: &str) {
        if let Some(drawing) = self.drawing.get_untracked() {
            // Fails only for properties that do not exist.
            let _ = web_sys::SvgElement::style(&drawing).set_property("transform", how);
        }
    }

    pub(super) fn place(self) -> Option<WindowRect> {
        let drawing = self.drawing.get_untracked()?;
        Some(box_of(&drawing))
    }
}

fn box_of(element: &web_sys::Element) -> WindowRect {
    let found = element.get_bounding_client_rect();
    WindowRect { left: found.left(), top: found.top(), width: found.width(), height: found.height() }
}

fn frame_of(editor: Editor) -> [f64; 4] {
    let ([left, top, right, bottom], scale) = editor.draft(|draft| (draft.bounds(), markup::scale(draft.pitch)));
    let low = |side: f64| ((side * scale - MARGIN) / FRAME_STEP).floor() * FRAME_STEP;
    let high = |side: f64| ((side * scale + MARGIN) / FRAME_STEP).ceil() * FRAME_STEP;
    let (left, top) = (low(left), low(top));
    [left, top, (high(right) - left).max(SMALLEST_FRAME[0]), (high(bottom) - top).max(SMALLEST_FRAME[1])]
}

fn focus_path(editor: Editor) -> String {
    let (focus, scale) = editor.draft(|draft| (draft.focus, markup::scale(draft.pitch)));
    let half = focus.width * scale / 2.0;
    // A point beside and behind the middle of the focus, as the audience faces it.
    let point = |beside: f64, behind: f64| {
        let [x, y] = focus.side.turn_back([beside, behind]);
        format!("{} {}", tenth(focus.at[0] * scale + x), tenth(focus.at[1] * scale + y))
    };
    match (focus.kind, focus.side) {
        (FocusKind::None, _) => String::new(),
        (_, FocusSide::Round) => {
            let deep = focus.depth.map_or(half / 2.0, |depth| depth * scale / 2.0);
            let corners = [point(-half, -deep), point(half, -deep), point(half, deep), point(-half, deep)];
            format!("M{}Z", corners.join("L"))
        }
        _ => format!("M{}Q{} {}", point(-half, 0.0), point(0.0, -20.0), point(half, 0.0)),
    }
}

/// Position of the screen's label: in front of it.
fn focus_at(editor: Editor, axis: usize) -> String {
    let (focus, scale) = editor.draft(|draft| (draft.focus, markup::scale(draft.pitch)));
    tenth(focus.at[axis] * scale + focus.side.turn_back([0.0, 14.0])[axis])
}

fn focus_words(editor: Editor) -> String {
    match editor.draft(|draft| draft.focus.kind) {
        FocusKind::None => String::new(),
        kind => focus_kind(kind),
    }
}

/// Seats of other sections in the frame: each dot is a line of zero length with round ends.
fn others_path(board: Board) -> String {
    let [left, top, width, height] = board.frame.get();
    let mut path = String::new();
    board.editor.now(|draft| {
        let scale = markup::scale(draft.pitch);
        for [x, y] in draft.other_seats().iter().map(|at| at.map(|side| side * scale)) {
            if (left..=left + width).contains(&x) && (top..=top + height).contains(&y) {
                // Writing to a string never fails.
                let _ = write!(path, "M{} {}h0", tenth(x), tenth(y));
            }
        }
    });
    path
}

/// The transform of a selected part while it is dragged.
fn dragged(editor: Editor, key: ObjectKey) -> Option<String> {
    let Some(Drag::Things([x, y])) = editor.drag.get() else { return None };
    let scale = markup::scale(editor.pitch());
    editor
        .chosen
        .with(|chosen| chosen.contains(&key))
        .then(|| format!("translate({} {})", tenth(x * scale), tenth(y * scale)))
}

fn row(editor: Editor, key: ObjectKey) -> impl IntoView {
    let row: Memo<Option<Arc<DraftRow>>> = Memo::new(move |_| editor.row(key));
    let is_chosen = Memo::new(move |_| editor.chosen.with(|chosen| chosen.contains(&key)));
    let chosen_seats = Memo::new(move |_| {
        let is_only = editor.chosen.with(|chosen| chosen.len() == 1 && chosen.contains(&key));
        if is_only { editor.seats.get() } else { Default::default() }
    });
    let kinds: Memo<Vec<(ObjectKey, SeatKind)>> = Memo::new(move |_| {
        editor.draft(|draft| draft.categories.iter().map(|known| (known.key, known.category.kind)).collect())
    });
    let content = move || {
        let Some(row) = row.get() else { return String::new() };
        let (chosen, kinds) = (chosen_seats.get(), kinds.get());
        let look = |(number, seat): (usize, &domain::layout::editing::DraftSeat)| {
            let colour = kinds.iter().position(|(key, _)| *key == seat.category).unwrap_or(0);
            SeatLook {
                colour,
                kind: kinds.get(colour).map(|(_, kind)| *kind).unwrap_or_default(),
                is_sold: editor.is_sold(seat.origin),
                is_chosen: chosen.contains(&number),
            }
        };
        let looks: Vec<SeatLook> = row.seats.iter().enumerate().map(look).collect();
        markup::row(&row, markup::scale(editor.pitch()), &looks)
    };
    view! {
        <g class="layout-row" class:is-chosen=move || is_chosen.get() data-key=key transform=move || dragged(editor, key)
            inner_html=content></g>
    }
}

fn area(editor: Editor, key: ObjectKey) -> impl IntoView {
    let area: Memo<Option<Arc<DraftArea>>> = Memo::new(move |_| editor.area(key));
    let is_chosen = Memo::new(move |_| editor.chosen.with(|chosen| chosen.contains(&key)));
    let is_only = Memo::new(move |_| is_chosen.get() && editor.chosen.with(|chosen| chosen.len() == 1));
    let content = move || {
        let Some(area) = area.get() else { return String::new() };
        let mut drawn = DraftArea::clone(&area);
        if let Some(Drag::Corner(of, corner, by)) = editor.drag.get().filter(|_| is_only.get())
            && of == key
        {
            drawn.outline = drawn.outline.with_corner(corner, by);
        }
        let (colour, scale) = editor.draft(|draft| (draft.category_index(area.category), markup::scale(draft.pitch)));
        let words = say!("editor.area_words", name = &area.name, places = area.capacity);
        markup::area(&drawn, scale, colour, &words, is_only.get())
    };
    view! {
        <g class="layout-area" class:is-chosen=move || is_chosen.get() data-key=key transform=move || dragged(editor, key)
            inner_html=content></g>
    }
}

fn drawn_frame(editor: Editor) -> Option<impl IntoView> {
    let Some(Drag::Frame(sides)) = editor.drag.get() else { return None };
    let scale = markup::scale(editor.pitch());
    let [left, top, right, bottom] = sides.map(|side| side * scale);
    Some(view! {
        <rect class="layout-marquee" x=tenth(left) y=tenth(top) width=tenth(right - left) height=tenth(bottom - top) />
    })
}
