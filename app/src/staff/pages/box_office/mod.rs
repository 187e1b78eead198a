//! Box office pages: the day with shows and tills, found bookings, the sale of a show, and in `booking` a booking and its
//! printed tickets.
//!
//! Tills and bookings are plain forms that work without a script; the map is an island.

mod booking;
mod till;

pub use booking::{ALL_TICKETS, counter_booking_page, print_page};

use domain::VariantName;
use domain::api::box_office::{BookingMatch, CounterBooking, CounterShow, DayView, MAX_MATCHES, TillView};
use domain::booking::SALES_CLOSE_BEFORE_START_MS;
use domain::roles::Role;
use domain::time::MINUTE_MS;
use language::{Moment, say};
use leptos::prelude::*;
use uuid::Uuid;

use super::fields::hidden;
use super::{Desk, Form, StaffPage, frame};
use crate::markup::{IntoMarkup, Markup};
use crate::pages::accounts::state_words;
use crate::pages::listing::{StripChoice, strip};
use crate::shell::{Head, Page, WasmModule};
use crate::staff::islands::box_office::{BookingToExchange, StaffCounter, StaffShows, WORDS, seats_in_words};

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
    /// The refused form, named by its address below the box office; or an empty one.
    pub refused: Form,
}

impl Page for CounterPage {
    fn head(&self) -> Head {
        let title = format!("{} · {}", say!("staff.box_office"), self.desk.name);
        Head { title, has_island: true, words: WORDS, module: WasmModule::Staff, is_private: true, ..Head::default() }
    }

    fn view(self) -> Markup {
        let is_manager = self.desk.roles.contains(&Role::Manager);
        let base = format!("/staff/{}/box-office", self.desk.theatre);
        let own = self.till.as_ref().map(|till| till.id);
        let from = DayForm { base: &base, key: &self.desk.key, date: &self.date };
        // A day outside the strip was looked up, so the form for another day stays open.
        let is_looked_up = self.days.iter().all(|day| !day.current);
        let content = view! {
            {self.desk.error_view("trouble")}
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
                        Some(till) => till::open(from, till, &self.refused).into_markup(),
                        None => till::opening(from, self.counted_for_me, &self.refused).into_markup(),
                    }}
                    {is_manager.then(|| till::day(from, own, self.tills, self.last_close, &self.refused))}
                </section>
            </div>
        };
        frame(&self.desk, say!("staff.box_office"), content.into_markup())
    }
}

/// Values shared by the forms of a day's page. The next page shows the same day.
#[derive(Clone, Copy, Debug)]
struct DayForm<'a> {
    base: &'a str,
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
fn find(base: &str, date: &str, term: &str) -> impl IntoView + use<> {
    let date = (!date.is_empty()).then(|| hidden("date", date));
    view! {
        <form class="counter-find card" action=format!("{base}/bookings") method="get" role="search"
            aria-label=say!("box_office.find_booking")>
            {date}
            <div class="field">
                <label for="asked">{say!("box_office.find_booking")}</label>
                <input id="asked" name="q" type="search" autocomplete="off" required minlength="2" maxlength="100"
                    aria-describedby="asked-hint" value=term.to_owned() />
            </div>
            <button class="button button-quiet" type="submit" data-testid="find">{say!("box_office.find")}</button>
            <p class="quiet small" id="asked-hint">{say!("box_office.find_by")}</p>
        </form>
    }
}

/// The page of bookings found by a part of a name or address, newest first. It leads back to `date`, empty for today.
pub fn found_page(desk: Desk, term: String, date: String, found: Vec<BookingMatch>) -> impl Page {
    let content = move |desk: &Desk| {
        let base = desk.section.href(&desk.theatre);
        let are_more = found.len() >= MAX_MATCHES;
        let is_empty = found.is_empty();
        let lines = found.into_iter().map(|found| line(&base, found)).collect_view();
        view! {
            <p class="crumbs"><a href=day_path(&base, &date) data-testid="back">{say!("box_office.shows")}</a></p>
            {find(&base, &date, &term)}
            <p class="quiet small">{say!("box_office.found_where", asked = &term)}</p>
            {is_empty.then(|| view! { <p data-testid="found-none">{say!("box_office.found_none")}</p> })}
            {(!is_empty).then(|| view! { <ul class="account-list" data-testid="found">{lines}</ul> })}
            {are_more.then(|| view! { <p class="quiet" data-testid="found-most">{say!("box_office.found_most")}</p> })}
        }
        .into_markup()
    };
    let head = Head { module: WasmModule::Staff, ..Head::default() };
    StaffPage::new(desk, head, || say!("box_office.found"), content)
}

fn line(base: &str, found: BookingMatch) -> impl IntoView + use<> {
    let BookingMatch { booking, name, email, holder } = found;
    let state = state_words(booking.state, booking.money, booking.came_back.then(|| say!("account.state_came_back")));
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

/// The page of a show at the counter: its map for selling, and from five minutes before the start for looking up who has a
/// seat.
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

    fn view(self) -> Markup {
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
        frame(&self.desk, self.film, content.into_markup())
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

fn day_path(base: &str, date: &str) -> String {
    if date.is_empty() { base.to_owned() } else { format!("{base}?date={date}") }
}

/// The page of a day's shows for which a booking can be exchanged; `starts` is the start of its show in the reader's
/// language, `date` the chosen day.
pub fn exchange_page(
    desk: Desk,
    booking: CounterBooking,
    starts: String,
    days: Vec<StripChoice>,
    date: String,
    shows: Vec<CounterShow>,
) -> impl Page {
    let reference = booking.reference.clone();
    let content = move |desk: &Desk| {
        let counter = desk.section.href(&desk.theatre);
        let own = format!("{counter}/bookings/{}", booking.id);
        let what = seats_in_words(&booking);
        view! {
            <p class="crumbs">
                <a href=counter>{say!("box_office.shows")}</a>
                <a href=own.clone() data-testid="to-booking">{booking.reference}</a>
            </p>
            <p data-testid="exchanged">
                <bdi>{booking.film}</bdi>", "{starts}", "<bdi>{booking.screen}</bdi>": "{what}" · "{language::money(booking.total, language::current())}
            </p>
            <div class="counter-day-shows">
                {strip(say!("list.day"), days)}
                <form class="counter-find card" action=format!("{own}/exchange") method="get">
                    <div class="field">
                        <label for="date">{say!("list.day")}</label>
                        <input id="date" name="date" type="date" required value=date.clone() />
                    </div>
                    <button class="button button-quiet" type="submit" data-testid="look">{say!("box_office.find")}</button>
                </form>
                <StaffShows theatre=desk.theatre.clone() date=date shows=shows exchange=Some(booking.id) />
            </div>
        }
        .into_markup()
    };
    let head = Head { has_island: true, words: WORDS, module: WasmModule::Staff, ..Head::default() };
    let title = move || say!("box_office.exchange_which", reference = &reference);
    StaffPage::new(desk, head, title, content)
}
