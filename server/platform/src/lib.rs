//! What every other crate of the server stands on, and which knows nothing of cinemas.
//!
//! - [`clock`], [`ids`]: the only places that read the time and draw random numbers. [`clock::StoreClock`] is the time
//!   holds live by.
//! - [`database`], [`postgres_hosts`], [`cte_batch`]: the pool that follows the primary, and several statements as one.
//! - [`redis_link`]: Redis, whatever its shape; scripts go there, announcements come back.
//! - [`background`], [`housekeeping`], [`breaker`], [`recent`]: loops, deletes in batches, circuit breakers, small caches.
//! - [`rate_limits`]: buckets that replicas share. Redis keys `throttle:*`.
//! - [`signed_token`]: signatures of tokens that are given away and come back.
//! - [`telemetry`]: every metric of a capability, logs and traces.
//!
//! It has no tables. [`PlatformState`] is what the states of all other crates are built on.

pub mod background;
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

pub use state::{PlatformParts, PlatformState};
