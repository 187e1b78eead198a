//! The mail that brings a ticket: into a mailbox folder in the demo, through SMTP when configured.
//!
//! Names in it come from strangers. They never reach a header unencoded, never open a tag, never
//! break a line, and never turn the direction of the text around them. Nothing here is logged.

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context;
use domain::money::Money;
use domain::time::Timestamp;
use lettre::message::{Mailbox, MultiPart};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use uuid::Uuid;

use super::qr::escape;
use crate::config::Config;

/// How long handing over one mail may take, connecting included.
const SEND_DEADLINE: Duration = Duration::from_secs(20);
/// Longest piece of a foreign text in a mail, characters.
const MAX_TEXT_CHARS: usize = 200;

/// Everything a ticket mail says. Texts may hold anything people type.
#[derive(Clone, Debug)]
pub struct TicketMail {
    /// The booking; also makes the message id, so that a mail sent twice is shown once.
    pub booking: Uuid,
    /// The booking's name for people.
    pub reference: String,
    /// Name of the person it goes to.
    pub to_name: String,
    /// Their address.
    pub to_email: String,
    /// Who will sit there.
    pub holder_name: String,
    /// The film or concert.
    pub film: String,
    /// Where: theatre and screen, and the address if there is room.
    pub place: String,
    /// When, in the theatre's zone, written for people.
    pub starts: String,
    /// Seat names with their categories.
    pub seats: Vec<(String, String)>,
    /// What was paid.
    pub total: Money,
    /// The ticket page.
    pub ticket_url: String,
    /// When it was written.
    pub at: Timestamp,
}

/// Why a mail did not go out. All but [`MailError::Unsendable`] are worth another try.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The address or the message cannot be put into a mail at all.
    #[error("this mail cannot be written")]
    Unsendable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The folder or the mail server refused it.
    #[error("the mail could not be handed over")]
    NotDelivered(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Nothing happened for too long.
    #[error("handing the mail over took more than {} s", SEND_DEADLINE.as_secs())]
    TimedOut,
}

/// Sends mails.
#[derive(Clone)]
pub struct Mailer {
    from: Mailbox,
    way: Way,
}

#[derive(Clone)]
enum Way {
    Folder(PathBuf),
    Smtp(AsyncSmtpTransport<Tokio1Executor>),
}

impl Mailer {
    /// The mailer the settings ask for: SMTP when there is a server, else the mailbox folder.
    ///
    /// # Errors
    /// When neither is configured, or one of the settings cannot be used.
    pub fn from_config(config: &Config) -> anyhow::Result<Self> {
        let from = config.mail_from.parse().context("MAIL_FROM is not a mail address")?;
        match (&config.smtp_url, &config.mailbox_dir) {
            (Some(url), _) => {
                let smtp = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
                    .context("SMTP_URL is not smtps://user:password@host")?
                    .timeout(Some(SEND_DEADLINE))
                    .build();
                Ok(Self { from, way: Way::Smtp(smtp) })
            }
            (None, Some(folder)) => Ok(Self::into_folder(from, folder)),
            (None, None) => anyhow::bail!("set MAILBOX_DIR, a folder for mails, or SMTP_URL, a server that sends them"),
        }
    }

    /// Writes every mail as `<booking>.eml` into `folder`, which is made when the first one comes.
    #[must_use]
    pub fn into_folder(from: Mailbox, folder: &Path) -> Self {
        Self { from, way: Way::Folder(folder.to_owned()) }
    }

    /// Sends a ticket. Doing it twice shows one mail: same message id, same file.
    ///
    /// # Errors
    /// [`MailError`].
    pub async fn send_ticket(&self, mail: &TicketMail) -> Result<(), MailError> {
        let message = write(&self.from, mail)?;
        let handed_over = async {
            match &self.way {
                Way::Folder(folder) => put_into(folder, mail.booking, message.formatted()).await.map_err(not_delivered),
                Way::Smtp(smtp) => smtp.send(message).await.map(|_| ()).map_err(not_delivered),
            }
        };
        tokio::time::timeout(SEND_DEADLINE, handed_over).await.map_err(|_| MailError::TimedOut)?
    }
}

