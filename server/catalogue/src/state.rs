//! The state of this crate's endpoints and background work.

use std::sync::Arc;

use crate::Catalogue;
use crate::cdn::Cdn;
use http::HttpState;

/// Implements the state of a crate: it shares its parts, and dereferences through them to the state of the crate above, a
/// field of theirs. Each of the listed states of other crates can be extracted from it.
#[macro_export]
macro_rules! shared_state {
    ($state:ident($parts:ident), $field:ident: $above:ty, $($inner:ty),+) => {
        impl $state {
            /// Shares the parts.
            #[must_use]
            pub fn new(parts: $parts) -> Self {
                Self(::std::sync::Arc::new(parts))
            }
        }

        impl ::std::ops::Deref for $state {
            type Target = $parts;

            fn deref(&self) -> &$parts {
                &self.0
            }
        }

        impl ::std::ops::Deref for $parts {
            type Target = $above;

            fn deref(&self) -> &$above {
                &self.$field
            }
        }

        $(impl ::axum::extract::FromRef<$state> for $inner {
            fn from_ref(state: &$state) -> Self {
                let inner: &Self = state;
                inner.clone()
            }
        })+
    };
}

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

shared_state!(CatalogueState(CatalogueParts), http_state: HttpState, HttpState);
