//! The contract of whatever carries a code to somebody. Mail is one carrier; text messages would be another, with a
//! telephone's number where the address is.

use async_trait::async_trait;
use domain::time::Timestamp;
use uuid::Uuid;

use tickets::{CodeMail, MailError, Mailer};

/// A few words for one person. It holds a code: never logged.
#[derive(Clone)]
pub struct Message {
    /// Names it. Sent twice under one name it says the same, and a carrier that can shows it once.
    pub id: Uuid,
    /// Where it goes, in the carrier's own form; for mail an address.
    pub to: String,
    /// What it is about, in a few words; a carrier without subjects leaves it out.
    pub subject: String,
    /// What it says.
    pub text: String,
    /// When it was written.
    pub at: Timestamp,
}

/// Why it was not carried. Worth another try.
#[derive(Debug, thiserror::Error)]
#[error("{carrier} could not carry a message")]
pub struct NotSent {
    /// Whose answer it is.
    pub carrier: &'static str,
    /// What it said.
    #[source]
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}

/// A carrier.
#[async_trait]
pub trait Messenger: Send + Sync {
    /// Its name, for logs.
    fn name(&self) -> &'static str;

    /// Hands a message over, within a bounded time. Handing it over is all that can be promised: whether it was read is
    /// shown by the code coming back.
    ///
    /// # Errors
    /// [`NotSent`].
    async fn send(&self, message: &Message) -> Result<(), NotSent>;
}

/// By mail.
pub struct ByMail(pub Mailer);

#[async_trait]
impl Messenger for ByMail {
    fn name(&self) -> &'static str {
        "mail"
    }

    async fn send(&self, message: &Message) -> Result<(), NotSent> {
        let Message { id, to, subject, text, at } = message.clone();
        let mail = CodeMail { id, to_email: to, subject, text, at };
        let not_sent = |cause: MailError| NotSent { carrier: self.name(), cause: Box::new(cause) };
        self.0.send_code(&mail).await.map_err(not_sent)
    }
}
