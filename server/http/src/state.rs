//! The state of this crate's endpoints and background work.

use std::ops::Deref;
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

impl HttpState {
    /// Shares the parts.
    #[must_use]
    pub fn new(parts: HttpParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for HttpState {
    type Target = HttpParts;

    fn deref(&self) -> &HttpParts {
        &self.0
    }
}

impl Deref for HttpParts {
    type Target = PlatformState;

    fn deref(&self) -> &PlatformState {
        &self.platform_state
    }
}
