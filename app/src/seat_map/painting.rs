//! Painting a large room: its seats as dots, all that changed since the last frame at once.

use domain::seats::SeatIndex;
use domain::wire::{Dot, decode_dots};
use leptos::prelude::*;
use leptos::task::spawn_local;
use web_sys::HtmlCanvasElement;

use super::board::Look;
use super::canvas::Canvas;
use super::dots::{Dots, Paint};
use super::kept::Here;
use super::session::Session;
use crate::browser::{self, calls, events};

/// What a large room is painted on. Known by what it does: its code comes after the map.
pub(super) trait Surface {
    /// Whether it is one for that element as it is laid out now, in the colours in force.
    fn fits(&self, element: &HtmlCanvasElement, size: (i32, i32)) -> bool;
    /// Paints dots.
    fn paint(&mut self, dots: &[(Paint, Dot)]);
}

impl Session {
    /// What a seat looks like just now.
    #[must_use]
    pub fn look_now(self, seat: SeatIndex) -> Look {
        self.cart.with_untracked(|cart| self.board.with_value(|board| board.look(seat, cart)))
    }

    /// Looks for a category, or not any more; none chosen means all. `bit` is its number's.
    pub(super) fn look_only(self, bit: u64) {
        self.only.update(|only| *only ^= bit);
        self.fade_dots();
        self.paint_soon();
    }

    /// Says that a seat on screen looks different, where the room stands in small.
    pub(super) fn note_small(self, seat: SeatIndex) {
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
    pub(super) fn watch_appearance(self) {
        let changed = move || self.appearance.update(|times| *times += 1);
        events::on_window("resize", move |_| changed());
        browser::on_theme(changed);
    }

    /// Shows the room on this canvas from now on; asks where its seats are when that is not known yet. Without
    /// an answer the canvas stays empty, and the sections stand there as boxes.
    pub(super) fn paint_on(self, element: HtmlCanvasElement) {
        if self.board.update_value(|board| board.dots().is_some()) {
            self.take_canvas(&element);
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
                self.take_canvas(&element);
            }
        });
    }

    /// Nobody looks at the whole room any more.
    pub(super) fn stop_painting(self) {
        self.canvas.set_value(None);
        self.painted.set(false);
    }

    fn take_canvas(self, element: &HtmlCanvasElement) {
        let size = self.room.with_untracked(|room| room.as_ref().map(|room| (room.plan().width, room.plan().height)));
        let fits = |canvas: &Here<Box<dyn Surface>>| size.is_some_and(|size| canvas.fits(element, size));
        if self.canvas.with_value(|canvas| canvas.as_ref().is_some_and(fits)) {
            return;
        }
        // The visitor may have chosen a section meanwhile.
        let canvas = size.filter(|_| element.is_connected()).and_then(|size| Canvas::new(element, (0, 0), size));
        let is_there = canvas.is_some();
        self.canvas.set_value(canvas.map(|canvas| Here::new(Box::new(canvas) as Box<dyn Surface>)));
        self.painted.set(is_there);
        self.board.update_value(|board| {
            if let Some(dots) = board.dots() {
                dots.forget_painted();
            }
        });
        self.paint_soon();
    }

    /// Paints in the next frame, once for all that happens until then.
    pub(super) fn paint_soon(self) {
        if self.canvas.with_value(Option::is_some) && !self.paint_asked.get_value() {
            self.paint_asked.set_value(true);
            request_animation_frame(move || self.paint());
        }
    }

    fn paint(self) {
        self.paint_asked.set_value(false);
        let due = self.cart.with_untracked(|cart| self.board.update_value(|board| board.dots_to_paint(cart)));
        self.canvas.update_value(|canvas| canvas.iter_mut().for_each(|canvas| canvas.paint(&due)));
    }
}
