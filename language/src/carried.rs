//! The messages that a page carries for its islands: `<script type="application/json" id="words">`.
//!
//! Parsed by the browser's JSON parser, so that the module has none for it.

use js_sys::{JSON, Reflect};
use wasm_bindgen::JsValue;

use super::Language;

/// Id of the element with the messages.
const WORDS: &str = "words";

thread_local! {
    /// An object, or undefined on a page without messages.
    static CARRIED: JsValue = document()
        .and_then(|page| page.get_element_by_id(WORDS))
        .and_then(|element| element.text_content())
        .and_then(|text| JSON::parse(&text).ok())
        .unwrap_or(JsValue::UNDEFINED);
}

fn document() -> Option<web_sys::Document> {
    web_sys::window()?.document()
}

pub(super) fn of_page() -> Language {
    let tag = document().and_then(|page| page.document_element()?.get_attribute("lang"));
    tag.and_then(|tag| Language::of_tag(&tag)).unwrap_or_default()
}

/// Passes the pattern of a message to `write`, if the page carries it.
pub(super) fn pattern<T>(_: Language, key: &str, write: impl FnOnce(&str) -> T) -> Option<T> {
    let pattern = CARRIED.with(|words| Reflect::get(words, &key.into()).ok())?.as_string()?;
    Some(write(&pattern))
}
