//! Seat locks and the live seat map: which visitor holds which seat, and every change of it to the browsers.
//!
//! - [`seat_locks`]: the [`seat_locks::SeatLocks`] trait with its stores (Redis with Lua, memory, shadow), the queue in
//!   front, the sweeper and the rebuild from claims. Redis keys `{show:SHOW}:*` (`seat_locks/lua/prelude.lua`).
//! - [`live`]: a hub per show, its WebSockets, and the subscription to changes.
//!
//! Invariants: a seat is in one hold at most, decided by one script in Redis. A hold never authorises a charge; a claim
//! in Postgres (`selling`) does. This crate reads `shows`, `layouts`, `area_stock`, `bookings` and the claims, and
//! writes no table.
//!
//! It may use the crates above it (`platform` to `identity`) and `domain`, never `selling` or below.
//!
//! To add a store operation: a method of `SeatLocks`, a script in `seat_locks/lua` with its name in
//! `seat_locks/redis_store/scripts.rs`, the same rule in `seat_locks/memory`, and a `MirroredCall` in
//! `seat_locks/shadow/mirror.rs`. To add a frame of the live map: `domain::wire::Frame`, then `live/hub.rs` for its
//! content and `live/view.rs` for its place in a tick. To add an endpoint: `live/endpoints.rs`.

pub mod live;
pub mod seat_locks;
mod state;

pub use state::{SeatsParts, SeatsState};
