//! The room as one sees it: where every seat is, how it is drawn, how one moves about, and its twins as a list and in
//! small.

pub(super) mod card;
pub mod drawing;
pub(super) mod glyphs;
pub(super) mod grid;
pub(super) mod legend;
pub(super) mod list;
pub(super) mod minimap;
pub(crate) mod plane;
pub(super) mod sight;
pub mod steps;
pub mod zoom;
