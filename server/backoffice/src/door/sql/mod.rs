//! Queries of the door: tickets of other modules (`tickets`), and its own tables (`admissions`, `records`).

pub(super) mod admissions;
pub(super) mod records;
pub(super) mod tickets;
