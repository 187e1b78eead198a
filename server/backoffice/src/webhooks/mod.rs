//! Webhooks out: other systems of a theatre are told what happens, signed, at least once.
//!
//! What is told is written by the database itself, in the transaction in which it happens
//! (`migrations/0057_webhooks_out.sql`): triggers on the story of bookings, on refunds and on shows that are called
//! off. So no way to move a booking can forget it, and a rolled-back move tells nothing. `deliver` takes what is due,
//! signs and sends it, and tries again with pauses; `address` sees to it that nobody makes us call our own network.
//!
//! Messages may arrive twice and out of order: `id` and `version` in them tell. What is not here: webhooks in, which
//! gateways send (`payments`).

mod address;
mod client;
mod deliver;
mod deliveries;
mod endpoints;
mod purge;
mod routes;
mod signature;
mod sql;

pub use client::Client;
pub use deliver::deliver_forever;
pub use deliveries::{list as deliveries, replay};
pub use endpoints::{change, list as endpoints, make, rotate};
pub use purge::purge_forever;
pub use routes::routes;
