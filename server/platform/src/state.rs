//! The state that every crate shares.

use std::ops::Deref;
use std::sync::Arc;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::StoreClock;
use crate::rate_limits::RateLimits;
use crate::redis_link::Link;

/// The shared state of this crate; cheap to clone. The state of each crate below is its own parts and, by `Deref`, those of
/// the crate above it: `state.pg` is the same pool everywhere, and a function above is called with `state` as it is.
#[derive(Clone)]
pub struct PlatformState(Arc<PlatformParts>);

/// The parts of [`PlatformState`].
pub struct PlatformParts {
    /// Postgres.
    pub pg: PgPool,
    /// Redis.
    pub redis: Link,
    /// Prefix of every Redis key, so that tests can share one Redis.
    pub redis_prefix: String,
    /// Redis' time, by which holds live.
    pub clock: StoreClock,
    /// Secrets that sign tokens; the first signs, all verify.
    pub token_secrets: Vec<String>,
    /// Buckets of attempts.
    pub rate_limits: RateLimits,
    /// Cancelled when the server should stop.
    pub stop: CancellationToken,
    /// Background work to wait for when stopping.
    pub tasks: TaskTracker,
}

impl PlatformState {
    /// Shares the parts.
    #[must_use]
    pub fn new(parts: PlatformParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for PlatformState {
    type Target = PlatformParts;

    fn deref(&self) -> &PlatformParts {
        &self.0
    }
}
