//! The browser's functions for islands: API calls, live connection, clock, page events.
//!
//! Thin glue over `web-sys`, without decisions: those are in the modules that use it and can be tested natively.
//! Nothing here runs on the server.

pub mod calls;
pub mod clock;
pub mod events;
pub mod ids;
mod puzzle;
pub mod socket;
pub mod storage;

use leptos::prelude::request_animation_frame;
use wasm_bindgen::{JsCast, JsValue};

/// The window. Islands run nowhere else.
fn window() -> web_sys::Window {
    web_sys::window().expect("islands run in a window")
}

/// The address of a site file in this page's version, given as if at the root (`/pkg/boot.js`).
/// `frontend/static/boot.js` stores the version's base on the document.
pub fn file(path: &str) -> String {
    let page = window().document().and_then(|page| page.document_element());
    page.and_then(|page| page.get_attribute("data-site")).unwrap_or_default() + path
}

/// The element with this id.
pub fn element(id: &str) -> Option<web_sys::Element> {
    window().document()?.get_element_by_id(id)
}

/// The topmost element at a point of the window, pixels.
pub fn element_at(x: i32, y: i32) -> Option<web_sys::Element> {
    window().document()?.element_from_point(x as f32, y as f32)
}

/// The value of the field with this id; empty without one.
pub fn value_of(id: &str) -> String {
    let value = element(id).and_then(|field| js_sys::Reflect::get(&field, &"value".into()).ok());
    value.and_then(|value| value.as_string()).unwrap_or_default()
}

/// Changes the value of the field with this id.
pub fn set_value(id: &str, value: &str) {
    if let Some(field) = element(id) {
        // Every field accepts a text.
        let _ = js_sys::Reflect::set(&field, &"value".into(), &value.into());
    }
}

/// The markup inside the element with this id; `None` without one.
pub fn markup_of(id: &str) -> Option<String> {
    element(id).map(|element| element.inner_html())
}

/// A new element, not on the page yet.
pub fn new_element(name: &str) -> Option<web_sys::Element> {
    window().document()?.create_element(name).ok()
}

/// Focuses the element with this id and scrolls to it.
pub fn focus(id: &str) {
    if let Some(element) = element(id) {
        focus_element(&element, true);
    }
}

/// Scrolls as far as needed to show the element with this id.
pub fn scroll_to(id: &str) {
    if let Some(element) = element(id) {
        call(&element, "scrollIntoView", &[("block", "nearest".into())]);
    }
}

/// Presses the button with this id.
pub fn click(id: &str) {
    if let Some(button) = element(id).and_then(|element| element.dyn_into::<web_sys::HtmlElement>().ok()) {
        button.click();
    }
}

/// Focuses the first element of this selector without scrolling.
pub fn focus_first(selector: &str) {
    focus_first_in_view(selector, false);
}

/// Focuses the first element of this selector, and scrolls to it for keyboard users.
pub fn focus_first_in_view(selector: &str, by_keyboard: bool) {
    if let Some(element) = first(selector) {
        focus_element(&element, by_keyboard);
    }
}

/// Restores the focus after a press that removed or hid the pressed element: with the next frame, the first of these
/// selectors that can take it gets it. Without this, keyboard users would be at the top of the page.
pub fn keep_focus(selectors: &'static [&'static str]) {
    request_animation_frame(move || {
        for selector in selectors {
            // The browser takes the focus from a hidden element only after this frame.
            if has_no_focus() || has_focus_in("[hidden]") {
                focus_first(selector);
            }
        }
    });
}

/// Returns true if the browser shows a focus ring, as it does for keyboard users.
pub fn shows_focus() -> bool {
    first(":focus-visible").is_some()
}

fn first(selector: &str) -> Option<web_sys::Element> {
    window().document()?.query_selector(selector).ok().flatten()
}

fn focused() -> Option<web_sys::Element> {
    window().document()?.active_element()
}

/// Returns true if no control has the focus, so that keys go nowhere.
pub fn has_no_focus() -> bool {
    focused().is_none_or(|element| element.tag_name().eq_ignore_ascii_case("body") || element.id() == "main")
}

/// Returns true if the focus is on or inside of an element of this selector.
pub fn has_focus_in(selector: &str) -> bool {
    focused().is_some_and(|element| element.closest(selector).is_ok_and(|found| found.is_some()))
}

fn focus_element(element: &web_sys::Element, scroll: bool) {
    call(element, "focus", &[("preventScroll", (!scroll).into())]);
}

/// Calls a method by name: SVG elements have it without being HTML elements, and browsers differ. `None` if the element
/// lacks it.
pub fn call(element: &web_sys::Element, method: &str, options: &[(&str, JsValue)]) -> Option<JsValue> {
    let method: js_sys::Function = js_sys::Reflect::get(element, &method.into()).ok()?.dyn_into().ok()?;
    method.call1(element, &object(options)).ok()
}

