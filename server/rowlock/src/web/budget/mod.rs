//! Latency budgets: where answers take too long, those who look around are told to come back in a moment, and those
//! who pay go on (docs/decisions/0047).
//!
//! [`class`] says what people are doing, by route, and how long that may take. [`controller`] sees from the answers
//! whether a queue stands in front of a class, and which share of it is refused. [`places`] keeps those who look from
//! taking every connection to the database. [`layer`] lies around the routes and does it.
//!
//! Not here: the bounds of single things people wait for (sales to commit, passwords to hash, gateways, reports), which
//! are where those are.

mod class;
mod controller;
mod layer;
mod metrics;
mod places;

pub use class::Class;
pub use layer::BudgetLayer;
pub use metrics::register as register_metrics;
