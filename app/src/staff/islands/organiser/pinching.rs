//! Two fingers on the drawing: it grows, shrinks and moves under them as the visitor's map does (`seat_map::plan::plane`).
//! While they are there it is only transformed; it is laid out anew when they leave. They choose and move nothing.

use leptos::ev::TouchEvent;
use leptos::prelude::*;

use super::board::Board;
use super::hands;
use crate::seat_map::plan::plane::two_fingers;
use crate::seat_map::plan::zoom::{self, Box2, Pinch};

/// Two fingers that are down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pinching {
    pinch: Pinch,
    /// How much closer they look by now.
    factor: f64,
    /// Where the drawing is seen by now.
    looks: Box2,
}

/// A finger comes down; with the second of two it begins.
pub(super) fn touch(board: Board, event: &TouchEvent) {
    let Some((one, other)) = two_fingers(event) else { return };
    keep_from_browser(event);
    hands::take_back(board);
    board.transform("none");
    let begun = board.place().map(|place| Pinching { pinch: Pinch::new(place, one, other), factor: 1.0, looks: place });
    board.pinching.set_value(begun);
}

/// Fingers move.
pub(super) fn pinch(board: Board, event: &TouchEvent) {
    let (Some(pinching), Some((one, other))) = (board.pinching.get_value(), two_fingers(event)) else { return };
    keep_from_browser(event);
    let (factor, looks) = pinching.pinch.looks(one, other, |factor| board.limited(factor));
    board.pinching.set_value(Some(Pinching { factor, looks, ..pinching }));
    board.transform(&zoom::transform(pinching.pinch.start, looks));
}

/// One of them goes up, or the browser took them.
pub(super) fn end(board: Board) {
    let Some(Pinching { factor, looks, .. }) = board.pinching.try_update_value(Option::take).flatten() else { return };
    board.look(factor, move |now| (now.left - looks.left, now.top - looks.top));
}

/// The browser would scroll the page, or enlarge it. Once it scrolls it asks nobody any more.
fn keep_from_browser(event: &TouchEvent) {
    if event.cancelable() {
        event.prevent_default();
    }
}