fn not_delivered(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> MailError {
    MailError::NotDelivered(cause.into())
}

/// Whether mail can be addressed to this at all. Asked before a booking is made, not after it is paid.
#[must_use]
pub fn is_address(email: &str) -> bool {
    email.parse::<Address>().is_ok()
}

/// Renamed into place, so that whoever reads the folder never sees half a mail. One errand for a thread
/// that may wait: a step each would cost more than the writing.
async fn put_into(folder: &Path, booking: Uuid, message: Vec<u8>) -> std::io::Result<()> {
    let (unfinished, finished) = (folder.join(format!(".{booking}.part")), folder.join(format!("{booking}.eml")));
    let folder = folder.to_owned();
    let put = tokio::task::spawn_blocking(move || {
        match std::fs::write(&unfinished, &message) {
            // The first mail, or somebody has tidied up.
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                std::fs::create_dir_all(&folder)?;
                std::fs::write(&unfinished, &message)?;
            }
            written => written?,
        }
        std::fs::rename(&unfinished, &finished)
    });
    put.await.map_err(std::io::Error::other)?
}

fn write(from: &Mailbox, mail: &TicketMail) -> Result<Message, MailError> {
    let unsendable = |cause: Box<dyn std::error::Error + Send + Sync>| MailError::Unsendable(cause);
    let address: Address = mail.to_email.parse().map_err(|error| unsendable(Box::new(error)))?;
    let name = Some(one_line(&mail.to_name)).filter(|name| !name.is_empty());
    let written_at = UNIX_EPOCH + Duration::from_millis(mail.at.0.unsigned_abs());
    let seats: Vec<&str> = mail.seats.iter().map(|(label, _)| label.as_str()).collect();
    Message::builder()
        .from(from.clone())
        .to(Mailbox::new(name, address))
        .date(written_at)
        .message_id(Some(format!("<ticket.{}@{}>", mail.booking, from.email.domain())))
        // The film comes last: a title that runs from right to left cannot swallow what follows it.
        .subject(one_line(&format!("Your tickets {}: {}", seats.join(", "), mail.film)))
        .multipart(MultiPart::alternative_plain_html(as_text(mail), as_html(mail)))
        .map_err(|error| unsendable(Box::new(error)))
}

/// One line that does not reach outside itself: line ends and control characters become spaces, marks
/// that override the direction of other people's text go.
fn one_line(text: &str) -> String {
    let clean: String = text
        .chars()
        .filter(|c| !matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'))
        .map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c })
        .take(MAX_TEXT_CHARS)
        .collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn as_text(mail: &TicketMail) -> String {
    let seats: String = mail
        .seats
        .iter()
        .map(|(label, category)| format!("  {}  ({})\n", one_line(label), one_line(category)))
        .collect();
    format!(
        "{film}\n{starts}\n{place}\n\n{seats}\nFor {holder}\nPaid {total}\nBooking {reference}\n\n\
         Your tickets, to show at the door:\n{url}\n",
        film = one_line(&mail.film),
        starts = one_line(&mail.starts),
        place = one_line(&mail.place),
        holder = one_line(&mail.holder_name),
        total = mail.total,
        reference = one_line(&mail.reference),
        url = mail.ticket_url,
    )
}

