//! What people see: pages rendered on the server, islands brought to life in the browser.
//!
//! A page is a plain struct with everything it shows ([`Page`]); the server fills it and calls
//! [`render`]. Nothing here loads data, and nothing here knows Postgres, Redis or axum. Pages exist on
//! the server only; islands, the parts that live in the browser, compile for both.

// A view is one type as deep as its markup; the seat map's is deeper than the default allows.
#![recursion_limit = "512"]

#[cfg(feature = "pages")]
pub mod booking_status;
pub mod browser;
#[cfg(feature = "show")]
pub mod checkout;
pub mod language;
#[cfg(feature = "ssr")]
mod markup;
#[cfg(feature = "ssr")]
pub mod pages;
pub mod payment_retry;
#[cfg(feature = "show")]
pub mod seat_map;
#[cfg(feature = "ssr")]
pub mod shell;
#[cfg(feature = "ssr")]
pub mod site;
#[cfg(feature = "staff")]
pub mod staff;
#[cfg(feature = "pages")]
pub mod waiting_room;

#[cfg(feature = "ssr")]
pub use shell::{Half, Head, Page, Place, render, render_in};
