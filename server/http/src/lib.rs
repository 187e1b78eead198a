//! HTTP conventions of the whole server: errors, extractors, cookies, caching headers, idempotency.
//!
//! - [`Problem`]: every error is `application/problem+json` with a stable [`Code`] (RFC 9457).
//! - [`ApiJson`], [`ApiPath`], [`ApiQuery`]: extractors that refuse bad input with a problem.
//! - [`ClientAddress`], [`cookies`], [`visitor`], [`site`]: the client's address, its cookies, the visitor cookie, the
//!   site's own origin.
//! - [`caching`], [`cache_tags`], [`default_headers`], [`page_locale`]: response headers, and the language of a page.
//! - [`idempotency`]: one answer per key. Table `idempotency_keys`, Redis keys `{keys:N}:*` and `replica:*`.
//! - [`replay_cache`], [`write_coalescing`]: replays of a stored answer before routing, many answers in one write.
//! - [`concurrency`]: slots per address and visitor.
//!
//! The crate may use `platform`, `domain` and `language`; it knows no show and no booking.
//!
//! Invariants: the row in Postgres decides about a key, and an answer is stored in the transaction of its effect (keys of
//! holds are in the lock store of `seats`); every error is a [`Problem`]; every route has a caching class.
//!
//! To add a problem code: a row in `problem/codes.rs`. A cacheable route: a row in [`caching`]. An extractor: `extract.rs`.

pub mod cache_tags;
pub mod caching;
pub mod client_address;
pub mod concurrency;
pub mod cookies;
pub mod default_headers;
pub mod extract;
pub mod idempotency;
pub mod page_locale;
pub mod problem;
pub mod replay_cache;
pub mod site;
mod state;
pub mod visitor;
pub mod write_coalescing;

pub use client_address::ClientAddress;
pub use extract::{ApiJson, ApiPath, ApiQuery, describe_rejection};
pub use problem::{ApiResult, Code, Problem};
pub use site::SiteSettings;
pub use state::{HttpParts, HttpState};
