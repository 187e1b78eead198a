//! Which seat is whose this minute, and telling everyone who watches.
//!
//! - [`seat_locks`]: the [`seat_locks::SeatLocks`] trait with its stores (Redis with Lua, memory, shadow), the queue in
//!   front, the sweeper and the rebuild from claims. Redis keys `{seats:SHOW}:*`.
//! - [`live`]: a hub per show, its WebSockets, and the feed of changes.
//!
//! Invariant: a seat is in one hold at most, by one script in Redis. A hold never authorises a charge; a claim in Postgres
//! (`selling`) does. It writes no table.

pub mod live;
pub mod seat_locks;
mod state;

pub use state::{SeatsParts, SeatsState};
