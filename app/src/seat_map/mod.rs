//! The live seat map of a show.
//!
//! The server renders a skeleton. The browser loads the room plan, asks for the visitor's hold and opens the live
//! connection, all at once.
//!
//! `plan` draws a room and `large_rooms` a room of many thousand seats. `live` keeps every seat's state current.
//! `own_seats` holds the visitor's cart and hold, `notice` has the messages, `signals` the reactive values, and `deferred`
//! the parts that load when they are needed.
//! Elsewhere: the island that mounts the map and the checkout ([`crate::show_island`]), which the map does not import, the
//! page around it ([`crate::pages`]), and every decision about holds (the server).

mod appearance;
pub(crate) mod deferred;
mod large_rooms;
mod live;
mod loading;
pub(crate) mod notice;
pub(crate) mod own_seats;
pub(crate) mod plan;
mod room_plan;
pub mod session;
mod signals;

use std::sync::Arc;

use language::say;
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use web_sys::HtmlElement;

use self::deferred::{MountedPart, PendingPart, SplitLoaderError, deferred, mount_part, rebuilt};
use self::large_rooms::{overview, painting};
use self::live::connection::{self, SILENCE_CHECK_MS};
use self::own_seats::{areas, own_hold, party, reoffer, watched};
use self::plan::drawing::escaped;
use self::plan::{card, grid, legend, list, zoom_buttons};
use self::room_plan::RoomPlan;
use self::session::{ConnectionStatus, MapSession};
use self::signals::PageSignal;
use crate::browser::{self, events};

/// Interval of the countdown's clock check, milliseconds.
const TICK_MS: u32 = 250;

/// Focus target after the focused element was removed: the map's tab stop, else the first seat of the list or the first
/// section.
pub(crate) const SEATS: &str = ".room [data-seat][tabindex='0'], .seat-list button, .section-card";
/// The same in a room without seats.
pub(crate) const AREAS: &str = ".area";
/// The button of the open cart. Only a phone shows it.
const OPEN_CART: &str = ".cart[data-open='true'] .cart-close";

const SECTION_HEADING: &str = "section-heading";

/// The room: status bar, `besides` and seats. [`details`] belong beside or below it.
pub(crate) fn room(session: MapSession, besides: impl IntoView) -> impl IntoView {
    let as_list = PageSignal::new(false);
    view! {
        <section class="seat-map-room" aria-label=say!("map.label")>
            <div class="seat-map-bar">
                {live_mark(session)}
                {seats_left(session)}
                {deferred(move || session.is_drawn(), "room-zoom-coming", move |place| {
                    Box::pin(zoom_buttons::zoom_buttons_part(session, as_list, place))
                })}
                {view_switch(session, as_list)}
            </div>
            {(!session.is_read_only).then(|| {
                deferred(move || session.is_drawn(), "party party-coming", move |place| Box::pin(party::finder_part(session, place)))
            })}
            <div class="seat-map-besides">{besides}</div>
            {deferred(move || session.is_drawn(), "areas-coming", move |place| Box::pin(areas::areas_part(session, place)))}
            <div class="seat-map-view">
                // Over the room, so that nothing moves away under a thumb, and before it in the order of the page.
                <div class="notice-layer">
                    {deferred(move || session.is_drawn(), "", move |place| Box::pin(notice_part(session, place)))}
                </div>
                {rebuilt(move |place| content(session, as_list, place))}
            </div>
        </section>
    }
}

/// The card of the seat pointed at, and the legend.
pub(crate) fn details(session: MapSession) -> impl IntoView {
    let has_seats = move || session.is_drawn() && shows_seats(session);
    view! {
        {deferred(has_seats, "seat-card", move |place| Box::pin(card::card_part(session, place)))}
        {rebuilt(move |place| legend_view(session, place))}
    }
}

/// Loads the room and the hold and opens the live connection, all at once.
pub(crate) fn start(session: MapSession) {
    own_hold::join_tabs(session);
    connection::watch_page(session);
    load_room(session);
    own_hold::refresh_after_beacons(session);
    connection::connect(session);
    watched::keep_title(session);
    painting::watch_appearance(session);
    events::every(TICK_MS, move || own_hold::update_countdown(session));
    events::every(SILENCE_CHECK_MS, move || connection::check_silence(session));
    events::on_window("hashchange", move |_| {
        // Not for a link to another part of the page, such as its content.
        if !overview::is_of_map(&browser::fragment()) {
            return;
        }
        choose_section(session, move || focus_section(session));
        // The link that was followed has left the page, and the focus with it.
        focus_section(session);
    });
}

