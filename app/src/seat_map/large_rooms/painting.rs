//! Painting a large room: its seats as dots, all that changed at once.
//!
//! A worker paints where there can be one (`offscreen`), else this page does (`canvas`). Both come after the map, as
//! does whatever chooses between them; what they have in common is [`Surface`].

use domain::seats::SeatIndex;
use domain::wire::{Dot, decode_dots};
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;
use web_sys::{HtmlCanvasElement, HtmlElement};

use super::canvas::Canvas;
use super::dots::{Dots, Paint};
use super::offscreen::{Heard, Offscreen};
use crate::browser::{self, calls, events};
use crate::seat_map::live::board::Look;
use crate::seat_map::session::Session;
use crate::seat_map::signals::kept::Here;

/// What a large room is painted on. Known by what it does: its code comes after the map.
pub(in crate::seat_map) trait Surface {
    /// Whether it takes dots now; else it has not taken yet what it was told before.
    fn is_ready(&self) -> bool;
    /// Whether it is on the page, as it is laid out now and in the colours in force, for a plan of this size.
    fn is_current(&self, size: (i32, i32)) -> bool;
    /// Becomes so, and is told all dots again; false when another is needed for that.
    fn renew(&mut self, size: (i32, i32)) -> bool;
    /// Paints dots.
    fn show(&mut self, dots: &[(Paint, Dot)]);
}

impl Session {
    /// What a seat looks like just now.
    #[must_use]
    pub fn look_now(self, seat: SeatIndex) -> Look {
        self.cart.with_untracked(|cart| self.board.with_value(|board| board.look(seat, cart)))
    }

    /// Looks for a category, or not any more; none chosen means all. `bit` is its number's.
    pub(in crate::seat_map) fn look_only(self, bit: u64) {
        self.only.update(|only| *only ^= bit);
        self.fade_dots();
        self.paint();
    }

    /// Says that a seat on screen looks different, where the room stands in small.
    pub(in crate::seat_map) fn note_small(self, seat: SeatIndex) {
        if let Some(note) = self.small.get_value() {
            note(seat);
        }
    }

    fn fade_dots(self) {
        let only = self.only.get_untracked();
        self.board.update_value(|board| {
            if let Some(dots) = board.dots() {
                dots.set_faint(if only == 0 { 0 } else { !only });
            }
        });
    }

    /// Hears when the page looks different: a canvas is laid out by nobody but us.
    pub(in crate::seat_map) fn watch_appearance(self) {
        let changed = move || self.appearance.update(|times| *times += 1);
        events::on_window("resize", move |_| changed());
        browser::on_theme(changed);
    }

    /// Shows the room on a canvas in this place from now on; asks where its seats are when that is not known yet.
    /// Without an answer the place stays empty, and the sections stand there as boxes.
    pub(in crate::seat_map) fn paint_in(self, place: HtmlElement) {
        if self.board.update_value(|board| board.dots().is_some()) {
            self.take_place(&place);
            return;
        }
        spawn_local(async move {
            let plan =
                self.room.with_untracked(|room| room.as_ref().map(|room| (room.plan().seat_count, room.plan().room)));
            let (seats, room) = plan.unwrap_or_default();
            // Kept for good by its address: the room a show was moved to has another.
            let room = room.map(|room| format!("?room={room}")).unwrap_or_default();
            let Ok(bytes) = calls::bytes(&self.path(&format!("/dots{room}"))).await else { return };
            if let Ok(places) = decode_dots(&bytes, seats) {
                // They may have been asked for twice.
                if self.board.update_value(|board| board.dots().is_none()) {
                    self.board.update_value(|board| board.set_dots(Dots::new(places)));
                    self.fade_dots();
                }
                self.take_place(&place);
            }
        });
    }

    /// Nobody looks at the whole room any more.
    pub(in crate::seat_map) fn stop_painting(self) {
        self.canvas.set_value(None);
        self.painted.set(false);
    }

    /// Has a canvas in this place that shows the room as the page looks now.
    fn take_place(self, place: &HtmlElement) {
        let Some(size) =
            self.room.with_untracked(|room| room.as_ref().map(|room| (room.plan().width, room.plan().height)))
        else {
            return;
        };
        if self.canvas.with_value(|canvas| canvas.as_ref().is_some_and(|canvas| canvas.is_current(size))) {
            return;
        }
        let is_renewed = self.canvas.update_value(|canvas| canvas.as_mut().is_some_and(|canvas| canvas.renew(size)));
        if !is_renewed {
            // The one before goes first: both would be twice the memory.
            self.canvas.set_value(None);
            self.canvas.set_value(self.new_canvas(place, size).map(Here::new));
        }
        self.board.update_value(|board| {
            if let Some(dots) = board.dots() {
                dots.forget_painted();
            }
        });
        self.paint();
        if !is_renewed {
            // A worker says when it has taken the dots, which its next frame shows.
            self.painted.set(self.is_canvas_ready());
        }
    }

    fn new_canvas(self, place: &HtmlElement, size: (i32, i32)) -> Option<Box<dyn Surface>> {
        // The visitor may have chosen a section meanwhile.
        if !place.is_connected() {
            return None;
        }
        let whose = place.clone();
        let hear = move |heard: Heard| match heard {
            Heard::Ready => self.go_on_painting(),
            Heard::Lost => {
                self.canvas.set_value(None);
                self.take_place(&whose);
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
    fn go_on_painting(self) {
        self.paint();
        if self.is_canvas_ready() && !self.painted.get_untracked() {
            self.painted.set(true);
        }
    }

    fn is_canvas_ready(self) -> bool {
        self.canvas.with_value(|canvas| canvas.as_ref().is_some_and(|canvas| canvas.is_ready()))
    }

    /// Paints what changed; what changes while a canvas is not ready is painted when it is.
    pub(in crate::seat_map) fn paint(self) {
        if self.is_canvas_ready() {
            let due = self.cart.with_untracked(|cart| self.board.update_value(|board| board.dots_to_paint(cart)));
            self.canvas.update_value(|canvas| canvas.iter_mut().for_each(|canvas| canvas.show(&due)));
        }
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
