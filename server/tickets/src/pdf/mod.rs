//! Tickets as a PDF, to print or to keep: three to a sheet of A4, the whole party's first, the buyer's receipt last.
//!
//! Titles, zones and names come in any script. The fonts in `../fonts` cover those that are written today, shaped as each
//! script needs; only the letters that are used go into the file. A character that no font has is drawn as a box with its
//! code point, counted and logged, and the ticket states that the QR code has the full name if it has.

mod canvas;
mod card;
mod fonts;
mod text;
mod wrap;

use domain::api::Receipt;
use krilla::Document;
use krilla::metadata::Metadata;
use krilla::page::PageSettings;
use tokio::sync::Semaphore;

use self::canvas::Canvas;
use self::card::Card;
use self::fonts::Han;
use super::Ticket;
use super::qr::{self, Drawing};

/// Size of a sheet, points: A4.
const SHEET: (f32, f32) = (595.0, 842.0);
/// Cards on a sheet.
const CARDS_PER_SHEET: usize = 3;
/// Maximum number of files made concurrently: shaping and embedding fonts uses the CPU, and sales have priority.
const MAX_CONCURRENT_FILES: usize = 2;

static SLOTS: Semaphore = Semaphore::const_new(MAX_CONCURRENT_FILES);

/// The content of the file.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// Short name of the booking.
    pub reference: String,
    /// The seat-holder.
    pub holder: String,
    /// The film or concert.
    pub film: String,
    /// Hue of its poster, degrees.
    pub hue: u16,
    /// When it starts, there.
    pub starts: String,
    /// Theatre.
    pub theatre: String,
    /// Street address and city.
    pub address: String,
    /// Screen.
    pub screen: String,
    /// Format and language.
    pub format: String,
    /// The tickets row by row and by the number of the seat, at least one.
    pub tickets: Vec<Ticket>,
    /// The receipt; only the buyer's file has it.
    pub receipt: Option<Receipt>,
}

impl Sheet {
    /// The texts that people wrote.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let of_tickets = self.tickets.iter().flat_map(|ticket| [&ticket.label, &ticket.category]);
        let of_show = [&self.holder, &self.film, &self.theatre, &self.address, &self.screen, &self.format];
        of_show.into_iter().chain(of_tickets).map(String::as_str)
    }
}

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum PdfError {
    /// The text of a code is too long; see [`qr::MAX_TEXT_BYTES`].
    #[error(transparent)]
    Qr(#[from] qr::TooLong),
    /// The fonts or the numbers cannot be written.
    #[error("the file cannot be written: {0}")]
    Unwritable(String),
}

/// Makes the file on a blocking thread.
///
/// # Errors
/// [`PdfError`].
pub async fn file(sheet: Sheet) -> Result<Vec<u8>, PdfError> {
    // The semaphore is never closed; the deadline is that of the request.
    let slot = SLOTS.acquire().await.map_err(|closed| PdfError::Unwritable(closed.to_string()))?;
    let work = move || {
        // The work continues when its caller is gone: its slot is freed when it ends.
        let _slot = slot;
        write(&sheet)
    };
    tokio::task::spawn_blocking(work).await.map_err(|panicked| PdfError::Unwritable(panicked.to_string()))?
}

fn write(sheet: &Sheet) -> Result<Vec<u8>, PdfError> {
    DrawnSheet::of(sheet)?.write()
}

/// A sheet with its QR codes. Drawing them takes most of the time of a card: call it on a blocking thread.
pub(super) struct DrawnSheet<'s> {
    sheet: &'s Sheet,
    cards: Vec<Card>,
}

impl<'s> DrawnSheet<'s> {
    /// Draws the codes.
    ///
    /// # Errors
    /// [`PdfError::Qr`].
    pub(super) fn of(sheet: &'s Sheet) -> Result<Self, PdfError> {
        Ok(Self { sheet, cards: card::cards(sheet)? })
    }

    /// The one code for all tickets; `None` if there are no tickets.
    pub(super) fn code(&self) -> Option<&Drawing> {
        self.cards.first().map(|card| &card.drawing)
    }

    /// The file.
    ///
    /// # Errors
    /// [`PdfError::Unwritable`].
    pub(super) fn write(&self) -> Result<Vec<u8>, PdfError> {
        let sheet = self.sheet;
        let mut document = Document::new();
        let title = format!("{} {}", if sheet.tickets.len() == 1 { "Ticket" } else { "Tickets" }, sheet.reference);
        document.set_metadata(Metadata::new().title(title).creator("Rowlock".to_owned()).language("en".to_owned()));
        let han = Han::of(sheet.texts());
        let count = self.cards.len() + usize::from(sheet.receipt.is_some());
        for first in (0..count).step_by(CARDS_PER_SHEET) {
            let size =
                PageSettings::from_wh(SHEET.0, SHEET.1).ok_or_else(|| PdfError::Unwritable("no size".to_owned()))?;
            let mut page = document.start_page_with(size);
            let mut canvas = Canvas::new(page.surface(), han);
            card::heading(&mut canvas, sheet);
            for number in first..count.min(first + CARDS_PER_SHEET) {
                let place = number - first;
                match (self.cards.get(number), &sheet.receipt) {
                    (Some(card), _) => card.draw(&mut canvas, sheet, place),
                    (None, Some(receipt)) => card::draw_receipt(&mut canvas, receipt, place),
                    (None, None) => {}
                }
            }
            canvas.finish();
            page.finish();
        }
        document.finish().map_err(|cause| PdfError::Unwritable(format!("{cause:?}")))
    }
}

