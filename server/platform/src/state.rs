//! The state that every crate shares.

use std::sync::Arc;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::StoreClock;
use crate::rate_limits::RateLimits;
use crate::redis_link::Link;

/// Implements the state type of a crate: an `Arc` of its parts. `$field` is the part with the state of the crate above; the
/// state dereferences to its parts, and these to that state. axum can extract each listed `$inner` state from it.
#[macro_export]
macro_rules! shared_state {
    ($state:ident($parts:ident) $(, $field:ident: $above:ty $(, $inner:ty)*)?) => {
        impl $state {
            /// A state with these parts.
            #[must_use]
            pub fn new(parts: $parts) -> Self {
                Self(::std::sync::Arc::new(parts))
            }
        }

        impl ::std::ops::Deref for $state {
            type Target = $parts;

            fn deref(&self) -> &$parts {
                &self.0
            }
        }

        $(
            impl ::std::ops::Deref for $parts {
                type Target = $above;

                fn deref(&self) -> &$above {
                    &self.$field
                }
            }

            $(impl ::axum::extract::FromRef<$state> for $inner {
                fn from_ref(state: &$state) -> Self {
                    let inner: &Self = state;
                    inner.clone()
                }
            })*
        )?
    };
}

/// The shared state of this crate; cheap to clone. The state of every other crate dereferences to it: `state.pg` is the same
/// pool everywhere, and a function of this crate accepts the state of any crate.
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
    /// The clock of Redis, which decides when holds expire.
    pub clock: StoreClock,
    /// Secrets that sign tokens; the first signs, all verify.
    pub token_secrets: Vec<String>,
    /// Rate limits, shared by all replicas.
    pub rate_limits: RateLimits,
    /// Cancelled when the server should stop.
    pub stop: CancellationToken,
    /// Background work to wait for when stopping.
    pub tasks: TaskTracker,
}

shared_state!(PlatformState(PlatformParts));
