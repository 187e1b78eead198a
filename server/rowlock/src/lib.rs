//! The server binary: start-up, settings, router, pages and commands. Business rules are in the crates it uses.
//!
//! - [`start`]: builds the states of all crates, starts their background work, serves, stops.
//! - [`migrations`]: the schema, embedded, and whether a database has it.
//! - [`config`]: the settings of all crates, from flags, environment and a file, and their checks.
//! - [`web`]: the router with its middleware, the authorisation table, latency budgets, files, and the pages of `app`.
//! - [`metrics`]: `/metrics`, with the gauges that are read on each scrape.
//! - [`check`]: `rowlock check`, which tests from outside whether a running system can sell.
//!
//! The crate has neither tables nor Redis keys. It may use every other server crate, `app`, `language` and `domain`; no
//! crate uses it.
//!
//! A route is added in its crate's `endpoints.rs` and needs a row in `web/authorisation.rs`; a page is a handler in
//! `web/pages`; a command is a function in `commands`; a setting follows the recipe in CONTRIBUTING.md.

pub mod check;
pub mod config;
pub mod metrics;
pub mod migrations;
pub mod start;
mod state;
pub mod web;

pub use state::{AppParts, AppState};
