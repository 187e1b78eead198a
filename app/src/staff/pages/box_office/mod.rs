//! Box office pages: the day with shows and tills, the sale of a show, a booking, printed tickets.
//!
//! Tills and bookings are plain forms that work without a script; the map is an island.

mod booking;
mod exchange;
mod found;
mod sale;
mod till;

pub use booking::{CounterBookingPage, PrintPage, TakeBackForm};
pub use exchange::ExchangePage;
pub use found::FoundPage;
pub use sale::{Sale, SalePage};
pub use till::{CounterForm, PinForm, TillAct, TillForm};

use domain::api::box_office::{CounterShow, DayView, TillView};
use domain::roles::Role;
use leptos::prelude::*;

use super::{Desk, frame};
use crate::language::Hindrance;
use crate::pages::listing::{StripChoice, strip};
use crate::say;
use crate::shell::{Head, Page, WasmModule};
use crate::staff::islands::box_office::{StaffShows, WORDS};
use crate::staff::islands::in_the_way;

/// The page of a day.
#[derive(Clone, Debug)]
pub struct CounterPage {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The requested day, `YYYY-MM-DD`; empty for the current day.
    pub date: String,
    /// The next days, as far as they have a short name.
    pub days: Vec<StripChoice>,
    /// The shown day, `YYYY-MM-DD`.
    pub shown: String,
    /// Its shows.
    pub shows: Vec<CounterShow>,
    /// The seller's open till. Its times are local.
    pub till: Option<TillView>,
    /// The seller's last till, if a manager counted it.
    pub counted_for_me: Option<TillView>,
    /// For managers: tills since the last day close.
    pub tills: Vec<TillView>,
    /// For managers: the last day close.
    pub last_close: Option<DayView>,
    /// The refused form.
    pub refused: Option<CounterForm>,
    /// The error of the last attempt.
    pub trouble: Option<Hindrance>,
    /// Idempotency key of the page's forms.
    pub key: String,
}

impl Page for CounterPage {
    fn head(&self) -> Head {
        let title = format!("{} · {}", say!("staff.box_office"), self.desk.name);
        Head { title, has_island: true, words: WORDS, module: WasmModule::Staff, is_private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let is_manager = self.desk.roles.contains(&Role::Manager);
        let base = format!("/staff/{}/box-office", self.desk.theatre);
        let own = self.till.as_ref().map(|till| till.id);
        let from = DayForm { base: &base, key: &self.key, date: &self.date };
        // A day outside the strip was looked up, so the form for another day stays open.
        let is_looked_up = self.days.iter().all(|day| !day.current);
        let content = view! {
            {trouble_view(self.trouble)}
            <div class="counter-day">
                {find(&base, &self.date, "")}
                <section class="counter-day-shows" aria-labelledby="counter-shows">
                    <h2 id="counter-shows">{say!("box_office.shows")}</h2>
                    {strip(say!("list.day"), self.days)}
                    {day_form(&base, self.shown, is_looked_up)}
                    <StaffShows theatre=self.desk.theatre.clone() date=self.date.clone() shows=self.shows exchange=None />
                </section>
                <section class="counter-day-till" aria-labelledby="counter-till">
                    <h2 id="counter-till">{say!("box_office.till")}</h2>
                    {match self.till {
                        Some(till) => till::open(from, till, self.refused.as_ref()).into_any(),
                        None => till::opening(from, self.counted_for_me, self.refused.as_ref()).into_any(),
                    }}
                    {is_manager.then(|| till::day(from, own, self.tills, self.last_close, self.refused.as_ref()))}
                </section>
            </div>
        };
        frame(&self.desk, say!("staff.box_office"), content)
    }
}

/// Values shared by the forms of a day's page. The next page shows the same day.
#[derive(Clone, Copy, Debug)]
struct DayForm<'a> {
    /// Address of the box office.
    base: &'a str,
    /// Idempotency key.
    key: &'a str,
    /// The requested day; empty for today.
    date: &'a str,
}

impl DayForm<'_> {
    /// Hidden inputs of every form that changes something.
    fn hidden_inputs(self) -> impl IntoView + use<> {
        view! { {hidden("key", self.key)} {self.day()} }
    }

    fn day(self) -> Option<impl IntoView + use<>> {
        (!self.date.is_empty()).then(|| hidden("date", self.date))
    }
}

/// A form to choose any day.
fn day_form(base: &str, shown: String, open: bool) -> impl IntoView + use<> {
    view! {
        <details class="counter-look" open=open>
            <summary>{say!("box_office.other_day")}</summary>
            <form class="counter-find" action=base.to_owned() method="get">
                <div class="field">
                    <label for="date">{say!("list.day")}</label>
                    <input id="date" name="date" type="date" required value=shown />
                </div>
                <button class="button button-quiet" type="submit" data-testid="look">{say!("box_office.find")}</button>
            </form>
        </details>
    }
}

/// A form to find bookings by reference, name or address.
fn find(base: &str, date: &str, asked: &str) -> impl IntoView + use<> {
    let date = (!date.is_empty()).then(|| hidden("date", date));
    view! {
        <form class="counter-find card" action=format!("{base}/bookings") method="get" role="search"
            aria-label=say!("box_office.find_booking")>
            {date}
            <div class="field">
                <label for="asked">{say!("box_office.find_booking")}</label>
                <input id="asked" name="q" type="search" autocomplete="off" required minlength="2" maxlength="100"
                    aria-describedby="asked-hint" value=asked.to_owned() />
            </div>
            <button class="button button-quiet" type="submit" data-testid="find">{say!("box_office.find")}</button>
            <p class="quiet small" id="asked-hint">{say!("box_office.find_by")}</p>
        </form>
    }
}

/// The error of the last attempt, announced when the page loads.
fn trouble_view(trouble: Option<Hindrance>) -> impl IntoView {
    trouble.map(|words| view! { <p class="account-trouble" role="alert" data-testid="trouble">{in_the_way(words)}</p> })
}

fn hidden(name: &'static str, value: &str) -> impl IntoView + use<> {
    view! { <input type="hidden" name=name value=value.to_owned() /> }
}
