//! Instants as they cross every boundary of the system.

use serde::{Deserialize, Serialize};

/// An instant: milliseconds since 1970-01-01T00:00:00 UTC.
///
/// A plain number so that Redis (whose clock rules holds), Postgres, the wire and the browser agree
/// without a calendar library in the WebAssembly bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This instant moved by `ms` milliseconds, either way.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this instant; negative when it lies after.
    #[must_use]
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// One second in milliseconds.
pub const SECOND_MS: i64 = 1_000;
/// One minute in milliseconds.
pub const MINUTE_MS: i64 = 60 * SECOND_MS;
