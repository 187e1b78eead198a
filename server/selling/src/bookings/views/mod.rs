//! Read models of bookings: for their owners, for lists, and for a whole show.

pub(super) mod steps;
pub(super) mod summaries;
pub(super) mod view;
