//! The state of the router: that of all crates.

use std::ops::Deref;
use std::sync::Arc;

use admission::AdmissionState;
use axum::extract::FromRef;
use backoffice::BackofficeState;
use catalogue::CatalogueState;
use http::HttpState;
use identity::IdentityState;
use seats::SeatsState;
use selling::SellingState;

use crate::config::Config;

/// The state of the router and of its pages. Cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<AppParts>);

/// The parts of [`AppState`].
pub struct AppParts {
    /// The state of the crate above.
    pub backoffice_state: BackofficeState,
    /// All settings.
    pub config: Config,
}

impl AppState {
    /// Shares the parts.
    #[must_use]
    pub fn new(parts: AppParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for AppState {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0
    }
}

impl Deref for AppParts {
    type Target = BackofficeState;

    fn deref(&self) -> &BackofficeState {
        &self.backoffice_state
    }
}

macro_rules! parts_of_app_state {
    ($($state:ty),+) => {
        $(impl FromRef<AppState> for $state {
            fn from_ref(state: &AppState) -> Self {
                let inner: &Self = state;
                inner.clone()
            }
        })+
    };
}

parts_of_app_state!(
    HttpState,
    CatalogueState,
    IdentityState,
    SeatsState,
    AdmissionState,
    SellingState,
    BackofficeState
);
