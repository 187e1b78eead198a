//! The server itself: start-up, settings, router, pages and commands. It decides nothing; the crates above it do.
//!
//! - [`start`]: puts the states of all crates together, starts their background work, serves, stops.
//! - [`config`]: the settings of all crates, from flags, environment and a file, and their checks.
//! - [`web`]: the router with its middleware, the authorisation table, latency budgets, files, and the pages of `app`.
//! - [`metrics`]: `/metrics`, with the gauges that are read on each scrape.
//! - [`check`]: `rowlock check`, which asks a running system from outside whether it can sell.
//!
//! A route is added in its crate's `endpoints.rs` and needs a row in `web/authorisation.rs`; a page is a handler in
//! `web/pages`.

pub mod check;
pub mod config;
pub mod metrics;
pub mod start;
mod state;
pub mod web;

pub use state::{AppParts, AppState};
