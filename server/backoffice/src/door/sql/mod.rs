//! Queries of the door: what it reads of others (`tickets`), and its own tables (`admissions`, `records`).

pub(super) mod admissions;
pub(super) mod records;
pub(super) mod tickets;
