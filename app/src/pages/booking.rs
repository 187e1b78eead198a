//! The pages of a booking: its live status (an island), and its show, seats and total.
//!
//! Without the buyer's cookie it is opened on any device by the address in a mail, found by reference and e-mail, and
//! cancelled by a mailed address; the address in the mail about a move answers its offer of other seats. These are forms
//! without a script.

use domain::api::{BookingView, Receipt};
use language::{current, isolated, say};
use leptos::prelude::*;

use super::accounts::{email_field, error_view, hidden};
use super::receipt::receipt_lines;
use super::ticket::ShowFacts;
use crate::booking_status::{
    BookingStatus, FollowedBooking, WORDS, seat_offer_card, static_history, static_status, tone,
};
use crate::markup::{IntoMarkup, Markup};
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

    fn view(self) -> Markup {
        let status = FollowedBooking { is_submitted: self.is_submitted, ..FollowedBooking::from(&self.booking) };
        view! {
            <div class="booking">
                {facts(self.booking, self.show)}
                <BookingStatus booking=status />
            </div>
        }
        .into_markup()
    }
}

/// Show, seats, total and buyer of a booking.
fn facts(booking: BookingView, show: ShowFacts) -> impl IntoView {
    let language = current();
    let BookingView { reference, seats, places, breakdown, buyer, holder, .. } = booking;
    let is_for_a_friend = buyer != holder;
    let payer = if is_for_a_friend {
        say!("booking.paid_by", name = &buyer.name, email = &buyer.email)
    } else {
        format!("{} · {}", isolated(&buyer.name, language), isolated(&buyer.email, language))
    };
    view! {
        <section class="booking-facts card" aria-label=say!("booking.facts")>
            {show.view()}
            {receipt_lines(Receipt { seats, places, breakdown })}
            <p class="booking-reference"><span class="quiet">{say!("booking.booking")}" "</span><strong data-testid="reference">{reference}</strong></p>
            {is_for_a_friend.then(|| view! {
                <p class="quiet small" data-testid="holder">{say!("booking.tickets_for", name = &holder.name, email = &holder.email)}</p>
            })}
            <p class="quiet small">{payer}</p>
        </section>
    }
}

/// Longest typed reference, characters: nine, and some spaces.
const MAX_REFERENCE_CHARS: u32 = 20;

/// The page opened by the address in a mail.
#[derive(Clone, Debug)]
pub struct MailedBookingPage {
    /// The booking, for its buyer.
    pub booking: BookingView,
    /// Its show.
    pub show: ShowFacts,
    /// Path of its tickets, which opens on any device.
    pub tickets: Option<String>,
    /// Address that answers an open offer of other seats, and the key of its form. Only the mail about the move has it.
    pub answer: Option<(String, String)>,
    /// Address that requests the cancelling mail, while it can be cancelled.
    pub cancel: Option<String>,
    /// True if that mail has been requested.
    pub is_mailed: bool,
    /// The error of the last attempt.
    pub error: Option<String>,
}

