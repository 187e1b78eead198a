//! The live seat map of a show, with the cart and the checkout beside it: one island.
//!
//! The server renders a skeleton; the browser loads the room, asks what this visitor holds and opens
//! the live connection, all at once. Not here: the page around it ([`crate::pages`]) and whatever
//! decides about holds (the server).

mod areas;
pub mod board;
mod canvas;
mod card;
pub mod cart;
mod connection;
mod counting;
mod dots;
pub mod drawing;
mod follower;
mod glyphs;
mod grid;
mod island;
mod kept;
mod later;
mod legend;
mod list;
mod minimap;
pub mod notices;
mod once;
mod overview;
mod own_hold;
mod painting;
mod party;
pub(crate) mod plane;
mod raster;
mod requests;
pub mod room;
pub mod session;
mod sight;
pub mod steps;
mod watch;
pub mod zoom;

use std::sync::Arc;

pub use island::{SHOW, SeatMap};
use leptos::either::{Either, EitherOf5};
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use web_sys::HtmlElement;

use self::cart::Cart;
use self::later::{Mounted, SplitLoaderError, later, mounted};
use self::once::DrawnOnce;
use self::room::Room;
use self::session::{Live, Session};
use crate::browser::{self, events};
use crate::say;

/// Groups of messages the island uses; its page carries them.
pub const WORDS: &[&str] = &["map", "party", "cart", "pay", "wait", "problem", "common"];

/// How often the countdown looks at the clock, milliseconds.
const TICK_MS: u32 = 250;

/// Id of the heading of the section on screen.
const SECTION_HEADING: &str = "section-heading";
/// Where the focus goes when what had it is gone: the map's tab stop, or the first of the list or of the
/// sections.
const SEATS: &str = ".room [role=gridcell][tabindex='0'], .seat-list button, .section-card";

/// The room, with `besides` between what it says and its seats.
pub(crate) fn room(session: Session, besides: impl IntoView) -> impl IntoView {
    let as_list = RwSignal::new(false);
    view! {
        <section class="seat-map-room" aria-label=say!("map.label")>
            <div class="seat-map-bar">
                {live_mark(session)}
                {view_switch(session, as_list)}
            </div>
            {later(move || session.is_drawn(), "party party-coming", move |place| Box::pin(finder_part(session, place)))}
            {notice_view(session)}
            {besides}
            {later(move || session.is_drawn(), "areas-coming", move |place| Box::pin(areas_part(session, place)))}
            {move || content(session, as_list)}
        </section>
    }
}

/// Everything at once: room, hold, live connection.
pub(crate) fn start(session: Session) {
    session.join_tabs();
    session.watch_page();
    load_room(session);
    session.recall_past_beacons();
    session.connect();
    watch::keep_title(session);
    session.watch_appearance();
    events::every(TICK_MS, move || session.tick());
    events::on_window("hashchange", move |_| {
        choose_section(session, move || focus_section(session));
        // The link that was followed is gone.
        focus_section(session);
    });
}

/// Moves the focus to the name of the section on screen, once it is drawn.
fn focus_section(session: Session) {
    // Two frames: a section that follows another is drawn in the second.
    request_animation_frame(move || {
        request_animation_frame(move || {
            if session.section.get_untracked().is_some() {
                browser::focus(SECTION_HEADING);
            }
        });
    });
}

fn load_room(session: Session) {
    session.load_room(move || {
        session.hear_waiting();
        session.read_map_if_cut_off();
        choose_section(session, || ());
    });
}

/// Shows the section that the address names; `loaded` runs when its rows had to be loaded and are there.
fn choose_section(session: Session, loaded: impl FnOnce() + 'static) {
    let Some(room) = session.room.get_untracked() else { return };
    let named = overview::section_of(&browser::fragment());
    let section = named.filter(|section| room.plan().overview && *section < room.plan().sections.len());
    if let Some(section) = section
        && !room.is_loaded(section)
    {
        session.load_section(section, loaded);
    }
    if section.is_some() && session.section.get_untracked().is_some_and(|before| Some(before) != section) {
        // A section is drawn afresh, never over another.
        session.section.set(None);
        request_animation_frame(move || {
            session.section.set(section);
            session.follow_sections();
        });
    } else {
        session.section.set(section);
    }
    session.follow_sections();
}

