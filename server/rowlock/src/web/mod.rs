//! The HTTP interface of the server: the router with its middleware, the authorisation table, files and pages.
//!
//! Endpoints of the API are in the crate of their capability.

pub mod authorisation;
pub mod budget;
pub mod connections;
mod description;
#[cfg(test)]
mod endpoint_table;
pub mod files;
pub mod pages;
mod readiness;
mod requests;
pub mod router;
