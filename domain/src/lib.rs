//! The rules of Rowlock, and nothing but rules.
//!
//! No I/O, no async, no clocks and no randomness: time, ids and random numbers come in as arguments,
//! so that everything here can be tested exhaustively and runs the same in the server and in the
//! browser. What is *not* here: SQL, Redis, HTTP, HTML.

pub mod api;
pub mod best_available;
pub mod booking;
pub mod csv;
pub mod door;
pub mod fairness;
pub mod hidden_characters;
pub mod json;
pub mod layout;
pub mod money;
pub mod person;
pub mod pricing;
pub mod puzzle;
pub mod relocation;
pub mod reseat;
pub mod roles;
pub mod seats;
pub mod till;
pub mod time;
pub mod waiting_list;
pub mod waiting_room;
pub mod wire;
