//! The browser, as islands need it: calls, the live connection, the clock, events of the page.
//!
//! Thin glue over `web-sys`, without decisions; those are in the modules that use it, where they can be
//! tested natively. Nothing here runs on the server.

pub mod calls;
pub mod clock;
pub mod events;
pub mod ids;
pub mod keep;
mod puzzle;
mod retry;
pub mod socket;
pub mod tabs;

use leptos::prelude::request_animation_frame;
use wasm_bindgen::{JsCast, JsValue};

/// The window; islands run nowhere else.
fn window() -> web_sys::Window {
    web_sys::window().expect("islands run in a window")
}

/// The language of the page, as its document says it.
#[must_use]
pub fn page_language() -> Option<String> {
    window().document()?.document_element()?.get_attribute("lang")
}

/// The address of a file of the site, given as if it lay at the root (`/pkg/boot.js`), in the version that this page is of:
/// `frontend/static/boot.js` writes on the document where that begins.
#[must_use]
pub fn file(path: &str) -> String {
    let page = window().document().and_then(|page| page.document_element());
    page.and_then(|page| page.get_attribute("data-site")).unwrap_or_default() + path
}

/// The element with this id.
#[must_use]
pub fn element(id: &str) -> Option<web_sys::Element> {
    window().document()?.get_element_by_id(id)
}

/// A new element, which is on no page yet.
#[must_use]
pub fn new_element(name: &str) -> Option<web_sys::Element> {
    window().document()?.create_element(name).ok()
}

/// Gives the element with this id the keyboard focus, and brings it into view.
pub fn focus(id: &str) {
    if let Some(element) = element(id) {
        focus_element(&element, true);
    }
}

/// Gives the first element that this selector names the keyboard focus. Nothing scrolls.
pub fn focus_first(selector: &str) {
    if let Some(element) = first(selector) {
        focus_element(&element, false);
    }
}

/// The same, bringing it into view for whoever goes by the keyboard.
pub fn focus_first_in_view(selector: &str, by_keyboard: bool) {
    if let Some(element) = first(selector) {
        focus_element(&element, by_keyboard);
    }
}

/// What was pressed may be gone from the page with what it did. Then the first of these selectors whose element takes the
/// focus gets it with the next frame, and nobody who goes by the keyboard is back at the top of the page.
pub fn keep_focus(selectors: &'static [&'static str]) {
    request_animation_frame(move || {
        for selector in selectors {
            if has_no_focus() {
                focus_first(selector);
            }
        }
    });
}

/// Whether the browser shows where the focus is, as it does to people who go by the keyboard.
#[must_use]
pub fn shows_focus() -> bool {
    first(":focus-visible").is_some()
}

fn first(selector: &str) -> Option<web_sys::Element> {
    window().document()?.query_selector(selector).ok().flatten()
}

/// Whether no control has the keyboard focus: what is typed goes nowhere.
#[must_use]
pub fn has_no_focus() -> bool {
    let active = window().document().and_then(|page| page.active_element());
    active.is_none_or(|element| element.tag_name().eq_ignore_ascii_case("body") || element.id() == "main")
}

/// Brings the element with this id to the middle of what is seen.
pub fn reveal(id: &str) {
    if let Some(element) = element(id) {
        call(&element, "scrollIntoView", &[("block", "center".into()), ("inline", "center".into())]);
    }
}

fn focus_element(element: &web_sys::Element, scroll: bool) {
    call(element, "focus", &[("preventScroll", (!scroll).into())]);
}

/// By the method's name: SVG elements have it without being HTML elements, and some browsers know more of them than
/// others. `None` from elements that cannot do it: then they stay as they are.
pub fn call(element: &web_sys::Element, method: &str, options: &[(&str, JsValue)]) -> Option<JsValue> {
    let method: js_sys::Function = js_sys::Reflect::get(element, &method.into()).ok()?.dyn_into().ok()?;
    method.call1(element, &object(options)).ok()
}

