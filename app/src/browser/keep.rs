//! What the browser keeps for this site on this device, past a reload: texts by name.
//!
//! By the methods' names, as `web-sys` would: three calls need no more of it.

use wasm_bindgen::{JsCast, JsValue};

/// The text kept under a name.
#[must_use]
pub fn read(name: &str) -> Option<String> {
    call("getItem", &[name])?.as_string()
}

/// Keeps a text under a name; `false` when there is no room left, or the browser keeps nothing.
pub fn write(name: &str, text: &str) -> bool {
    call("setItem", &[name, text]).is_some()
}

/// Forgets what is kept under a name.
pub fn forget(name: &str) {
    let _ = call("removeItem", &[name]);
}

/// The names under which something is kept.
#[must_use]
pub fn names() -> Vec<String> {
    // A number that is given as a text is read as the number; behind the last name there is none.
    (0_u32..).map_while(|number| call("key", &[&number.to_string()])?.as_string()).collect()
}

fn call(method: &str, texts: &[&str]) -> Option<JsValue> {
    // Asking for it throws where people have forbidden it.
    let storage = js_sys::Reflect::get(&super::window(), &"localStorage".into()).ok()?;
    let method = js_sys::Reflect::get(&storage, &method.into()).ok()?.dyn_into::<js_sys::Function>().ok()?;
    let texts: js_sys::Array = texts.iter().map(|text| JsValue::from_str(text)).collect();
    method.apply(&storage, &texts).ok()
}
