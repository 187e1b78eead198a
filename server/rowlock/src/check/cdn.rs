//! Checks the CDN: whether it accepts a purge, and which purges are parked.
//!
//! Every failure is a warning: stale pages are shown for a moment longer, and every seat can be sold.

use std::time::Instant;

use sqlx::PgPool;

use super::{CheckFinding, Report, within};
use crate::config::Config;
use catalogue::cdn::{Cdn, parked};

/// A tag that no page has: purging it has no effect.
const UNUSED_TAG: &str = "rowlock-check";

pub(super) async fn check(config: &Config, pg: Option<&PgPool>, report: &mut Report) {
    if config.catalogue.cdn_purge_url.is_none() {
        return;
    }
    let began = Instant::now();
    let mut found = match Cdn::from_settings(&config.catalogue) {
        Ok(cdn) if cdn.is_configured() => vec![within(takes(&cdn)).await.unwrap_or_else(|late| late)],
        _ => vec![CheckFinding::skipped("its settings cannot be used")],
    };
    let left = match pg {
        Some(pg) => parked(pg).await.unwrap_or_default(),
        None => Vec::new(),
    };
    if let Some(last) = left.last() {
        let (tags, why) = (left.len(), &last.why);
        found.push(CheckFinding::warning(format!(
            "did not take {tags} tags in any try ({why}): rowlock parked retry-purges"
        )));
    }
    report.add("cdn purge", began.elapsed(), found);
}

async fn takes(cdn: &Cdn) -> CheckFinding {
    match cdn.purge(&[UNUSED_TAG]).await {
        Ok(()) => CheckFinding::good("takes purges, and believes our token"),
        Err(cause) => CheckFinding::warning(format!("CDN_PURGE_URL takes no purge: {cause}")),
    }
}