/// An object with these properties.
#[must_use]
pub fn object(properties: &[(&str, JsValue)]) -> js_sys::Object {
    let object = js_sys::Object::new();
    for (name, value) in properties {
        // A fresh object takes any property.
        let _ = js_sys::Reflect::set(&object, &(*name).into(), value);
    }
    object
}

/// The page's title.
#[must_use]
pub fn title() -> String {
    window().document().map(|page| page.title()).unwrap_or_default()
}

/// Gives the page another title.
pub fn set_title(title: &str) {
    if let Some(page) = window().document() {
        page.set_title(title);
    }
}

/// Leaves for another page.
pub fn go_to(address: &str) {
    // Fails only for an address that is none; then the visitor stays, with the link still there.
    let _ = window().location().assign(address);
}

/// Reads the page once more.
pub fn reload() {
    // Fails only where there is no page to read; then it stays.
    let _ = window().location().reload();
}

/// A text as part of an address.
#[must_use]
pub fn encoded(text: &str) -> String {
    js_sys::encode_uri_component(text).into()
}

/// The part of the address after `#`, without it.
#[must_use]
pub fn fragment() -> String {
    window().location().hash().unwrap_or_default().trim_start_matches('#').to_owned()
}

/// The part of the address from `?` on; empty where it has none.
#[must_use]
pub fn query() -> String {
    window().location().search().unwrap_or_default()
}

/// Takes that part off the address. The page stays as it is.
pub fn forget_query() {
    let location = window().location();
    let address = location.pathname().unwrap_or_default() + &location.hash().unwrap_or_default();
    // Fails for no address of this very page; then it stays in the address, and is read once more.
    if let Ok(history) = window().history() {
        let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&address));
    }
}

/// `ws://host` or `wss://host`, after the page's own address.
#[must_use]
pub fn socket_origin() -> String {
    let location = window().location();
    let scheme = if location.protocol().is_ok_and(|scheme| scheme == "https:") { "wss" } else { "ws" };
    format!("{scheme}://{}", location.host().unwrap_or_default())
}

/// Whether the visitor points with something finer than a finger.
#[must_use]
pub fn has_mouse() -> bool {
    let query = window().match_media("(hover: hover) and (pointer: fine)");
    query.ok().flatten().is_some_and(|query| query.matches())
}

/// Calls `react` when the page is to be dark or light from now on.
pub fn on_theme(mut react: impl FnMut() + 'static) {
    if let Ok(Some(query)) = window().match_media("(prefers-color-scheme: light)") {
        events::listen(&query, "change", move |_| react());
    }
}

/// Pixels of the screen in one of the page.
#[must_use]
pub fn pixel_ratio() -> f64 {
    window().device_pixel_ratio()
}

/// What the style says of an element; empty for what it does not say.
#[must_use]
pub fn style_of(element: &web_sys::Element, name: &str) -> String {
    let style = window().get_computed_style(element).ok().flatten();
    style.and_then(|style| style.get_property_value(name).ok()).map(|value| value.trim().to_owned()).unwrap_or_default()
}

/// Whether the browser knows that there is no network. Where it says nothing, there may be none all the same.
#[must_use]
pub fn is_offline() -> bool {
    !window().navigator().on_line()
}

/// Adds a style sheet to the page.
pub fn add_style(address: &str) {
    let Some(page) = window().document() else { return };
    // None of these fails on a page that has a head; without the sheet it is plainer.
    if let (Ok(sheet), Ok(Some(head))) = (page.create_element("link"), page.query_selector("head")) {
        let _ = sheet.set_attribute("rel", "stylesheet");
        let _ = sheet.set_attribute("href", address);
        let _ = head.append_child(&sheet);
    }
}

/// Whether somebody can see the page.
#[must_use]
pub fn is_visible() -> bool {
    window().document().is_none_or(|page| page.visibility_state() == web_sys::VisibilityState::Visible)
}
