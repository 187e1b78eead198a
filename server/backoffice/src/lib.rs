//! The work of staff, and what other systems read.
//!
//! - [`organiser`]: rooms, weeks of shows, prices, how a show is sold, a show called off.
//! - [`relocation`]: a show moves to another screen and keeps its bookings.
//! - [`box_office`]: the counter: tills and their ledger, sales, refunds, house seats.
//! - [`door`]: tickets are scanned and let in once, without a network too.
//! - [`reports`]: sales, occupancy, funnel and takings, as JSON, CSV and a page.
//! - [`webhooks`]: other systems are told what happens: endpoints, deliveries, replays.

pub mod box_office;
pub mod door;
pub mod organiser;
pub mod relocation;
pub mod reports;
mod settings;
mod state;
pub mod webhooks;

pub use settings::WebhookSettings;
pub use state::{BackofficeParts, BackofficeState};
