//! The state of this crate's endpoints and background work.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;

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

impl IdentityState {
    /// Wraps the parts.
    #[must_use]
    pub fn new(parts: IdentityParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for IdentityState {
    type Target = IdentityParts;

    fn deref(&self) -> &IdentityParts {
        &self.0
    }
}

impl Deref for IdentityParts {
    type Target = CatalogueState;

    fn deref(&self) -> &CatalogueState {
        &self.catalogue_state
    }
}

impl FromRef<IdentityState> for HttpState {
    fn from_ref(state: &IdentityState) -> Self {
        let inner: &Self = state;
        inner.clone()
    }
}
