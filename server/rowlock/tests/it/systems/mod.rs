//! Other systems of a theatre: what they read with a key, and what they are told.

mod failures;
mod keys;
pub mod receiver;
mod slow;
mod told;
