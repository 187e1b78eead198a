//! Tickets to show at the door, one a seat, on a phone or on paper.

use leptos::prelude::*;

use crate::say;
use crate::shell::{Head, Kept, Page};

/// What a booking or a ticket is for.
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
    /// When it starts, there: `Sat 21 Nov, 20:15`.
    pub starts: String,
    /// `2D`, `3D`, `IMAX`, `LIVE`, and the language.
    pub format: String,
}

impl ShowFacts {
    /// As a block of text.
    pub fn view(self) -> impl IntoView {
        view! {
            <div class="show-block">
                <p class="show-block-film">{self.film}</p>
                <p class="show-block-when">{self.starts}</p>
                <p>{format!("{}, {}", self.theatre, self.screen)}</p>
                <p class="quiet small">{self.address}</p>
                <p class="quiet small">{self.format}</p>
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
    /// The QR code: an SVG element made by the server. Trusted: it is put into the page as it is.
    pub qr_svg: String,
    /// The code in letters, for when a scanner gives up.
    pub code: String,
}

/// One code for a whole party.
#[derive(Clone, Debug)]
pub struct GroupTicket {
    /// The seats' names for people, in the order of the room.
    pub labels: Vec<String>,
    /// The QR code: an SVG element made by the server. Trusted: it is put into the page as it is.
    pub qr_svg: String,
}

/// The page of a booking's tickets.
#[derive(Clone, Debug)]
pub struct Tickets {
    /// Short name of the booking.
    pub reference: String,
    /// Path of the booking's page, for whoever made it.
    pub booking: Option<String>,
    /// Path of the same as a PDF.
    pub file: String,
    /// Path of the show as an entry for the calendar.
    pub calendar: String,
    /// Who sits there.
    pub holder: String,
    /// What they are for.
    pub show: ShowFacts,
    /// One code for all of them, when there are several.
    pub group: Option<GroupTicket>,
    /// One a seat, in the order of the room.
    pub seats: Vec<SeatTicket>,
}

impl Page for Tickets {
    fn head(&self) -> Head {
        Head {
            title: say!("ticket.title", reference = &self.reference),
            description: say!("ticket.description"),
            private: true,
            kept: Some(Kept::Ticket),
            ..Head::default()
        }
    }

    fn view(self) -> AnyView {
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
                    // Filled in by the script that keeps the page; without it this stays empty.
                    <p class="tickets-kept" id="ticket-kept" role="status" data-testid="kept" data-words=say!("ticket.kept")></p>
                    <p class="tickets-keep">
                        <a class="button button-quiet" data-testid="ticket-pdf" href=self.file download="tickets.pdf">{say!("ticket.pdf")}</a>
                        <a class="button button-quiet" data-testid="calendar" href=self.calendar download="ticket.ics">{say!("ticket.calendar")}</a>
                    </p>
                </header>
                {group}
                {cards}
            </div>
        }
        .into_any()
    }
}

/// The top of a card: the film's colour, its title, when it starts.
fn card_top(hue: u16, film: String, starts: String) -> impl IntoView {
    let ground = format!("hsl({hue} 45% 26%)");
    let glow = format!("hsl({} 60% 44%)", (hue + 40) % 360);
    view! {
        <div class="ticket-top">
            // Colours by attribute: the content security policy refuses style attributes.
            <svg class="ticket-ground" viewBox="0 0 400 130" preserveAspectRatio="none" aria-hidden="true" focusable="false">
                <rect width="400" height="130" fill=ground></rect>
                <path d="M0 96 Q200 20 400 96 V130 H0 Z" fill=glow.clone() opacity="0.55"></path>
                <path d="M0 116 Q200 58 400 116 V130 H0 Z" fill=glow opacity="0.5"></path>
            </svg>
            <p class="ticket-film">{film}</p>
            <p class="ticket-when">{starts}</p>
        </div>
    }
}

/// The card of a whole party: in front of the others, one scan for all.
fn group_card(group: GroupTicket, show: ShowFacts, reference: String) -> impl IntoView {
    let count = group.labels.len();
    view! {
        <article class="ticket ticket-group" data-testid="group-ticket">
            {card_top(show.hue, show.film, show.starts)}
            <dl class="ticket-facts">
                <div class="ticket-party"><dt>{say!("ticket.together")}</dt><dd>{group.labels.join(", ")}</dd></div>
                <div><dt>{say!("ticket.screen")}</dt><dd>{show.screen}</dd></div>
                <div><dt>{say!("ticket.theatre")}</dt><dd>{show.theatre}</dd></div>
            </dl>
            <div class="ticket-qr" data-testid="group-qr" inner_html=group.qr_svg></div>
            <p class="ticket-code ticket-words">{say!("ticket.one_scan")}</p>
            <p class="ticket-foot"><span>{reference}</span><span>{say!("ticket.all", count = count)}</span></p>
        </article>
    }
}

/// A ticket: the film's colour on top, the seat large, the code where a scanner finds it.
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
                <div class="ticket-seat"><dt>{say!("ticket.seat")}</dt><dd data-testid="ticket-seat">{seat.label}</dd></div>
                <div><dt>{say!("ticket.screen")}</dt><dd>{show.screen}</dd></div>
                <div><dt>{say!("ticket.theatre")}</dt><dd>{show.theatre}<span class="ticket-address">{show.address}</span></dd></div>
                <div><dt>{say!("ticket.category")}</dt><dd>{seat.category}</dd></div>
                <div><dt>{say!("ticket.format")}</dt><dd>{show.format}</dd></div>
                <div><dt>{say!("ticket.name")}</dt><dd><bdi>{holder}</bdi></dd></div>
            </dl>
            <div class="ticket-qr" data-testid="qr" inner_html=seat.qr_svg></div>
            <p class="ticket-code">{seat.code}</p>
            <p class="ticket-foot"><span>{reference}</span><span>{say!("ticket.place_in_row", number = number, count = count)}</span></p>
        </article>
    }
}
