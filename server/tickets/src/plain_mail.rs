//! Mails of plain text: a link or a code and a few words.

use domain::time::Timestamp;
use lettre::Message;
use lettre::message::{Mailbox, SinglePart};
use uuid::Uuid;

use super::mail::{MailError, Mailer, head, one_line};

/// The content of an account mail. It names nothing that was bought.
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

/// The content of an offer mail.
#[derive(Clone, Debug)]
pub struct OfferMail {
    /// The hold; also makes the mail's name, so that one sent twice is shown once.
    pub hold: Uuid,
    /// Whom it goes to.
    pub to_email: String,
    /// The film or concert.
    pub film: String,
    /// Where: theatre and screen.
    pub place: String,
    /// When, in the theatre's zone, written for people.
    pub starts: String,
    /// Names of what is held.
    pub what: Vec<String>,
    /// Until when it is held, as `starts`.
    pub until: String,
    /// The page of the offer, which opens anywhere.
    pub url: String,
    /// When it was written.
    pub at: Timestamp,
}

impl Mailer {
    /// Sends a mail of an account. A repetition shows one mail: same message id, same file.
    pub async fn send_account(&self, mail: &AccountMail) -> Result<(), MailError> {
        self.deliver(&mail.name(), mail.write(self.sender())?).await
    }

    /// Sends a code. A repetition shows one mail: same message id, same file.
    pub async fn send_code(&self, mail: &CodeMail) -> Result<(), MailError> {
        self.deliver(&mail.name(), mail.write(self.sender())?).await
    }

    /// Sends an offer. A repetition shows one mail: same message id, same file.
    ///
    /// # Errors
    /// [`MailError`].
    pub async fn send_offer(&self, mail: &OfferMail) -> Result<(), MailError> {
        self.deliver(&mail.name(), mail.write(self.sender())?).await
    }
}

fn write(
    from: &Mailbox,
    to: (&str, &str),
    at: Timestamp,
    name: &str,
    subject: &str,
    text: String,
) -> Result<Message, MailError> {
    let head = head(from, to, at, name, subject)?;
    head.singlepart(SinglePart::plain(text)).map_err(|cause| MailError::Unsendable(Box::new(cause)))
}

impl AccountMail {
    fn name(&self) -> String {
        format!("account.{}", self.id)
    }

    fn write(&self, from: &Mailbox) -> Result<Message, MailError> {
        write(from, (&self.to_name, &self.to_email), self.at, &self.name(), &self.subject, self.text())
    }

    fn text(&self) -> String {
        let name = one_line(&self.to_name);
        let greeting = if name.is_empty() { "Hello,".to_owned() } else { format!("Hello {name},") };
        format!("{greeting}\n\n{}\n\n{}\n", self.words, self.url)
    }
}

impl CodeMail {
    fn name(&self) -> String {
        format!("code.{}", self.id)
    }

    fn write(&self, from: &Mailbox) -> Result<Message, MailError> {
        write(from, ("", &self.to_email), self.at, &self.name(), &self.subject, self.text.clone())
    }
}

impl OfferMail {
    fn name(&self) -> String {
        format!("offer.{}", self.hold)
    }

    fn write(&self, from: &Mailbox) -> Result<Message, MailError> {
        let subject = format!("Held for you: {}", self.film);
        write(from, ("", &self.to_email), self.at, &self.name(), &subject, self.text())
    }

    fn text(&self) -> String {
        let what: String = self.what.iter().map(|name| format!("  {}\n", one_line(name))).collect();
        format!(
            "It is your turn: these are held for you until {until}.\n\n\
             {film}\n{starts}\n{place}\n\n{what}\n\
             Buy them here, on any device:\n{url}\n\n\
             After that they go to the next in line.\n",
            until = one_line(&self.until),
            film = one_line(&self.film),
            starts = one_line(&self.starts),
            place = one_line(&self.place),
            url = self.url,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from() -> Mailbox {
        "Rowlock <tickets@rowlock.example>".parse().expect("an address")
    }

    #[test]
    fn a_hostile_name_stays_a_name() {
        let mail = AccountMail {
            id: Uuid::from_u128(7),
            to_name: "Ann\r\nBcc: all@example.org".to_owned(),
            to_email: "ann@example.org".to_owned(),
            subject: "A new password".to_owned(),
            words: "Choose it here.".to_owned(),
            url: "https://rowlock.example/reset?token=0a".to_owned(),
            at: Timestamp(1_795_000_000_000),
        };
        let message = String::from_utf8(mail.write(&from()).expect("writable").formatted()).expect("ASCII");
        assert!(!message.contains("\nBcc"), "{message}");
        assert!(message.contains("<account.00000000-0000-0000-0000-000000000007@rowlock.example>"), "{message}");
        insta::assert_snapshot!(mail.text(), @r"
        Hello Ann Bcc: all@example.org,

        Choose it here.

        https://rowlock.example/reset?token=0a
        ");
    }

    #[test]
    fn a_code_is_mailed_to_its_address_under_one_name() {
        let mail = CodeMail {
            id: Uuid::from_u128(7),
            to_email: "ann@example.org".to_owned(),
            subject: "Your code\r\nBcc: all@example.org".to_owned(),
            text: "Your code is 012345.\n".to_owned(),
            at: Timestamp(1_795_000_000_000),
        };
        let message = String::from_utf8(mail.write(&from()).expect("writable").formatted()).expect("ASCII");
        assert!(!message.contains("\nBcc"), "{message}");
        assert!(message.contains("To: ann@example.org") && message.contains("Your code is 012345."), "{message}");
        assert!(message.contains("<code.00000000-0000-0000-0000-000000000007@rowlock.example>"), "{message}");
    }

    fn offer() -> OfferMail {
        OfferMail {
            hold: Uuid::from_u128(7),
            to_email: "ana@example.org".to_owned(),
            film: "The Long Row".to_owned(),
            place: "Rialto, Screen 2".to_owned(),
            starts: "Sat 21 Nov, 20:15".to_owned(),
            what: vec!["C7".to_owned(), "C8".to_owned()],
            until: "Fri 20 Nov, 18:10".to_owned(),
            url: "https://rowlock.example/waiting-list/7".to_owned(),
            at: Timestamp(1_795_000_000_000),
        }
    }

    #[test]
    fn an_offer_mail_has_seats_deadline_and_address() {
        insta::assert_snapshot!(offer().text(), @r"
        It is your turn: these are held for you until Fri 20 Nov, 18:10.

        The Long Row
        Sat 21 Nov, 20:15
        Rialto, Screen 2

          C7
          C8

        Buy them here, on any device:
        https://rowlock.example/waiting-list/7

        After that they go to the next in line.
        ");
    }

    #[test]
    fn a_hostile_title_adds_no_header() {
        let hostile = OfferMail { film: "A\r\nBcc: all@example.org".to_owned(), ..offer() };
        let message = String::from_utf8(hostile.write(&from()).expect("writable").formatted()).expect("ASCII");
        assert!(!message.contains("\nBcc"), "{message}");
        let invalid = OfferMail { to_email: "no-address".to_owned(), ..offer() };
        assert!(matches!(invalid.write(&from()), Err(MailError::Unsendable(_))));
    }
}
