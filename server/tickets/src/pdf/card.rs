//! The cards of a sheet: one a ticket, in front of them one for the whole party, behind them the receipt.

use domain::api::Receipt;

use super::canvas::{Canvas, Colour, FRAME, INK, QUIET, Style, WHITE, hsl};
use super::fonts::Weight;
use super::wrap::{LEADING, SMALLEST, TextBox};
use super::{PdfError, SHEET, Sheet};
use crate::PRICE_PART_NAMES;
use crate::code::{group_qr_text, qr_text};
use crate::qr::{self, Drawing};

/// Empty margin of the sheet, points.
const MARGIN: f32 = 40.0;
/// Top of the first card.
const FIRST_CARD: f32 = 70.0;
/// Height of a card, and from card to card.
const HEIGHT: f32 = 226.0;
const STEP: f32 = 242.0;
/// Height of the coloured band.
const BAND: f32 = 62.0;
/// Width and height of the QR code.
const CODE: f32 = 140.0;
/// Space between a card's border and its text.
const PADDING: f32 = 18.0;

/// Seats of a party listed in one line of large letters; more are listed in lines of small ones.
const MOST_LARGE_SEATS: usize = 3;
/// Height of the title: down to where the time begins, from above the base line of a title in one line.
const TITLE_HEIGHT: f32 = 33.0;
const TITLE_RISE: f32 = 23.0;
/// Height of the seat: up to the next label.
const SEAT_HEIGHT: f32 = 25.0;
/// Height of a fact: two lines of the smallest letters.
const FACT_HEIGHT: f32 = 2.0 * SMALLEST * LEADING;
/// Lines of a fact begin so far above its base line, parts of its size.
const FACT_RISE: f32 = 0.9;

/// Lines for the seats of a party: their height together is that of one line of large letters.
const SEAT_LINES: usize = 3;
/// Height of each of them, points.
const SEAT_LINE: f32 = 9.5;

/// Height of all lines of a receipt, and of one at most.
const RECEIPT_HEIGHT: f32 = 164.0;
const RECEIPT_LINE: f32 = 15.0;
/// Width of an amount.
const AMOUNT_WIDTH: f32 = 120.0;

/// A card: large text, small print and code.
pub(super) struct Card {
    label: &'static str,
    /// In lines: several only of a party that no line could name.
    seats: Vec<String>,
    category: String,
    code_in_letters: String,
    foot: String,
    pub(super) drawing: Drawing,
    /// True if the code contains the holder's whole name: a very long one is cut there, too.
    pub(super) names_holder: bool,
}

/// The cards of a sheet, the party's first if there is more than one ticket.
pub(super) fn cards(sheet: &Sheet) -> Result<Vec<Card>, PdfError> {
    let count = sheet.tickets.len();
    let names_holder = |text: &str| text.rsplit('|').next() == Some(sheet.holder.trim());
    let mut cards = Vec::with_capacity(count + 1);
    if count > 1 {
        let codes: Vec<&str> = sheet.tickets.iter().map(|ticket| ticket.code.as_str()).collect();
        let seats: Vec<&str> = sheet.tickets.iter().map(|ticket| ticket.label.as_str()).collect();
        let text = group_qr_text(&codes, &sheet.holder);
        cards.push(Card {
            label: "One ticket for everyone",
            seats: seat_lines(&seats),
            category: format!("{count} tickets in one code"),
            code_in_letters: String::new(),
            foot: "For all of you".to_owned(),
            drawing: qr::drawing(&text)?,
            names_holder: names_holder(&text),
        });
    }
    for (number, ticket) in (1..).zip(&sheet.tickets) {
        let text = qr_text(&ticket.code, &ticket.label, &sheet.holder);
        cards.push(Card {
            label: "Seat",
            seats: vec![ticket.label.clone()],
            category: ticket.category.clone(),
            code_in_letters: ticket.code.clone(),
            foot: format!("{number} of {count}"),
            drawing: qr::drawing(&text)?,
            names_holder: names_holder(&text),
        });
    }
    Ok(cards)
}

/// The seats of a party in as few lines as name them all, of about as many seats each.
pub(super) fn seat_lines(seats: &[&str]) -> Vec<String> {
    let lines = if seats.len() > MOST_LARGE_SEATS { SEAT_LINES.min(seats.len()) } else { 1 };
    seats.chunks(seats.len().div_ceil(lines).max(1)).map(|some| some.join(", ")).collect()
}

const fn style(size: f32, weight: Weight, colour: Colour) -> Style {
    Style { size, weight, colour }
}

/// The top of every sheet.
pub(super) fn heading(canvas: &mut Canvas<'_>, sheet: &Sheet) {
    canvas.text((MARGIN, 52.0), "Rowlock", style(16.0, Weight::Bold, INK), TextBox::line(200.0));
    let words = format!("Booking {}. Show the code at the door, on paper or on a screen.", sheet.reference);
    canvas.text(
        (MARGIN + 90.0, 52.0),
        &words,
        style(9.0, Weight::Regular, QUIET),
        TextBox::line(SHEET.0 - 2.0 * MARGIN - 90.0),
    );
}

