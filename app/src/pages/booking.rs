//! The page of a booking: its live status (an island), and its show, seats and total.

use domain::api::BookingView;
use leptos::prelude::*;

use super::ticket::ShowFacts;
use crate::booking_status::{BookingStatus, FollowedBooking, WORDS};
use crate::language::{current, isolated, money};
use crate::say;
use crate::shell::{Head, Page};

/// The page of a booking.
#[derive(Clone, Debug)]
pub struct BookingPage {
    /// The booking, for its owner.
    pub booking: BookingView,
    /// Its show.
    pub show: ShowFacts,
    /// True if the buyer has just given a card on the gateway's page.
    pub is_submitted: bool,
}

impl Page for BookingPage {
    fn head(&self) -> Head {
        Head {
            title: say!("booking.title", reference = &self.booking.reference),
            description: say!("booking.description"),
            has_island: true,
            words: WORDS,
            is_private: true,
            ..Head::default()
        }
    }

    fn view(self) -> AnyView {
        let status = FollowedBooking { is_submitted: self.is_submitted, ..FollowedBooking::from(&self.booking) };
        view! {
            <div class="booking">
                <BookingStatus booking=status />
                {facts(self.booking, self.show)}
            </div>
        }
        .into_any()
    }
}

/// Show, seats, total and buyer of a booking.
pub(super) fn facts(booking: BookingView, show: ShowFacts) -> impl IntoView {
    let language = current();
    let lines = booking.seats.clone().into_iter().map(|line| {
        view! {
            <li>
                <bdi class="booking-seat">{line.label}</bdi>
                <bdi class="quiet">{line.category}</bdi>
                <span class="booking-price">{money(line.price, language)}</span>
            </li>
        }
    });
    let lines = lines.collect_view();
    let places = booking.places.clone().into_iter().map(|line| {
        let price = money(line.total(), language);
        view! {
            <li>
                <span class="booking-seat">{say!("booking.quantity", quantity = line.quantity, area = &line.label)}</span>
                <bdi class="quiet">{line.category}</bdi>
                <span class="booking-price">{price}</span>
            </li>
        }
    });
    let places = places.collect_view();
    let (buyer, holder) = (booking.buyer.clone(), booking.holder.clone());
    let is_for_a_friend = buyer != holder;
    let payer = if is_for_a_friend {
        say!("booking.paid_by", name = &buyer.name, email = &buyer.email)
    } else {
        format!("{} · {}", isolated(&buyer.name, language), isolated(&buyer.email, language))
    };
    view! {
        <section class="booking-facts card" aria-label=say!("booking.facts")>
            <p class="booking-reference"><span class="quiet">{say!("booking.booking")}" "</span><strong data-testid="reference">{booking.reference}</strong></p>
            {show.view()}
            <ul class="booking-seats">{lines}{places}</ul>
            <p class="booking-total"><span>{say!("booking.total")}</span><strong>{money(booking.total, language)}</strong></p>
            {is_for_a_friend.then(|| view! {
                <p class="quiet small" data-testid="holder">{say!("booking.tickets_for", name = &holder.name, email = &holder.email)}</p>
            })}
            <p class="quiet small">{payer}</p>
        </section>
    }
}
