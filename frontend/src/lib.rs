//! The WebAssembly entry point, nothing else: `frontend/static/boot.js` loads this module, calls
//! [`hydrate`], then wakes each island of the page by its name.

use wasm_bindgen::prelude::wasm_bindgen;

// Islands are exported functions of `app`; without a use of the crate the linker drops them all.
pub use app::*;

/// Prepares the page for its islands. Called once, before the first of them.
#[wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_islands();
}
