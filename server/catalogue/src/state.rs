//! The state of this crate's endpoints and background work.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;

use crate::Catalogue;
use crate::cdn::Cdn;
use http::HttpState;

/// HTTP, and the programme. Cheap to clone.
#[derive(Clone)]
pub struct CatalogueState(Arc<CatalogueParts>);

/// The parts of [`CatalogueState`].
pub struct CatalogueParts {
    /// The state of the crate above.
    pub http_state: HttpState,
    /// Shows, layouts and prices, cached.
    pub catalogue: Catalogue,
    /// The CDN in front, if there is one.
    pub cdn: Cdn,
}

impl CatalogueState {
    /// Shares the parts.
    #[must_use]
    pub fn new(parts: CatalogueParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for CatalogueState {
    type Target = CatalogueParts;

    fn deref(&self) -> &CatalogueParts {
        &self.0
    }
}

impl Deref for CatalogueParts {
    type Target = HttpState;

    fn deref(&self) -> &HttpState {
        &self.http_state
    }
}

impl FromRef<CatalogueState> for HttpState {
    fn from_ref(state: &CatalogueState) -> Self {
        let inner: &Self = state;
        inner.clone()
    }
}
