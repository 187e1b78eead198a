//! Values that live as long as the page, lists that never change, and parts of the page that come later.

pub(super) mod kept;
pub(super) mod later;
pub(super) mod once;
pub mod told;
