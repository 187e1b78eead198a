//! Charges, gateway webhooks and refunds.

pub(super) mod asking;
pub(super) mod declines;
pub(super) mod news;
pub(super) mod on_their_way;
pub(super) mod payment_rows;
pub(super) mod refunds;
pub(super) mod unknown_voids;
