//! The words of a ticket mail, plain and as HTML.

use std::fmt::{self, Display, Write as _};

use domain::hidden_characters::is_bidi_override;
use domain::money::Money;
use lettre::Message;
use lettre::message::{Mailbox, MultiPart};

use super::attachments::{Attachments, QR_ID};
use super::{Addressee, MailError, TicketMail, head};
use crate::PRICE_PART_NAMES;
use crate::qr::Escaped;

/// Longest piece of a foreign text in a mail, characters.
const MAX_TEXT_CHARS: usize = 200;
/// Room for the words of a usual mail, bytes…
const TEXT_BYTES: usize = 512;
/// …and for them as HTML.
const HTML_BYTES: usize = 2_048;

/// The texts of a mail, each one line: cleaned once, used in text and HTML.
pub(super) struct MailText<'m> {
    addressee: &'m Addressee,
    /// Name of the payer, in a holder's mail.
    from: String,
    film: String,
    starts: String,
    place: String,
    reference: String,
    holder: String,
    /// Name and category of each.
    seats: Vec<(String, String)>,
    /// True if tickets are attached…
    has_attachments: bool,
    /// …and their code is shown.
    shows_qr: bool,
}

impl<'m> MailText<'m> {
    /// `shows_qr`: with the code of the tickets as a picture.
    pub(super) fn of(mail: &'m TicketMail, shows_qr: bool) -> Self {
        let seats = mail.addressee.seats();
        let from = match &mail.addressee {
            Addressee::Buyer { .. } => String::new(),
            Addressee::Holder { from, .. } => one_line(from),
        };
        Self {
            addressee: &mail.addressee,
            from,
            film: one_line(&mail.film),
            starts: one_line(&mail.starts),
            place: one_line(&mail.place),
            reference: one_line(&mail.reference),
            holder: one_line(&mail.holder_name),
            seats: seats.iter().map(|(label, category)| (one_line(label), one_line(category))).collect(),
            has_attachments: mail.attachments.is_some(),
            shows_qr,
        }
    }
}

/// The whole mail, as it is sent.
pub(super) fn write(from: &Mailbox, mail: &TicketMail) -> Result<Message, MailError> {
    let seats: Vec<String> = mail.addressee.seats().into_iter().map(|(label, _)| label).collect();
    // The film comes last: a title that runs from right to left cannot swallow what follows it.
    let subject = format!("Your tickets {}: {}", seats.join(", "), mail.film);
    let head = head(from, (&mail.to_name, &mail.to_email), mail.at, &format!("ticket.{}", mail.name()), &subject)?;
    let files = mail.attachments.as_ref().map(Attachments::files);
    let words = MailText::of(mail, files.as_ref().is_some_and(|files| files.qr_png.is_some()));
    let (text, html) = (as_text(&words), as_html(&words));
    let parts = match files {
        Some(files) => files.around(text, html),
        None => MultiPart::alternative_plain_html(text, html),
    };
    head.multipart(parts).map_err(|cause| MailError::Unsendable(Box::new(cause)))
}

/// One line that does not reach outside itself: line ends and control characters become spaces, marks
/// that override the direction of other people's text go.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(MAX_TEXT_CHARS));
    let mut is_parted = false;
    let kept = text.chars().filter(|c| !is_bidi_override(*c));
    for c in kept.take(MAX_TEXT_CHARS) {
        // The separators of lines and of paragraphs are white space.
        if c.is_control() || c.is_whitespace() {
            is_parted = true;
        } else {
            if is_parted && !line.is_empty() {
                line.push(' ');
            }
            is_parted = false;
            line.push(c);
        }
    }
    line
}

pub(super) fn as_text(words: &MailText<'_>) -> String {
    let mut text = String::with_capacity(TEXT_BYTES);
    // Writing to a String cannot fail.
    let _infallible = put_text(&mut text, words);
    text
}

fn put_text(text: &mut String, words: &MailText<'_>) -> fmt::Result {
    let MailText { addressee, from, film, starts, place, reference, holder, seats, has_attachments, .. } = words;
    write!(text, "{film}\n{starts}\n{place}\n\n")?;
    match addressee {
        Addressee::Buyer { receipt, ticket_url } => {
            for ((label, category), (_, _, price)) in seats.iter().zip(receipt.lines()) {
                writeln!(text, "  {label}  ({category})  {price}")?;
            }
            let mut parts = receipt.breakdown.parts(PRICE_PART_NAMES).peekable();
            if parts.peek().is_some() {
                text.push('\n');
            }
            for (name, amount) in parts {
                writeln!(text, "  {name}  {amount}")?;
            }
            write!(text, "\nFor {holder}\nPaid {}\nBooking {reference}\n\n", receipt.breakdown.total)?;
            write!(text, "Your tickets, to show at the door:\n{ticket_url}\n\n{KEEP_IT}\n")?;
        }
        Addressee::Holder { links, .. } => {
            for ((label, category), link) in seats.iter().zip(links) {
                write!(text, "  {label}  ({category})\n  {link}\n")?;
            }
            write!(text, "\nFor {holder}, from {from}\nBooking {reference}\n\n")?;
            writeln!(text, "Each address is a ticket, to show at the door.")?;
        }
    }
    if *has_attachments { writeln!(text, "\n{ATTACHED}") } else { Ok(()) }
}

