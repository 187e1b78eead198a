//! From a hold to a ticket, or to the money back.
//!
//! - [`holds`]: a customer's hold: take, change, extend, leave.
//! - [`bookings`]: checkout, claims, money, cancellation, exchange, the reconciler and the ledger comparison. A booking
//!   moves by one table, `domain::booking::step`; its move, event, claims and effects are one transaction.
//! - [`outbox`]: effects of committed moves, at least once.
//! - [`waiting_list`]: seats that come back to a sold-out show are held for the next in line.
//! - [`email_codes`]: codes that some shows mail to guests before checkout.
//! - [`payment_webhooks`]: what gateways report.
//!
//! Invariants: a claim authorises a charge, never a hold; the total of a booking is the sum of its lines, and refunds never
//! exceed a charge: both are constraints in Postgres too.

pub mod belongings;
pub mod bookings;
pub mod email_codes;
pub mod holds;
pub mod outbox;
pub mod payment_webhooks;
mod settings;
mod state;
pub mod waiting_list;

pub use settings::SellingSettings;
pub use state::{SellingParts, SellingState};
