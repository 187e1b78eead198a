//! The live seat map: per show and replica one hub that holds the map, encodes changes once a tick and
//! shares the bytes among all sockets.
//!
//! A slow reader costs nothing but its place: it has no queue, only the version it last got, and when
//! it can be written to again it gets one merged delta. What is not here: who may hold what.

mod feed;
mod http;
mod hub;
mod hubs;
mod socket;

pub use feed::{follow_changes, refresh};
pub use http::routes;
pub use hubs::Hubs;
