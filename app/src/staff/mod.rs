//! Theatre staff: pages, rendered on the server, and the islands in them.

pub mod islands;
#[cfg(feature = "ssr")]
pub mod pages;
