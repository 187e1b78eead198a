//! The outside of the server: middleware in one place, errors, extractors, pages.
//!
//! What is not here: anything a capability decides. Handlers of the API live in their capability.

pub mod authorisation;
pub mod budget;
pub mod caching;
pub mod client_address;
pub mod concurrency;
pub mod connections;
mod description;
pub mod extract;
mod fast_road;
pub mod files;
pub mod pages;
pub mod problem;
pub mod reader;
pub mod refusals;
pub mod router;
pub mod unreadable;
pub mod visitor;

pub use client_address::ClientAddress;
pub use extract::{ApiJson, ApiPath, ApiQuery};
pub use problem::{Code, Problem};
pub use visitor::Visitor;
