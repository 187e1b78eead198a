//! Bookings as they are read: by their owners, in lists, and of a show as a whole.

pub(super) mod of_person;
pub(super) mod steps;
pub(super) mod summaries;
pub(super) mod view;
