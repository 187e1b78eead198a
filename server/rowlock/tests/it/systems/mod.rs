//! Other systems of a theatre: API keys and webhook endpoints.

mod deliveries;
mod keys;
pub mod receiver;