#[cfg(test)]
mod tests {
    use domain::api::SeatLine;
    use domain::money::{Currency, Money};
    use domain::pricing::Breakdown;

    use super::*;
    use crate::code::{group_qr_text, qr_text};

    /// Largest file we mean to make for ten tickets, bytes.
    const MOST_BYTES: usize = 400_000;

    fn sheet(holder: &str, count: usize) -> Sheet {
        let ticket = |number| Ticket {
            label: format!("Circle C{number}"),
            category: "Gold".to_owned(),
            code: "7ZZZZZZZZZZZZZZZZZZZZZZZZZ".to_owned(),
        };
        Sheet {
            reference: "K7QM-2XPA".to_owned(),
            holder: holder.to_owned(),
            film: "The Paper Tiger's Waltz, with an unusually long subtitle that has to be cut somewhere".to_owned(),
            hue: 262,
            starts: "Sat 21 Nov, 20:15".to_owned(),
            theatre: "Lichtburg".to_owned(),
            address: "Kettwiger Straße 36, Essen".to_owned(),
            screen: "Saal 1".to_owned(),
            format: "2D, German".to_owned(),
            tickets: (1..=count).map(ticket).collect(),
            receipt: None,
        }
    }

    #[test]
    fn every_name_makes_a_file_that_is_small_enough_to_mail() {
        let names =
            ["Anna Ölçer", "ليلى الشامي", "प्रियंका क्षत्रिय", "Ωμέγα Ж", "דנה לוי", "山田太郎 🎬", "", &"W".repeat(400)];
        for name in names {
            let file = write(&sheet(name, 10)).expect("a file");
            assert!(file.starts_with(b"%PDF-"), "{name}");
            assert!(file.len() < MOST_BYTES, "{name}: {} bytes", file.len());
        }
    }

    #[test]
    fn the_note_about_the_full_name_is_there_only_if_the_code_has_it() {
        let name_it = |holder: &str| -> Vec<bool> {
            card::cards(&sheet(holder, 2)).expect("they fit").iter().map(|card| card.names_holder).collect()
        };
        assert_eq!(name_it(" 山田太郎 "), [true; 3]);
        assert_eq!(name_it(&"W".repeat(41)), [false; 3]);
        assert_eq!(name_it(&"山".repeat(40)), [false, true, true], "the party's code has less room");
    }

    #[test]
    fn the_card_of_a_party_names_every_seat() {
        let labels: Vec<String> = (1..=10).map(|number| format!("Circle left C{number}")).collect();
        for count in 1..=labels.len() {
            let seats: Vec<&str> = labels[..count].iter().map(String::as_str).collect();
            let lines = card::seat_lines(&seats);
            assert_eq!(lines.join(", "), seats.join(", "));
            // No line is cut: it fits in small letters.
            assert!(lines.len() <= 3 && lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
        }
    }

    #[test]
    fn the_one_code_for_all_tickets_is_the_first() {
        let codes = ["7ZZZZZZZZZZZZZZZZZZZZZZZZZ"; 3];
        let (one, party) = (qr_text(codes[0], "Circle C1", "Ana"), group_qr_text(&codes, "Ana"));
        for (count, text) in [(0, None), (1, Some(one)), (3, Some(party))] {
            let sheet = sheet("Ana", count);
            let drawn = DrawnSheet::of(&sheet).expect("they fit");
            let expected = text.map(|text| qr::drawing(&text).expect("it fits"));
            assert_eq!(drawn.code(), expected.as_ref(), "{count} tickets");
        }
    }

    #[test]
    fn a_receipt_after_full_sheets_is_on_one_more() {
        let [price, zero, total] =
            [1_250, 0, 12_500].map(|minor| Money::new(minor, Currency::parse("EUR").expect("a code")));
        let line = |seat| SeatLine { seat, label: format!("C{seat}"), category: "Gold".to_owned(), price };
        let breakdown = Breakdown { subtotal: total, taxes: zero, fees: zero, total };
        let receipt = Receipt { seats: (0..10).map(line).collect(), places: Vec::new(), breakdown };
        let pages = |count, receipt| {
            let file = write(&Sheet { receipt, ..sheet("Ana", count) }).expect("a file");
            let text = String::from_utf8_lossy(&file);
            let count_of = |name: &str| text.matches(name).count();
            count_of("/Type /Page") - count_of("/Type /Pages")
        };
        // Two tickets have three cards: one for each, and the party's.
        for (count, without, with) in [(1, 1, 1), (2, 1, 2), (5, 2, 3), (8, 3, 4)] {
            let drawn = (pages(count, None), pages(count, Some(receipt.clone())));
            assert_eq!(drawn, (without, with), "{count} tickets");
        }
    }

    #[test]
    fn a_party_has_one_card_more_than_seats_and_a_single_guest_has_one() {
        let cards = |count| card::cards(&sheet("Ana", count)).expect("they fit").len();
        assert_eq!((cards(1), cards(2), cards(10)), (1, 3, 11));
    }
}
