//! Codes before checkout: a show may require guests to prove that they receive mail at their address.
//!
//! A code is requested, mailed and entered, each by its own route (`http`), while the hold continues: a wrong code
//! costs a try and nothing else. A visitor who has entered it may check out with that address, at any show, for
//! [`PROVEN_MS`]. [`check`] runs before a booking; for a show without codes it only reads a flag.
//!
//! A [`Messenger`] carries the code: mail, or another carrier of short messages.
//!
//! Elsewhere: the verification of an account's address (`accounts::email`), which replaces the code; and the
//! counter, where customers are present in person.

mod endpoints;
mod sending;
mod service;
mod sql;

pub use endpoints::routes;
pub use sending::send_forever;
pub use service::{check, purge_forever};

use std::sync::Arc;

use async_trait::async_trait;
use domain::time::{MINUTE_MS, Timestamp};
use tokio::sync::Notify;
use uuid::Uuid;

use tickets::{CodeMail, MailError, Mailer};

/// Lifetime of a code, milliseconds: twice the default length of a hold.
const CODE_LIFE_MS: i64 = 10 * MINUTE_MS;
/// Period in which an entered code stays valid for its visitor and address, milliseconds.
const PROVEN_MS: i64 = 60 * MINUTE_MS;
/// Maximum tries of one code. The chance of a correct guess within them is one in 200,000.
const MAX_TRIES: i16 = 5;
/// The stored tries of an entered code: above the maximum, to distinguish it from a code whose last try is being
/// checked.
const USED_UP: i16 = MAX_TRIES + 1;

/// The state of codes in a replica.
pub struct EmailCodes {
    messenger: Arc<dyn Messenger>,
    wake: Notify,
}

impl EmailCodes {
    /// Creates the state with this carrier.
    #[must_use]
    pub fn new(messenger: Arc<dyn Messenger>) -> Self {
        Self { messenger, wake: Notify::new() }
    }

    /// Returns the carrier of codes, for other messages that verify an address.
    #[must_use]
    pub fn carrier(&self) -> &dyn Messenger {
        &*self.messenger
    }
}

/// A short message to one recipient. It holds a code: never logged.
#[derive(Clone)]
pub struct Message {
    /// Its id. A duplicate has the same id and content, so that a carrier may display it once.
    pub id: Uuid,
    /// The recipient, in the carrier's form; for mail an address.
    pub to: String,
    /// A short subject; a carrier without subjects omits it.
    pub subject: String,
    /// The body.
    pub text: String,
    /// The time of writing.
    pub at: Timestamp,
}

/// The error of a message that was not sent. It may be retried.
#[derive(Debug, thiserror::Error)]
#[error("{carrier} could not carry a message")]
pub struct SendError {
    /// The carrier's name.
    pub carrier: &'static str,
    /// The carrier's error.
    #[source]
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}

/// A carrier of messages. Mail is one; text messages would be another, with a telephone number as the address.
#[async_trait]
pub trait Messenger: Send + Sync {
    /// Returns its name, for logs.
    fn name(&self) -> &'static str;

    /// Sends a message, within a bounded time. Success means that the carrier accepted it; only the code that is
    /// entered proves that it was read.
    ///
    /// # Errors
    /// [`SendError`].
    async fn send(&self, message: &Message) -> Result<(), SendError>;
}

/// The mail carrier.
pub struct MailCarrier(pub Mailer);

#[async_trait]
impl Messenger for MailCarrier {
    fn name(&self) -> &'static str {
        "mail"
    }

    async fn send(&self, message: &Message) -> Result<(), SendError> {
        let Message { id, to, subject, text, at } = message.clone();
        let mail = CodeMail { id, to_email: to, subject, text, at };
        let not_sent = |cause: MailError| SendError { carrier: self.name(), cause: Box::new(cause) };
        self.0.send_code(&mail).await.map_err(not_sent)
    }
}
