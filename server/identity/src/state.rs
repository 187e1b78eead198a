//! The state of this crate's endpoints and background work.

use std::sync::Arc;

use crate::accounts::Accounts;
use catalogue::CatalogueState;
use http::HttpState;
use tickets::Mailer;

/// The state of identity. Cheap to clone.
#[derive(Clone)]
pub struct IdentityState(Arc<IdentityParts>);

/// The parts of [`IdentityState`].
pub struct IdentityParts {
    /// The state of the `catalogue` crate.
    pub catalogue_state: CatalogueState,
    /// Password hashing, cached sessions and the tokens of programs.
    pub accounts: Accounts,
    /// Sends mails.
    pub mailer: Mailer,
}

platform::shared_state!(IdentityState(IdentityParts), catalogue_state: CatalogueState, HttpState);
