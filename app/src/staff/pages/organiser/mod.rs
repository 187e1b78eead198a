//! Pages of organisers: calendar, planning, shows, screens and rooms, prices, films. Plain forms that work without a
//! script; islands fill in those of the calendar and of house seats, and a small script reads a room file.

mod calendar;
mod house_seats;
mod prices;
mod programme;
mod rehearsal;
mod rooms;
mod show;
mod terms;
mod waiting_room;

pub use calendar::{CalendarPage, draft_request, new_show, refused_move, show_request};
pub use house_seats::{FORGET, KEEP, house_seats_page, standing_request};
pub use prices::{PRICE, PriceLine, prices_page, read_tariff, tariff_form};
pub use programme::{film_request, films_page, new_plan, planning_page, shows_request};
pub use rehearsal::{RehearsalPage, ShownRehearsal, rehearsal_request};
pub use rooms::{DrawnRoom, NEW_SCREEN, PUBLISH, Preview, drawing_board_page, room_page, screens_page};
pub use show::{
    CANCEL, DEFECTS, ShowPage, TERMS, WithdrawnSeats, defects_request, move_page, show_form, terms_request,
};
pub use waiting_room::{OPENS, PER_SECOND, RoomPart, WaitingRoomPage, WaitingRoomState};

use domain::api::organiser::Sales;
use domain::money::{Currency, Money};
use language::say;
use leptos::prelude::*;

use super::{Desk, Form, FormError, StaffPage, fields, form, frame, when};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page, WasmModule};
use crate::staff::islands::error_text;

/// A page of the schedule's section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tab {
    Programme,
    Planning,
    Films,
}

impl Tab {
    const ALL: [Self; 3] = [Self::Programme, Self::Planning, Self::Films];

    fn href(self, theatre: &str) -> String {
        let path = match self {
            Self::Programme => "shows",
            Self::Planning => "shows/plan",
            Self::Films => "films",
        };
        format!("/staff/{theatre}/{path}")
    }

    fn words(self) -> String {
        match self {
            Self::Programme => say!("organiser.programme"),
            Self::Planning => say!("organiser.plan_shows"),
            Self::Films => say!("organiser.films"),
        }
    }
}

fn head(title: String) -> Head {
    Head { title, is_private: true, module: WasmModule::Staff, ..Head::default() }
}

fn page(desk: Desk, tab: Tab, content: impl FnOnce(&Desk) -> Markup + 'static) -> impl Page {
    titled_page(desk, Some(tab), Head::default(), move || tab.words(), content)
}

/// The page of a section without tabs.
fn untabbed_page(desk: Desk, title: &'static str, content: impl FnOnce(&Desk) -> Markup + 'static) -> impl Page {
    titled_page(desk, None, Head::default(), move || say!(title), content)
}

/// A page with its own title, below a tab if it is of the schedule.
fn titled_page(
    desk: Desk,
    tab: Option<Tab>,
    head: Head,
    title: impl Fn() -> String + 'static,
    content: impl FnOnce(&Desk) -> Markup + 'static,
) -> impl Page {
    let head = Head { module: WasmModule::Staff, ..head };
    StaffPage::new(desk, head, title, move |desk: &Desk| tabbed(desk, tab, content(desk)))
}

/// Content of a page below the tabs, if it has some, and the outcome of the last form.
fn tabbed(desk: &Desk, tab: Option<Tab>, content: Markup) -> Markup {
    let tabs = tab.map(|tab| {
        let tabs = Tab::ALL.map(|other| {
            let is_current = (other == tab).then_some("page");
            view! { <li><a href=other.href(&desk.theatre) aria-current=is_current>{other.words()}</a></li> }
        });
        view! { <nav class="organiser-tabs" aria-label=say!("organiser.pages")><ul>{tabs.into_iter().collect_view()}</ul></nav> }
    });
    view! {
        {tabs}
        {desk.done.then(|| view! { <p class="account-notice" role="status" data-testid="organiser-done">{say!("organiser.done")}</p> })}
        {desk.error.clone().map(form_error_view)}
        {content}
    }
    .into_markup()
}

fn form_error_view(error: FormError) -> impl IntoView {
    let findings = rooms::findings_list(error.findings);
    view! {
        <div class="account-trouble" role="alert" data-testid="organiser-trouble">
            <p>{error_text(error.message)}</p>
            {findings}
        </div>
    }
}

fn sales_words(sales: Sales) -> String {
    match sales {
        Sales::Planned => say!("organiser.sales_planned"),
        Sales::Open => say!("organiser.sales_open"),
        Sales::Paused => say!("organiser.sales_paused"),
    }
}

fn money_words(minor: i64, currency: Currency) -> String {
    language::money(Money::new(minor, currency), language::current())
}
