//! The exchange of a booking: upcoming shows with seats left.

use domain::api::box_office::{CounterBooking, CounterShow};
use leptos::prelude::*;

use super::super::{Desk, frame};
use crate::language::{current, money};
use crate::pages::listing::{StripChoice, strip};
use crate::say;
use crate::shell::{Head, Page, WasmModule};
use crate::staff::islands::box_office::{StaffShows, WORDS};

/// The shows of a day for which a booking can be exchanged.
#[derive(Clone, Debug)]
pub struct ExchangePage {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The booking.
    pub booking: CounterBooking,
    /// Start of its show, in the reader's language.
    pub starts: String,
    /// The next days, as far as they have a short name.
    pub days: Vec<StripChoice>,
    /// The chosen day, `YYYY-MM-DD`.
    pub date: String,
    /// Its shows.
    pub shows: Vec<CounterShow>,
}

impl Page for ExchangePage {
    fn head(&self) -> Head {
        let title = say!("box_office.exchange_which", reference = &self.booking.reference);
        Head { title, has_island: true, words: WORDS, module: WasmModule::Staff, is_private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let booking = self.booking;
        let counter = self.desk.section.href(&self.desk.theatre);
        let own = format!("{counter}/bookings/{}", booking.id);
        let seats = booking.seats.iter().map(|line| line.label.clone());
        let places = booking.places.iter().map(|line| format!("{} × {}", line.quantity, line.label));
        let what = seats.chain(places).collect::<Vec<_>>().join(", ");
        let title = say!("box_office.exchange_which", reference = &booking.reference);
        let content = view! {
            <p class="crumbs">
                <a href=counter>{say!("box_office.shows")}</a>
                <a href=own.clone() data-testid="to-booking">{booking.reference}</a>
            </p>
            <p data-testid="exchanged">
                <bdi>{booking.film}</bdi>", "{self.starts}", "<bdi>{booking.screen}</bdi>": "{what}" · "{money(booking.total, current())}
            </p>
            <div class="counter-day-shows">
                {strip(say!("list.day"), self.days)}
                <form class="counter-find card" action=format!("{own}/exchange") method="get">
                    <div class="field">
                        <label for="date">{say!("list.day")}</label>
                        <input id="date" name="date" type="date" required value=self.date.clone() />
                    </div>
                    <button class="button button-quiet" type="submit" data-testid="look">{say!("box_office.find")}</button>
                </form>
                <StaffShows theatre=self.desk.theatre.clone() date=self.date shows=self.shows exchange=Some(booking.id) />
            </div>
        };
        frame(&self.desk, title, content)
    }
}
