//! The rules of Rowlock as pure functions and types, shared by the server and the browser.
//!
//! No I/O, no async, no clocks and no randomness: time, ids and random numbers are arguments, so that everything here
//! can be tested exhaustively and behaves the same on both sides. SQL, Redis, HTTP and HTML are in other crates. It
//! uses no crate of the workspace.
//!
//! | module | content |
//! |---|---|
//! | [`api`] | JSON types of the HTTP API |
//! | [`booking`] | state machine of a booking |
//! | [`best_available`], [`reseat`], [`relocation`] | choice of seats: for a new booking, instead of lost seats, after a move |
//! | [`layout`] | rooms: seating plans, sketches, import and editor |
//! | [`seats`], [`wire`], [`json`] | seat states, frames of the live map, a small JSON parser for the browser |
//! | [`sold_seats`] | the public list of sold seats, in which buyers find theirs |
//! | [`pricing`], [`money`], [`till`] | prices with taxes and fees, amounts, sums of a till |
//! | [`waiting_list`], [`waiting_room`] | queues: for a sold-out show, on the day sales begin |
//! | [`rehearsal`], [`party_size`] | figures and advice of a rehearsed on-sale; sizes of simulated parties |
//! | [`puzzle`], [`fairness`] | proof of work, rate limits, detection of unusual behaviour |
//! | [`door`] | ticket codes, admission, settlement of offline scans |
//! | [`roles`], [`person`], [`hidden_characters`], [`csv`], [`time`] | permissions, checks of names, safe CSV, instants |
//! | [`VariantName`] | names of enum variants in SQL, JSON, metrics and addresses |
//!
//! To add an event or a transition of a booking: `booking/mod.rs` and `booking/step.rs`, and for a transition a
//! migration of the trigger `refuse_other_moves`. To add a JSON type: [`api`], and `json/types.rs` if the seat map's
//! first module reads it. To add a frame: [`wire`]. To add a seat kind: the recipe in CONTRIBUTING.md.

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
pub mod party_size;
pub mod person;
pub mod pricing;
pub mod puzzle;
pub mod rehearsal;
pub mod relocation;
pub mod reseat;
pub mod roles;
pub mod seats;
pub mod sold_seats;
pub mod till;
pub mod time;
mod variant_name;
pub mod waiting_list;
pub mod waiting_room;
pub mod wire;

pub use variant_name::VariantName;
