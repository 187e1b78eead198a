//! Mails of an account: a link and a few words. They name nothing that was bought.

use domain::time::Timestamp;
use lettre::message::{Mailbox, SinglePart};
use lettre::{Address, Message};
use uuid::Uuid;

use super::mail::{MailError, Mailer, one_line, sent_at};

/// The content of an account mail.
#[derive(Clone, Debug)]
pub struct AccountMail {
    /// Names the mail, so that one sent twice is shown once.
    pub id: Uuid,
    /// Name of the person it goes to.
    pub to_name: String,
    /// Their address.
    pub to_email: String,
    /// The subject.
    pub subject: String,
    /// The text, one paragraph.
    pub words: String,
    /// The link. It may open the account: never logged.
    pub url: String,
    /// When it was written.
    pub at: Timestamp,
}

impl Mailer {
    /// Sends a mail of an account. Doing it twice shows one: same message id, same file.
    ///
    /// # Errors
    /// [`MailError`].
    pub async fn send_account(&self, mail: &AccountMail) -> Result<(), MailError> {
        self.hand_over(&format!("account.{}", mail.id), write(self.sender(), mail)?).await
    }
}

fn write(from: &Mailbox, mail: &AccountMail) -> Result<Message, MailError> {
    let address: Address = mail.to_email.parse().map_err(|cause| MailError::Unsendable(Box::new(cause)))?;
    let name = Some(one_line(&mail.to_name)).filter(|name| !name.is_empty());
    Message::builder()
        .from(from.clone())
        .to(Mailbox::new(name, address))
        .date(sent_at(mail.at))
        .message_id(Some(format!("<account.{}@{}>", mail.id, from.email.domain())))
        .subject(one_line(&mail.subject))
        .singlepart(SinglePart::plain(as_text(mail)))
        .map_err(|cause| MailError::Unsendable(Box::new(cause)))
}

fn as_text(mail: &AccountMail) -> String {
    format!("Hello {},\n\n{}\n\n{}\n", one_line(&mail.to_name), mail.words, mail.url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_a_name() {
        let from = "Rowlock <tickets@rowlock.example>".parse().expect("an address");
        let mail = AccountMail {
            id: Uuid::from_u128(7),
            to_name: "Ann\r\nBcc: all@example.org".to_owned(),
            to_email: "ann@example.org".to_owned(),
            subject: "A new password".to_owned(),
            words: "Choose it here.".to_owned(),
            url: "https://rowlock.example/reset?token=0a".to_owned(),
            at: Timestamp(1_795_000_000_000),
        };
        let message = String::from_utf8(write(&from, &mail).expect("writable").formatted()).expect("ASCII");
        assert!(!message.contains("\nBcc"), "{message}");
        assert!(message.contains("<account.00000000-0000-0000-0000-000000000007@rowlock.example>"), "{message}");
        insta::assert_snapshot!(as_text(&mail), @r"
        Hello Ann Bcc: all@example.org,

        Choose it here.

        https://rowlock.example/reset?token=0a
        ");
    }
}
