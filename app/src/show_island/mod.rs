//! The island of a show's page: the seat map, with the cart, the checkout and the waiting list beside it.
//!
//! The server renders a skeleton, which the browser replaces with the live map. The parts are in [`crate::seat_map`],
//! [`crate::checkout`], which imports the map, and `waiting_list`. None of them imports this module.
//!
//! The map is mounted, not hydrated: the server renders no seat states, so there is nothing to hydrate, and the module
//! saves the code for it (about a third).

#![allow(missing_docs, reason = "the island macro makes a struct for the props and does not document it")]

mod waiting_list;

use language::say;
use leptos::html::Div;
use leptos::mount::mount_to;
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use uuid::Uuid;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::seat_map::deferred::{MountedPart, SplitLoaderError, deferred, mount_part};
use crate::seat_map::plan::drawing::escaped;
use crate::seat_map::session::MapSession;
use crate::seat_map::{details, room, skeleton_markup, start};
use crate::{browser, checkout};

/// Groups of messages the island uses. Its page carries them.
pub const WORDS: &[&str] = &["map", "party", "cart", "pay", "wait", "problem", "common"];

/// Id of the page element with the show (`data-show`), the path of its film (`data-film`) and the most seats of one person
/// (`data-per-person`). They are not properties of the island, because reading properties would load a general JSON reader
/// for a few strings.
pub const SHOW: &str = "show-of-the-map";

/// The seat map, cart and checkout of a show.
#[island]
pub fn SeatMap() -> impl IntoView {
    let place = NodeRef::<Div>::new();
    Effect::new(move |_| {
        let read = |name: &str| browser::element(SHOW)?.get_attribute(name);
        let show = read("data-show").and_then(|id| Uuid::try_parse(&id).ok());
        if let (Some(place), Some(show)) = (place.get(), show) {
            let session = MapSession::new(show);
            if let Some(limit) = read("data-per-person").and_then(|limit| limit.parse().ok()) {
                session.cart.update(|cart| cart.set_limit(limit));
            }
            place.set_inner_html("");
            // Requested before the parts that need it: the style is far smaller than they are.
            load_deferred_style(session);
            mount_to((*place).clone().unchecked_into(), move || parts(session)).forget();
            start(session);
        }
    });
    view! {
        <div class="seat-map show-map" data-testid="seat-map" node_ref=place inner_html=skeleton_html()></div>
    }
}

/// Loads the fonts and the style of the deferred parts, once the map is drawn.
fn load_deferred_style(session: MapSession) {
    Effect::new(move |asked: Option<bool>| {
        let asked = asked.unwrap_or_default();
        if !asked && session.is_drawn() {
            // Not in the frame that draws the map.
            request_animation_frame(|| browser::add_style(&browser::file(LATER_STYLE)));
            return true;
        }
        asked
    });
}

/// Style of the deferred parts. `site-builder/src/files.rs` lists its files.
pub const LATER_STYLE: &str = "/style/map-later.css";

/// The skeleton that the server renders.
fn skeleton_html() -> String {
    let label = escaped(&say!("map.label"));
    let room = skeleton_markup();
    format!(
        "<section class=\"seat-map-room\" aria-label=\"{label}\"><div class=\"room-skeleton\" aria-busy=\"true\">{room}</div></section>"
    )
}

fn parts(session: MapSession) -> impl IntoView {
    let waiting = deferred(move || session.is_drawn(), "", move |place| Box::pin(waiting_box(session, place)));
    view! {
        {room(session, waiting)}
        <div class="seat-map-side">
            {deferred(move || session.is_drawn(), "cart cart-coming", move |place| Box::pin(cart(session, place)))}
            {details(session)}
        </div>
        <p class="visually-hidden" role="status" data-testid="spoken">{move || session.announcement.get()}</p>
    }
}

#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
fn waiting_box(session: MapSession, place: HtmlElement) -> Result<MountedPart, SplitLoaderError> {
    Ok(mount_part(place, move || waiting_list::waiting_box(session)))
}

#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
fn cart(session: MapSession, place: HtmlElement) -> Result<MountedPart, SplitLoaderError> {
    Ok(mount_part(place, move || checkout::panel(session)))
}
