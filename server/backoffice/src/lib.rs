//! The back office: the endpoints of staff, and the interfaces for other systems.
//!
//! Modules:
//! - [`organiser`]: theatres, screens, layouts, prices, shows and their terms, cancellations.
//! - [`relocation`]: moves a show to another screen together with its bookings.
//! - [`box_office`]: the counter: tills and their ledgers, sales, refunds, house seats.
//! - [`door`]: scans tickets and admits each once, also without a network.
//! - [`reports`]: sales, occupancy, funnel and takings, as JSON, CSV and a page.
//! - [`webhooks`]: notifies other systems of events: endpoints, deliveries, replays.
//!
//! Dependencies: this crate may use `selling` and every crate below it, through [`BackofficeState`]. It changes
//! bookings, payments and seat maps only through the functions of `selling` and `seats`, and it records every action of
//! staff with `identity::audit`. No crate but the server binary depends on it.
//!
//! To add an endpoint: write the handler in the module's `endpoints`, the rule beside it, and the query in its `sql`;
//! then add the route to the module's `routes`. To add a setting of webhooks: [`WebhookSettings`].

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
