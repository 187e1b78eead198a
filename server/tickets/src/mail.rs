//! The ticket mail: into a mailbox folder in the demo, through SMTP when configured.
//!
//! Names in it are untrusted. They never reach a header unencoded, never open a tag, never break a line, and never turn the
//! direction of the text around them. Nothing here is logged.

mod attachments;
mod batch;
mod lane;
mod mail_text;

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context;
use domain::api::Receipt;
use domain::time::Timestamp;
use lettre::message::{Mailbox, MessageBuilder};
use lettre::transport::smtp;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use uuid::Uuid;

pub use self::attachments::Attachments;
pub use self::batch::{ComposedMails, MailBatch, MailBatchFailure};
pub use self::lane::{LEASE_MS, MailLane, SEND_WITHIN};
pub(super) use self::mail_text::one_line;
use self::mail_text::write;
use super::notice::{self, NoticeMail};
use crate::MailSettings;

/// Deadline of sending one mail, connecting included.
const SEND_DEADLINE: Duration = Duration::from_secs(20);

/// The recipient of a ticket mail, with the content only they get.
#[derive(Clone, Debug)]
pub enum Addressee {
    /// The payer.
    Buyer {
        /// The seats and places with their prices, and the parts of the amount paid.
        receipt: Receipt,
        /// Address of all their tickets, which opens anywhere.
        ticket_url: String,
    },
    /// The friend who will sit there.
    Holder {
        /// Name of the payer.
        from: String,
        /// Seat names with their categories.
        seats: Vec<(String, String)>,
        /// Address of each ticket, in the order of the seats.
        links: Vec<String>,
    },
}

impl Addressee {
    /// True for the buyer.
    #[must_use]
    pub const fn is_buyer(&self) -> bool {
        matches!(self, Self::Buyer { .. })
    }

    /// Seat names with their categories.
    fn seats(&self) -> Vec<(String, String)> {
        match self {
            Self::Buyer { receipt, .. } => {
                receipt.lines().map(|(name, category, _)| (name, category.to_owned())).collect()
            }
            Self::Holder { seats, .. } => seats.clone(),
        }
    }
}

/// The content of a ticket mail. Texts may contain any characters.
#[derive(Clone, Debug)]
pub struct TicketMail {
    /// The recipient.
    pub addressee: Addressee,
    /// The booking; also makes the names of its mails, so that one sent twice is shown once.
    pub booking: Uuid,
    /// The booking's name for people.
    pub reference: String,
    /// Name of the recipient.
    pub to_name: String,
    /// Their address.
    pub to_email: String,
    /// The seat-holder.
    pub holder_name: String,
    /// The film or concert.
    pub film: String,
    /// Theatre, screen and address.
    pub place: String,
    /// The beginning in the theatre's zone, written for people.
    pub starts: String,
    /// The tickets themselves; none where they could not be read, and in a rush.
    pub attachments: Option<Attachments>,
    /// When it was written.
    pub at: Timestamp,
}

/// The reason why a mail was not sent. A retry may help, except after [`MailError::Unsendable`], and rarely after
/// [`MailError::MailboxRefused`].
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The address or the text cannot be written as a mail.
    #[error("this mail cannot be written")]
    Unsendable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The folder or the mail server refused it.
    #[error("the mail could not be handed over")]
    NotDelivered(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The mail server refused the recipient's mailbox permanently: it does not exist, or takes no mails of ours.
    #[error("the mailbox was refused")]
    MailboxRefused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The mail server does not take mails to this mailbox now, for instance because it is full.
    #[error("the mailbox takes no mail now")]
    MailboxDeferred(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Sending took longer than its deadline.
    #[error("handing the mail over took more than {} s", SEND_DEADLINE.as_secs())]
    TimedOut,
    /// The deadline of the batch had passed before the mail was sent.
    #[error("there was no time left to hand the mail over")]
    TooLate,
    /// A defect of the server.
    #[error("writing or sending the mail panicked")]
    Panicked,
}

impl MailError {
    /// True if the mail or its recipient is the cause, and the mail server takes other mails.
    #[must_use]
    pub const fn is_undeliverable(&self) -> bool {
        matches!(self, Self::Unsendable(_) | Self::MailboxRefused(_))
    }
}

/// Sends mails.
#[derive(Clone)]
pub struct Mailer {
    from: Mailbox,
    transport: Transport,
}

#[derive(Clone)]
enum Transport {
    Folder(PathBuf),
    Smtp(AsyncSmtpTransport<Tokio1Executor>),
}

/// Checks the mail settings. Returns each invalid setting with the reason, to be read after its name.
#[must_use]
pub fn wrong_settings(settings: &MailSettings) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    if settings.mail_from.parse::<Mailbox>().is_err() {
        wrong.push(("MAIL_FROM", "is no address of a mail: Name <name@host>".to_owned()));
    }
    match (&settings.smtp_url, &settings.mailbox_dir) {
        (Some(url), _) if AsyncSmtpTransport::<Tokio1Executor>::from_url(url).is_err() => {
            wrong.push(("SMTP_URL", "is not smtps://user:password@host".to_owned()));
        }
        (None, None) => wrong.push(("SMTP_URL", "is not set, nor is MAILBOX_DIR: mails have nowhere to go".to_owned())),
        _ => {}
    }
    wrong
}