/// Styles stand at the elements because mail programs drop everything else. `bdi` keeps a name of one
/// script from reordering the words beside it.
fn as_html(mail: &TicketMail) -> String {
    let safe = |text: &str| format!("<bdi>{}</bdi>", escape(&one_line(text)));
    let seats: String = mail
        .seats
        .iter()
        .map(|(label, category)| {
            format!(
                "<tr><td style=\"padding:4px 16px 4px 0;font-weight:700\">{}</td><td style=\"padding:4px 0;color:#555\">{}</td></tr>",
                safe(label),
                safe(category)
            )
        })
        .collect();
    format!(
        r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Your tickets</title></head>
<body style="margin:0;padding:24px;background:#f4f2ee;color:#1d1b18;font:16px/1.5 system-ui,sans-serif">
<div style="max-width:480px;margin:0 auto;padding:24px;background:#fff;border-radius:12px">
<h1 style="margin:0 0 4px;font-size:24px;line-height:1.2">{film}</h1>
<p style="margin:0">{starts}<br>{place}</p>
<table role="presentation" style="margin:16px 0;border-collapse:collapse">{seats}</table>
<p style="margin:0 0 24px;color:#555">For {holder} · paid {total} · booking {reference}</p>
<p style="margin:0"><a href="{url}" style="display:inline-block;padding:12px 20px;border-radius:8px;background:#1d1b18;color:#fff;text-decoration:none">Open your tickets</a></p>
</div></body></html>
"#,
        film = safe(&mail.film),
        starts = safe(&mail.starts),
        place = safe(&mail.place),
        holder = safe(&mail.holder_name),
        total = escape(&mail.total.to_string()),
        reference = safe(&mail.reference),
        url = escape(&mail.ticket_url),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::money::Currency;

    fn mail() -> TicketMail {
        TicketMail {
            booking: Uuid::from_u128(7),
            reference: "K7QM-2XPA".to_owned(),
            to_name: "Ana Pérez".to_owned(),
            to_email: "ana@example.org".to_owned(),
            holder_name: "Luís".to_owned(),
            film: "The Long Row".to_owned(),
            place: "Rialto, Screen 2".to_owned(),
            starts: "Saturday 21 November 2026, 20:15".to_owned(),
            seats: vec![("C7".to_owned(), "Gold".to_owned()), ("C8".to_owned(), "Gold".to_owned())],
            total: Money::new(2500, Currency::parse("EUR").expect("a code")),
            ticket_url: "https://rowlock.example/bookings/7/ticket".to_owned(),
            at: Timestamp(1_795_000_000_000),
        }
    }

    fn from() -> Mailbox {
        "Rowlock <tickets@rowlock.example>".parse().expect("an address")
    }

    fn headers(mail: &TicketMail) -> String {
        let message = String::from_utf8(write(&from(), mail).expect("writable").formatted()).expect("ASCII");
        let (headers, _) = message.split_once("\r\n\r\n").expect("headers end");
        headers.replace("\r\n ", " ")
    }

    #[test]
    fn a_ticket_mail_says_what_where_when_and_how_to_open_it() {
        insta::assert_snapshot!(as_text(&mail()), @r"
        The Long Row
        Saturday 21 November 2026, 20:15
        Rialto, Screen 2

          C7  (Gold)
          C8  (Gold)

        For Luís
        Paid €25.00
        Booking K7QM-2XPA

        Your tickets, to show at the door:
        https://rowlock.example/bookings/7/ticket
        ");
        let headers = headers(&mail());
        assert!(headers.contains("Subject: Your tickets C7, C8: The Long Row"), "{headers}");
        assert!(headers.contains("Message-ID: <ticket.00000000-0000-0000-0000-000000000007@rowlock.example>"));
    }

    #[test]
    fn a_name_with_line_ends_adds_no_header() {
        let hostile = "Ana\r\nBcc: everyone@example.org\u{2028}X-Evil: 1";
        let headers = headers(&TicketMail { to_name: hostile.to_owned(), film: hostile.to_owned(), ..mail() });
        for line in headers.lines() {
            assert!(!line.starts_with("Bcc") && !line.starts_with("X-Evil"), "{headers}");
        }
        assert!(!as_text(&TicketMail { holder_name: hostile.to_owned(), ..mail() }).contains("\nBcc"));
    }

    #[test]
    fn a_name_with_tags_stays_text() {
        let hostile = r#"<script>alert(1)</script><a href="https://evil.example">'click'</a>"#;
        let html = as_html(&TicketMail {
            holder_name: hostile.to_owned(),
            film: hostile.to_owned(),
            seats: vec![(hostile.to_owned(), hostile.to_owned())],
            ticket_url: format!("https://rowlock.example/\"{hostile}"),
            ..mail()
        });
        assert!(!html.contains("<script") && !html.contains("<a href=\"https://evil"), "{html}");
        assert_eq!(html.matches("<a ").count(), 1);
    }

    #[test]
    fn a_name_from_right_to_left_or_in_pictures_reads_on_but_turns_nothing_around() {
        let hostile = "\u{202E}ليلى\u{2066} 👩‍👩‍👧";
        assert_eq!(one_line(hostile), "ليلى 👩‍👩‍👧");
        let mail = TicketMail { holder_name: hostile.to_owned(), film: hostile.to_owned(), ..mail() };
        assert!(as_html(&mail).contains("<bdi>ليلى 👩‍👩‍👧</bdi>"));
        assert!(headers(&mail).is_ascii());
    }

    #[test]
    fn addresses_that_cannot_be_one_are_refused_before_anything_is_sold() {
        for good in ["ana@example.org", "a.b+tickets@sub.example.co.uk"] {
            assert!(is_address(good), "{good}");
        }
        for bad in ["", "ana", "ana@", "@example.org", "a b@example.org", "a@b\r\nBcc: c@d", "a@b@c", "Ana <a@b.org>"] {
            assert!(!is_address(bad), "{bad:?}");
        }
        let refused = write(&from(), &TicketMail { to_email: "nobody".to_owned(), ..mail() });
        assert!(matches!(refused, Err(MailError::Unsendable(_))));
    }

    #[tokio::test]
    async fn sending_twice_leaves_one_whole_mail_in_the_folder() {
        let folder = std::env::temp_dir().join(format!("rowlock-mail-{}", crate::ids::new_id()));
        let mailer = Mailer::into_folder(from(), &folder);
        for _ in 0..2 {
            mailer.send_ticket(&mail()).await.expect("written");
        }
        let names: Vec<_> = std::fs::read_dir(&folder)
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        assert_eq!(names, [format!("{}.eml", mail().booking)]);
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
