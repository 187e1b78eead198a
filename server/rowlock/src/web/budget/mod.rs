//! Latency budgets: under overload, requests that only browse are shed with a short `Retry-After`, and requests that pay
//! continue (docs/decisions/0047).
//!
//! [`class`] maps routes to classes and their budgets. [`controller`] detects from the latencies whether a queue is standing
//! in front of a class, and which share of it is shed. [`slots`] keeps browsing from taking every connection to the
//! database. [`layer`] applies them to the routes.
//!
//! Not here: the limits of single resources (sales to commit, passwords to hash, gateways, reports); each is beside its
//! resource.

mod class;
mod controller;
mod layer;
mod slots;

pub use class::{BROWSING, CHOOSING, NEVER, OPENING, REPORT, RequestClass, RouteTerms};
pub use layer::{BudgetLayer, register_metrics};
