//! Tickets for the door, one per seat, on a phone or on paper.

use domain::api::Receipt;
use language::{listed, say};
use leptos::prelude::*;

use super::receipt::receipt_card;
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, OfflinePage, Page};

/// The show of a booking or ticket.
#[derive(Clone, Debug)]
pub struct ShowFacts {
    /// Title of the film.
    pub film: String,
    /// Hue of its poster, degrees.
    pub hue: u16,
    /// Theatre.
    pub theatre: String,
    /// Street address of the theatre, and its city.
    pub address: String,
    /// Screen.
    pub screen: String,
    /// Start in the theatre's time zone: `Sat 21 Nov, 20:15`.
    pub starts: String,
    /// `2D`, `3D`, `IMAX`, `LIVE`, and the language.
    pub format: String,
}

impl ShowFacts {
    /// As a block of text.
    pub fn view(self) -> impl IntoView {
        view! {
            <div class="show-block">
                <p class="show-block-film"><bdi>{self.film}</bdi></p>
                <p class="show-block-when">{self.starts}</p>
                <p><bdi>{self.theatre}</bdi>{say!("list.comma")}<bdi>{self.screen}</bdi></p>
                <p class="quiet small"><bdi>{self.address}</bdi></p>
                <p class="quiet small"><bdi>{self.format}</bdi></p>
            </div>
        }
    }
}

/// The ticket of one seat.
#[derive(Clone, Debug)]
pub struct SeatTicket {
    /// The seat's name for people.
    pub label: String,
    /// Its category's name for people.
    pub category: String,
    /// The QR code: an SVG element made by the server. Trusted: inserted without escaping.
    pub qr_svg: String,
    /// The code in letters, for manual entry.
    pub code: String,
}

/// One code for a whole party.
#[derive(Clone, Debug)]
pub struct GroupTicket {
    /// The seats' names for people, in the order of the room.
    pub labels: Vec<String>,
    /// The QR code: an SVG element made by the server. Trusted: inserted without escaping.
    pub qr_svg: String,
}

/// The page of a booking's tickets.
#[derive(Clone, Debug)]
pub struct TicketsPage {
    /// Short name of the booking.
    pub reference: String,
    /// Path of the booking's page, for its owner.
    pub booking: Option<String>,
    /// Path of the tickets as PDF.
    pub file: String,
    /// Path of the calendar entry.
    pub calendar: String,
    /// The ticket holder.
    pub holder: String,
    /// The show.
    pub show: ShowFacts,
    /// One code for all seats, if there are several.
    pub group: Option<GroupTicket>,
    /// A ticket per seat, in the order of the room.
    pub seats: Vec<SeatTicket>,
    /// The receipt; `None` for the holder of a single ticket.
    pub receipt: Option<Receipt>,
}

impl Page for TicketsPage {
    fn head(&self) -> Head {
        Head {
            title: say!("ticket.title", reference = &self.reference),
            description: say!("ticket.description"),
            is_private: true,
            offline: Some(OfflinePage::Ticket),
            ..Head::default()
        }
    }

    fn view(self) -> Markup {
        let count = self.seats.len();
        let (show, holder, reference) = (self.show, self.holder, self.reference);
        let group = self.group.map(|group| group_card(group, show.clone(), reference.clone()));
        let cards = (1..)
            .zip(self.seats)
            .map(|(number, seat)| card(seat, (number, count), show.clone(), holder.clone(), reference.clone()))
            .collect_view();
        view! {
            <div class="tickets">
                <header class="tickets-head">
                    {self.booking.map(|booking| view! { <p class="crumbs"><a href=booking>{say!("ticket.booking")}</a></p> })}
                    <h1>{say!("ticket.heading", tickets = count)}</h1>
                    <p class="quiet tickets-hint">{say!("ticket.hint")}</p>
                    // Filled in by the script that stores the page for offline use.
                    <p class="tickets-kept" id="ticket-kept" role="status" data-testid="kept" data-words=say!("ticket.kept")></p>
                    <p class="tickets-keep">
                        <a class="button button-quiet" data-testid="ticket-pdf" href=self.file download="tickets.pdf">{say!("ticket.pdf")}</a>
                        <a class="button button-quiet" data-testid="calendar" href=self.calendar download="ticket.ics">{say!("ticket.calendar")}</a>
                    </p>
                </header>
                {group}
                {cards}
                {self.receipt.map(receipt_card)}
            </div>
        }
        .into_markup()
    }
}

/// Required contrast of white letters with the background: WCAG 2.2, 1.4.3, and a little more, because browsers round
/// colours.
const MIN_CONTRAST: f64 = 4.6;
/// Highest lightness of the glow, percent.
const MAX_GLOW_PERCENT: u16 = 44;
/// Opacity of both waves of glow where they overlap: 1 - (1 - 0.55) (1 - 0.5).
const GLOW_SHARE: f64 = 0.775;

/// Hue of the glow on a ticket's top, degrees.
fn glow_hue(hue: u16) -> u16 {
    (hue + 40) % 360
}

/// Lightness of the glow, percent. Yellow and green look brighter than blue, so they get less.
fn glow_lightness(hue: u16) -> u16 {
    (0..=MAX_GLOW_PERCENT).rev().find(|percent| contrast(hue, *percent) >= MIN_CONTRAST).unwrap_or(0)
}

/// Contrast of white letters with the background under a glow of this lightness (WCAG 2.2, relative luminance).
fn contrast(hue: u16, percent: u16) -> f64 {
    let ground = hsl(hue, 0.45, 0.26);
    let glow = hsl(glow_hue(hue), 0.6, f64::from(percent) / 100.0);
    let mixed = |part: usize| glow[part] * GLOW_SHARE + ground[part] * (1.0 - GLOW_SHARE);
    let linear = |part: usize| match mixed(part) {
        dark if dark <= 0.04045 => dark / 12.92,
        bright => ((bright + 0.055) / 1.055).powf(2.4),
    };
    1.05 / (0.2126 * linear(0) + 0.7152 * linear(1) + 0.0722 * linear(2) + 0.05)
}

