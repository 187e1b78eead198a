//! Who is asking, and what they may do.
//!
//! - [`Visitor`]: the extractor of an endpoint's caller, signed in or not.
//! - [`accounts`]: passwords, sessions, tokens, roles in a theatre, PINs of managers. Tables `accounts`, `account_visitors`,
//!   `sessions`, `staff_grants` and those of their mails.
//! - [`api_keys`]: keys with which other systems read a theatre's data. Table `api_keys`.
//! - [`audit`]: the list of who did what, when and why. Table `audit`.
//!
//! What an account bought is not known here (`selling`).

pub mod accounts;
pub mod api_keys;
pub mod audit;
mod state;
mod visitor;

pub use state::{IdentityParts, IdentityState};
pub use visitor::Visitor;
