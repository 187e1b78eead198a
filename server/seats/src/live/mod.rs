//! The live seat map: per show and replica one hub that holds the map, encodes changes once a tick and
//! shares the bytes among all sockets.
//!
//! From the store to a reader: `feed` hears an `announcement`, the hub's `inbox` puts it in order, at the
//! next of its `ticks` the `map` moves, and each `view` of it (the room, or some sections) is encoded by `websocket_frames` into
//! one frame. A `reader` knows which version they have; `socket` sends what is next down the `connection`, and
//! reads the reader's messages at the pace of `reader_input`. `sockets` counts those of an address and of a visitor.
//!
//! A slow reader costs nothing but its place: it has no queue, only the version it last got, and when
//! it can be written to again it gets one merged delta. What is not here: who may hold what.

mod announcement;
mod best;
mod connection;
mod endpoints;
mod feed;
mod hub;
mod hubs;
mod inbox;
mod map;
mod reader;
mod reader_input;
mod recent_locks;
mod socket;
mod sockets;
#[cfg(test)]
mod tests;
mod ticks;
mod upgrade;
mod view;
mod websocket_frames;

pub use endpoints::routes;
pub use feed::{follow_changes, refresh};
pub use hubs::Hubs;