/// What is to be seen of the room right now.
fn content(session: Session, as_list: RwSignal<bool>) -> impl IntoView {
    let Some(room) = session.room.get() else {
        return if session.unreachable.get() { EitherOf5::A(unreachable(session)) } else { EitherOf5::B(skeleton()) };
    };
    if !session.known.get() {
        return EitherOf5::B(skeleton());
    }
    let section = session.section.get();
    if room.plan().overview && section.is_none() {
        return EitherOf5::C(later(
            || true,
            "room-coming",
            move |place| Box::pin(overview_part(session, Arc::clone(&room), place)),
        ));
    }
    let way_back = section.map(|section| way_back(&room, section));
    if section.is_some_and(|section| !room.is_loaded(section)) {
        return EitherOf5::D((way_back, skeleton()));
    }
    let seats = if as_list.get() {
        let room = Arc::clone(&room);
        Either::Left(later(
            || true,
            "room-coming",
            move |place| Box::pin(list_part(session, Arc::clone(&room), section, place)),
        ))
    } else {
        Either::Right(grid::grid(session, &room, section))
    };
    EitherOf5::E((glyphs::definitions(), way_back, seats, legend::legend(session, &room, section)))
}

/// The finder, once the room is known.
#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
fn finder_part(session: Session, place: HtmlElement) -> Result<Mounted, SplitLoaderError> {
    Ok(mounted(place, move || {
        // The same when the sections of the room come in.
        let categories = Memo::new(move |_| session.room.with(|room| Some(room.as_ref()?.plan().categories.clone())));
        move || categories.get().map(|categories| party::finder(session, &categories))
    }))
}

/// Places without numbers.
#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
fn areas_part(session: Session, place: HtmlElement) -> Result<Mounted, SplitLoaderError> {
    Ok(mounted(place, move || move || areas::areas(session)))
}

/// A large room at a glance.
#[wasm_split(overview, wasm_split_path = ::leptos::wasm_split, fallible)]
fn overview_part(session: Session, room: Arc<Room>, place: HtmlElement) -> Result<Mounted, SplitLoaderError> {
    Ok(mounted(place, move || overview::overview(session, &room)))
}

/// The list twin.
#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
fn list_part(
    session: Session,
    room: Arc<Room>,
    section: Option<usize>,
    place: HtmlElement,
) -> Result<Mounted, SplitLoaderError> {
    Ok(mounted(place, move || list::list(session, &room, section)))
}

fn way_back(room: &Arc<Room>, section: usize) -> impl IntoView + use<> {
    let name = room.plan().sections.get(section).map(|found| overview::titled(section, found)).unwrap_or_default();
    view! {
        <div class="section-head">
            <a class="section-back" href="#sections">{say!("map.all_sections")}</a>
            <h2 id=SECTION_HEADING tabindex="-1">{name}</h2>
        </div>
    }
}

/// Map or list; where sections are chosen there is nothing to switch.
fn view_switch(session: Session, as_list: RwSignal<bool>) -> impl IntoView {
    let has_seats = Memo::new(move |_| {
        let overview = session.room.with(|room| room.as_ref().is_some_and(|room| room.plan().overview));
        !overview || session.section.get().is_some()
    });
    view! {
        <button type="button" class="view-switch" aria-pressed=move || if as_list.get() { "true" } else { "false" }
            hidden=move || !has_seats.get() on:click=move |_| as_list.update(|list| *list = !*list)>{say!("map.list")}</button>
    }
}

fn live_mark(session: Session) -> impl IntoView {
    let (name, words) = (
        move || match session.live.get() {
            Live::Connecting => "connecting",
            Live::On => "live",
            Live::Offline => "offline",
        },
        move || match session.live.get() {
            Live::Connecting => say!("map.connecting"),
            Live::On => say!("map.live"),
            Live::Offline => say!("map.offline"),
        },
    );
    view! { <p class="live" data-testid="live" data-state=name role="status"><span class="live-dot" aria-hidden="true"></span>{words}</p> }
}

