//! A show at the counter: its map, to sell from.

use domain::booking::SALES_CLOSE_BEFORE_START_MS;
use domain::time::MINUTE_MS;
use leptos::prelude::*;
use uuid::Uuid;

use super::super::{Desk, frame};
use super::find;
use crate::say;
use crate::shell::{Half, Head, Page};
use crate::staff::box_office::{Exchanging, StaffCounter, WORDS};

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
    /// Whether it can be sold at this moment.
    pub is_on_sale: bool,
    /// The booking whose seats are exchanged, if one is.
    pub exchange: Option<Exchanging>,
    /// Whether the caller's till is open.
    pub has_till: bool,
}

impl Page for SalePage {
    fn head(&self) -> Head {
        Head {
            title: format!("{}, {}", self.film, self.when),
            live: self.is_on_sale,
            words: if self.is_on_sale { WORDS } else { &[] },
            half: Half::Staff,
            private: true,
            ..Head::default()
        }
    }

    fn view(self) -> AnyView {
        let base = self.desk.section.href(&self.desk.theatre);
        let map = if self.is_on_sale {
            view! {
                <StaffCounter theatre=self.desk.theatre.clone() show=self.show exchange=self.exchange />
                <noscript><p class="no-script">{say!("box_office.no_script")}</p></noscript>
            }
            .into_any()
        } else {
            closed(&base, &self.date).into_any()
        };
        let day = of_day(&base, &self.date);
        let content = view! {
            <p class="crumbs"><a href=day.clone() data-testid="back">{say!("box_office.shows")}</a><span>{self.when}</span></p>
            {(!self.has_till).then(|| view! {
                <p class="account-trouble" role="status" data-testid="no-till">
                    {say!("box_office.till_closed")}" "<a href=day>{say!("box_office.open_till")}</a>
                </p>
            })}
            {map}
        };
        frame(&self.desk, self.film, content)
    }
}

/// Why there is no map, and what can be done for those who stand at the counter all the same.
fn closed(base: &str, date: &str) -> impl IntoView + use<> {
    let minutes = SALES_CLOSE_BEFORE_START_MS / MINUTE_MS;
    view! {
        <div class="counter-day-shows" data-testid="not-on-sale">
            <p>{say!("box_office.not_on_sale", minutes = minutes)}</p>
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
