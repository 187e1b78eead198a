//! The mail that brings a code.

use domain::time::Timestamp;
use lettre::message::{Mailbox, SinglePart};
use lettre::{Address, Message};
use uuid::Uuid;

use super::mail::{MailError, Mailer, one_line, sent_at};

/// The content of a mail with an e-mail code. It has no name: the recipient has not bought anything yet.
#[derive(Clone)]
pub struct CodeMail {
    /// Names the mail, so that one sent twice is shown once.
    pub id: Uuid,
    /// The recipient.
    pub to_email: String,
    /// The subject.
    pub subject: String,
    /// The text with the code: never logged.
    pub text: String,
    /// When it was written.
    pub at: Timestamp,
}

impl Mailer {
    /// Sends a code. Doing it twice shows one: same message id, same file.
    ///
    /// # Errors
    /// [`MailError`].
    pub async fn send_code(&self, mail: &CodeMail) -> Result<(), MailError> {
        self.hand_over(&format!("code.{}", mail.id), write(self.sender(), mail)?).await
    }
}

fn write(from: &Mailbox, mail: &CodeMail) -> Result<Message, MailError> {
    let address: Address = mail.to_email.parse().map_err(|cause| MailError::Unsendable(Box::new(cause)))?;
    Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, address))
        .date(sent_at(mail.at))
        .message_id(Some(format!("<code.{}@{}>", mail.id, from.email.domain())))
        .subject(one_line(&mail.subject))
        .singlepart(SinglePart::plain(mail.text.clone()))
        .map_err(|cause| MailError::Unsendable(Box::new(cause)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_mailed_to_its_address_under_one_name() {
        let from = "Rowlock <tickets@rowlock.example>".parse().expect("an address");
        let mail = CodeMail {
            id: Uuid::from_u128(7),
            to_email: "ann@example.org".to_owned(),
            subject: "Your code\r\nBcc: all@example.org".to_owned(),
            text: "Your code is 012345.\n".to_owned(),
            at: Timestamp(1_795_000_000_000),
        };
        let message = String::from_utf8(write(&from, &mail).expect("writable").formatted()).expect("ASCII");
        assert!(!message.contains("\nBcc"), "{message}");
        assert!(message.contains("To: ann@example.org") && message.contains("Your code is 012345."), "{message}");
        assert!(message.contains("<code.00000000-0000-0000-0000-000000000007@rowlock.example>"), "{message}");
    }
}
