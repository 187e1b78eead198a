//! The state of this crate's endpoints and background work.

use std::sync::Arc;

use crate::idempotency::Idempotency;
use crate::site::SiteSettings;
use platform::PlatformState;

/// Platform, and how this server is reached. Cheap to clone.
#[derive(Clone)]
pub struct HttpState(Arc<HttpParts>);

/// The parts of [`HttpState`].
pub struct HttpParts {
    /// The state of the crate above.
    pub platform_state: PlatformState,
    /// The public address and the proxies in front of it.
    pub site: SiteSettings,
    /// Idempotency keys and their stored answers.
    pub idempotency: Idempotency,
}

platform::shared_state!(HttpState(HttpParts), platform_state: PlatformState);