impl Mailer {
    /// The mailer the settings ask for: SMTP when there is a server, else the mailbox folder.
    ///
    /// # Errors
    /// When neither is configured, or one of the settings cannot be used.
    pub fn from_settings(settings: &MailSettings) -> anyhow::Result<Self> {
        let from = settings.mail_from.parse().context("MAIL_FROM is not a mail address")?;
        match (&settings.smtp_url, &settings.mailbox_dir) {
            (Some(url), _) => {
                let smtp = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
                    .context("SMTP_URL is not smtps://user:password@host")?
                    .timeout(Some(SEND_DEADLINE))
                    .build();
                Ok(Self { from, transport: Transport::Smtp(smtp) })
            }
            (None, Some(folder)) => Ok(Self::into_folder(from, folder)),
            (None, None) => anyhow::bail!("set MAILBOX_DIR, a folder for mails, or SMTP_URL, a server that sends them"),
        }
    }

    /// Writes every mail as a file into `folder`, `<booking>.eml` for a buyer's tickets; creates the folder for the first
    /// mail.
    #[must_use]
    pub fn into_folder(from: Mailbox, folder: &Path) -> Self {
        Self { from, transport: Transport::Folder(folder.to_owned()) }
    }

    /// Sends a ticket mail. A repetition has the same message id and file, so that one mail is shown.
    ///
    /// # Errors
    /// [`MailError`].
    pub async fn send_ticket(&self, mail: &TicketMail) -> Result<(), MailError> {
        let (from, written) = (self.from.clone(), mail.clone());
        // On a blocking thread: making the attachments takes milliseconds.
        let message =
            tokio::task::spawn_blocking(move || write(&from, &written)).await.map_err(|_| MailError::Panicked)?;
        self.deliver(&mail.name(), message?).await
    }

    /// Sends a notice about a booking and its money. A repetition has the same message id, so that one mail is shown.
    ///
    /// # Errors
    /// [`MailError`].
    pub async fn send_notice(&self, mail: &NoticeMail) -> Result<(), MailError> {
        self.deliver(&mail.name(), notice::write(&self.from, mail)?).await
    }

    /// Checks that mails can be sent: the folder is writable, or the server accepts the login. Sends none.
    ///
    /// # Errors
    /// [`MailError`].
    pub async fn check(&self) -> Result<(), MailError> {
        let checked = async {
            match &self.transport {
                Transport::Folder(folder) => {
                    write_to_folder(folder, "check", Vec::new()).await.map_err(not_delivered)?;
                    tokio::fs::remove_file(folder.join("check.eml")).await.map_err(not_delivered)
                }
                Transport::Smtp(smtp) => match smtp.test_connection().await {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(not_delivered("the mail server does not answer as one")),
                    Err(cause) => Err(not_delivered(cause)),
                },
            }
        };
        tokio::time::timeout(SEND_DEADLINE, checked).await.map_err(|_| MailError::TimedOut)?
    }

    pub(super) const fn sender(&self) -> &Mailbox {
        &self.from
    }

