//! Attachments of a ticket mail: the code to show at the door as a picture, the tickets as a file to print, the show as an
//! entry for the calendar. One that cannot be made is left out: the mail's links open the same.

use lettre::message::header::ContentType;
use lettre::message::{Attachment, MultiPart, SinglePart};

use super::super::calendar::{self, CalendarEntry};
use super::super::pdf::{self, Sheet};
use super::super::{code, png};

/// Content id of the picture, by which the HTML shows it.
pub(super) const QR_ID: &str = "tickets-qr";

/// The sources of the attachments.
#[derive(Clone, Debug)]
pub struct Attachments {
    /// The tickets, at least one.
    pub sheet: Sheet,
    /// The show.
    pub entry: CalendarEntry,
}

impl Attachments {
    /// The picture of the one code for all tickets.
    pub(super) fn qr_png(&self) -> Option<Vec<u8>> {
        let Sheet { tickets, holder, .. } = &self.sheet;
        let text = match tickets.as_slice() {
            [] => return None,
            [one] => code::qr_text(&one.code, &one.label, holder),
            all => code::group_qr_text(&all.iter().map(|ticket| ticket.code.as_str()).collect::<Vec<_>>(), holder),
        };
        let drawn = png::of_text(&text);
        drawn.inspect_err(|cause| tracing::error!(%cause, "draw a QR code for a mail failed")).ok()
    }

    /// The mail: its text and HTML, the picture inline, and the files attached. For a thread that may block.
    pub(super) fn around(&self, text: String, html: String, qr_png: Option<Vec<u8>>) -> MultiPart {
        let html = SinglePart::html(html);
        let words = MultiPart::alternative().singlepart(SinglePart::plain(text));
        let words = match qr_png.zip(kind("image/png")) {
            Some((picture, kind)) => {
                let picture = Attachment::new_inline(QR_ID.to_owned()).body(picture, kind);
                words.multipart(MultiPart::related().singlepart(html).singlepart(picture))
            }
            None => words.singlepart(html),
        };
        let mut mail = MultiPart::mixed().multipart(words);
        let name = &self.sheet.reference;
        match pdf::write(&self.sheet) {
            Ok(file) => {
                if let Some(kind) = kind("application/pdf") {
                    mail = mail.singlepart(Attachment::new(format!("rowlock-{name}.pdf")).body(file, kind));
                }
            }
            Err(cause) => tracing::error!(%cause, "write the ticket PDF for a mail failed"),
        }
        if let Some(kind) = kind("text/calendar; charset=utf-8; method=PUBLISH") {
            let file = calendar::file(&self.entry);
            mail = mail.singlepart(Attachment::new(format!("rowlock-{name}.ics")).body(file, kind));
        }
        mail
    }
}

fn kind(text: &str) -> Option<ContentType> {
    ContentType::parse(text).ok()
}
