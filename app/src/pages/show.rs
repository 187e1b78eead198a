//! The page of a show: film, place and time, and the seat map or the waiting room in front of it (islands).

use domain::booking::SALES_CLOSE_BEFORE_START_MS;
use domain::time::MINUTE_MS;
use language::{Arg, say};
use leptos::prelude::*;
use uuid::Uuid;

use super::film::fact_items;
use super::poster::poster_path;
use crate::checkout::BUYER;
use crate::legal_links;
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page, PageLink, WasmModule};
use crate::show_island::{self, SHOW, SeatMap};
use crate::waiting_room::{self, WaitingRoom};

/// The page of a show.
#[derive(Clone, Debug)]
pub struct SeatMapPage {
    /// The show.
    pub id: Uuid,
    /// Name and e-mail address of the signed-in account, for the buyer's form.
    pub buyer: Option<(String, String)>,
    /// The film: title and path.
    pub film: PageLink,
    /// The theatre: name and path.
    pub theatre: PageLink,
    /// The screen's name.
    pub screen: String,
    /// The city: name and path.
    pub city: PageLink,
    /// Start in the theatre's time zone: `Sat 21 Nov, 20:15`.
    pub starts: String,
    /// The same in RFC 3339, for programs.
    pub starts_at: String,
    /// `2D`, `3D`, `IMAX`, `LIVE`.
    pub format: String,
    /// Language spoken.
    pub language: String,
    /// Age rating as printed.
    pub rating: String,
    /// Running time, minutes.
    pub running_minutes: u32,
    /// True if seats are on sale now.
    pub is_on_sale: bool,
    /// Start of sales, if in the future: `Tue 1 Dec, 10:00`.
    pub opens: Option<String>,
    /// True if the organiser paused the sale.
    pub is_paused: bool,
    /// True if the show was called off.
    pub is_called_off: bool,
    /// True if simulated visitors take seats too.
    pub has_demo_crowd: bool,
    /// Duration of a waiting list offer, minutes.
    pub offer_minutes: i64,
    /// Most seats and places that one person may have.
    pub per_person: usize,
    /// The show as an event for search engines (JSON-LD). `None` once it has begun: then they must not index the page.
    pub event: Option<String>,
}

impl Page for SeatMapPage {
    fn head(&self) -> Head {
        Head {
            title: format!("{}, {}", self.film.name, self.starts),
            description: if self.is_called_off {
                say!("show.called_off_title")
            } else {
                say!(
                    "show.description",
                    film = &self.film.name,
                    theatre = &self.theatre.name,
                    time = Arg::Ours(&self.starts)
                )
            },
            has_island: self.is_on_sale,
            words: if self.is_on_sale { show_island::WORDS } else { &[] },
            module: WasmModule::Show,
            city: Some(self.city.clone()),
            is_private: self.event.is_none(),
            structured_data: self.event.clone(),
            picture: poster_path(&self.film.href),
            ..Head::default()
        }
    }

    fn view(self) -> Markup {
        let (heading, film) = (heading(&self), self.film.href.clone());
        let seats = if self.is_on_sale {
            // Outside the island: browsers parse <noscript> differently with and without scripts, and the island must
            // find what the server wrote.
            view! {
                {self.buyer.map(|(name, email)| view! { <div id=BUYER hidden data-name=name data-email=email></div> })}
                <div id=SHOW hidden data-show=self.id.to_string() data-film=film data-offer-minutes=self.offer_minutes.to_string()
                    data-per-person=self.per_person.to_string()></div>
                {legal_links::get().at_checkout()}
                <SeatMap />
                // In place of the map if its code does not load.
                <p class="no-script not-started" role="alert">
                    {say!("map.room_unreachable")}" "<a href="">{say!("map.try_again")}</a>
                </p>
                <noscript>
                    <p class="no-script">{say!("show.no_script")}</p>
                </noscript>
            }
            .into_markup()
        } else {
            closed(&self, film).into_markup()
        };
        view! {
            {heading}
            {seats}
        }
        .into_markup()
    }
}

/// Film, place, time and facts; in a demo, a note about its simulated visitors.
fn heading(show: &SeatMapPage) -> impl IntoView + use<> {
    let minutes = say!("list.minutes", minutes = show.running_minutes);
    let facts = [show.format.clone(), show.language.clone(), minutes, show.rating.clone()];
    let facts = fact_items(facts);
    let crowd =
        (show.has_demo_crowd && show.is_on_sale).then(|| view! { <p class="show-crowd">{say!("show.demo_crowd")}</p> });
    let SeatMapPage { film, theatre, screen, starts, starts_at, is_on_sale, .. } = show.clone();
    view! {
        <header class="show-head">
            <a class="show-back" href=film.href aria-label=say!("show.other_times")>
                <svg class="icon" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" focusable="false">
                    <path d="M12.5 4 6.5 10l6 6" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" />
                </svg>
            </a>
            <div class="show-title">
                <h1><bdi>{film.name}</bdi></h1>
                <time class="show-when" datetime=starts_at>{starts}</time>
            </div>
            // The map needs the space: on a phone, place and facts are behind a button.
            <details class="show-about" open=!is_on_sale>
                <summary aria-label=say!("show.about")></summary>
                <div class="show-more">
                    <p class="crumbs"><a href=theatre.href><bdi>{theatre.name}</bdi></a><bdi>{screen}</bdi></p>
                    <ul class="show-facts">{facts}</ul>
                    {crowd}
                </div>
            </details>
        </header>
    }
}

fn closed(show: &SeatMapPage, film: String) -> impl IntoView + use<> {
    let minutes = SALES_CLOSE_BEFORE_START_MS / MINUTE_MS;
    let (title, advice) = match &show.opens {
        _ if show.is_called_off => (say!("show.called_off_title"), say!("show.called_off_advice")),
        Some(time) => (say!("show.opens_title"), say!("show.opens_advice", time = Arg::Ours(time))),
        None if show.is_paused => (say!("show.paused_title"), say!("show.paused_advice")),
        None => (say!("show.closed_title"), say!("show.closed_advice", minutes = minutes)),
    };
    view! {
        <section class="empty-state">
            <h2>{title}</h2>
            <p>{advice}</p>
            <p><a class="button" href=film>{say!("show.other_times")}</a></p>
        </section>
    }
}

/// The page of a show behind a waiting room.
#[derive(Clone, Debug)]
pub struct QueuePage {
    /// The show.
    pub show: SeatMapPage,
    /// Opening time of the waiting room, local: `Sat 21 Nov, 10:00`.
    pub opens: String,
}

impl Page for QueuePage {
    fn head(&self) -> Head {
        Head { has_island: true, words: waiting_room::WORDS, module: WasmModule::Pages, ..self.show.head() }
    }

    fn view(self) -> Markup {
        view! {
            {heading(&self.show)}
            <WaitingRoom show=self.show.id opens=self.opens />
            <noscript>
                <p class="no-script">{say!("queue.no_script")}</p>
            </noscript>
        }
        .into_markup()
    }
}
