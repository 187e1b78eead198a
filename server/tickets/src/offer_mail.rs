//! The mail about an offer of the waiting list: seats are held for the recipient.

use domain::time::Timestamp;
use lettre::message::{Mailbox, SinglePart};
use lettre::{Address, Message};
use uuid::Uuid;

use super::mail::{MailError, Mailer, one_line, sent_at};

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
    /// Sends an offer. A repetition shows one mail: same message id, same file.
    ///
    /// # Errors
    /// [`MailError`].
    pub async fn send_offer(&self, mail: &OfferMail) -> Result<(), MailError> {
        self.hand_over(&format!("offer.{}", mail.hold), write(self.sender(), mail)?).await
    }
}

fn write(from: &Mailbox, mail: &OfferMail) -> Result<Message, MailError> {
    let address: Address = mail.to_email.parse().map_err(|cause| MailError::Unsendable(Box::new(cause)))?;
    Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, address))
        .date(sent_at(mail.at))
        .message_id(Some(format!("<offer.{}@{}>", mail.hold, from.email.domain())))
        .subject(one_line(&format!("Held for you: {}", mail.film)))
        .singlepart(SinglePart::plain(as_text(mail)))
        .map_err(|cause| MailError::Unsendable(Box::new(cause)))
}

fn as_text(mail: &OfferMail) -> String {
    let what: String = mail.what.iter().map(|name| format!("  {}\n", one_line(name))).collect();
    format!(
        "Your turn has come: these are held for you until {until}.\n\n\
         {film}\n{starts}\n{place}\n\n{what}\n\
         Buy them here, on any device:\n{url}\n\n\
         After that they go to the next in line.\n",
        until = one_line(&mail.until),
        film = one_line(&mail.film),
        starts = one_line(&mail.starts),
        place = one_line(&mail.place),
        url = mail.url,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail() -> OfferMail {
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
        insta::assert_snapshot!(as_text(&mail()), @r"
        Your turn has come: these are held for you until Fri 20 Nov, 18:10.

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
        let from = "Rowlock <tickets@rowlock.example>".parse().expect("an address");
        let hostile = OfferMail { film: "A\r\nBcc: all@example.org".to_owned(), ..mail() };
        let message = String::from_utf8(write(&from, &hostile).expect("writable").formatted()).expect("ASCII");
        assert!(!message.contains("\nBcc"), "{message}");
        let invalid = OfferMail { to_email: "no-address".to_owned(), ..mail() };
        assert!(matches!(write(&from, &invalid), Err(MailError::Unsendable(_))));
    }
}
