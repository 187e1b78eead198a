//! The notice mail about a booking and its money: cancelled, refunded, moved.
//!
//! Hostile texts are escaped as in the ticket mail. `bookings` writes the texts; this module renders them as a mail.

use domain::time::Timestamp;
use lettre::Message;
use lettre::message::{Mailbox, MultiPart};
use uuid::Uuid;

use super::MailError;
use super::mail::{head, one_line};
use super::qr::Escaped;

/// The content of a notice. Texts may contain any characters.
#[derive(Clone, Debug)]
pub struct NoticeMail {
    /// The booking.
    pub booking: Uuid,
    /// Which notice of the booking: the number of the refund it is about. A notice sent twice is shown once.
    pub number: u32,
    /// The booking's name for people.
    pub reference: String,
    /// Name of the person it goes to.
    pub to_name: String,
    /// Their address.
    pub to_email: String,
    /// Headline.
    pub headline: String,
    /// Event, reason and refund: a paragraph each.
    pub paragraphs: Vec<String>,
    /// The film or concert.
    pub film: String,
    /// When and where, for people.
    pub show: String,
    /// The booking's page.
    pub booking_url: String,
    /// When it was written.
    pub at: Timestamp,
}

impl NoticeMail {
    /// The same for the same notice.
    pub(super) fn name(&self) -> String {
        format!("{}-notice-{}", self.booking, self.number)
    }
}

pub(super) fn write(from: &Mailbox, mail: &NoticeMail) -> Result<Message, MailError> {
    let id = format!("notice.{}.{}", mail.number, mail.booking);
    let subject = format!("{}: {}", mail.headline, mail.film);
    head(from, (&mail.to_name, &mail.to_email), mail.at, &id, &subject)?
        .multipart(MultiPart::alternative_plain_html(as_text(mail), as_html(mail)))
        .map_err(|cause| MailError::Unsendable(Box::new(cause)))
}

fn as_text(mail: &NoticeMail) -> String {
    let paragraphs: String = mail.paragraphs.iter().map(|words| format!("{}\n\n", one_line(words))).collect();
    format!(
        "{headline}\n\n{paragraphs}{film}\n{show}\nBooking {reference}\n\nHow it stands:\n{url}\n",
        headline = one_line(&mail.headline),
        film = one_line(&mail.film),
        show = one_line(&mail.show),
        reference = one_line(&mail.reference),
        url = mail.booking_url,
    )
}

fn as_html(mail: &NoticeMail) -> String {
    let safe = |text: &str| format!("<bdi>{}</bdi>", Escaped(&one_line(text)));
    let paragraphs: String =
        mail.paragraphs.iter().map(|words| format!("<p style=\"margin:0 0 12px\">{}</p>", safe(words))).collect();
    format!(
        r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Your booking</title></head>
<body style="margin:0;padding:24px;background:#f4f2ee;color:#1d1b18;font:16px/1.5 system-ui,sans-serif">
<div style="max-width:480px;margin:0 auto;padding:24px;background:#fff;border-radius:12px">
<h1 style="margin:0 0 16px;font-size:22px;line-height:1.2">{headline}</h1>
{paragraphs}
<p style="margin:0 0 24px;color:#555">{film}<br>{show}<br>Booking {reference}</p>
<p style="margin:0"><a href="{url}" style="display:inline-block;padding:12px 20px;border-radius:8px;background:#1d1b18;color:#fff;text-decoration:none">See how it stands</a></p>
</div></body></html>
"#,
        headline = safe(&mail.headline),
        film = safe(&mail.film),
        show = safe(&mail.show),
        reference = safe(&mail.reference),
        url = Escaped(&mail.booking_url),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail() -> NoticeMail {
        NoticeMail {
            booking: Uuid::from_u128(7),
            number: 2,
            reference: "K7QM-2XPA".to_owned(),
            to_name: "Ana Pérez".to_owned(),
            to_email: "ana@example.org".to_owned(),
            headline: "C7 was cancelled".to_owned(),
            paragraphs: vec!["The cinema took it back: the seat is broken.".to_owned(), "€12.50 goes back.".to_owned()],
            film: "The Long Row".to_owned(),
            show: "Sat 21 Nov, 20:15, Rialto, Screen 2".to_owned(),
            booking_url: "https://rowlock.example/bookings/7".to_owned(),
            at: Timestamp(1_795_000_000_000),
        }
    }

    fn from() -> Mailbox {
        "Rowlock <tickets@rowlock.example>".parse().expect("an address")
    }

    #[test]
    fn a_notice_has_the_event_the_reason_and_the_refund() {
        insta::assert_snapshot!(as_text(&mail()), @r"
        C7 was cancelled

        The cinema took it back: the seat is broken.

        €12.50 goes back.

        The Long Row
        Sat 21 Nov, 20:15, Rialto, Screen 2
        Booking K7QM-2XPA

        How it stands:
        https://rowlock.example/bookings/7
        ");
        let message = String::from_utf8(write(&from(), &mail()).expect("writable").formatted()).expect("ASCII");
        assert!(message.contains("<notice.2.00000000-0000-0000-0000-000000000007@rowlock.example>"), "{message}");
        assert!(message.contains("Subject: C7 was cancelled: The Long Row"), "{message}");
    }

    #[test]
    fn a_reason_with_tags_and_line_ends_stays_text() {
        let hostile = "<script>alert(1)</script>\r\nBcc: everyone@example.org\u{202E}";
        let mail = NoticeMail { headline: hostile.to_owned(), paragraphs: vec![hostile.to_owned()], ..mail() };
        assert!(!as_html(&mail).contains("<script"));
        assert!(!as_text(&mail).contains("\nBcc"));
        let message = String::from_utf8(write(&from(), &mail).expect("writable").formatted()).expect("ASCII");
        let (headers, _) = message.split_once("\r\n\r\n").expect("headers end");
        assert!(headers.lines().all(|line| !line.starts_with("Bcc")), "{headers}");
    }
}
