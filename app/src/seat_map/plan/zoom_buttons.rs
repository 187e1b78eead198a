//! The buttons for the map's magnification. `plane` makes the changes that they request.

use language::say;
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use web_sys::HtmlElement;

use super::map_view::ZoomRequest;
use super::zoom;
use crate::seat_map::deferred::{MountedPart, SplitLoaderError, mount_part};
use crate::seat_map::session::MapSession;
use crate::seat_map::shows_map;
use crate::seat_map::signals::PageSignal;

fn zoom_buttons(session: MapSession, as_list: PageSignal<bool>) -> impl IntoView {
    let view = session.map_view;
    let is_hidden = move || as_list.get() || !shows_map(session);
    let whole = move || match session.section.get() {
        Some(_) => say!("map.zoom_whole_section"),
        None => say!("map.zoom_whole"),
    };
    let at_limit = |limit: bool| if limit { "true" } else { "false" };
    view! {
        <div class="room-zoom" role="group" aria-label=say!("map.size") hidden=is_hidden>
            // Not disabled: a disabled button would lose the focus.
            <button type="button" class="zoom-button" aria-label=say!("map.zoom_out") data-testid="zoom-out"
                aria-disabled=move || at_limit(view.zoom.get() <= 1.0) on:click=move |_| view.wanted.set(Some(ZoomRequest::By(1.0 / zoom::STEP)))>"−"</button>
            <button type="button" class="zoom-button" aria-label=whole data-testid="zoom-whole"
                aria-disabled=move || at_limit(view.zoom.get() <= 1.0) on:click=move |_| view.wanted.set(Some(ZoomRequest::Whole))>
                <svg class="icon" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" focusable="false">
                    <path d="M3 7V3h4M13 3h4v4M17 13v4h-4M7 17H3v-4" fill="none" stroke="currentColor" stroke-width="2" stroke-linejoin="round"></path>
                </svg>
            </button>
            <button type="button" class="zoom-button" aria-label=say!("map.zoom_in") data-testid="zoom-in"
                aria-disabled=move || at_limit(view.largest.get()) on:click=move |_| view.wanted.set(Some(ZoomRequest::By(zoom::STEP)))>"+"</button>
        </div>
    }
}

#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn zoom_buttons_part(
    session: MapSession,
    as_list: PageSignal<bool>,
    place: HtmlElement,
) -> Result<MountedPart, SplitLoaderError> {
    Ok(mount_part(place, move || zoom_buttons(session, as_list)))
}
