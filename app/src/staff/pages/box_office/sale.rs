//! A show at the box office: its map for selling, and from five minutes before the start for looking up who has a seat.

use domain::booking::SALES_CLOSE_BEFORE_START_MS;
use domain::time::MINUTE_MS;
use leptos::prelude::*;
use uuid::Uuid;

use super::super::{Desk, frame};
use super::find;
use crate::say;
use crate::shell::{Head, Page, WasmModule};
use crate::staff::islands::box_office::{BookingToExchange, StaffCounter, WORDS};

/// The sales state of a show at the box office.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sale {
    /// On sale.
    Open,
    /// No longer on sale; staff can look up who has a seat.
    Closed,
    /// Over or called off.
    Over,
}

/// The page of a show at the counter.
#[derive(Clone, Debug)]
pub struct SalePage {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The show.
    pub show: Uuid,
    /// Title of the film.
    pub film: String,
    /// Start and screen: `Sat 21 Nov, 20:15, Screen 1`.
    pub when: String,
    /// Its day, `YYYY-MM-DD`; empty for the current day.
    pub date: String,
    /// Its sales state.
    pub sale: Sale,
    /// The booking being exchanged, if any.
    pub exchange: Option<BookingToExchange>,
    /// True if the seller's till is open.
    pub has_till: bool,
}

impl Page for SalePage {
    fn head(&self) -> Head {
        Head {
            title: format!("{}, {}", self.film, self.when),
            has_island: self.sale != Sale::Over,
            words: if self.sale == Sale::Over { &[] } else { WORDS },
            module: WasmModule::Staff,
            is_private: true,
            ..Head::default()
        }
    }

    fn view(self) -> AnyView {
        let base = self.desk.section.href(&self.desk.theatre);
        let is_closed = self.sale != Sale::Open;
        let map = (self.sale != Sale::Over).then(|| {
            view! {
                <StaffCounter theatre=self.desk.theatre.clone() show=self.show for_looking=is_closed
                    exchange=self.exchange.filter(|_| !is_closed) />
                <noscript><p class="no-script">{say!("box_office.no_script")}</p></noscript>
            }
        });
        let minutes = SALES_CLOSE_BEFORE_START_MS / MINUTE_MS;
        let why = is_closed.then(|| {
            view! { <p data-testid="not-on-sale">{say!("box_office.not_on_sale", minutes = minutes)}</p> }
        });
        let remaining_actions = is_closed.then(|| remaining_actions(&base, &self.date));
        let day = day_path(&base, &self.date);
        let content = view! {
            <p class="crumbs"><a href=day.clone() data-testid="back">{say!("box_office.shows")}</a><span>{self.when}</span></p>
            {(!self.has_till).then(|| view! {
                <p class="account-trouble" role="status" data-testid="no-till">
                    {say!("box_office.till_closed")}" "<a href=day>{say!("box_office.open_till")}</a>
                </p>
            })}
            {why}
            {map}
            {remaining_actions}
        };
        frame(&self.desk, self.film, content)
    }
}

/// The actions left when the show is no longer on sale.
fn remaining_actions(base: &str, date: &str) -> impl IntoView + use<> {
    view! {
        <div class="counter-day-shows">
            <h2>{say!("box_office.still")}</h2>
            <ul>
                <li>{say!("box_office.still_booking")}</li>
                <li>{say!("box_office.still_exchange")}</li>
            </ul>
            {find(base, date, "")}
            <p><a class="button" href=day_path(base, date) data-testid="sell-another">{say!("box_office.still_sell")}</a></p>
        </div>
    }
}

/// Address of a day's page.
fn day_path(base: &str, date: &str) -> String {
    if date.is_empty() { base.to_owned() } else { format!("{base}?date={date}") }
}
