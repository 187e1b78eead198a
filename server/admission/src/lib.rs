//! Admission: which visitors may try for seats, and how often, when many want the same ones.
//!
//! - [`waiting_room`]: queue and draw in front of an on-sale, and the rate of admission. Table `waiting_rooms`, Redis
//!   keys `{show:SHOW}:queue:ROOM:*`.
//! - [`puzzles`]: proof of work in front of seats in demand. Redis keys `{puzzle:SHOW:OWNER}:*`.
//! - [`fairness`]: rate limits on attempts, shared by replicas, and flags of unusual visitors for staff. Table
//!   `unusual_flags`, Redis keys `limit:NAME:DIGEST`.
//!
//! Invariants: no request without a valid pass gets seats of a show with an active waiting room, except from staff at
//! the counter. A number of a waiting room is given out once, and only below the mark in Postgres. A flag refuses
//! nothing.
//!
//! It may use the crates above it (`seats` to `platform`) and `domain`, never `selling` or below. It takes no seats.
//!
//! To add a limit on a kind of act: a variant of `LimitedAct` in `fairness/limits.rs`, and of `HoldLimit` in
//! `platform::telemetry`. To add a kind of flag: `domain::fairness::UnusualKind`, a counter in `fairness/watch.rs`, and a
//! migration for the CHECK of `unusual_flags.kind`. To add a step of the waiting room: a script in `waiting_room/lua`, its
//! function in `waiting_room/store.rs`. To add a setting: `settings.rs`.

pub mod fairness;
pub mod puzzles;
mod settings;
mod state;
pub mod waiting_room;

pub use settings::AdmissionSettings;
pub use state::{AdmissionParts, AdmissionState};
