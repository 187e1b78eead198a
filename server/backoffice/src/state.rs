//! The state of this crate's endpoints and background work.

use std::sync::Arc;

use crate::reports::Reports;
use crate::webhooks::WebhookClient;
use crate::{RehearsalSettings, WebhookSettings};
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
    /// Settings of rehearsals.
    pub rehearsal_settings: RehearsalSettings,
}

platform::shared_state!(BackofficeState(BackofficeParts), selling_state: SellingState, HttpState, IdentityState);
