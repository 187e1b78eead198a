//! The contract of a carrier of codes. Mail is one carrier; text messages would be another, with a
//! telephone number as the address.

use async_trait::async_trait;
use domain::time::Timestamp;
use uuid::Uuid;

use tickets::{CodeMail, MailError, Mailer};

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

/// A carrier of messages.
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
