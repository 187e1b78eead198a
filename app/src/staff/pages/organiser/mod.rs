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
mod waiting_room;

pub use drawing_board::{DrawingBoard, DrawnRoom};
pub use films::{FilmForm, Films};
pub use house_seats::{HouseChoice, HouseSeatsPage};
pub use moving::MovePage;
pub use planning::{Planning, PlanningForm};
pub use preview::Preview;
pub use prices::{PriceForm, PriceLine, Prices};
pub use programme::Programme;
pub use rooms::{GiveForm, ImportForm, RoomPage, Screens};
pub use show::{DefectForm, ShowForm, ShowPage};
pub use waiting_room::{RoomForm, RoomPart, RoomStands, WaitingRoomPage};

use domain::api::organiser::Sales;
use domain::layout::import::Finding;
use domain::money::{Currency, Money};
use leptos::prelude::*;

use super::{Desk, frame};
use crate::language::{self, Hindrance, Moment};
use crate::say;
use crate::shell::{Head, WasmModule};
use crate::staff::islands::in_the_way;

/// The error of a form, announced when the page loads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// The error in words.
    pub words: Hindrance,
    /// All findings about a file.
    pub findings: Vec<Finding>,
}

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
fn page(desk: &Desk, tab: Tab, title: String, done: bool, trouble: Option<Trouble>, content: AnyView) -> AnyView {
    let theatre = desk.theatre.clone();
    let tabs = Tab::ALL.map(|other| {
        let is_current = (other == tab).then_some("page");
        view! { <li><a href=other.href(&theatre) aria-current=is_current>{other.words()}</a></li> }
    });
    let content = view! {
        <nav class="organiser-tabs" aria-label=say!("organiser.pages")><ul>{tabs.into_iter().collect_view()}</ul></nav>
        {done.then(|| view! { <p class="account-notice" role="status" data-testid="organiser-done">{say!("organiser.done")}</p> })}
        {trouble.map(trouble_view)}
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

fn hidden(name: &'static str, value: String) -> impl IntoView {
    view! { <input r#type="hidden" name=name value=value /> }
}

/// A labelled input.
fn field(name: &'static str, kind: &'static str, label: String, value: String, required: bool) -> impl IntoView {
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <input id=name name=name r#type=kind value=value required=required />
        </div>
    }
}

/// A labelled select of values and their words.
fn choice(name: &'static str, label: String, options: Vec<(String, String)>, chosen: &str) -> impl IntoView + use<> {
    let options = options.into_iter().map(|(value, words)| {
        let is_chosen = value == chosen;
        view! { <option value=value selected=is_chosen>{words}</option> }
    });
    let options = options.collect_view();
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <select id=name name=name>{options}</select>
        </div>
    }
}

fn tick(name: &'static str, label: String, checked: bool) -> impl IntoView {
    view! {
        <label class="organiser-tick organiser-wide" for=name>
            <input id=name name=name r#type="checkbox" value="true" checked=checked />
            <span>{label}</span>
        </label>
    }
}

fn sales_words(sales: Sales) -> String {
    match sales {
        Sales::Planned => say!("organiser.sales_planned"),
        Sales::Open => say!("organiser.sales_open"),
        Sales::Paused => say!("organiser.sales_paused"),
    }
}

fn sales_choices() -> Vec<(String, String)> {
    [Sales::Planned, Sales::Open, Sales::Paused].map(|sales| (sales.as_str().to_owned(), sales_words(sales))).to_vec()
}

/// A local time in the reader's format.
fn when(local: &str) -> String {
    Moment::parse(local).map_or_else(|| local.to_owned(), |moment| moment.in_words(language::current()))
}

fn money_words(minor: i64, currency: Currency) -> String {
    language::money(Money::new(minor, currency), language::current())
}
