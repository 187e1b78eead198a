//! Serves the live seat map over WebSockets. Each show has one hub per replica: it holds the map, encodes changes once
//! a tick and shares the bytes among all sockets.
//!
//! Data flow from the store to a reader: `feed` receives an announcement; the hub's `inbox` orders it; the next of
//! its `ticks` applies it to the `map`; each `view` (the whole room, or some sections) encodes one delta with
//! `websocket_frames`. A `reader` holds the version its browser has; `socket` sends its next frame through the
//! `connection`, and reads its messages at a limited rate. `sockets` limits open sockets.
//!
//! A slow reader has no queue, only the version it last got. When its socket is writable again, it gets one merged
//! delta. Permissions to hold seats are not checked here.

mod connection;
mod endpoints;
mod feed;
mod hub;
mod hubs;
mod inbox;
mod map;
mod reader;
mod recent_locks;
mod socket;
mod sockets;
#[cfg(test)]
mod tests;
mod ticks;
mod view;
mod websocket_frames;

pub use endpoints::routes;
pub use feed::{follow_changes, refresh};
pub use hubs::Hubs;
pub use sockets::MAX_SOCKETS;
