//! Values that live as long as the page, static lists, and deferred parts of the page.

pub(super) mod deferred;
pub(super) mod drawn_once;
pub(super) mod page_cell;
pub mod page_signal;
