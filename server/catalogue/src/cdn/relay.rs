//! Sends purges to the CDN: each tag is leased by one replica.

use std::collections::BTreeSet;
use std::time::Duration;

use super::AGAIN_AFTER;
use super::client::{ANSWER_DEADLINE, NotPurged};
use super::sql::{self, DuePurge, PostponedPurge};
use crate::CatalogueState;
use platform::background::PeriodicLoop;
use platform::telemetry::{CdnPurge, cdn_purged};
use platform::{housekeeping, ids};

/// Interval of the checks for due tags.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Tags per call: Cloudflare's maximum.
const MAX_TAGS: i64 = 30;
/// Lease of a tag: longer than a call. Another replica takes an expired one.
const LEASE: Duration = ANSWER_DEADLINE.saturating_mul(2);
/// Maximum number of attempts per round of a tag. With the pauses below that is ten minutes at the mean.
const MAX_TRIES: i32 = 30;
/// First pause after a failure, milliseconds; doubles, with full jitter.
const FIRST_PAUSE_MS: u64 = 500;
/// Longest pause, milliseconds.
const LONGEST_PAUSE_MS: u64 = 60_000;
/// Interval in which a server records that a CDN is configured, and deletes old purges.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(3_600);
/// Purges are stored this long, parked ones too: no CDN caches one of our pages for a week.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Rows per delete statement, so that its locks are short.
const MAX_AT_ONCE: i64 = 2_000;

/// Sends purges until the server stops, if a CDN is configured; another replica takes expired leases.
pub async fn relay_forever(state: CatalogueState) {
    if !state.cdn.is_configured() {
        return;
    }
    let mut rounds = PeriodicLoop::every(&state.stop, LOOK_EVERY);
    while rounds.wait_next().await {
        while !state.stop.is_cancelled() {
            match sql::take_due(&state.pg, MAX_TAGS, LEASE).await {
                Ok(purges) if purges.is_empty() => break,
                Ok(purges) => send_purges(&state, &purges).await,
                Err(cause) => {
                    tracing::warn!(%cause, "read due CDN purges failed");
                    break;
                }
            }
        }
    }
}

/// One call for all of them, each tag once in it, and what it came to.
async fn send_purges(state: &CatalogueState, purges: &[DuePurge]) {
    let tags: BTreeSet<&str> = purges.iter().map(|purge| purge.tag.as_str()).collect();
    let tags: Vec<&str> = tags.into_iter().collect();
    let noted = match state.cdn.purge(&tags).await {
        Ok(()) => {
            cdn_purged(CdnPurge::Accepted, tags.len());
            sql::record_purged(&state.pg, purges, AGAIN_AFTER).await
        }
        Err(cause) => {
            let outcome = match cause {
                NotPurged::Refused(_) => CdnPurge::Refused,
                NotPurged::Unreachable(_) => CdnPurge::Unreachable,
            };
            cdn_purged(outcome, tags.len());
            let pause_s = pause_s(purges, ids::jitter);
            let later: Vec<PostponedPurge> = purges.iter().map(|purge| later(purge, pause_s, &cause)).collect();
            let parked = purges.iter().zip(&later).filter(|(_, later)| later.parked_why.is_some());
            let parked: BTreeSet<&str> = parked.map(|(purge, _)| purge.tag.as_str()).collect();
            if parked.is_empty() {
                tracing::warn!(%cause, tags = tags.len(), "CDN purge failed; retrying");
            } else {
                cdn_purged(CdnPurge::Parked, parked.len());
                tracing::error!(%cause, tags = parked.len(), "CDN purge failed; parked for an operator");
            }
            sql::postpone(&state.pg, purges, &later).await
        }
    };
    if let Err(cause) = noted {
        // Their lease ends, and they are purged again: tags may be.
        tracing::warn!(%cause, tags = tags.len(), "record the result of a CDN purge failed");
    }
}

/// The common pause of tags that failed in one call, so that they are retried in one call.
fn pause_s(purges: &[DuePurge], jitter: impl Fn(u64) -> u64) -> f64 {
    let tries = purges.iter().map(|purge| purge.tries).max().unwrap_or(1);
    let doubled = FIRST_PAUSE_MS << (tries.clamp(1, 20) - 1);
    Duration::from_millis(jitter(doubled.min(LONGEST_PAUSE_MS))).as_secs_f64()
}

/// When a wish is tried again after a failure, or that it is not.
fn later(purge: &DuePurge, pause_s: f64, cause: &NotPurged) -> PostponedPurge {
    PostponedPurge { pause_s, parked_why: (purge.tries >= MAX_TRIES).then(|| cause.to_string()) }
}

/// Records that a CDN is configured and deletes old purges, until the server stops.
pub async fn announce_forever(state: CatalogueState) {
    let mut rounds = PeriodicLoop::every(&state.stop, ANNOUNCE_EVERY);
    while rounds.wait_next().await {
        if state.cdn.is_configured()
            && let Err(cause) = sql::announce(&state.pg).await
        {
            tracing::warn!(%cause, "record that a CDN is configured failed");
        }
        let delete = |limit| sql::delete_old(&state.pg, KEPT, limit);
        housekeeping::clear(&state.stop, "old wishes for purges", MAX_AT_ONCE, delete).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purge(tries: i32) -> DuePurge {
        DuePurge { id: 1, tag: "lists".to_owned(), round: 1, tries }
    }

    #[test]
    fn pauses_double_up_to_a_minute_and_end_with_parking() {
        let pauses: Vec<f64> = [1, 2, 3, 8, 29].map(|tries| pause_s(&[purge(1), purge(tries)], |limit| limit)).into();
        assert_eq!(pauses, [0.5, 1.0, 2.0, 60.0, 60.0]);
        let parked = |tries| later(&purge(tries), 1.0, &NotPurged::Refused(500)).parked_why;
        assert_eq!(parked(MAX_TRIES - 1), None);
        assert_eq!(parked(MAX_TRIES).as_deref(), Some("it answered 500"));
    }

    #[test]
    fn a_lease_lasts_longer_than_a_call() {
        assert!(LEASE > ANSWER_DEADLINE);
    }
}
