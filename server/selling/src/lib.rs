//! The sale: from a hold to a ticket, or to a refund.
//!
//! **What is it for?** It holds seats, commits and charges bookings, performs their effects, and undoes them.
//!
//! - [`holds`]: a customer's hold: take, change, extend, release.
//! - [`bookings`]: checkout, claims and their public list, money, cancellation, exchange, the reconciler and the ledger
//!   comparison. A booking moves only by `domain::booking::step`; its move, event, claims and effects are one transaction.
//! - [`outbox`]: the queue of effects of committed moves, performed at least once.
//! - [`waiting_list`]: seats that return to a sold-out show are held for the next in line.
//! - [`email_codes`]: codes that some shows mail to guests before checkout.
//! - [`payment_webhooks`]: the endpoint for webhooks of gateways.
//! - [`account_bookings`]: the bookings of an account.
//!
//! It may use every crate from `platform` to `admission`, `domain` and `language`. docs/tables.md lists its tables.
//!
//! **What may I change?** Everything but these invariants:
//!
//! - A live claim authorises a charge, a hold never does: claims are committed before the gateway is called.
//! - The total of a booking is the sum of its lines, and its refunds never exceed its charge. Constraints in Postgres
//!   enforce both.
//! - Locks are taken in one order: booking, advisory lock of the person, of the card, areas, claims on places, claims on
//!   seats, each in key order. A transaction that holds a lock never waits for a second connection, and calls a gateway
//!   or mail server only after its commit.
//! - An effect may be performed twice, and a webhook or request may be repeated, without a second charge, refund or sale.
//!
//! **Where do I add something?**
//!
//! | to add | edit |
//! |---|---|
//! | a step of a booking | `domain::booking`, then [`bookings`] (`moves`; `commits` if it is part of every sale) |
//! | an effect | `domain::booking::Effect`, `bookings/effects.rs`, its name and lane in `outbox/sql.rs` and `outbox/relay.rs`, a migration for the CHECK of `outbox.effect` |
//! | a check before the charge | `bookings/checkout/checks.rs` |
//! | a gateway | the `payments` crate; nothing here depends on its name |
//! | a mail about a booking | `bookings/mails` |
//! | a difference in the ledgers | `bookings/ledger/compare.rs`, a migration for the CHECK of `ledger_differences.kind` |
//! | an endpoint | the module's `endpoints.rs`; `account_bookings.rs` and `payment_webhooks.rs` hold their own |

pub mod account_bookings;
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
