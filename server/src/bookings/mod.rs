//! Bookings: from a live hold to a ticket, or to the money back.
//!
//! `domain::booking::step` decides; this room loads, steps, and writes the move, its event, the claims
//! and the effects in one transaction (`moves`; for the moves of a sale `commits`, many bookings in one
//! transaction), then performs the effects (`effects`, many at a time `chores`). Browser, webhook and
//! reconciler all take the same steps. What is not here: the gateway (`payments`), the lock store
//! (`seat_locks`), the queue of effects (`outbox`).

mod asking;
mod checks;
mod chores;
mod claims;
mod commits;
mod confirm;
mod create;
mod declines;
mod effects;
mod http;
mod moves;
mod news;
mod payment_rows;
mod person;
mod reconciler;
mod sql;
mod view;

pub use chores::perform_all;
pub use commits::{CommitMode, Commits};
pub use effects::{EffectError, perform};
pub use http::routes;
pub use news::payment_news;
pub use reconciler::reconcile_forever;
pub use sql::BookingRow;
pub use view::{events, of_hold, view};
