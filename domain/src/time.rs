//! Instants, as all parts of the system exchange them.

use serde::{Deserialize, Serialize};

/// An instant: milliseconds since 1970-01-01T00:00:00 UTC.
///
/// A plain number, so that Redis (whose clock decides about holds), Postgres, the wire and the browser agree without a
/// calendar library in the WebAssembly bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns this instant shifted by `ms` milliseconds, which may be negative.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Returns the milliseconds from `earlier` to this instant; negative if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// One second in milliseconds.
pub const SECOND_MS: i64 = 1_000;
/// One minute in milliseconds.
pub const MINUTE_MS: i64 = 60 * SECOND_MS;
