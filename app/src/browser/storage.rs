//! The browser's storage for this site, which survives a reload: texts by name.
//!
//! Methods are called by name: three calls need no bindings of `web-sys`.

use wasm_bindgen::{JsCast, JsValue};

/// A kind of storage, by the window's property.
#[derive(Clone, Copy)]
pub struct Storage(&'static str);

/// On this device, until removed.
pub const DEVICE: Storage = Storage("localStorage");
/// For this tab, until it is closed.
pub const TAB: Storage = Storage("sessionStorage");

impl Storage {
    /// Reads a text.
    pub fn read(self, name: &str) -> Option<String> {
        self.call("getItem", &[name])?.as_string()
    }

    /// Writes a text. `false` if there is no space or the browser stores nothing.
    pub fn write(self, name: &str, text: &str) -> bool {
        self.call("setItem", &[name, text]).is_some()
    }

    /// Removes a text.
    pub fn remove(self, name: &str) {
        let _ = self.call("removeItem", &[name]);
    }

    /// The names of all texts.
    pub fn names(self) -> Vec<String> {
        // A number passed as text is read as a number. Beyond the last name there is none.
        (0_u32..).map_while(|number| self.call("key", &[&number.to_string()])?.as_string()).collect()
    }

    fn call(self, method: &str, texts: &[&str]) -> Option<JsValue> {
        // Access throws if the user forbids it.
        let storage = js_sys::Reflect::get(&super::window(), &self.0.into()).ok()?;
        let method = js_sys::Reflect::get(&storage, &method.into()).ok()?.dyn_into::<js_sys::Function>().ok()?;
        let texts: js_sys::Array = texts.iter().map(|text| JsValue::from_str(text)).collect();
        method.apply(&storage, &texts).ok()
    }
}
