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
        let places = self.booking.places.clone().into_iter().map(|line| {
            let price = line.total().to_string();
            view! {
                <li>
                    <span class="booking-seat">{format!("{} × {}", line.quantity, line.label)}</span>
                    <span class="quiet">{line.category}</span>
                    <span class="booking-price">{price}</span>
                </li>
            }
        });
        let places = places.collect_view();
        let (buyer, holder) = (self.booking.buyer.clone(), self.booking.holder.clone());
        let is_for_a_friend = buyer != holder;
        view! {
            <div class="booking">
                <BookingStatus booking=Standing::from(&self.booking) />
                <section class="booking-facts card" aria-label="Your booking">
                    <p class="booking-reference"><span class="quiet">"Booking "</span><strong data-testid="reference">{self.booking.reference}</strong></p>
                    {self.show.view()}
                    <ul class="booking-seats">{lines}{places}</ul>
                    <p class="booking-total"><span>"Total"</span><strong>{self.booking.total.to_string()}</strong></p>
                    {is_for_a_friend.then(|| view! {
                        <p class="quiet small" data-testid="holder">{format!("Tickets for {} · {}", holder.name, holder.email)}</p>
                    })}
                    <p class="quiet small">{format!("{}{} · {}", if is_for_a_friend { "Paid by " } else { "" }, buyer.name, buyer.email)}</p>
                </section>
            </div>
        }
        .into_any()
    }
}
