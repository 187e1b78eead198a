//! The size of the map's view, in pixels, for the style.
//!
//! Until this has loaded, the style measures the view in units of a container. With these, each change of a text beside
//! the map lays out the whole drawing anew: a browser lays out the columns of the page twice, at two heights, and in each
//! of them the drawing has another size.

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, Event, HtmlElement, ResizeObserver, ResizeObserverEntry};

use super::zoom::decimal;

/// Set on a view whose size is known.
const MEASURED: &str = "data-measured";

/// Sent to a view when its size has changed, and once when it is known.
pub const RESIZED: &str = "resize";

/// Keeps the properties `--view-width` and `--view-height` of a view for as long as it exists. A browser that cannot
/// observe sizes keeps the units of a container.
pub fn follow_size(view: &Element) {
    if view.has_attribute(MEASURED) {
        return;
    }
    let react = Closure::<dyn FnMut(js_sys::Array)>::new(|entries: js_sys::Array| {
        let view: HtmlElement = entries.get(0).unchecked_into::<ResizeObserverEntry>().target().unchecked_into();
        // A view that was removed has size zero, and the map in it no longer listens.
        if !view.is_connected() {
            return;
        }
        // With its scrollbars: a size without them would depend on whether the drawing needs them, and that on the size.
        let (outside, line) = (view.get_bounding_client_rect(), (view.client_left(), view.client_top()));
        let (width, height) = (outside.width() - f64::from(2 * line.0), outside.height() - f64::from(2 * line.1));
        for (name, pixels) in [("--view-width", width), ("--view-height", height)] {
            // Fails only for properties that do not exist.
            let _ = view.style().set_property(name, &format!("{}px", decimal(pixels)));
        }
        // Fails only for invalid attribute names.
        let _ = view.set_attribute(MEASURED, "");
        if let Ok(event) = Event::new(RESIZED) {
            // Fails only while the same event is dispatched.
            let _ = view.dispatch_event(&event);
        }
    });
    if let Ok(observer) = ResizeObserver::new(react.as_ref().unchecked_ref()) {
        observer.observe(view);
    }
    // The browser ends the observer with its view. The closure holds nothing.
    react.forget();
}
