//! A booking: how it stands (the island), and what it is for.

use domain::api::BookingView;
use leptos::prelude::*;

use super::ticket::ShowFacts;
use crate::booking_status::{BookingStatus, Standing};
use crate::shell::{Head, Page};

/// The page of a booking.
#[derive(Clone, Debug)]
pub struct Booking {
    /// The booking, as its owner sees it.
    pub booking: BookingView,
    /// What it is for.
    pub show: ShowFacts,
}

impl Page for Booking {
    fn head(&self) -> Head {
        Head {
            title: format!("Booking {}", self.booking.reference),
            description: "How your booking stands.".to_owned(),
            live: true,
            private: true,
            ..Head::default()
        }
    }

    fn view(self) -> AnyView {
        let lines = self.booking.seats.clone().into_iter().map(|line| {
            view! {
                <li>
                    <span class="booking-seat">{line.label}</span>
                    <span class="quiet">{line.category}</span>
                    <span class="booking-price">{line.price.to_string()}</span>
                </li>
            }
        });
        let lines = lines.collect_view();
        view! {
            <div class="booking">
                <BookingStatus booking=Standing::from(&self.booking) />
                <section class="booking-facts card" aria-label="Your booking">
                    <p class="booking-reference"><span class="quiet">"Booking "</span><strong data-testid="reference">{self.booking.reference}</strong></p>
                    {self.show.view()}
                    <ul class="booking-seats">{lines}</ul>
                    <p class="booking-total"><span>"Total"</span><strong>{self.booking.total.to_string()}</strong></p>
                    <p class="quiet small">{format!("{} · {}", self.booking.buyer.name, self.booking.buyer.email)}</p>
                </section>
            </div>
        }
        .into_any()
    }
}
