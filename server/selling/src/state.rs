//! The state of this crate's endpoints and background work.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::SellingSettings;
use crate::bookings::{Commits, SoldSeatLists};
use crate::email_codes::EmailCodes;
use crate::holds::{HoldCache, HoldCounter};
use crate::outbox::Wake;
use crate::waiting_list::WaitingListState;
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
    /// Seats that people on waiting lists want, and slots of their joins.
    pub waiting: WaitingListState,
    /// Wakes the sender of offer mails.
    pub offer_mails_wake: Notify,
    /// The commit pipeline.
    pub commits: Commits,
    /// The public lists of sold seats.
    pub sold_seats: SoldSeatLists,
    /// Codes before checkout, and their carrier.
    pub email_codes: EmailCodes,
    /// Wakes the outbox relay after a commit.
    pub outbox_wake: Wake,
    /// Settings of this crate.
    pub selling_settings: SellingSettings,
}

platform::shared_state!(SellingState(SellingParts), admission_state: AdmissionState, HttpState, IdentityState);
