//! The side of people who work in a theatre: pages, which the server renders, and the islands in them.

pub mod islands;
#[cfg(feature = "ssr")]
pub mod pages;
