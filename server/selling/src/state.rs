//! The state of this crate's endpoints and background work.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use tokio::sync::Notify;

use crate::SellingSettings;
use crate::bookings::Commits;
use crate::email_codes::EmailCodes;
use crate::holds::{HoldCache, HoldCounter};
use crate::outbox::Wake;
use crate::waiting_list::ShowsWithWaitingList;
use admission::AdmissionState;
use http::HttpState;
use identity::IdentityState;
use payments::Gateways;

/// The admission state and the parts of this crate. Cheap to clone.
#[derive(Clone)]
pub struct SellingState(Arc<SellingParts>);

/// The parts of [`SellingState`].
pub struct SellingParts {
    /// The state of the crate that this one builds on.
    pub admission_state: AdmissionState,
    /// Payment gateways in their order.
    pub gateways: Arc<Gateways>,
    /// The cache of granted and changed holds.
    pub latest_holds: HoldCache,
    /// Counts of granted holds since the last write.
    pub hold_tally: HoldCounter,
    /// Shows that have a waiting list.
    pub waiting: ShowsWithWaitingList,
    /// Wakes the sender of offer mails.
    pub offer_mails_wake: Notify,
    /// The commit pipeline.
    pub commits: Commits,
    /// Codes before checkout, and their carrier.
    pub email_codes: EmailCodes,
    /// Wakes the outbox relay after a commit.
    pub outbox_wake: Wake,
    /// Settings of this crate.
    pub selling_settings: SellingSettings,
}

impl SellingState {
    /// Shares the parts.
    #[must_use]
    pub fn new(parts: SellingParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for SellingState {
    type Target = SellingParts;

    fn deref(&self) -> &SellingParts {
        &self.0
    }
}

impl Deref for SellingParts {
    type Target = AdmissionState;

    fn deref(&self) -> &AdmissionState {
        &self.admission_state
    }
}

impl FromRef<SellingState> for HttpState {
    fn from_ref(state: &SellingState) -> Self {
        let inner: &Self = state;
        inner.clone()
    }
}

impl FromRef<SellingState> for IdentityState {
    fn from_ref(state: &SellingState) -> Self {
        let inner: &Self = state;
        inner.clone()
    }
}