fn notice_view(session: Session) -> impl IntoView {
    // What is no trouble waits until a screen reader is free to say it.
    let text = move |is_good: bool| {
        session.notice.with(|notice| {
            let said = notice.as_ref().filter(|notice| notice.is_good == is_good);
            said.map(|notice| notice.text.clone()).unwrap_or_default()
        })
    };
    let tone = move || session.notice.with(|notice| notice.as_ref().is_some_and(|notice| notice.is_good));
    let watchable = move || session.notice.with(|notice| notice.as_ref().and_then(|notice| notice.watchable));
    let may_ask = move || {
        session.notice.with(|notice| notice.as_ref().is_some_and(|notice| notice.may_ask_again))
            && session.cart.with(Cart::has_lost)
    };
    let booking = move || session.notice.with(|notice| notice.as_ref().and_then(|notice| notice.booking));
    let offer = move || session.notice.with(|notice| notice.as_ref().and_then(|notice| notice.offer.clone()));
    let shown = move || session.notice.with(Option::is_some);
    // The buttons go with the notice: without a place of its own the focus would fall to the page's top.
    let close = move |_| {
        browser::focus_first(SEATS);
        session.notice.set(None);
    };
    let ask_again = move |_| {
        browser::focus_first(SEATS);
        session.ask_again();
    };
    view! {
        <div class="notice" data-shown=move || if shown() { "true" } else { "false" }
            data-tone=move || if tone() { "good" } else { "trouble" }>
            <p role="alert" data-testid="message">{move || text(false)}</p>
            <p role="status" data-testid="news">{move || text(true)}</p>
            {move || offer().map(|offer| {
                let words = offer.words.clone();
                let accept = move |_| {
                    browser::focus_first(SEATS);
                    session.accept(&offer);
                };
                view! { <button type="button" class="notice-action" data-testid="accept-offer" on:click=accept>{words}</button> }
            })}
            {move || watchable().map(|seat| {
                let watch = move |_| {
                    browser::focus_first(SEATS);
                    session.watch(seat);
                };
                view! { <button type="button" class="notice-action" data-testid="watch-seat" on:click=watch>{say!("map.watch")}</button> }
            })}
            {move || may_ask().then(|| view! {
                <button type="button" class="notice-action" data-testid="ask-again" on:click=ask_again>{say!("map.ask_again")}</button>
            })}
            {move || booking().map(|booking| view! {
                <a class="notice-action" data-testid="notice-booking" href=format!("/bookings/{booking}")>{say!("map.see_booking")}</a>
            })}
            {move || shown().then(|| view! {
                <button type="button" class="notice-close" aria-label=say!("map.close_message") on:click=close>"×"</button>
            })}
        </div>
    }
}

/// What stands there until the room is loaded and its first map read.
pub(crate) fn skeleton() -> impl IntoView {
    let rows = (0..7).map(|row| {
        let dots = (0..14).map(|seat| {
            view! { <rect x=24 + seat * 20 + i32::from(seat > 6) * 14 y=50 + row * 22 width="14" height="14" rx="4"></rect> }
        });
        dots.drawn_once()
    });
    view! {
        <div class="room-skeleton" aria-busy="true">
            <svg viewBox="0 0 344 220" aria-hidden="true" focusable="false">
                <path d="M40 26 Q172 2 304 26" fill="none" stroke-width="4" stroke-linecap="round"></path>
                {rows.drawn_once()}
            </svg>
            <p>{say!("map.opening")}</p>
        </div>
    }
}

fn unreachable(session: Session) -> impl IntoView {
    view! {
        <div class="room-unreachable" role="alert">
            <p>{say!("map.room_unreachable")}</p>
            <button type="button" class="button" on:click=move |_| load_room(session)>{say!("map.try_again")}</button>
        </div>
    }
}