/// Moves the focus to the seats, or without seats to the first area. An open cart that covers them gets it instead.
pub(crate) fn focus_seats() {
    // The last one that can take it keeps it.
    [AREAS, SEATS, OPEN_CART].into_iter().for_each(browser::focus_first);
}

/// Moves the focus to the heading of the section on screen, once it is drawn. A control that has the focus keeps it, as
/// the party finder does when its proposal is in another section.
fn focus_section(session: MapSession) {
    // Two frames: a section that replaces another is drawn in the second.
    request_animation_frame(move || {
        request_animation_frame(move || {
            if session.section.get_untracked().is_some() && browser::has_no_focus() {
                browser::focus(SECTION_HEADING);
            }
        });
    });
}

fn load_room(session: MapSession) {
    loading::load_room(session, move || {
        connection::replay_buffered_frames(session);
        connection::read_map_if_offline(session);
        choose_section(session, || ());
        // While the map is under way.
        if shows_map(session) {
            grid::load_early(session);
        }
    });
}

/// Shows the section that the address names. `loaded` runs after its rows had to be loaded and have arrived.
fn choose_section(session: MapSession, loaded: impl FnOnce() + 'static) {
    let Some(room) = session.room.get_untracked() else { return };
    let named = overview::section_of(&browser::fragment());
    let section = named.filter(|section| room.plan().overview && *section < room.plan().sections.len());
    let choice = session.section_choice.update_value(|number| {
        *number += 1;
        *number
    });
    if let Some(section) = section
        && !room.is_loaded(section)
    {
        loading::load_section(session, section, move || session.section_choice.get_value() == choice, loaded);
    }
    let left = session.section.get_untracked().filter(|_| section.is_none());
    session.left_section.set_value(left.map(|left| (left, browser::shows_focus())));
    if section.is_some() && session.section.get_untracked().is_some_and(|before| Some(before) != section) {
        // A new section is always drawn from scratch, never over another.
        session.section.set(None);
        request_animation_frame(move || {
            session.section.set(section);
            connection::subscribe_sections(session);
        });
    } else if session.section.get_untracked() != section {
        session.section.set(section);
    }
    connection::subscribe_sections(session);
}

/// The room's current view: skeleton, failure, overview, list or map.
fn content(session: MapSession, as_list: PageSignal<bool>, place: HtmlElement) -> MountedPart {
    let Some(room) = session.room.get() else {
        return match session.load_failure.get() {
            Some(why) => mount_part(place, move || load_failure_view(session, why)),
            None => mount_part(place, skeleton),
        };
    };
    if !session.is_map_known.get() {
        return mount_part(place, skeleton);
    }
    let section = session.section.get();
    if room.plan().overview && section.is_none() {
        let load = move |place| Box::pin(overview::overview_part(session, Arc::clone(&room), place)) as PendingPart;
        return mount_part(place, move || deferred(|| true, "room-coming", load));
    }
    let back_link = section.map(|section| back_link(&room, section));
    if section.is_some_and(|section| !room.is_loaded(section)) {
        return mount_part(place, move || (back_link, skeleton()));
    }
    let load: Box<dyn Fn(HtmlElement) -> PendingPart> = match section {
        _ if as_list.get() => {
            Box::new(move |place| Box::pin(list::list_part(session, Arc::clone(&room), section, place)) as PendingPart)
        }
        _ => {
            Box::new(move |place| Box::pin(grid::grid_part(session, Arc::clone(&room), section, place)) as PendingPart)
        }
    };
    mount_part(place, move || (appearance::definitions(), back_link, deferred(|| true, "room-coming", load)))
}

/// The legend of the seats or sections on screen, or nothing while none is drawn.
fn legend_view(session: MapSession, place: HtmlElement) -> MountedPart {
    let (room, section) = (session.room.get(), session.section.get());
    let is_known = |room: &Arc<RoomPlan>| section.is_none_or(|section| room.is_loaded(section));
    let Some(room) = room.filter(|room| session.is_map_known.get() && is_known(room)) else {
        return mount_part(place, || ());
    };
    let load = move |place| Box::pin(legend::legend_part(session, Arc::clone(&room), section, place)) as PendingPart;
    mount_part(place, move || deferred(move || session.is_drawn(), "legend-coming", load))
}

