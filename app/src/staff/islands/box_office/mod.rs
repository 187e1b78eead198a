//! Islands of the box office: the live list of shows, and the seat map for selling.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and does not document it")]

mod exchange;
mod panel;
mod payment;
mod selling;
mod shows;

use domain::api::box_office::CounterBooking;
use domain::till::Means;
pub use exchange::BookingToExchange;
use language::say;
use leptos::either::Either;
use leptos::html::Div;
use leptos::mount::mount_to;
use leptos::prelude::*;
pub use shows::StaffShows;
use uuid::Uuid;
use wasm_bindgen::JsCast;

use self::selling::CounterSaleState;
use crate::seat_map::session::MapSession;
use crate::seat_map::{details, room, skeleton, start};

/// Groups of messages these islands use. Their pages carry them.
pub const WORDS: &[&str] = &["map", "party", "cart", "pay", "problem", "staff_problem", "common", "box_office", "date"];

/// The seat map of a show with the counter beside it. Mounted, not hydrated, like the customers' seat map.
#[island]
pub fn StaffCounter(
    theatre: String,
    show: Uuid,
    /// True if the show is no longer on sale: seats can only be looked up.
    for_looking: bool,
    /// The booking being exchanged, if any.
    exchange: Option<BookingToExchange>,
) -> impl IntoView {
    let place = NodeRef::<Div>::new();
    Effect::new(move |_| {
        if let Some(place) = place.get() {
            let session = if for_looking { MapSession::read_only(show) } else { MapSession::new(show) };
            let selling = CounterSaleState::new(theatre.clone(), session, exchange.clone());
            place.set_inner_html("");
            mount_to((*place).clone().unchecked_into(), move || parts(selling)).forget();
            start(session);
        }
    });
    view! {
        <div class="seat-map counter" data-testid="counter" node_ref=place>
            <section class="seat-map-room" aria-label=say!("map.label")>{skeleton()}</section>
        </div>
    }
}

/// A booking's seats and places: `C7, C8, 2 × Standing`.
pub(crate) fn seats_in_words(booking: &CounterBooking) -> String {
    let seats = booking.seats.iter().map(|line| line.label.clone());
    let places = booking.places.iter().map(|line| format!("{} × {}", line.quantity, line.label));
    seats.chain(places).collect::<Vec<_>>().join(", ")
}

/// A means of payment.
pub(crate) fn means_words(means: Means) -> String {
    match means {
        Means::Cash => say!("box_office.cash"),
        Means::Card => say!("box_office.card"),
        Means::Free => say!("box_office.free"),
    }
}

/// How the newest refund of a booking reaches the customer; `None` if no money goes back.
pub(crate) fn newest_refund_in_words(booking: &CounterBooking) -> Option<String> {
    // The refunds are in the order of time.
    let newest = booking.refunds.last().filter(|refund| refund.amount.minor > 0)?;
    Some(exchange::refund_in_words(newest.amount, booking.means))
}

fn parts(selling: CounterSaleState) -> impl IntoView {
    let session = selling.session;
    let beside = if session.is_read_only {
        Either::Left(panel::lookup_panel(selling))
    } else {
        Either::Right(panel::panel(selling))
    };
    view! {
        {room(session, ())}
        {beside}
        <div class="seat-map-side">{details(session)}</div>
        <p class="visually-hidden" role="status" data-testid="spoken">{move || session.announcement.get()}</p>
    }
}
