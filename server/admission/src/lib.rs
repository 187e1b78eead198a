//! Who may try for seats, and how often, when many want the same ones.
//!
//! - [`waiting_room`]: who enters an on-sale, in which order, and how fast. Tables `waiting_rooms` and those of its draw,
//!   Redis keys `{room:SHOW}:*`.
//! - [`puzzles`]: proof of work in front of seats in demand.
//! - [`fairness`]: limits on attempts, shared by replicas, and flags of unusual visitors for staff.

pub mod fairness;
pub mod puzzles;
mod settings;
mod state;
pub mod waiting_room;

pub use settings::AdmissionSettings;
pub use state::{AdmissionParts, AdmissionState};
