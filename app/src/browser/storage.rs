//! The browser's storage for this site, which survives a reload: texts by name, on this device or for this tab.
//!
//! Methods are called by name: three calls need no bindings of `web-sys`.

use wasm_bindgen::{JsCast, JsValue};

/// The kind of storage.
#[derive(Clone, Copy)]
enum Store {
    /// On this device, until removed.
    Device,
    /// For this tab, until it is closed.
    Tab,
}

/// Reads a text of the device.
#[must_use]
pub fn read(name: &str) -> Option<String> {
    call(Store::Device, "getItem", &[name])?.as_string()
}

/// Writes a text on the device. `false` if there is no space or the browser stores nothing.
pub fn write(name: &str, text: &str) -> bool {
    call(Store::Device, "setItem", &[name, text]).is_some()
}

/// Removes a text of the device.
pub fn remove(name: &str) {
    let _ = call(Store::Device, "removeItem", &[name]);
}

/// Reads a text of this tab.
#[must_use]
pub fn read_for_tab(name: &str) -> Option<String> {
    call(Store::Tab, "getItem", &[name])?.as_string()
}

/// Writes a text for this tab, if the browser stores anything.
pub fn write_for_tab(name: &str, text: &str) {
    let _ = call(Store::Tab, "setItem", &[name, text]);
}

/// Removes a text of this tab.
pub fn remove_for_tab(name: &str) {
    let _ = call(Store::Tab, "removeItem", &[name]);
}

/// The names of all texts on the device.
#[must_use]
pub fn names() -> Vec<String> {
    // A number passed as text is read as a number. Beyond the last name there is none.
    (0_u32..).map_while(|number| call(Store::Device, "key", &[&number.to_string()])?.as_string()).collect()
}

fn call(store: Store, method: &str, texts: &[&str]) -> Option<JsValue> {
    let store = match store {
        Store::Device => "localStorage",
        Store::Tab => "sessionStorage",
    };
    // Access throws if the user forbids it.
    let storage = js_sys::Reflect::get(&super::window(), &store.into()).ok()?;
    let method = js_sys::Reflect::get(&storage, &method.into()).ok()?.dyn_into::<js_sys::Function>().ok()?;
    let texts: js_sys::Array = texts.iter().map(|text| JsValue::from_str(text)).collect();
    method.apply(&storage, &texts).ok()
}
