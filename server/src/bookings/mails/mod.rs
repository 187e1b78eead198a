//! What buyers and their friends are told by mail of a booking.

pub(super) mod notices;
pub(super) mod ticket_mails;
