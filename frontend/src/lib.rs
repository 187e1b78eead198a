//! The WebAssembly entry point, nothing else: `frontend/static/boot.js` loads this module, calls
//! [`hydrate`], then wakes each island of the page by its name. For delivery it is built once for the page of
//! a show, once for staff, and once for all other pages; for `cargo xtask run` once for all.
//!
//! It may use `app` only. An island is added in `app`, a static file in `frontend/static/`.

use wasm_bindgen::prelude::wasm_bindgen;

// Islands are exported functions of `app`; without a use of the crate the linker drops them all.
pub use app::*;

/// Prepares the page for its islands. Called once, before the first of them.
#[wasm_bindgen]
pub fn hydrate() {
    // As delivered, a panic has no words: see xtask/src/setup/wasm.rs.
    #[cfg(debug_assertions)]
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_islands();
}