/// Draws the receipt at this place of the sheet: a line for each seat, then the parts of the total.
pub(super) fn draw_receipt(canvas: &mut Canvas<'_>, receipt: &Receipt, place: usize) {
    let (x, y) = (MARGIN, FIRST_CARD + place as f32 * STEP);
    let width = SHEET.0 - 2.0 * MARGIN;
    let inner = width - 2.0 * PADDING;
    canvas.frame((x, y), (width, HEIGHT), 0.8, FRAME);
    canvas.text((x + PADDING, y + 30.0), "Receipt", style(14.0, Weight::Bold, INK), TextBox::line(inner));
    let seats = receipt.lines().map(|(name, category, price)| (format!("{name}, {category}"), price, Weight::Regular));
    let parts = receipt.breakdown.parts(PRICE_PART_NAMES);
    let parts = parts.map(|(name, amount)| (name.to_owned(), amount, Weight::Regular));
    let total = ("Total".to_owned(), receipt.breakdown.total, Weight::Bold);
    let lines: Vec<_> = seats.chain(parts).chain([total]).collect();
    let height = RECEIPT_LINE.min(RECEIPT_HEIGHT / lines.len() as f32);
    let mut base = y + 38.0;
    for (words, amount, weight) in lines {
        base += height;
        let letters = style(height * 0.7, weight, INK);
        canvas.text((x + PADDING, base), &words, letters, TextBox::line(inner - AMOUNT_WIDTH));
        canvas.text_up_to((x + PADDING + inner, base), &amount.to_string(), letters, AMOUNT_WIDTH);
    }
}

impl Card {
    /// Draws it as the card at this place of the sheet, 0 at the top.
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, sheet: &Sheet, place: usize) {
        let (x, y) = (MARGIN, FIRST_CARD + place as f32 * STEP);
        let width = SHEET.0 - 2.0 * MARGIN;
        canvas.frame((x, y), (width, HEIGHT), 0.8, FRAME);
        canvas.rectangle((x, y), (width, BAND), hsl(sheet.hue, 0.45, 0.26));
        let inner = width - 2.0 * PADDING;
        let title = TextBox { width: inner, rise: TITLE_RISE, height: TITLE_HEIGHT };
        canvas.text((x + PADDING, y + 30.0), &sheet.film, style(20.0, Weight::Bold, WHITE), title);
        canvas.text((x + PADDING, y + 50.0), &sheet.starts, style(12.0, Weight::Regular, WHITE), TextBox::line(inner));
        self.facts(canvas, sheet, (x + PADDING, y + BAND + 20.0), inner - CODE - PADDING);
        let code_x = x + width - PADDING - CODE;
        canvas.qr((code_x, y + BAND + 6.0), CODE, &self.drawing);
        let letters = style(6.5, Weight::Regular, QUIET);
        canvas.text((code_x + 4.0, y + BAND + CODE + 16.0), &self.code_in_letters, letters, TextBox::line(CODE - 8.0));
    }

    fn facts(&self, canvas: &mut Canvas<'_>, sheet: &Sheet, (x, y): (f32, f32), room: f32) {
        let half = room / 2.0;
        let mut fact = |at: (f32, f32), label: &str, value: &str, letters: (f32, Weight), sides: (f32, f32)| {
            let (x, y) = (x + at.0, y + at.1);
            let ((size, weight), (width, height)) = (letters, sides);
            canvas.text((x, y), label, style(7.5, Weight::Regular, QUIET), TextBox::line(width));
            let value_room = TextBox { width, rise: FACT_RISE * size, height };
            canvas.text((x, y + size + 1.0), value, style(size, weight, INK), value_room)
        };
        if let [seats] = &self.seats[..] {
            fact((0.0, 0.0), self.label, seats, (18.0, Weight::Bold), (room, SEAT_HEIGHT));
        } else {
            let letters = (SEAT_LINE - 1.0, Weight::Bold);
            fact((0.0, 0.0), self.label, "", letters, (room, 0.0));
            for (number, seats) in (0_u8..).zip(&self.seats) {
                fact((0.0, SEAT_LINE * f32::from(number)), "", seats, letters, (room, 0.0));
            }
        }
        let theatre = format!("{}, {}", sheet.theatre, sheet.screen);
        let (wide, narrow) = ((room, FACT_HEIGHT), (half - 10.0, FACT_HEIGHT));
        fact((0.0, 36.0), "Theatre", &theatre, (11.0, Weight::Regular), wide);
        fact((0.0, 62.0), "Address", &sheet.address, (9.0, Weight::Regular), wide);
        fact((0.0, 86.0), "Category", &self.category, (10.0, Weight::Regular), narrow);
        fact((half, 86.0), "Format", &sheet.format, (10.0, Weight::Regular), narrow);
        let is_complete = fact((0.0, 112.0), "Name", &sheet.holder, (11.0, Weight::Regular), wide);
        let small = |size| style(size, Weight::Regular, QUIET);
        if !is_complete && self.names_holder {
            canvas.text((x, y + 135.0), "The QR code carries the name in full.", small(7.0), TextBox::line(half));
        }
        let foot = format!("{} · {}", sheet.reference, self.foot);
        canvas.text((x + half, y + 135.0), &foot, small(7.5), TextBox::line(half - 10.0));
    }
}