impl Page for MailedBookingPage {
    fn head(&self) -> Head {
        Head { title: say!("booking.title", reference = &self.booking.reference), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        let followed = FollowedBooking::from(&self.booking);
        // The answer to an offer is the main button.
        let style = if self.booking.seat_offer.is_some() { "button button-quiet" } else { "button" };
        let offer = self.booking.seat_offer.clone().map(|offer| seat_offer_card(offer, seat_offer_answer(self.answer)));
        let tickets = self.tickets.map(|path| {
            view! { <p class="booking-next"><a class=style data-testid="ticket-link" href=path>{say!("status.next_tickets")}</a></p> }
        });
        let mailed = self.is_mailed.then(|| {
            let email = &self.booking.buyer.email;
            view! { <p role="status" data-testid="cancel-mailed">{say!("mailed.cancel_sent", email = email)}</p> }
        });
        let cancel = self.cancel.filter(|_| !self.is_mailed).map(|action| {
            view! {
                <form class="booking-act" action=action method="post">
                    <p class="quiet">{say!("mailed.cancel_by_mail")}</p>
                    <button class="button button-quiet" r#type="submit" data-testid="cancel-by-mail">{say!("mailed.cancel_ask")}</button>
                </form>
            }
        });
        view! {
            <div class="booking">
                {facts(self.booking, self.show)}
                <section class="booking-status" data-tone=tone(&followed)>
                    {static_status(&followed)}
                    {error_view(self.error)}
                    {offer}
                    {tickets}
                    {mailed}
                    {cancel}
                    {static_history(&followed)}
                </section>
            </div>
        }
        .into_markup()
    }
}

/// The form that answers an offer of other seats; without its address and key, the way to it.
fn seat_offer_answer(form: Option<(String, String)>) -> Markup {
    let Some((action, key)) = form else {
        return view! { <p>{say!("mailed.offer_in_mail")}</p> }.into_markup();
    };
    view! {
        <form action=action method="post">
            {hidden("key", key)}
            <p class="booking-cancel-acts">
                <button class="button" r#type="submit" name="take" value="true" data-testid="take-offer">{say!("move.take")}</button>
                <button class="button button-quiet" r#type="submit" name="take" value="false" data-testid="refuse-offer">{say!("move.refund")}</button>
            </p>
        </form>
    }
    .into_markup()
}

/// The page opened by the address in a cancelling mail. Opening it changes nothing, because mail programs prefetch
/// links.
#[derive(Clone, Debug)]
pub struct CancelByMailPage {
    /// The booking, for its buyer.
    pub booking: BookingView,
    /// Its show.
    pub show: ShowFacts,
    /// Address of the form, while there is something to cancel.
    pub action: Option<String>,
    /// The error of the last attempt.
    pub error: Option<String>,
}

impl Page for CancelByMailPage {
    fn head(&self) -> Head {
        Head { title: say!("mailed.cancel_title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        let back = domain::booking::back_to_buyer(self.booking.total);
        let followed = FollowedBooking::from(&self.booking);
        let form = match self.action {
            Some(action) => view! {
                <h1>{say!("mailed.cancel_title")}</h1>
                <p>{say!("mailed.cancel_back", amount = back)}</p>
                <form action=action method="post">
                    <button class="button" r#type="submit" data-testid="cancel-now">{say!("mailed.cancel_now")}</button>
                </form>
            }
            .into_markup(),
            None => view! { {static_status(&followed)}{static_history(&followed)} }.into_markup(),
        };
        view! {
            <div class="booking">
                <section class="booking-status" data-tone=tone(&followed)>
                    {error_view(self.error)}
                    {form}
                </section>
                {facts(self.booking, self.show)}
            </div>
        }
        .into_markup()
    }
}

/// The page where a guest finds a booking.
#[derive(Clone, Debug)]
pub enum FindBookingPage {
    /// The form.
    Ask {
        /// The typed reference.
        reference: String,
        /// The typed address.
        email: String,
        /// The error of the last attempt.
        error: Option<String>,
    },
    /// Confirmation, the same whether or not a mail was sent.
    Sent,
}

impl Page for FindBookingPage {
    fn head(&self) -> Head {
        Head { title: say!("mailed.find_title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        match self {
            Self::Ask { reference, email, error } => view! {
                <section class="account-door card">
                    <h1>{say!("mailed.find_title")}</h1>
                    <p class="quiet">{say!("mailed.find_how")}</p>
                    {error_view(error)}
                    <form class="account-form" action="/bookings/find" method="post">
                        <div class="field">
                            <label for="reference">{say!("mailed.reference")}</label>
                            <input id="reference" name="reference" autocomplete="off" autocapitalize="characters" spellcheck="false"
                                required maxlength=MAX_REFERENCE_CHARS value=reference />
                        </div>
                        {email_field(email)}
                        <button class="button" r#type="submit" data-testid="find-booking">{say!("mailed.find_send")}</button>
                    </form>
                </section>
            }
            .into_markup(),
            Self::Sent => view! {
                <section class="account-door card">
                    <h1>{say!("mailed.find_sent")}</h1>
                    <p role="status" data-testid="find-sent">{say!("mailed.find_sent_lead")}</p>
                    <p class="account-ways"><a href="/bookings/find">{say!("mailed.find_title")}</a></p>
                </section>
            }
            .into_markup(),
        }
    }
}
