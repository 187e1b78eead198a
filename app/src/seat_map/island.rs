//! The island: what it is made of, and when it starts. Its parts are beside this file.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and gives it no words")]

use leptos::prelude::*;
use uuid::Uuid;

use super::session::Session;
use super::{content, live_mark, notice_view, start, view_switch};
use crate::checkout;

/// The seat map, cart and checkout of a show.
#[island]
pub fn SeatMap(
    /// The show.
    show: Uuid,
) -> impl IntoView {
    let session = Session::new(show);
    let as_list = RwSignal::new(false);
    Effect::new(move |_| start(session));
    view! {
        <div class="seat-map" data-testid="seat-map">
            <section class="seat-map-room" aria-label="Seat map">
                <div class="seat-map-bar">
                    {live_mark(session)}
                    {view_switch(session, as_list)}
                </div>
                {notice_view(session)}
                {move || content(session, as_list)}
            </section>
            {checkout::panel(session)}
            <p class="visually-hidden" role="status" data-testid="spoken">{move || session.spoken.get()}</p>
        </div>
    }
}
