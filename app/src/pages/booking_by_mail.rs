//! A booking without its buyer's cookie: opened on any device by the address in a mail; found again by reference and e-mail;
//! cancelled by an address that is mailed for it. Forms without a script.

use domain::api::BookingView;
use leptos::prelude::*;

use super::accounts::{email_field, trouble_view};
use super::booking::facts;
use super::ticket::ShowFacts;
use crate::booking_status::{FollowedBooking, standing, tone};
use crate::say;
use crate::shell::{Head, Page};

/// Longest reference that can be typed, characters: nine, and room for spaces.
const MAX_REFERENCE_CHARS: u32 = 20;

/// The page that the address in a mail opens.
#[derive(Clone, Debug)]
pub struct MailedBooking {
    /// The booking, as its buyer sees it.
    pub booking: BookingView,
    /// Its show.
    pub show: ShowFacts,
    /// Path of its tickets, which opens anywhere.
    pub tickets: Option<String>,
    /// Where the mail that cancels it is asked for, while it can be cancelled.
    pub cancel: Option<String>,
    /// The buyer's address, all but its ends left out: that mail is on its way.
    pub is_mailed_to: Option<String>,
    /// The refusal of the last try.
    pub trouble: Option<String>,
}

impl Page for MailedBooking {
    fn head(&self) -> Head {
        Head { title: say!("booking.title", reference = &self.booking.reference), private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let followed = FollowedBooking::from(&self.booking);
        let tickets = self.tickets.map(|path| {
            view! { <p class="booking-next"><a class="button" data-testid="ticket-link" href=path>{say!("status.next_tickets")}</a></p> }
        });
        let mailed = self.is_mailed_to.map(|email| {
            view! { <p role="status" data-testid="cancel-mailed">{say!("mailed.cancel_sent", email = &email)}</p> }
        });
        let is_mailed = mailed.is_some();
        let cancel = self.cancel.filter(|_| !is_mailed).map(|action| {
            view! {
                <form class="booking-act" action=action method="post">
                    <p class="quiet">{say!("mailed.cancel_by_mail")}</p>
                    <button class="button button-quiet" r#type="submit" data-testid="cancel-by-mail">{say!("mailed.cancel_ask")}</button>
                </form>
            }
        });
        view! {
            <div class="booking">
                <section class="booking-status" data-tone=tone(&followed)>
                    {standing(&followed)}
                    {tickets}
                    {trouble_view(self.trouble)}
                    {mailed}
                    {cancel}
                </section>
                {facts(self.booking, self.show)}
            </div>
        }
        .into_any()
    }
}

/// The page that the address of a cancelling mail opens. A mail program that looks ahead cancels nothing.
#[derive(Clone, Debug)]
pub struct CancelByMail {
    /// The booking, as its buyer sees it.
    pub booking: BookingView,
    /// Its show.
    pub show: ShowFacts,
    /// Where the form goes, while there is something to cancel.
    pub action: Option<String>,
    /// The refusal of the last try.
    pub trouble: Option<String>,
}

impl Page for CancelByMail {
    fn head(&self) -> Head {
        Head { title: say!("mailed.cancel_title"), private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
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
            .into_any(),
            None => standing(&followed).into_any(),
        };
        view! {
            <div class="booking">
                <section class="booking-status" data-tone=tone(&followed)>
                    {trouble_view(self.trouble)}
                    {form}
                </section>
                {facts(self.booking, self.show)}
            </div>
        }
        .into_any()
    }
}

/// The page on which a guest finds a booking again.
#[derive(Clone, Debug)]
pub enum FindBooking {
    /// Which one?
    Ask {
        /// The reference as it was typed.
        reference: String,
        /// The address likewise.
        email: String,
        /// The refusal of the last try.
        trouble: Option<String>,
    },
    /// A mail is on its way, or not: that is not said.
    Sent,
}

impl Page for FindBooking {
    fn head(&self) -> Head {
        Head { title: say!("mailed.find_title"), private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        match self {
            Self::Ask { reference, email, trouble } => view! {
                <section class="account-door card">
                    <h1>{say!("mailed.find_title")}</h1>
                    <p class="quiet">{say!("mailed.find_how")}</p>
                    {trouble_view(trouble)}
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
            .into_any(),
            Self::Sent => view! {
                <section class="account-door card">
                    <h1>{say!("mailed.find_sent")}</h1>
                    <p role="status" data-testid="find-sent">{say!("mailed.find_sent_lead")}</p>
                    <p class="account-ways"><a href="/bookings/find">{say!("mailed.find_title")}</a></p>
                </section>
            }
            .into_any(),
        }
    }
}
