//! Pinching the drawing, like the customers' map (`seat_map::plan::plane`). Meanwhile the drawing is only transformed;
//! it is laid out again at the end. Two fingers select and move nothing.

use leptos::ev::TouchEvent;
use leptos::prelude::*;

use super::board::Board;
use super::pointer;
use crate::seat_map::plan::plane::two_fingers;
use crate::seat_map::plan::zoom::{self, Pinch, WindowRect};

/// A pinch in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActivePinch {
    pinch: Pinch,
    /// Its current factor.
    factor: f64,
    /// The drawing's current apparent place.
    looks: WindowRect,
}

/// Handles a new finger; the second one starts a pinch.
pub(super) fn touch(board: Board, event: &TouchEvent) {
    let Some((one, other)) = two_fingers(event) else { return };
    keep_from_browser(event);
    pointer::cancel_for_pinch(board);
    board.transform("none");
    let begun =
        board.place().map(|place| ActivePinch { pinch: Pinch::new(place, one, other), factor: 1.0, looks: place });
    board.pinching.set_value(begun);
}

/// Handles a movement of the fingers.
pub(super) fn pinch(board: Board, event: &TouchEvent) {
    let (Some(pinching), Some((one, other))) = (board.pinching.get_value(), two_fingers(event)) else { return };
    keep_from_browser(event);
    let (factor, looks) = pinching.pinch.looks(one, other, |factor| board.limited(factor));
    board.pinching.set_value(Some(ActivePinch { factor, looks, ..pinching }));
    board.transform(&zoom::transform(pinching.pinch.start, looks));
}

/// Ends the pinch when a finger is lifted or the browser takes over.
pub(super) fn end(board: Board) {
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
