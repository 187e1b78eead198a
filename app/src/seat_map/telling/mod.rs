//! What the visitor is told when something did not go as hoped, and the box it stands in.

pub(super) mod notice_box;
pub mod notices;
