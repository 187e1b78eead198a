//! What the browser keeps for this site, past a reload: texts by name, on this device or for this tab alone.
//!
//! By the methods' names, as `web-sys` would: three calls need no more of it.

use wasm_bindgen::{JsCast, JsValue};

/// Where something is kept.
#[derive(Clone, Copy)]
enum Store {
    /// On this device, until it is forgotten.
    Device,
    /// For this tab, until it is closed.
    Tab,
}

/// The text kept under a name.
#[must_use]
pub fn read(name: &str) -> Option<String> {
    call(Store::Device, "getItem", &[name])?.as_string()
}

/// Keeps a text under a name; `false` when there is no room left, or the browser keeps nothing.
pub fn write(name: &str, text: &str) -> bool {
    call(Store::Device, "setItem", &[name, text]).is_some()
}

/// Forgets what is kept under a name.
pub fn forget(name: &str) {
    let _ = call(Store::Device, "removeItem", &[name]);
}

/// The text kept under a name for this tab.
#[must_use]
pub fn read_for_tab(name: &str) -> Option<String> {
    call(Store::Tab, "getItem", &[name])?.as_string()
}

/// Keeps a text under a name until the tab is closed, where the browser keeps anything.
pub fn write_for_tab(name: &str, text: &str) {
    let _ = call(Store::Tab, "setItem", &[name, text]);
}

/// Forgets what is kept under a name for this tab.
pub fn forget_for_tab(name: &str) {
    let _ = call(Store::Tab, "removeItem", &[name]);
}

/// The names under which something is kept.
#[must_use]
pub fn names() -> Vec<String> {
    // A number that is given as a text is read as the number; behind the last name there is none.
    (0_u32..).map_while(|number| call(Store::Device, "key", &[&number.to_string()])?.as_string()).collect()
}

fn call(store: Store, method: &str, texts: &[&str]) -> Option<JsValue> {
    let store = match store {
        Store::Device => "localStorage",
        Store::Tab => "sessionStorage",
    };
    // Asking for it throws where people have forbidden it.
    let storage = js_sys::Reflect::get(&super::window(), &store.into()).ok()?;
    let method = js_sys::Reflect::get(&storage, &method.into()).ok()?.dyn_into::<js_sys::Function>().ok()?;
    let texts: js_sys::Array = texts.iter().map(|text| JsValue::from_str(text)).collect();
    method.apply(&storage, &texts).ok()
}
