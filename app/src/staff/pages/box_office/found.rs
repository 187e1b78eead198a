//! Bookings found by a part of a name or address.

use domain::api::box_office::{BookingMatch, MAX_MATCHES};
use leptos::prelude::*;

use super::super::{Desk, frame};
use super::find;
use crate::language::{self, Moment};
use crate::pages::accounts::state_words;
use crate::say;
use crate::shell::{Head, Page, WasmModule};

/// The search results.
#[derive(Clone, Debug)]
pub struct FoundPage {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The search text.
    pub asked: String,
    /// The day to return to, `YYYY-MM-DD`; empty for today.
    pub date: String,
    /// The bookings, newest first.
    pub found: Vec<BookingMatch>,
}

impl Page for FoundPage {
    fn head(&self) -> Head {
        Head { title: say!("box_office.found"), module: WasmModule::Staff, is_private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let base = self.desk.section.href(&self.desk.theatre);
        let back = if self.date.is_empty() { base.clone() } else { format!("{base}?date={}", self.date) };
        let are_more = self.found.len() >= MAX_MATCHES;
        let is_empty = self.found.is_empty();
        let lines = self.found.into_iter().map(|found| line(&base, found)).collect_view();
        let content = view! {
            <p class="crumbs"><a href=back data-testid="back">{say!("box_office.shows")}</a></p>
            {find(&base, &self.date, &self.asked)}
            <p class="quiet small">{say!("box_office.found_where", asked = &self.asked)}</p>
            {is_empty.then(|| view! { <p data-testid="found-none">{say!("box_office.found_none")}</p> })}
            {(!is_empty).then(|| view! { <ul class="account-list" data-testid="found">{lines}</ul> })}
            {are_more.then(|| view! { <p class="quiet" data-testid="found-most">{say!("box_office.found_most")}</p> })}
        };
        frame(&self.desk, say!("box_office.found"), content)
    }
}

fn line(base: &str, found: BookingMatch) -> impl IntoView + use<> {
    let BookingMatch { booking, name, email, holder } = found;
    let state = state_words(&booking);
    let language = language::current();
    let starts = Moment::parse(&booking.starts_local).map_or(booking.starts, |start| start.in_words(language));
    view! {
        <li>
            <a class="account-booking card" href=format!("{base}/bookings/{}", booking.id) data-testid="found-booking"
                data-state=booking.state.as_str()>
                <span class="account-booking-what">
                    <strong><bdi>{name}</bdi>{holder.map(|holder| view! { " · "<bdi>{holder}</bdi> })}</strong>
                    <span><bdi>{email}</bdi></span>
                    <span class="quiet small"><bdi>{booking.film}</bdi>", "{starts}</span>
                </span>
                <span class="account-booking-seats">{booking.what.join(", ")}</span>
                <span class="account-booking-state">
                    <span>{state}</span>
                    <span class="quiet small">{language::money(booking.total, language)}" · "{booking.reference}</span>
                </span>
            </a>
        </li>
    }
}
