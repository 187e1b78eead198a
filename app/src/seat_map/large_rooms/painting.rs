//! Paints a large room: its seats as dots, all changes at once.
//!
//! A worker paints if the browser supports it (`offscreen`), else the page does (`canvas`). Both load after the map,
//! with the code that chooses between them. Both implement [`PaintTarget`].

use domain::wire::decode_dots;
use leptos::prelude::document;
use leptos::task::spawn_local;
use leptos::wasm_split::wasm_split;
use wasm_bindgen::JsCast;
use web_sys::{HtmlCanvasElement, HtmlElement};

use super::canvas::Canvas;
use super::dots::{Dots, PaintTarget};
use super::offscreen::{Offscreen, WorkerEvent};
use crate::browser::{self, calls, events};
use crate::seat_map::appearance::{CATEGORY_COLOURS, filter_bit};
use crate::seat_map::deferred::SplitLoaderError;
use crate::seat_map::plan::drawing::opacity_of;
use crate::seat_map::plan::view_size::follow_size;
use crate::seat_map::session::MapSession;
use crate::seat_map::signals::SendWrapper;

/// Pause before the painting code is requested again, milliseconds. Doubles with each retry…
const DOTS_FIRST_PAUSE_MS: u32 = 4_000;
/// …up to this. Sections can be chosen meanwhile.
const DOTS_LONGEST_PAUSE_MS: u32 = 64_000;
/// Opacity of seats outside the filter, as in `style/32-seats.css`.
const FAINT_OPACITY: &str = "0.22";

/// Shows a large room on a canvas in this place while it exists. Until the code has loaded, sections are plain boxes.
pub(super) fn paint_dots(session: MapSession, place: HtmlElement) {
    spawn_local(async move {
        let mut pause_ms = DOTS_FIRST_PAUSE_MS;
        while place.is_connected() && dots_part(session, place.clone()).await.is_err() {
            events::after(pause_ms).await;
            pause_ms = (pause_ms * 2).min(DOTS_LONGEST_PAUSE_MS);
        }
    });
}

#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
fn dots_part(session: MapSession, place: HtmlElement) -> Result<(), SplitLoaderError> {
    // Does not fail: the selector is valid.
    if let Ok(Some(view)) = place.closest(".overview-fit") {
        follow_size(&view);
    }
    show_canvas_in(session, place);
    Ok(())
}

/// Adds or removes a category of the filter. `bit` is that of its number: see [`filter_bit`].
pub fn toggle_category(session: MapSession, bit: u64) {
    session.category_filter.update(|only| *only ^= bit);
    apply_category_filter(session);
    paint_changes(session);
}

fn apply_category_filter(session: MapSession) {
    let only = session.category_filter.get_untracked();
    session.board.update_value(|board| {
        if let Some(dots) = &mut board.dots {
            dots.set_faint(if only == 0 { 0 } else { !only });
        }
    });
    fade_categories(session, only);
}

/// Fades the seats outside the filter in a room with more categories than colours. The style has rules for colours only.
fn fade_categories(session: MapSession, only: u64) {
    let count = session.room.with_untracked(|room| room.as_ref().map_or(0, |room| room.plan().categories.len()));
    let page = document().document_element().and_then(|page| page.dyn_into::<HtmlElement>().ok());
    let Some(page) = page.filter(|_| count > usize::from(CATEGORY_COLOURS)) else { return };
    for category in (0..u8::MAX).take(count) {
        let is_faint = only != 0 && only & filter_bit(category) == 0;
        let opacity = if is_faint { FAINT_OPACITY } else { "1" };
        // Fails only for invalid property names.
        let _ = HtmlElement::style(&page).set_property(&opacity_of(category), opacity);
    }
}

/// Repaints after a change of size or theme: a canvas does not adapt by itself.
pub fn watch_appearance(session: MapSession) {
    let changed = move || session.appearance.update(|count| *count += 1);
    events::on_window("resize", move |_| changed());
    browser::on_theme(changed);
}

