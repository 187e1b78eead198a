//! The page opened by the mail about an offer of a waiting list, on any device.

use domain::api::waiting_list::OfferView;
use language::say;
use leptos::prelude::*;

use super::accounts::error_view;
use super::ticket::ShowFacts;
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page};

/// An offer, for the holder of its mail.
#[derive(Clone, Debug)]
pub struct OfferPage {
    /// The held seats and places; `None` once it has lapsed or was bought.
    pub offer: Option<OfferView>,
    /// Its end for people, in the theatre's time zone.
    pub until: String,
    /// Its show.
    pub show: ShowFacts,
    /// Path of the show's page.
    pub show_path: String,
    /// Address of the form.
    pub action: String,
    /// The error of the last attempt.
    pub error: Option<String>,
}

impl Page for OfferPage {
    fn head(&self) -> Head {
        Head { title: say!("offer.title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        let form = match self.offer {
            Some(offer) => {
                let seats =
                    offer.seats.into_iter().map(|line| view! { <li><bdi class="booking-seat">{line.label}</bdi></li> });
                let places = offer.places.into_iter().map(|line| {
                    view! { <li>{say!("booking.quantity", quantity = line.quantity, area = &line.label)}</li> }
                });
                view! {
                    <h1>{say!("offer.title")}</h1>
                    <p data-testid="offer-until">{say!("offer.until", when = &self.until)}</p>
                    <ul class="booking-seats">{seats.collect_view()}{places.collect_view()}</ul>
                    <form action=self.action method="post">
                        <button class="button" r#type="submit" data-testid="take-offer-here">{say!("offer.take_here")}</button>
                    </form>
                    <p class="quiet small">{say!("offer.one_device")}</p>
                }
                .into_markup()
            }
            None => view! {
                <h1>{say!("offer.over")}</h1>
                <p>{say!("offer.over_lead")}</p>
                <p><a class="button button-quiet" href=self.show_path>{say!("status.next_back")}</a></p>
            }
            .into_markup(),
        };
        view! {
            <div class="booking">
                <section class="booking-status">
                    {error_view(self.error)}
                    {form}
                </section>
                <section class="booking-facts card" aria-label=say!("offer.facts")>{self.show.view()}</section>
            </div>
        }
        .into_markup()
    }
}
