//! Pages of the box office: the day with its shows and tills, a show to sell from, a booking, tickets on paper.
//!
//! Tills and bookings are plain forms, which work without a script; the map is an island.

mod booking;
mod exchange;
mod sale;
mod till;

pub use booking::{CounterBookingPage, PrintPage, TakeBackForm};
pub use exchange::ExchangePage;
pub use sale::SalePage;
pub use till::{CounterForm, PinForm, TillAct, TillForm};

use domain::api::box_office::{CounterShow, DayView, TillView};
use domain::roles::Role;
use leptos::prelude::*;

use super::{Desk, frame};
use crate::say;
use crate::shell::{Half, Head, Page};
use crate::staff::box_office::{StaffShows, WORDS};

/// The day at the counter.
#[derive(Clone, Debug)]
pub struct CounterPage {
    /// Where, and who.
    pub desk: Desk,
    /// The day, `YYYY-MM-DD`; empty for today.
    pub date: String,
    /// Its shows.
    pub shows: Vec<CounterShow>,
    /// The caller's open till; its times are those of the theatre's clocks.
    pub till: Option<TillView>,
    /// Their last till, if somebody else counted it.
    pub counted_for_me: Option<TillView>,
    /// For managers: tills since the last day was closed.
    pub tills: Vec<TillView>,
    /// For managers: the last day that was closed.
    pub last_close: Option<DayView>,
    /// The form that was refused, as it was typed.
    pub refused: Option<CounterForm>,
    /// What stood in the way.
    pub trouble: Option<String>,
    /// Idempotency key of whatever is sent from here.
    pub key: String,
}

impl Page for CounterPage {
    fn head(&self) -> Head {
        let title = format!("{} · {}", say!("staff.box_office"), self.desk.name);
        Head { title, live: true, words: WORDS, half: Half::Staff, private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let is_manager = self.desk.roles.contains(&Role::Manager);
        let base = format!("/staff/{}/box-office", self.desk.theatre);
        let own = self.till.as_ref().map(|till| till.id);
        let content = view! {
            {trouble_view(self.trouble)}
            <div class="counter-day">
                <section class="counter-day-shows" aria-labelledby="counter-shows">
                    <h2 id="counter-shows">{say!("box_office.shows")}</h2>
                    <StaffShows theatre=self.desk.theatre.clone() date=self.date shows=self.shows exchange=None />
                    {find(&base)}
                </section>
                <section class="counter-day-till" aria-labelledby="counter-till">
                    <h2 id="counter-till">{say!("box_office.till")}</h2>
                    {match self.till {
                        Some(till) => till::open(&base, till, &self.key, self.refused.as_ref()).into_any(),
                        None => till::opening(&base, self.counted_for_me, &self.key, self.refused.as_ref()).into_any(),
                    }}
                    {is_manager.then(|| till::day(&base, own, self.tills, self.last_close, &self.key, self.refused.as_ref()))}
                </section>
            </div>
        };
        frame(&self.desk, say!("staff.box_office"), content)
    }
}

fn find(base: &str) -> impl IntoView + use<> {
    view! {
        <form class="counter-find card" action=format!("{base}/bookings") method="get" role="search">
            <div class="field">
                <label for="reference">{say!("box_office.reference")}</label>
                <input id="reference" name="reference" type="search" autocomplete="off" required maxlength="20" dir="ltr" />
            </div>
            <button class="button button-quiet" type="submit" data-testid="find">{say!("box_office.find")}</button>
        </form>
    }
}

/// What stood in the way, said when the page is read.
fn trouble_view(trouble: Option<String>) -> impl IntoView {
    trouble.map(|words| view! { <p class="account-trouble" role="alert" data-testid="trouble">{words}</p> })
}

fn hidden(name: &'static str, value: &str) -> impl IntoView + use<> {
    view! { <input type="hidden" name=name value=value.to_owned() /> }
}
