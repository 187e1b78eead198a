//! The user interface: pages rendered on the server, and islands that run in the browser.
//!
//! A page is a plain struct with all its data ([`Page`]); the server fills it and calls [`render`]. This crate loads no
//! data. Of the workspace it may use `domain` and `language` only; it names no type of Postgres, Redis or axum. Pages
//! compile for the server only, islands for both.
//!
//! | module | content |
//! |---|---|
//! | `pages` | the public pages |
//! | `show_island` | the island of a show's page: it mounts the map, the checkout and the waiting list |
//! | `seat_map` | the live map, the cart and the hold; imports none of its two neighbours in this table |
//! | `checkout` | the cart beside the map, the buyer's form, the payment; imports `seat_map` |
//! | `booking_status`, `waiting_room` | islands of a booking and of a waiting room |
//! | `staff` | pages and islands of theatre staff |
//! | `browser` | API calls, clock, storage and events of the browser |
//! | `payment_retry` | data that survives a failed payment |
//! | `shell`, `markup`, `site` | the document around a page, its rendered parts, and the addresses of its files |
//! | `two_press_button` | a button that asks before it acts |
//! | `legal_links` | links to the operator's terms, privacy policy and imprint |
//!
//! To add a page or a page of staff: the recipes in CONTRIBUTING.md. To add an island: a module here,
//! behind the feature of the WebAssembly module that contains it; `frontend/static/boot.js` finds that module by the
//! beginning of the island's name. To add a part of the seat map that loads after it: a function marked `wasm_split`,
//! mounted by `seat_map/deferred.rs`. To add a text: `messages/*.json`.

// The type of a view is as deep as its markup; the seat map's is deeper than the default limit.
#![recursion_limit = "512"]

#[cfg(feature = "pages")]
pub mod booking_status;
pub mod browser;
#[cfg(feature = "show")]
pub mod checkout;
#[cfg(feature = "ssr")]
pub mod legal_links;
#[cfg(feature = "ssr")]
mod markup;
#[cfg(feature = "ssr")]
pub mod pages;
pub mod payment_retry;
#[cfg(feature = "show")]
pub mod seat_map;
#[cfg(feature = "ssr")]
pub mod shell;
#[cfg(feature = "show")]
pub mod show_island;
#[cfg(feature = "ssr")]
pub mod site;
#[cfg(feature = "staff")]
pub mod staff;
pub mod two_press_button;
#[cfg(feature = "pages")]
pub mod waiting_room;

#[cfg(feature = "ssr")]
pub use shell::{Head, Page, PageLink, WasmModule, render, render_in};

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Reads the lines of all files below a folder that name a module of this crate, without comments.
    fn imports_below(folder: &Path) -> Vec<String> {
        let mut imports = Vec::new();
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                imports.extend(imports_below(&path));
            } else {
                let text = fs::read_to_string(&path).expect("a source is text");
                let is_import = |line: &&str| line.contains("crate::") && !line.trim_start().starts_with("//");
                imports.extend(text.lines().filter(is_import).map(str::to_owned));
            }
        }
        imports
    }

    #[test]
    fn map_checkout_and_their_island_import_in_one_direction() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for (folder, above) in [("seat_map", "checkout"), ("seat_map", "show_island"), ("checkout", "show_island")] {
            let imports = imports_below(&root.join(folder));
            assert!(!imports.is_empty(), "{folder} has imports");
            let wrong: Vec<_> = imports.iter().filter(|line| line.contains(above)).collect();
            assert!(wrong.is_empty(), "{folder} imports {above}: {wrong:?}");
        }
    }
}
