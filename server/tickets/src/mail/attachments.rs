//! Attachments of a ticket mail: the code to show at the door as a picture, the tickets as a file to print, the show as an
//! entry for the calendar. One that cannot be made is left out: the mail's links open the same.

use lettre::message::header::ContentType;
use lettre::message::{Attachment, MultiPart, SinglePart};

use super::super::calendar::{self, CalendarEntry};
use super::super::pdf::{DrawnSheet, Sheet};
use super::super::png;

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
    /// Makes the files. The code for all tickets is drawn once, for picture and PDF. For a thread that may block.
    pub(super) fn files(&self) -> AttachedFiles<'_> {
        let drawn = DrawnSheet::of(&self.sheet);
        let drawn = drawn.inspect_err(|cause| tracing::error!(%cause, "draw the QR codes for a mail failed")).ok();
        let write = |drawn: &DrawnSheet<'_>| {
            let pdf = drawn.write();
            pdf.inspect_err(|cause| tracing::error!(%cause, "write the ticket PDF for a mail failed")).ok()
        };
        AttachedFiles {
            reference: &self.sheet.reference,
            qr_png: drawn.as_ref().and_then(DrawnSheet::code).map(png::of_drawing),
            pdf: drawn.as_ref().and_then(write),
            calendar: calendar::file(&self.entry),
        }
    }
}

/// The attachments as files.
pub(super) struct AttachedFiles<'a> {
    reference: &'a str,
    /// The picture of the one code for all tickets.
    pub(super) qr_png: Option<Vec<u8>>,
    pdf: Option<Vec<u8>>,
    calendar: String,
}

impl AttachedFiles<'_> {
    /// The mail: its text and HTML, the picture inline, and the files attached.
    pub(super) fn around(self, text: String, html: String) -> MultiPart {
        let html = SinglePart::html(html);
        let words = MultiPart::alternative().singlepart(SinglePart::plain(text));
        let words = match self.qr_png.zip(kind("image/png")) {
            Some((picture, kind)) => {
                let picture = Attachment::new_inline(QR_ID.to_owned()).body(picture, kind);
                words.multipart(MultiPart::related().singlepart(html).singlepart(picture))
            }
            None => words.singlepart(html),
        };
        let mut mail = MultiPart::mixed().multipart(words);
        let name = self.reference;
        if let Some((file, kind)) = self.pdf.zip(kind("application/pdf")) {
            mail = mail.singlepart(Attachment::new(format!("rowlock-{name}.pdf")).body(file, kind));
        }
        if let Some(kind) = kind("text/calendar; charset=utf-8; method=PUBLISH") {
            mail = mail.singlepart(Attachment::new(format!("rowlock-{name}.ics")).body(self.calendar, kind));
        }
        mail
    }
}

fn kind(text: &str) -> Option<ContentType> {
    ContentType::parse(text).ok()
}
