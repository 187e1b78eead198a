//! Charges, gateway webhooks and refunds.

pub(super) mod declines;
pub(super) mod gateway_calls;
pub(super) mod news;
pub(super) mod payment_rows;
pub(super) mod pending_refunds;
pub(super) mod refunds;
pub(super) mod unknown_voids;
