//! HTTP conventions of the whole server: errors, extractors, cookies, caching headers, idempotency.
//!
//! - [`Problem`]: every error is `application/problem+json` with a stable [`Code`] (RFC 9457).
//! - [`ApiJson`], [`ApiPath`], [`ApiQuery`]: extractors that refuse bad input with a problem.
//! - [`ClientAddress`], [`visitor`], [`own_origin`]: the client's address, the visitor cookie, the same-origin check.
//! - [`caching`], [`cache_tags`], [`default_headers`], [`page_locale`]: response headers, and the language of a page.
//! - [`idempotency`]: one answer per key. Table `idempotency_keys`, Redis keys `{keys:N}:*` and `replica:*`.
//! - [`replay_cache`]: replays a stored answer before routing.
//!
//! The crate may use `platform` and crates of the workspace without state (`domain`, `app`); it knows no show and no booking.
//! A new problem code is a row in `problem/codes.rs`; a new cacheable route is a row in [`caching`].

pub mod cache_tags;
pub mod caching;
pub mod client_address;
pub mod concurrency;
pub mod default_headers;
mod describe_rejection;
pub mod extract;
pub mod idempotency;
pub mod own_origin;
pub mod page_locale;
pub mod problem;
pub mod replay_cache;
pub mod shared_refusals;
pub mod site;
mod state;
pub mod visitor;
pub mod write_coalescing;

pub use client_address::ClientAddress;
pub use describe_rejection::describe_rejection;
pub use extract::{ApiJson, ApiPath, ApiQuery};
pub use problem::{Code, Problem};
pub use site::SiteSettings;
pub use state::{HttpParts, HttpState};
