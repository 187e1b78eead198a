//! The island: a skeleton from the server, replaced by the live map once the browser half runs.
//!
//! Nothing of the map is hydrated, it is mounted: the server knows no seat states, so there is nothing
//! to take over, and the module spares the code for it (about a third).

#![allow(missing_docs, reason = "the island macro makes a struct for the props and gives it no words")]

use leptos::html::Div;
use leptos::mount::mount_to;
use leptos::prelude::*;
use uuid::Uuid;
use wasm_bindgen::JsCast;

use super::session::Session;
use super::{room, skeleton, start};
use crate::say;
use crate::{checkout, waiting_list};

/// The seat map, cart and checkout of a show.
#[island]
pub fn SeatMap(
    /// The show.
    show: Uuid,
) -> impl IntoView {
    let place = NodeRef::<Div>::new();
    Effect::new(move |_| {
        if let Some(place) = place.get() {
            let session = Session::new(show);
            place.set_inner_html("");
            mount_to((*place).clone().unchecked_into(), move || parts(session)).forget();
            start(session);
        }
    });
    view! {
        <div class="seat-map" data-testid="seat-map" node_ref=place>
            <section class="seat-map-room" aria-label=say!("map.label")>{skeleton()}</section>
        </div>
    }
}

fn parts(session: Session) -> impl IntoView {
    view! {
        {room(session, waiting_list::waiting_box(session))}
        {checkout::panel(session)}
        <p class="visually-hidden" role="status" data-testid="spoken">{move || session.spoken.get()}</p>
    }
}
