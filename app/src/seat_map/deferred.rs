//! Parts of the page whose code is in separate modules, which the browser loads when a part is first shown. Seats do not
//! wait for the code of sections, nor a first tap for that of anything else.
//!
//! `site-builder/src/bundle.rs` splits the module at functions marked [`wasm_split`](leptos::wasm_split::wasm_split), with all
//! code that only they need. Functions with the same first word share a module. Natively they are called at once.

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

/// Pause before the first retry of a failed load, milliseconds. Doubles with each retry…
const FIRST_PAUSE_MS: u32 = 500;
/// …up to this.
const LONGEST_PAUSE_MS: u32 = 16_000;

/// A mounted part. Dropping it removes it.
pub type MountedPart = Box<dyn Any>;
pub type PendingPart = Pin<Box<dyn Future<Output = Result<MountedPart, SplitLoaderError>>>>;

/// A place in which `load` mounts a part, once it is `wanted` and its code has arrived; until then an empty box of the
/// class `meanwhile`. Loading is retried while the place exists: without a network nothing else on the page continues
/// either.
pub fn deferred(
    wanted: impl Fn() -> bool + 'static,
    meanwhile: &'static str,
    load: impl Fn(HtmlElement) -> PendingPart + 'static,
) -> impl IntoView {
    place(Box::new(wanted), meanwhile, Box::new(load))
}

fn place(
    wanted: Box<dyn Fn() -> bool>,
    meanwhile: &'static str,
    load: Box<dyn Fn(HtmlElement) -> PendingPart>,
) -> impl IntoView {
    let (place, kept) = (NodeRef::<Div>::new(), StoredValue::new_local(None::<MountedPart>));
    let mut load = Some(load);
    Effect::new(move |_: Option<()>| {
        if !wanted() {
            return;
        }
        let Some(place) = place.get() else { return };
        let Some(load) = load.take() else { return };
        let place: HtmlElement = (*place).clone().unchecked_into();
        // Not in the frame that draws the content before it.
        request_animation_frame(move || {
            spawn_local(async move {
                let mut pause_ms = FIRST_PAUSE_MS;
                while !kept.is_disposed() {
                    if let Ok(part) = load(place.clone()).await {
                        // The place was removed meanwhile: a part that is not stored is dropped and unmounted.
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

/// A place that is mounted again whenever a signal read by `mount` changes. This avoids the code that turns one view
/// into another.
pub fn rebuilt(mount: impl Fn(HtmlElement) -> MountedPart + 'static) -> impl IntoView {
    rebuilt_in(Rc::new(mount))
}

fn rebuilt_in(mount: Rc<dyn Fn(HtmlElement) -> MountedPart>) -> impl IntoView {
    let place = NodeRef::<Div>::new();
    Effect::new(move |before: Option<Option<MountedPart>>| {
        drop(before);
        let place = place.get()?;
        Some(mount((*place).clone().unchecked_into()))
    });
    view! { <div class="later" node_ref=place></div> }
}

pub fn mount_part<V: IntoView + 'static>(place: HtmlElement, part: impl FnOnce() -> V + 'static) -> MountedPart {
    place.set_inner_html("");
    Box::new(mount_to(place, part))
}