    /// Sends a mail. `name` identifies the mail: the same for every retry.
    ///
    /// A mail that takes too long is cancelled, perhaps in the middle of a command. Its connection is closed with it: without
    /// its feature `pool`, lettre reuses none. lettre's own deadline covers connecting only. A mail that is cancelled after its
    /// last byte may arrive, and once more after the retry: under the same id.
    pub(super) async fn deliver(&self, name: &str, message: Message) -> Result<(), MailError> {
        let delivered = async {
            match &self.transport {
                Transport::Folder(folder) => {
                    write_to_folder(folder, name, message.formatted()).await.map_err(not_delivered)
                }
                Transport::Smtp(smtp) => smtp.send(message).await.map(|_| ()).map_err(refused_or_not_delivered),
            }
        };
        tokio::time::timeout(SEND_DEADLINE, delivered).await.map_err(|_| MailError::TimedOut)?
    }
}

fn not_delivered(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> MailError {
    MailError::NotDelivered(cause.into())
}

/// Replies of a mail server that refuse a mailbox permanently (RFC 5321, 4.2.3). Other permanent replies concern all
/// mails, for instance after a wrong password of ours.
const MAILBOX_REFUSED: [u16; 3] = [550, 551, 553];
/// Replies that defer one mailbox: it is busy or full, or the sender is to try later. Other temporary replies concern all
/// mails.
const MAILBOX_DEFERRED: [u16; 2] = [450, 452];

fn refused_or_not_delivered(cause: smtp::Error) -> MailError {
    match cause.status().map(u16::from) {
        Some(code) if MAILBOX_REFUSED.contains(&code) => MailError::MailboxRefused(Box::new(cause)),
        Some(code) if MAILBOX_DEFERRED.contains(&code) => MailError::MailboxDeferred(Box::new(cause)),
        _ => not_delivered(cause),
    }
}

/// True if the text can be a mail address. Checked before a booking is made, not after it is paid.
#[must_use]
pub fn is_address(email: &str) -> bool {
    domain::person::has_mail_domain(email) && email.parse::<Address>().is_ok()
}

/// Writes a mail into the folder in one job on a blocking thread: one job per step would cost more than the writing.
async fn write_to_folder(folder: &Path, name: &str, message: Vec<u8>) -> std::io::Result<()> {
    let (folder, name) = (folder.to_owned(), name.to_owned());
    let job = tokio::task::spawn_blocking(move || write_file(&folder, &name, &message));
    job.await.map_err(std::io::Error::other)?
}

/// Writes a mail and renames it into place, so that readers of the folder never see half a mail. Blocks the thread.
fn write_file(folder: &Path, name: &str, message: &[u8]) -> std::io::Result<()> {
    let (unfinished, finished) = (folder.join(format!(".{name}.part")), folder.join(format!("{name}.eml")));
    match std::fs::write(&unfinished, message) {
        // The first mail, or the folder was removed.
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            std::fs::create_dir_all(folder)?;
            std::fs::write(&unfinished, message)?;
        }
        written => written?,
    }
    std::fs::rename(&unfinished, &finished)
}

impl TicketMail {
    /// The booking's id for the buyer's mail; the holder's has a suffix.
    fn name(&self) -> String {
        if self.addressee.is_buyer() { self.booking.to_string() } else { format!("{}.holder", self.booking) }
    }
}

/// The head of a mail, to a name that may be empty. `name` identifies the mail.
pub(super) fn head(
    from: &Mailbox,
    (to_name, to_email): (&str, &str),
    at: Timestamp,
    name: &str,
    subject: &str,
) -> Result<MessageBuilder, MailError> {
    let address: Address = to_email.parse().map_err(|cause| MailError::Unsendable(Box::new(cause)))?;
    let to_name = Some(one_line(to_name)).filter(|name| !name.is_empty());
    Ok(Message::builder()
        .from(from.clone())
        .to(Mailbox::new(to_name, address))
        .date(UNIX_EPOCH + Duration::from_millis(at.0.unsigned_abs()))
        .message_id(Some(format!("<{name}@{}>", from.email.domain())))
        .subject(one_line(subject)))
}

#[cfg(test)]
mod tests;
