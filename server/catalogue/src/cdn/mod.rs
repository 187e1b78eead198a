//! A CDN in front of us is told what changed, so that nobody is shown a stale page for longer than a moment.
//!
//! What an answer for everybody shows stands in its tags ([`http::cache_tags`]). What a change of a theatre, a film, a show or a city
//! makes untrue is written down by the database itself, in the transaction of the change (`migrations/0072`); the relay on
//! every replica tells the CDN. Off until `CDN_PURGE_URL` is set.
//!
//! Each tag is purged twice. A page that a CDN fetches just after the first purge may still be stale: read from a
//! standby that is behind, or out of this process. Such answers are kept only while they are young
//! (`web::caching::KEPT_WITHIN`), and [`AGAIN_AFTER`] the first purge there are none left: then the tag is purged again
//! (docs/decisions/0050).
//!
//! Not here: which answers may be kept at all (`web::caching`).

mod client;
mod relay;
mod sql;

use std::time::Duration;

use crate::LAG_LIMIT;
use http::caching::KEPT_WITHIN;

pub use client::{Cdn, NotPurged, wrong_settings};
pub use relay::{announce_forever, relay_forever};
pub use sql::{Parked, announce, parked, retry_parked};

/// An answer that left us for a CDN has arrived there by then.
const ON_THE_WAY: Duration = Duration::from_secs(3);
/// How long after the first purge of a tag the second follows: by then nothing can be kept that is older than the
/// first. The first comes after the commit. A standby is behind by [`LAG_LIMIT`] when it is asked, at most; an answer is
/// not kept when what is in it was asked for longer than [`KEPT_WITHIN`] ago; and it takes a while to get there. How a show
/// is sold every replica has forgotten by then as well, and reads anew of the primary (`organiser::follow_forever`).
const AGAIN_AFTER: Duration = LAG_LIMIT.saturating_add(KEPT_WITHIN).saturating_add(ON_THE_WAY);
