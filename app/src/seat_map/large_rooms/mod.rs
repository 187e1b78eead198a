//! Rooms so large that the visitor chooses a section first: every seat is a dot on a canvas.

pub(super) mod canvas;
pub(super) mod counting;
pub(super) mod dots;
pub(super) mod offscreen;
pub(super) mod overview;
pub(super) mod painting;
