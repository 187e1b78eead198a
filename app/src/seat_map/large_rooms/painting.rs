//! Painting a large room: its seats as dots, all that changed at once.
//!
//! A worker paints where there can be one (`offscreen`), else this page does (`canvas`). Both come after the map, as
//! does whatever chooses between them; what they have in common is [`Surface`].

use domain::wire::decode_dots;
use leptos::task::spawn_local;
use leptos::wasm_split::wasm_split;
use wasm_bindgen::JsCast;
use web_sys::{HtmlCanvasElement, HtmlElement};

use super::canvas::Canvas;
use super::dots::Dots;
use super::offscreen::{Heard, Offscreen};
use super::surface::Surface;
use crate::browser::{self, calls, events};
use crate::seat_map::session::Session;
use crate::seat_map::signals::kept::Here;
use crate::seat_map::signals::later::SplitLoaderError;

/// The code that paints a large room is asked for again so long after it did not come, milliseconds; doubles with each
/// try…
const DOTS_FIRST_PAUSE_MS: u32 = 4_000;
/// …up to this: sections can be chosen meanwhile.
const DOTS_LONGEST_PAUSE_MS: u32 = 64_000;

/// Shows a large room on a canvas in this place, for as long as that is there. Until its code comes, its sections are the
/// boxes they are.
pub(super) fn paint_dots(session: Session, place: HtmlElement) {
    spawn_local(async move {
        let mut pause_ms = DOTS_FIRST_PAUSE_MS;
        while place.is_connected() && dots_part(session, place.clone()).await.is_err() {
            events::after(pause_ms).await;
            pause_ms = (pause_ms * 2).min(DOTS_LONGEST_PAUSE_MS);
        }
    });
}

#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
fn dots_part(session: Session, place: HtmlElement) -> Result<(), SplitLoaderError> {
    show_canvas_in(session, place);
    Ok(())
}

/// Looks for a category, or not any more; none chosen means all. `bit` is its number's.
pub(in crate::seat_map) fn toggle_category(session: Session, bit: u64) {
    session.category_filter.update(|only| *only ^= bit);
    apply_category_filter(session);
    paint_changes(session);
}

fn apply_category_filter(session: Session) {
    let only = session.category_filter.get_untracked();
    session.board.update_value(|board| {
        if let Some(dots) = board.dots() {
            dots.set_faint(if only == 0 { 0 } else { !only });
        }
    });
}

/// Hears when the page looks different: a canvas is laid out by nobody but us.
pub(in crate::seat_map) fn watch_appearance(session: Session) {
    let changed = move || session.appearance.update(|times| *times += 1);
    events::on_window("resize", move |_| changed());
    browser::on_theme(changed);
}

/// Shows the room on a canvas in this place from now on; asks where its seats are when that is not known yet.
/// Without an answer the place stays empty, and the sections stand there as boxes.
pub(in crate::seat_map) fn show_canvas_in(session: Session, place: HtmlElement) {
    if session.board.update_value(|board| board.dots().is_some()) {
        place_canvas(session, &place);
        return;
    }
    spawn_local(async move {
        let plan =
            session.room.with_untracked(|room| room.as_ref().map(|room| (room.plan().seat_count, room.plan().room)));
        let (seats, room) = plan.unwrap_or_default();
        // Kept for good by its address: the room a show was moved to has another.
        let room = room.map(|room| format!("?room={room}")).unwrap_or_default();
        let Ok(bytes) = calls::bytes(&session.path(&format!("/dots{room}"))).await else { return };
        if let Ok(places) = decode_dots(&bytes, seats) {
            // They may have been asked for twice.
            if session.board.update_value(|board| board.dots().is_none()) {
                session.board.update_value(|board| board.set_dots(Dots::new(places)));
                apply_category_filter(session);
            }
            place_canvas(session, &place);
        }
    });
}

/// Nobody looks at the whole room any more.
pub(in crate::seat_map) fn remove_canvas(session: Session) {
    session.canvas.set_value(None);
    session.is_canvas_painted.set(false);
}

/// Has a canvas in this place that shows the room as the page looks now.
fn place_canvas(session: Session, place: &HtmlElement) {
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
        // The one before goes first: both would be twice the memory.
        session.canvas.set_value(None);
        session.canvas.set_value(new_canvas(session, place, size).map(Here::new));
    }
    session.board.update_value(|board| {
        if let Some(dots) = board.dots() {
            dots.forget_painted();
        }
    });
    paint_changes(session);
    if !is_renewed {
        // A worker says when it has taken the dots, which its next frame shows.
        session.is_canvas_painted.set(is_canvas_ready(session));
    }
}

fn new_canvas(session: Session, place: &HtmlElement, size: (i32, i32)) -> Option<Box<dyn Surface>> {
    // The visitor may have chosen a section meanwhile.
    if !place.is_connected() {
        return None;
    }
    let whose = place.clone();
    let hear = move |heard: Heard| match heard {
        Heard::Ready => continue_painting(session),
        Heard::Lost => {
            session.canvas.set_value(None);
            place_canvas(session, &whose);
        }
    };
    if let Some(canvas) = Offscreen::new(&empty_canvas(place)?, size, hear) {
        return Some(Box::new(canvas));
    }
    // On another element: what was handed over to a worker cannot be painted on any more.
    let canvas = Canvas::new(&empty_canvas(place)?, (0, 0), size)?;
    Some(Box::new(canvas))
}

/// Tells the worker what changed while it was busy. Where that is nothing it has all of the room, and its next frame
/// shows it: it does not wait for that to answer, as a page that is hidden has no frames.
fn continue_painting(session: Session) {
    paint_changes(session);
    if is_canvas_ready(session) && !session.is_canvas_painted.get_untracked() {
        session.is_canvas_painted.set(true);
    }
}

fn is_canvas_ready(session: Session) -> bool {
    session.canvas.with_value(|canvas| canvas.as_ref().is_some_and(|canvas| canvas.is_ready()))
}

/// Paints what changed; what changes while a canvas is not ready is painted when it is.
pub(in crate::seat_map) fn paint_changes(session: Session) {
    if is_canvas_ready(session) {
        let due = session.cart.with_untracked(|cart| session.board.update_value(|board| board.dots_to_paint(cart)));
        session.canvas.update_value(|canvas| canvas.iter_mut().for_each(|canvas| canvas.show(&due)));
    }
}

/// A canvas in this place, instead of whatever was there.
fn empty_canvas(place: &HtmlElement) -> Option<HtmlCanvasElement> {
    let canvas = browser::new_element("canvas")?;
    place.set_inner_html("");
    // None of these fails for elements of a page.
    canvas.set_attribute("class", "overview-seats").ok()?;
    canvas.set_attribute("aria-hidden", "true").ok()?;
    place.append_child(&canvas).ok()?;
    Some(canvas.unchecked_into())
}
