//! The state of this crate's endpoints and background work.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;

use crate::WebhookSettings;
use crate::reports::Reports;
use crate::webhooks::WebhookClient;
use http::HttpState;
use identity::IdentityState;
use selling::SellingState;

/// The state of the back office. Cheap to clone.
#[derive(Clone)]
pub struct BackofficeState(Arc<BackofficeParts>);

/// The parts of [`BackofficeState`].
pub struct BackofficeParts {
    /// The state of the `selling` crate.
    pub selling_state: SellingState,
    /// Slots for reports.
    pub reports: Reports,
    /// The HTTP client of webhooks.
    pub webhooks: WebhookClient,
    /// Settings of webhooks.
    pub webhook_settings: WebhookSettings,
}

impl BackofficeState {
    /// Wraps the parts.
    #[must_use]
    pub fn new(parts: BackofficeParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for BackofficeState {
    type Target = BackofficeParts;

    fn deref(&self) -> &BackofficeParts {
        &self.0
    }
}

impl Deref for BackofficeParts {
    type Target = SellingState;

    fn deref(&self) -> &SellingState {
        &self.selling_state
    }
}

impl FromRef<BackofficeState> for HttpState {
    fn from_ref(state: &BackofficeState) -> Self {
        let inner: &Self = state;
        inner.clone()
    }
}

impl FromRef<BackofficeState> for IdentityState {
    fn from_ref(state: &BackofficeState) -> Self {
        let inner: &Self = state;
        inner.clone()
    }
}
