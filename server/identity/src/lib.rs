//! Identity: who is calling, and what they may do.
//!
//! Modules:
//! - [`Visitor`]: the extractor of an endpoint's caller, signed in or not.
//! - [`accounts`]: passwords, sessions, tokens, roles in a theatre, PINs of managers. Tables `accounts`,
//!   `account_visitors`, `account_links`, `account_mails`, `sessions`, `staff_grants` and `manager_pins`.
//! - [`api_keys`]: keys with which other systems read a theatre's data. Table `api_keys`.
//! - [`audit`]: the actor, action, time and reason of each action of staff. Table `audit_list`.
//!
//! Dependencies: this crate may use `platform`, `http`, `tickets` and `catalogue`. The crates that depend on it use
//! [`Visitor`], [`accounts::StaffRequest`], [`accounts::StaffMutation`] and [`api_keys::Caller`] as extractors, and insert
//! audit entries in their own transactions. For the texts of [`audit`] it reads shows, films and screens. It knows no
//! bookings; `selling` knows which of them an account owns.
//!
//! To add an endpoint: write the handler in the module's `endpoints`, and the rule and its queries beside it.
//! To add a role: `domain::roles`. To add an audited action in a theatre: do it by [`accounts::StaffAction`]; its name
//! goes into `domain::api::accounts::THEATRE_ACTIONS`, and its text into `acts.NAME` in `messages/*.json`.

pub mod accounts;
pub mod api_keys;
pub mod audit;
mod state;
mod visitor;

pub use state::{IdentityParts, IdentityState};
pub use visitor::Visitor;
