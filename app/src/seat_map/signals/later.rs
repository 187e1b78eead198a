//! Parts of the page that come after the map. Whoever chooses a seat does not wait for the code of what is needed
//! after that: it is in modules of its own, which the browser loads when a part is first shown.
//!
//! `xtask/src/site.rs` takes the module apart where [`wasm_split`](leptos::wasm_split::wasm_split) says so: what only
//! such a function needs goes with it. Functions with the same first word share a module. Natively they are called at
//! once.

use std::any::Any;
use std::pin::Pin;
use std::rc::Rc;

use leptos::html::Div;
use leptos::mount::mount_to;
use leptos::prelude::*;
use leptos::task::spawn_local;
pub use leptos::wasm_split::SplitLoaderError;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::browser::events;

/// A part that did not come is asked for again after this long, milliseconds; doubles with each try…
const FIRST_PAUSE_MS: u32 = 500;
/// …up to this.
const LONGEST_PAUSE_MS: u32 = 16_000;

/// A part on the page; dropping it takes it off.
pub type Mounted = Box<dyn Any>;
/// A part on its way.
pub type Coming = Pin<Box<dyn Future<Output = Result<Mounted, SplitLoaderError>>>>;

/// A place for a part, which `load` puts there when its code is here; until then a box of the class `meanwhile`. It is
/// loaded once it is `wanted`, and again for as long as the place is there: without a network nothing else on the page
/// goes on either.
pub fn later(
    wanted: impl Fn() -> bool + 'static,
    meanwhile: &'static str,
    load: impl Fn(HtmlElement) -> Coming + 'static,
) -> impl IntoView {
    place(Box::new(wanted), meanwhile, Box::new(load))
}

fn place(
    wanted: Box<dyn Fn() -> bool>,
    meanwhile: &'static str,
    load: Box<dyn Fn(HtmlElement) -> Coming>,
) -> impl IntoView {
    let (place, kept) = (NodeRef::<Div>::new(), StoredValue::new_local(None::<Mounted>));
    let mut load = Some(load);
    Effect::new(move |_: Option<()>| {
        if !wanted() {
            return;
        }
        let Some(place) = place.get() else { return };
        let Some(load) = load.take() else { return };
        let place: HtmlElement = (*place).clone().unchecked_into();
        // Not in the frame that draws what it comes after.
        request_animation_frame(move || {
            spawn_local(async move {
                let mut pause_ms = FIRST_PAUSE_MS;
                while !kept.is_disposed() {
                    if let Ok(part) = load(place.clone()).await {
                        // Gone with its place meanwhile: what is not kept is taken off.
                        drop(kept.try_set_value(Some(part)));
                        return;
                    }
                    events::after(pause_ms).await;
                    pause_ms = (pause_ms * 2).min(LONGEST_PAUSE_MS);
                }
            })
        });
    });
    view! { <div class="later" node_ref=place><div class=meanwhile></div></div> }
}

/// A place for what `mount` puts there, each time anew when something changes that it looked at: no code is made for how
/// one view becomes another.
pub fn anew(mount: impl Fn(HtmlElement) -> Mounted + 'static) -> impl IntoView {
    anew_in(Rc::new(mount))
}

fn anew_in(mount: Rc<dyn Fn(HtmlElement) -> Mounted>) -> impl IntoView {
    let place = NodeRef::<Div>::new();
    Effect::new(move |before: Option<Option<Mounted>>| {
        drop(before);
        let place = place.get()?;
        Some(mount((*place).clone().unchecked_into()))
    });
    view! { <div class="later" node_ref=place></div> }
}

/// Puts a part in its place.
pub fn mounted<V: IntoView + 'static>(place: HtmlElement, part: impl FnOnce() -> V + 'static) -> Mounted {
    place.set_inner_html("");
    Box::new(mount_to(place, part))
}
