//! Purges changed pages from a CDN, so that it serves a stale page for a moment only.
//!
//! A public answer has tags of the things it depends on ([`http::cache_tags`]). A change of a theatre, a film, a show or a
//! city makes the database write the tags to purge, in the same transaction (`migrations/0003_catalogue.sql`); the relay on
//! every replica sends them to the CDN. Off until `CDN_PURGE_URL` is set.
//!
//! Each tag is purged twice. A page that a CDN fetches just after the first purge may still be stale: read from a lagging
//! standby, or from this process' cache. Such answers are cacheable only while they are young
//! (`http::caching::MAX_DATA_AGE`), and [`AGAIN_AFTER`] the first purge none are left: then the tag is purged again
//! (docs/decisions/0050).
//!
//! Not here: the rules which answers may be cached (`http::caching`).

mod client;
mod relay;

use std::time::Duration;

use crate::LAG_LIMIT;
use http::caching::MAX_DATA_AGE;

pub use client::{Cdn, NotPurged, wrong_settings};
pub use relay::{ParkedPurge, announce, announce_forever, count_parked, parked, relay_forever, retry_parked};

/// Maximum time that an answer takes to reach the CDN.
const MAX_TRANSIT_TIME: Duration = Duration::from_secs(3);
/// Delay of the second purge of a tag: by then no answer with data from before the first purge, which comes after the
/// commit, can arrive at the CDN any more. A standby lags by [`LAG_LIMIT`] at most; an answer is cacheable only if its data
/// was read within [`MAX_DATA_AGE`]; and it takes [`MAX_TRANSIT_TIME`] at most to arrive. By then every replica has also
/// evicted the show's settings, and reads them anew from the primary (`organiser::poll_changed_terms_forever`).
const AGAIN_AFTER: Duration = LAG_LIMIT.saturating_add(MAX_DATA_AGE).saturating_add(MAX_TRANSIT_TIME);
