//! Other systems of a theatre: API keys and webhook endpoints.

mod deliveries;
mod failures;
mod keys;
pub mod receiver;
mod slow;
