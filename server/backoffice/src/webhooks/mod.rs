//! Outgoing webhooks: signed notifications of other systems, delivered at least once.
//!
//! The database writes each message in the transaction of its event (`migrations/0008_backoffice.sql`): triggers on
//! booking events, refunds and called-off shows. No code path can omit a message, and a rollback discards it. `deliver`
//! leases due messages, signs and sends them, and retries with a back-off. `client` rejects private addresses.
//!
//! Messages may arrive twice and out of order; receivers use their `id` and `version`, and read the booking that a message
//! names (`theatre_booking`). Elsewhere: incoming webhooks of
//! payment gateways (`payments`).

mod client;
mod deliver;
mod endpoints;
mod routes;
mod sql;
mod theatre_booking;

pub use client::WebhookClient;
pub use deliver::deliver_forever;
pub use endpoints::{change, deliveries, list as endpoints, make, purge_forever, replay, rotate};
pub use routes::routes;
