//! Mails about a booking, to its buyer and to the friend it is for.

pub(super) mod notices;
pub(super) mod ticket_mails;