/// In a mail that has tickets attached.
const ATTACHED: &str = "The tickets are attached as a PDF, and the show as an entry for your calendar.";

/// Beside the address of all tickets.
const KEEP_IT: &str = "It opens on any phone. Do not share it: anyone who has it can use the tickets.";

/// Looks of a link that is to be pressed.
const BUTTON: &str =
    "display:inline-block;padding:12px 20px;border-radius:8px;background:#1d1b18;color:#fff;text-decoration:none";

/// A line of strangers inside the HTML. `bdi` keeps a name of one script from reordering the words beside it.
struct Safe<'t>(&'t str);

impl Display for Safe<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<bdi>{}</bdi>", Escaped(self.0))
    }
}

pub(super) fn as_html(words: &MailText<'_>) -> String {
    let mut html = String::with_capacity(HTML_BYTES);
    // Writing to a String cannot fail.
    let _infallible = put_html(&mut html, words);
    html
}

/// Styles are inline because mail programs drop everything else.
fn put_html(html: &mut String, words: &MailText<'_>) -> fmt::Result {
    write!(
        html,
        r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Your tickets</title></head>
<body style="margin:0;padding:24px;background:#f4f2ee;color:#1d1b18;font:16px/1.5 system-ui,sans-serif">
<div style="max-width:480px;margin:0 auto;padding:24px;background:#fff;border-radius:12px">
<h1 style="margin:0 0 4px;font-size:24px;line-height:1.2">{film}</h1>
<p style="margin:0">{starts}<br>{place}</p>
<table role="presentation" style="margin:16px 0;border-collapse:collapse">"#,
        film = Safe(&words.film),
        starts = Safe(&words.starts),
        place = Safe(&words.place),
    )?;
    put_rows(html, words)?;
    html.push_str("</table>\n");
    if words.shows_qr {
        let alt = "QR code of your tickets, to show at the door";
        writeln!(
            html,
            "<p style=\"margin:0 0 16px\"><img src=\"cid:{QR_ID}\" alt=\"{alt}\" width=\"240\" height=\"240\"></p>"
        )?;
    }
    html.push_str("<p style=\"margin:0 0 24px;color:#555\">");
    let holder = Safe(&words.holder);
    match words.addressee {
        Addressee::Buyer { receipt, .. } => {
            write!(html, "For {holder} · paid {}", Escaped(&receipt.breakdown.total.to_string()))?;
        }
        Addressee::Holder { .. } => write!(html, "For {holder}, from {}", Safe(&words.from))?,
    }
    writeln!(html, " · booking {}</p>", Safe(&words.reference))?;
    if let Addressee::Buyer { ticket_url, .. } = words.addressee {
        let url = Escaped(ticket_url);
        write!(html, "<p style=\"margin:0\"><a href=\"{url}\" style=\"{BUTTON}\">Open your tickets</a></p>")?;
        write!(html, "\n<p style=\"margin:16px 0 0;color:#555;font-size:14px\">{KEEP_IT}</p>")?;
    }
    if words.has_attachments {
        write!(html, "\n<p style=\"margin:16px 0 0;color:#555;font-size:14px\">{ATTACHED}</p>")?;
    }
    html.push_str("\n</div></body></html>\n");
    Ok(())
}

/// A row for each seat, the buyer's with its price, the friend's with its ticket; then the parts of the total.
fn put_rows(html: &mut String, words: &MailText<'_>) -> fmt::Result {
    match words.addressee {
        Addressee::Buyer { receipt, .. } => {
            for (seat, (_, _, price)) in words.seats.iter().zip(receipt.lines()) {
                put_seat(html, seat)?;
                put_amount(html, price)?;
                html.push_str("</tr>");
            }
            for (name, amount) in receipt.breakdown.parts(PRICE_PART_NAMES) {
                write!(html, "<tr><td colspan=\"2\" style=\"padding:4px 16px 4px 0;color:#555\">{name}</td>")?;
                put_amount(html, amount)?;
                html.push_str("</tr>");
            }
        }
        Addressee::Holder { links, .. } => {
            let links = links.iter().map(Some).chain(std::iter::repeat(None));
            for (seat, link) in words.seats.iter().zip(links) {
                put_seat(html, seat)?;
                if let Some(link) = link {
                    let link = Escaped(link);
                    write!(html, "<td style=\"padding:4px 0 4px 16px\"><a href=\"{link}\">Open the ticket</a></td>")?;
                }
                html.push_str("</tr>");
            }
        }
    }
    Ok(())
}

/// Begins the row of a seat: its name and category.
fn put_seat(html: &mut String, (label, category): &(String, String)) -> fmt::Result {
    let (label, category) = (Safe(label), Safe(category));
    write!(html, "<tr><td style=\"padding:4px 16px 4px 0;font-weight:700\">{label}</td>")?;
    write!(html, "<td style=\"padding:4px 0;color:#555\">{category}</td>")
}

fn put_amount(html: &mut String, amount: Money) -> fmt::Result {
    let amount = amount.to_string();
    write!(html, "<td style=\"padding:4px 0 4px 16px;text-align:right\">{}</td>", Escaped(&amount))
}
