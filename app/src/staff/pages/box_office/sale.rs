//! A show at the counter: its map, to sell from; from five minutes before the start, to see whose the seats are.

use domain::booking::SALES_CLOSE_BEFORE_START_MS;
use domain::time::MINUTE_MS;
use leptos::prelude::*;
use uuid::Uuid;

use super::super::{Desk, frame};
use super::find;
use crate::say;
use crate::shell::{Half, Head, Page};
use crate::staff::islands::box_office::{Exchanging, StaffCounter, WORDS};

/// How a show stands at the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sale {
    /// It can be sold at this moment.
    Open,
    /// It is sold no more, and people come to it: staff see whose the seats are.
    Closed,
    /// It is over, or was called off.
    Over,
}

/// The page of a show at the counter.
#[derive(Clone, Debug)]
pub struct SalePage {
    /// Where, and who.
    pub desk: Desk,
    /// The show.
    pub show: Uuid,
    /// Title of the film.
    pub film: String,
    /// When and where in the house: `Sat 21 Nov, 20:15, Screen 1`.
    pub when: String,
    /// Its day, `YYYY-MM-DD`; empty where that is today, whichever that is by then.
    pub date: String,
    /// How it stands at this moment.
    pub sale: Sale,
    /// The booking whose seats are exchanged, if one is.
    pub exchange: Option<Exchanging>,
    /// Whether the caller's till is open.
    pub has_till: bool,
}

impl Page for SalePage {
    fn head(&self) -> Head {
        Head {
            title: format!("{}, {}", self.film, self.when),
            live: self.sale != Sale::Over,
            words: if self.sale == Sale::Over { &[] } else { WORDS },
            half: Half::Staff,
            private: true,
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
        let still = is_closed.then(|| still(&base, &self.date));
        let day = of_day(&base, &self.date);
        let content = view! {
            <p class="crumbs"><a href=day.clone() data-testid="back">{say!("box_office.shows")}</a><span>{self.when}</span></p>
            {(!self.has_till).then(|| view! {
                <p class="account-trouble" role="status" data-testid="no-till">
                    {say!("box_office.till_closed")}" "<a href=day>{say!("box_office.open_till")}</a>
                </p>
            })}
            {why}
            {map}
            {still}
        };
        frame(&self.desk, self.film, content)
    }
}

/// What can be done for those who stand at the counter although nothing is sold any more.
fn still(base: &str, date: &str) -> impl IntoView + use<> {
    view! {
        <div class="counter-day-shows">
            <h2>{say!("box_office.still")}</h2>
            <ul>
                <li>{say!("box_office.still_booking")}</li>
                <li>{say!("box_office.still_exchange")}</li>
            </ul>
            {find(base, date, "")}
            <p><a class="button" href=of_day(base, date) data-testid="sell-another">{say!("box_office.still_sell")}</a></p>
        </div>
    }
}

/// The page of a day.
fn of_day(base: &str, date: &str) -> String {
    if date.is_empty() { base.to_owned() } else { format!("{base}?date={date}") }
}
