//! Accounts: identity, authentication, visitors, and roles in theatres.
//!
//! Holds and bookings belong to a visitor. An account owns visitors: a sign-in hands the browser's visitor over to the
//! session (`login`), with its present and future holds and bookings (`account_bookings` in `selling`). Guest bookings join
//! the account that has proven the buyer's address.
//!
//! Passwords are hashed by a few threads with a bounded queue (`hashing`). Attempts are limited per person, network and
//! address (`limits`), across all replicas (`rate_limits`), and separately where the person signed in before
//! (`known_browsers`). Session cookies and mailed links are random, and only their hashes are stored. Programs have
//! tokens, which name a session and end with it (`tokens`).
//!
//! Elsewhere: the endpoints that use the roles (`backoffice`), and the rendering and sending of mails (`tickets`).

mod account;
mod action;
mod command;
mod endpoints;
mod grants;
mod handed_over;
mod hashing;
mod known_browsers;
mod limits;
mod links;
mod login;
mod mails;
mod password;
mod person;
mod pin;
mod register;
mod sessions;
mod staff;
mod staff_request;
mod tokens;

pub use account::{has_proven_address, name_and_address, of_account};
pub use action::{StaffAction, StartedAction};
pub use command::{close, create_manager};
pub use endpoints::{Registration, ResetIntent, routes};
pub use grants::{change as change_role, list as people_at, make_manager, reason_of, require_manager_of_all};
pub use handed_over::{is_own_visitor, poll_handed_over_visitors, refuse_handed_over};
pub use login::{LoggedIn, SignOutHeaders, end_all, end_session, log_in};
pub use mails::send_forever as send_mails_forever;
pub use password::{change as change_password, forgotten as password_forgotten, reset as reset_password};
pub use person::{check as check_person, email_of, mailbox, normalise_address};
pub use pin::{PinIntent, check_pin, managers_with_pin, set_pin};
pub use register::{prove, register, send_proof};
pub use sessions::{Session, SignedIn, of_request, purge_forever, session_cookie_name, session_to_end};
pub use staff::{Staff, may_at, works_at};
pub use staff_request::{BoxOffice, Managers, Organisers, Roles, ShowPath, StaffMutation, StaffRequest};

use tokio::sync::Notify;

/// The state of accounts on a replica.
pub struct Accounts {
    hashing: hashing::Hashing,
    known_browsers: known_browsers::KnownBrowsers,
    sessions: sessions::SessionCache,
    tokens: tokens::Tokens,
    mail_wake: Notify,
}

impl Accounts {
    /// Builds the state from the settings.
    ///
    /// # Errors
    /// When `TOKEN_SECRET` is too short.
    pub fn new(token_secrets: &[String]) -> anyhow::Result<Self> {
        Ok(Self {
            hashing: hashing::Hashing::new(),
            known_browsers: known_browsers::KnownBrowsers::new(token_secrets),
            sessions: sessions::SessionCache::default(),
            tokens: tokens::Tokens::new(token_secrets)?,
            mail_wake: Notify::new(),
        })
    }

    /// Derives a secret from a text: 256 bits in hex, the same on every replica, and unguessable.
    #[must_use]
    pub fn derived_secret(&self, of: &str) -> String {
        self.tokens.digest(of.as_bytes())
    }
}
