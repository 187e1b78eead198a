//! Pages of organisers: programme, planning, shows, screens and rooms, prices, films. Plain forms that work without a
//! script; a small script reads a room file.

mod drawing_board;
mod films;
mod findings;
mod house_seats;
mod moving;
mod planning;
mod preview;
mod prices;
mod programme;
mod rooms;
mod show;
mod terms;
mod waiting_room;

pub use drawing_board::{DrawingBoard, DrawnRoom};
pub use films::{Films, film_request};
pub use house_seats::{FORGET, HouseSeatsPage, KEEP, standing_request};
pub use moving::MovePage;
pub use planning::{Planning, new_plan, shows_request};
pub use preview::Preview;
pub use prices::{PRICE, PriceLine, Prices, read_tariff, tariff_form};
pub use programme::Programme;
pub use rooms::{NEW_SCREEN, PUBLISH, RoomPage, Screens};
pub use show::{CANCEL, DEFECTS, ShowPage, TERMS, defects_request, show_form, terms_request};
pub use waiting_room::{OPENS, PER_SECOND, RoomPart, RoomStands, WaitingRoomPage};

use domain::api::organiser::Sales;
use domain::money::{Currency, Money};
use leptos::prelude::*;

use super::{Desk, Form, Trouble, fields, form, frame};
use crate::language::{self, Moment};
use crate::say;
use crate::shell::{Head, WasmModule};
use crate::staff::islands::in_the_way;

/// The organiser's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tab {
    Programme,
    Planning,
    Screens,
    Prices,
    Films,
}

impl Tab {
    const ALL: [Self; 5] = [Self::Programme, Self::Planning, Self::Screens, Self::Prices, Self::Films];

    fn href(self, theatre: &str) -> String {
        let path = match self {
            Self::Programme => "shows",
            Self::Planning => "shows/plan",
            Self::Screens => "screens",
            Self::Prices => "prices",
            Self::Films => "films",
        };
        format!("/staff/{theatre}/{path}")
    }

    fn words(self) -> String {
        match self {
            Self::Programme => say!("organiser.programme"),
            Self::Planning => say!("organiser.plan_shows"),
            Self::Screens => say!("organiser.screens"),
            Self::Prices => say!("organiser.prices"),
            Self::Films => say!("organiser.films"),
        }
    }
}

fn head(title: String) -> Head {
    Head { title, is_private: true, module: WasmModule::Staff, ..Head::default() }
}

/// An organiser page within the staff frame.
fn page(desk: &Desk, tab: Tab, title: String, content: AnyView) -> AnyView {
    let theatre = desk.theatre.clone();
    let tabs = Tab::ALL.map(|other| {
        let is_current = (other == tab).then_some("page");
        view! { <li><a href=other.href(&theatre) aria-current=is_current>{other.words()}</a></li> }
    });
    let content = view! {
        <nav class="organiser-tabs" aria-label=say!("organiser.pages")><ul>{tabs.into_iter().collect_view()}</ul></nav>
        {desk.done.then(|| view! { <p class="account-notice" role="status" data-testid="organiser-done">{say!("organiser.done")}</p> })}
        {desk.trouble.clone().map(trouble_view)}
        {content}
    };
    frame(desk, title, content)
}

fn trouble_view(trouble: Trouble) -> impl IntoView {
    let findings = findings::list(trouble.findings);
    view! {
        <div class="account-trouble" role="alert" data-testid="organiser-trouble">
            <p>{in_the_way(trouble.words)}</p>
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

/// A local time in the reader's format.
fn when(local: &str) -> String {
    Moment::parse(local).map_or_else(|| local.to_owned(), |moment| moment.in_words(language::current()))
}

fn money_words(minor: i64, currency: Currency) -> String {
    language::money(Money::new(minor, currency), language::current())
}
