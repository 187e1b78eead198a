//! Accounts: who somebody is, how they prove it, what is theirs, and who works where.
//!
//! A visitor stays what holds and bookings belong to. An account has visitors: whoever signs in hands theirs over
//! to the session (`login`), and what the visitor holds or has bought, then or later, is the account's
//! (`belongings`). Guests' bookings join the account that has proven the buyer's address.
//!
//! Passwords are hashed by a few threads with a short line in front (`hashing`); tries are limited per person and
//! address (`limits`), for all replicas together (`rate_limits`). Cookies and links of mails are random, and only their
//! hashes are stored. Programs have tokens, which name a session and die with it (`tokens`).
//!
//! What is not here: what staff do with their roles (the rooms of the box office and the organiser), and how mails
//! are written and sent (`tickets`).

mod command;
mod email;
mod endpoints;
mod grants;
mod handed_over;
mod hashing;
mod limits;
mod links;
mod login;
mod mails;
mod own_visitor;
mod password;
mod person;
mod pin;
mod purge;
mod register;
mod sessions;
mod signature;
mod sql;
mod staff;
mod tokens;
mod view;

pub use command::{close, create_manager};
pub use email::{prove, send_proof};
pub use endpoints::{Registration, ResetIntent, routes};
pub use grants::{change as change_role, list as people_at, make_manager, manages_all, reason_of};
pub use handed_over::follow_handed_over_forever;
pub use login::{Gone, LoggedIn, end_all, end_session, log_in};
pub use mails::send_forever as send_mails_forever;
pub use own_visitor::{is_own_visitor, refuse_handed_over};
pub use password::{change as change_password, forgotten as password_forgotten, reset as reset_password};
pub use person::{check as check_person, email_of, known_as, mailbox};
pub use pin::{PinIntent, check_pin, managers_with_pin, set_pin};
pub use purge::purge_forever;
pub use register::register;
pub use sessions::{Session, SignedIn, of_request, session_cookie_name, to_end};
pub use staff::{Staff, may_at, works_at};
pub use view::{has_proven_address, named, of_account};

use tokio::sync::Notify;

/// What a replica needs for accounts.
pub struct Accounts {
    hashing: hashing::Hashing,
    sessions: sessions::Known,
    tokens: tokens::Tokens,
    mail_wake: Notify,
}

impl Accounts {
    /// From the settings.
    ///
    /// # Errors
    /// When `TOKEN_SECRET` is too short to be one.
    pub fn new(token_secrets: &[String]) -> anyhow::Result<Self> {
        Ok(Self {
            hashing: hashing::Hashing::new()?,
            sessions: sessions::Known::default(),
            tokens: tokens::Tokens::new(token_secrets)?,
            mail_wake: Notify::new(),
        })
    }

    /// A secret that follows from these words, 256 bits in hex: the same on every replica, and nobody's guess.
    #[must_use]
    pub fn derived_secret(&self, of: &str) -> String {
        self.tokens.digest(of.as_bytes())
    }
}