/// Red, green and blue from 0 to 1 (CSS Color 4, section 7.1).
fn hsl(hue: u16, saturation: f64, lightness: f64) -> [f64; 3] {
    [0.0, 8.0, 4.0].map(|offset| {
        let k = (offset + f64::from(hue % 360) / 30.0) % 12.0;
        lightness - saturation * lightness.min(1.0 - lightness) * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0)
    })
}

/// The top of a card: the film's colour, title and start.
fn card_top(hue: u16, film: String, starts: String) -> impl IntoView {
    let ground = format!("hsl({hue} 45% 26%)");
    let glow = format!("hsl({} 60% {}%)", glow_hue(hue), glow_lightness(hue));
    view! {
        <div class="ticket-top">
            // Colours as attributes: the content security policy forbids style attributes.
            <svg class="ticket-ground" viewBox="0 0 400 130" preserveAspectRatio="none" aria-hidden="true" focusable="false">
                <rect width="400" height="130" fill=ground></rect>
                <path d="M0 96 Q200 20 400 96 V130 H0 Z" fill=glow.clone() opacity="0.55"></path>
                <path d="M0 116 Q200 58 400 116 V130 H0 Z" fill=glow opacity="0.5"></path>
            </svg>
            <p class="ticket-film"><bdi>{film}</bdi></p>
            <p class="ticket-when">{starts}</p>
        </div>
    }
}

/// The card of a whole party, before the others: one scan for all.
fn group_card(group: GroupTicket, show: ShowFacts, reference: String) -> impl IntoView {
    let count = group.labels.len();
    view! {
        <article class="ticket ticket-group" data-testid="group-ticket">
            {card_top(show.hue, show.film, show.starts)}
            <dl class="ticket-facts">
                <div class="ticket-party"><dt>{say!("ticket.together")}</dt><dd>{listed(&group.labels.iter().map(String::as_str).collect::<Vec<_>>())}</dd></div>
                <div><dt>{say!("ticket.screen")}</dt><dd><bdi>{show.screen}</bdi></dd></div>
                <div><dt>{say!("ticket.theatre")}</dt><dd><bdi>{show.theatre}</bdi></dd></div>
            </dl>
            <div class="ticket-qr" data-testid="group-qr" inner_html=group.qr_svg></div>
            <p class="ticket-code ticket-words">{say!("ticket.one_scan")}</p>
            <p class="ticket-foot"><span>{reference}</span><span>{say!("ticket.all", count = count)}</span></p>
        </article>
    }
}

/// A ticket: the film's colour on top, a large seat name, and the code.
fn card(
    seat: SeatTicket,
    (number, count): (usize, usize),
    show: ShowFacts,
    holder: String,
    reference: String,
) -> impl IntoView {
    view! {
        <article class="ticket" data-testid="ticket">
            {card_top(show.hue, show.film, show.starts)}
            <dl class="ticket-facts">
                <div class="ticket-seat"><dt>{say!("ticket.seat")}</dt><dd data-testid="ticket-seat"><bdi>{seat.label}</bdi></dd></div>
                <div><dt>{say!("ticket.screen")}</dt><dd><bdi>{show.screen}</bdi></dd></div>
                <div><dt>{say!("ticket.theatre")}</dt><dd><bdi>{show.theatre}</bdi><bdi class="ticket-address">{show.address}</bdi></dd></div>
                <div><dt>{say!("ticket.category")}</dt><dd><bdi>{seat.category}</bdi></dd></div>
                <div><dt>{say!("ticket.format")}</dt><dd><bdi>{show.format}</bdi></dd></div>
                <div><dt>{say!("ticket.name")}</dt><dd><bdi>{holder}</bdi></dd></div>
            </dl>
            <div class="ticket-qr" data-testid="qr" inner_html=seat.qr_svg></div>
            <p class="ticket-code">{seat.code}</p>
            <p class="ticket-foot"><span>{reference}</span><span>{say!("ticket.place_in_row", number = number, count = count)}</span></p>
        </article>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render;

    fn tickets(labels: &[&str]) -> TicketsPage {
        let show = ShowFacts {
            film: "Tide".to_owned(),
            hue: 30,
            theatre: "Aurora".to_owned(),
            address: "Rua Garrett 10".to_owned(),
            screen: "Screen 1".to_owned(),
            starts: "Sat 21 Nov, 20:15".to_owned(),
            format: "2D".to_owned(),
        };
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let group = Some(GroupTicket { labels, qr_svg: String::new() });
        let (reference, booking, file, calendar, holder) = Default::default();
        TicketsPage { reference, booking, file, calendar, holder, show, group, seats: vec![], receipt: None }
    }

    #[test]
    fn white_letters_have_enough_contrast_for_every_hue() {
        assert!(contrast(50, MAX_GLOW_PERCENT) < 4.5, "the colour that was too bright");
        for hue in 0..360 {
            let lightness = glow_lightness(hue);
            assert!(contrast(hue, lightness) >= 4.5 && lightness > 20, "{hue}: {lightness} %");
        }
    }

    #[test]
    fn a_group_ticket_names_every_seat() {
        let labels = ["K1", "K2", "K3", "K4", "K5", "K6", "K7", "K8", "K9", "K10"];
        let html = render(tickets(&labels));
        assert!(html.contains("<dd>K1, K2, K3, K4, K5, K6, K7, K8, K9 and K10</dd>"), "{html}");
    }
}