/// An object with these properties.
pub fn object(properties: &[(&str, JsValue)]) -> js_sys::Object {
    let object = js_sys::Object::new();
    for (name, value) in properties {
        // A fresh object accepts any property.
        let _ = js_sys::Reflect::set(&object, &(*name).into(), value);
    }
    object
}

/// The page's title.
pub fn title() -> String {
    window().document().map(|page| page.title()).unwrap_or_default()
}

/// Gives the page another title.
pub fn set_title(title: &str) {
    if let Some(page) = window().document() {
        page.set_title(title);
    }
}

/// Navigates to another page.
pub fn go_to(address: &str) {
    // Fails only for an invalid address; the visitor then stays on the page with its link.
    let _ = window().location().assign(address);
}

/// Reloads the page.
pub fn reload() {
    // Fails only without a page; it then stays.
    let _ = window().location().reload();
}

/// Encodes a text as part of an address.
pub fn encoded(text: &str) -> String {
    js_sys::encode_uri_component(text).into()
}

/// The fragment of the address, without `#`.
pub fn fragment() -> String {
    window().location().hash().unwrap_or_default().trim_start_matches('#').to_owned()
}

/// The query of the address with its `?`, or empty.
pub fn query() -> String {
    window().location().search().unwrap_or_default()
}

/// Removes the query from the address, without navigating.
pub fn forget_query() {
    let location = window().location();
    let address = location.pathname().unwrap_or_default() + &location.hash().unwrap_or_default();
    // Does not fail for the page's own address. If it did, the query would be read again.
    change_history("replaceState", &[JsValue::NULL, "".into(), address.into()]);
}

/// Adds an entry with this state to the history of the tab. The address stays.
pub fn push_history(state: &str) {
    change_history("pushState", &[state.into(), "".into()]);
}

/// Goes back by one entry of the tab's history.
pub fn go_back() {
    change_history("back", &[]);
}

/// Returns true if the current entry of the tab's history has this state.
pub fn is_history_at(state: &str) -> bool {
    let current = history().and_then(|history| js_sys::Reflect::get(&history, &"state".into()).ok());
    current.and_then(|current| current.as_string()).as_deref() == Some(state)
}

/// The history of the tab. Used by name, because `web-sys` would add a binding for each method.
fn history() -> Option<JsValue> {
    js_sys::Reflect::get(&window(), &"history".into()).ok()
}

fn change_history(method: &str, values: &[JsValue]) -> Option<JsValue> {
    let history = history()?;
    let method: js_sys::Function = js_sys::Reflect::get(&history, &method.into()).ok()?.dyn_into().ok()?;
    let values: js_sys::Array = values.iter().collect();
    method.apply(&history, &values).ok()
}

/// `ws://host` or `wss://host`, following the page's own address.
pub fn socket_origin() -> String {
    let location = window().location();
    let scheme = if location.protocol().is_ok_and(|scheme| scheme == "https:") { "wss" } else { "ws" };
    format!("{scheme}://{}", location.host().unwrap_or_default())
}

/// Calls `react` when the theme changes between dark and light.
pub fn on_theme(mut react: impl FnMut() + 'static) {
    if let Ok(Some(query)) = window().match_media("(prefers-color-scheme: light)") {
        events::listen(&query, "change", move |_| react());
    }
}

/// Device pixels per page pixel.
pub fn pixel_ratio() -> f64 {
    window().device_pixel_ratio()
}

/// A computed style property of an element, or empty.
pub fn style_of(element: &web_sys::Element, name: &str) -> String {
    let style = window().get_computed_style(element).ok().flatten();
    style.and_then(|style| style.get_property_value(name).ok()).map(|value| value.trim().to_owned()).unwrap_or_default()
}

/// Returns true if the browser reports that there is no network. There may be none even without such a report.
pub fn is_offline() -> bool {
    !window().navigator().on_line()
}

/// Adds a style sheet to the page.
pub fn add_style(address: &str) {
    let Some(page) = window().document() else { return };
    // Does not fail on a page with a head. Without the sheet the page is plainer.
    if let (Ok(sheet), Ok(Some(head))) = (page.create_element("link"), page.query_selector("head")) {
        let _ = sheet.set_attribute("rel", "stylesheet");
        let _ = sheet.set_attribute("href", address);
        let _ = head.append_child(&sheet);
    }
}

/// Returns true if the page is visible.
pub fn is_visible() -> bool {
    window().document().is_none_or(|page| page.visibility_state() == web_sys::VisibilityState::Visible)
}
