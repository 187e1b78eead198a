//! The condition under which a claim takes its seat: part of "seats left", of maps that are rebuilt, and of the sale.

use chrono::{DateTime, Utc};
use domain::time::Timestamp;
use platform::clock::to_utc;

/// A claim that expired is free for others only after this grace: its payment may be in flight, and is voided or refunded
/// first. Milliseconds.
pub const CLAIM_GRACE_MS: i64 = 60_000;

/// The condition that a claim is alive, on a seat or on places: sold, or in payment and expired no longer ago than
/// [`CLAIM_GRACE_MS`]. A claim that is not alive is free for others. `$claim`: the table or its name in the statement; `$since`: the
/// argument that is [`alive_since`].
#[macro_export]
macro_rules! claim_is_alive {
    ($claim:literal, $since:literal) => {
        concat!(
            "(",
            $claim,
            ".state = 'sold' OR (",
            $claim,
            ".state = 'claimed' AND ",
            $claim,
            ".expires_at > ",
            $since,
            "))"
        )
    };
}
/// A claim that expires after this is alive, unless it is released.
#[must_use]
pub fn alive_since(now: Timestamp) -> DateTime<Utc> {
    to_utc(now.plus_ms(-CLAIM_GRACE_MS))
}
