//! The back office: the endpoints of staff, and the interfaces for other systems.
//!
//! Modules:
//! - [`organiser`]: theatres, screens, layouts, prices, shows and their terms, cancellations.
//! - [`rehearsals`]: rehearses the on-sale of a show with simulated visitors.
//! - [`relocation`]: moves a show to another screen together with its bookings.
//! - [`box_office`]: the counter: tills and their ledgers, sales, refunds, house seats.
//! - [`door`]: scans tickets and admits each once, also without a network.
//! - [`reports`]: sales, occupancy, funnel and takings, as JSON, CSV and a page.
//! - [`webhooks`]: notifies other systems of events: endpoints, deliveries, replays.
//!
//! Dependencies: this crate may use every server crate except the binary `rowlock`, which alone depends on it. It
//! changes bookings and payments through `selling::bookings`, and seat maps through the lock store of `seats`. The
//! exception is [`relocation`], whose SQL renumbers the seats, tickets and claims of a moved show. [`organiser`] and
//! the demo loader alone insert theatres, screens, layouts, films and shows; docs/tables.md lists who updates a show. Each
//! action of staff is recorded with `identity::audit`.
//!
//! To add an endpoint: write the handler in the module's `endpoints`, which takes a `StaffRequest` or a `StaffMutation` of
//! its roles (`identity::accounts`), the rule in the file of its subject, and the query beside the rule or in the module's
//! `sql`; then add the route to `routes`. To add a setting: the file `settings`. To add a report table:
//! `reports::tables`.

pub mod box_office;
pub mod door;
pub mod organiser;
pub mod rehearsals;
pub mod relocation;
pub mod reports;
mod settings;
mod state;
pub mod webhooks;

pub use settings::{RehearsalSettings, WebhookSettings};
pub use state::{BackofficeParts, BackofficeState};