/// Shows the room on a canvas in this place, and loads the seat positions if missing. After a failed load the place
/// stays empty and sections stay boxes.
pub fn show_canvas_in(session: MapSession, place: HtmlElement) {
    if session.board.with_value(|board| board.dots.is_some()) {
        place_canvas(session, &place);
        return;
    }
    spawn_local(async move {
        let plan =
            session.room.with_untracked(|room| room.as_ref().map(|room| (room.plan().seat_count, room.plan().room)));
        let (seats, room) = plan.unwrap_or_default();
        // Cached permanently by its address: another room of the show has another address.
        let room = room.map(|room| format!("?room={room}")).unwrap_or_default();
        let Ok(bytes) = calls::bytes(&session.path(&format!("/dots{room}"))).await else { return };
        if let Ok(places) = decode_dots(&bytes, seats) {
            // Two loads may have overlapped.
            if session.board.with_value(|board| board.dots.is_none()) {
                session.board.update_value(|board| board.dots = Some(Dots::new(places)));
                apply_category_filter(session);
            }
            place_canvas(session, &place);
        }
    });
}

pub fn remove_canvas(session: MapSession) {
    session.canvas.set_value(None);
    session.is_canvas_painted.set(false);
}

/// Ensures a canvas in this place that matches the page's size and theme.
fn place_canvas(session: MapSession, place: &HtmlElement) {
    let Some(size) =
        session.room.with_untracked(|room| room.as_ref().map(|room| (room.plan().width, room.plan().height)))
    else {
        return;
    };
    if session.canvas.with_value(|canvas| canvas.as_ref().is_some_and(|canvas| canvas.is_current(size))) {
        return;
    }
    let is_renewed = session.canvas.update_value(|canvas| canvas.as_mut().is_some_and(|canvas| canvas.renew(size)));
    if !is_renewed {
        // The old canvas is removed first: both would need twice the memory.
        session.canvas.set_value(None);
        session.canvas.set_value(new_canvas(session, place, size).map(SendWrapper::new));
    }
    session.board.update_value(|board| {
        if let Some(dots) = &mut board.dots {
            dots.reset_painted();
        }
    });
    paint_changes(session);
    if !is_renewed {
        // A worker reports when it has taken the dots. Its next frame shows them.
        session.is_canvas_painted.set(is_canvas_ready(session));
    }
}

fn new_canvas(session: MapSession, place: &HtmlElement, size: (i32, i32)) -> Option<Box<dyn PaintTarget>> {
    // The visitor may have chosen a section meanwhile.
    if !place.is_connected() {
        return None;
    }
    let whose = place.clone();
    let on_event = move |heard: WorkerEvent| match heard {
        WorkerEvent::Ready => continue_painting(session),
        WorkerEvent::Lost => {
            session.canvas.set_value(None);
            place_canvas(session, &whose);
        }
    };
    if let Some(canvas) = Offscreen::new(&empty_canvas(place)?, size, on_event) {
        return Some(Box::new(canvas));
    }
    // On another element: a canvas handed to a worker cannot be painted by the page.
    let canvas = Canvas::new(&empty_canvas(place)?, (0, 0), size)?;
    Some(Box::new(canvas))
}

/// Sends the worker the changes made while it was busy. If there are none, its next frame shows the whole room. That
/// frame is not awaited, because a hidden page has no frames.
fn continue_painting(session: MapSession) {
    paint_changes(session);
    if is_canvas_ready(session) && !session.is_canvas_painted.get_untracked() {
        session.is_canvas_painted.set(true);
    }
}

fn is_canvas_ready(session: MapSession) -> bool {
    session.canvas.with_value(|canvas| canvas.as_ref().is_some_and(|canvas| canvas.is_ready()))
}

/// Paints the changes, once the canvas is ready.
pub fn paint_changes(session: MapSession) {
    if is_canvas_ready(session) {
        let due = session.cart.with_untracked(|cart| session.board.update_value(|board| board.dots_to_paint(cart)));
        session.canvas.update_value(|canvas| canvas.iter_mut().for_each(|canvas| canvas.paint(&due)));
    }
}

/// A new canvas that replaces the place's content.
fn empty_canvas(place: &HtmlElement) -> Option<HtmlCanvasElement> {
    let canvas = browser::new_element("canvas")?;
    place.set_inner_html("");
    // None of these fails for elements of a page.
    canvas.set_attribute("class", "overview-seats").ok()?;
    canvas.set_attribute("aria-hidden", "true").ok()?;
    place.append_child(&canvas).ok()?;
    Some(canvas.unchecked_into())
}
