//! Messages to the visitor, and the box that shows them.

pub mod notice;
pub(super) mod notice_box;
