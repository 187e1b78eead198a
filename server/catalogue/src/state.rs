//! The state of this crate's endpoints and background work.

use std::sync::Arc;

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

platform::shared_state!(CatalogueState(CatalogueParts), http_state: HttpState, HttpState);
