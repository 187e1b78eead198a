//! Other systems of a theatre: what they read with a key, and what they are told.

mod failures;
mod keys;
mod receiver;
mod slow;
mod told;
