//! Modules by subject: for each page the struct with its data, and its view.
//!
//! The server loads the data and fills the structs. Islands have their own modules.

pub mod accounts;
pub mod booking;
pub mod film;
pub mod listing;
pub mod offer;
pub mod place_link;
pub mod places;
pub mod poster;
pub mod problems;
pub(crate) mod receipt;
pub mod search;
pub mod show;
pub mod ticket;