#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
fn notice_part(session: MapSession, place: HtmlElement) -> Result<MountedPart, SplitLoaderError> {
    Ok(mount_part(place, move || {
        reoffer::offer(session);
        notice::notice_view(session)
    }))
}

fn back_link(room: &Arc<RoomPlan>, section: usize) -> impl IntoView + use<> {
    let name = room.plan().sections.get(section).map(|found| overview::titled(section, found)).unwrap_or_default();
    view! {
        <div class="section-head">
            <a class="section-back" href="#sections">{say!("map.all_sections")}</a>
            <h2 id=SECTION_HEADING tabindex="-1">{name}</h2>
        </div>
    }
}

/// Returns true if a room or a section is drawn, not the overview of a large room. Subscribes.
pub(crate) fn shows_map(session: MapSession) -> bool {
    let overview = session.room.with(|room| room.as_ref().is_some_and(|room| room.plan().overview));
    !overview || session.section.get().is_some()
}

/// Returns false for a room that has areas only. Subscribes.
pub(crate) fn has_seats(session: MapSession) -> bool {
    session.room.with(|room| room.as_ref().is_none_or(|room| room.plan().seat_count > 0))
}

/// Returns true if single seats are on screen. Subscribes.
fn shows_seats(session: MapSession) -> bool {
    shows_map(session) && has_seats(session)
}

/// The number of free seats and places, once it is known.
fn seats_left(session: MapSession) -> impl IntoView {
    let left = move || {
        let is_known = session.is_map_known.get() && session.room.with(Option::is_some);
        if is_known { say!("map.seats_left", seats = session.count_left()) } else { String::new() }
    };
    view! { <p class="seats-left" data-testid="seats-left">{left}</p> }
}

/// Switches between map and list. Hidden where no seats can be listed.
fn view_switch(session: MapSession, as_list: PageSignal<bool>) -> impl IntoView {
    view! {
        <button type="button" class="view-switch" aria-pressed=move || if as_list.get() { "true" } else { "false" }
            hidden=move || !shows_seats(session) on:click=move |_| as_list.update(|list| *list = !*list)>{say!("map.list")}</button>
    }
}

fn live_mark(session: MapSession) -> impl IntoView {
    let (name, words) = (
        move || match session.connection_status.get() {
            ConnectionStatus::Connecting => "connecting",
            ConnectionStatus::Live => "live",
            ConnectionStatus::Offline => "offline",
        },
        move || match session.connection_status.get() {
            ConnectionStatus::Connecting => say!("map.connecting"),
            ConnectionStatus::Live => say!("map.live"),
            ConnectionStatus::Offline => say!("map.offline"),
        },
    );
    view! { <p class="live" data-testid="live" data-state=name role="status"><span class="live-dot" aria-hidden="true"></span>{words}</p> }
}

/// Placeholder until the room plan and its first snapshot have arrived.
pub(crate) fn skeleton() -> impl IntoView {
    view! { <div class="room-skeleton" aria-busy="true" inner_html=skeleton_markup()></div> }
}

/// The same as markup, which the browser parses at once: nothing in it is interactive.
pub(crate) fn skeleton_markup() -> String {
    let mut out = String::from(
        "<svg viewBox=\"0 0 344 220\" aria-hidden=\"true\" focusable=\"false\">\
         <path d=\"M40 26 Q172 2 304 26\" fill=\"none\" stroke-width=\"4\" stroke-linecap=\"round\"></path>",
    );
    out += "<g id=\"skeleton-row\">";
    for seat in 0..14 {
        let x = 24 + seat * 20 + i32::from(seat > 6) * 14;
        out += &format!("<rect x=\"{x}\" y=\"50\" width=\"14\" height=\"14\" rx=\"4\"></rect>");
    }
    out += "</g>";
    for row in 1..7 {
        out += &format!("<use href=\"#skeleton-row\" y=\"{}\"></use>", row * 22);
    }
    out + "</svg><p>" + &escaped(&say!("map.opening")) + "</p>"
}

fn load_failure_view(session: MapSession, why: String) -> impl IntoView {
    view! {
        <div class="room-unreachable" role="alert">
            <p>{why}</p>
            <button type="button" class="button" on:click=move |_| load_room(session)>{say!("map.try_again")}</button>
        </div>
    }
}
