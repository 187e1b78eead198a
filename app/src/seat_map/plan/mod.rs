//! The drawn room: seats, symbols, zooming and panning, and the room as a list and as a minimap.

pub(super) mod after_seats;
pub(super) mod annotations;
pub(super) mod card;
mod direction;
pub mod drawing;
pub(super) mod grid;
pub(super) mod legend;
pub(super) mod list;
pub(super) mod map_view;
mod minimap;
pub(crate) mod plane;
mod row_letters;
pub mod steps;
pub(super) mod view_size;
pub mod zoom;
pub(super) mod zoom_buttons;
