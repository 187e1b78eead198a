//! The base of the server: infrastructure without any rule of ticketing. All other crates may use it; it uses `domain` only.
//!
//! - [`clock`], [`ids`]: the only places that read the time and draw random numbers. Holds expire by
//!   [`clock::StoreClock`].
//! - [`database`], [`postgres_hosts`]: the connection pool that follows the primary.
//! - [`FromRow`]: the derive macro for rows of Postgres; [`cte_batch`]: several SQL statements in one round trip.
//! - [`redis_link`]: scripts and subscriptions on one Redis, Sentinel or Cluster.
//! - [`background`], [`housekeeping`]: periodic loops, deletes in batches.
//! - [`batcher`]: a bounded queue that is served in batches.
//! - [`breaker`], [`recent`]: circuit breakers, a small cache.
//! - [`rate_limits`]: token buckets shared by all replicas. Redis keys `throttle:*`.
//! - [`signed_token`]: signatures of tokens.
//! - [`telemetry`]: metrics, logs and traces.
//!
//! The crate has no tables. [`PlatformState`] is the base of the states of all other crates.
//!
//! A new metric goes into a module of [`telemetry`]; a new rate limit is an [`rate_limits::Allowance`] in the crate that
//! uses it; a new module belongs here only if it knows nothing of shows, seats and money.

pub mod background;
pub mod batcher;
pub mod breaker;
pub mod clock;
pub mod cte_batch;
pub mod database;
pub mod housekeeping;
pub mod ids;
pub mod postgres_hosts;
pub mod rate_limits;
pub mod recent;
pub mod redis_link;
pub mod signed_token;
mod state;
pub mod telemetry;
pub mod tls;

pub use from_row::FromRow;
pub use state::{PlatformParts, PlatformState};
