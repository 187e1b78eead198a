//! Checks Redis and the shadow Redis: reachable, durable, granting seats correctly.

use std::time::Instant;

use super::{CheckFinding, Report, now_ms, redis, scratch, within};
use crate::config::Config;
use crate::start;

pub(super) async fn check(config: &Config, report: &mut Report) {
    one("redis", &config.redis_url, &config.redis_prefix, report).await;
    if let Some(shadow) = &config.shadow_redis_url {
        one("redis shadow", shadow, &config.redis_prefix, report).await;
    }
}

async fn one(about: &str, url: &str, prefix: &str, report: &mut Report) {
    let began = Instant::now();
    let connected = within(start::lock_store(url, prefix)).await;
    let (link, locks) = match connected {
        Ok(Ok(connected)) => connected,
        Ok(Err(cause)) => return report.add(about, began.elapsed(), [CheckFinding::bad(format!("{cause:#}"))]),
        Err(late) => return report.add(about, began.elapsed(), [late]),
    };
    let before = now_ms();
    let time = within(link.time_ms()).await;
    let after = now_ms();
    let mut found = within(redis::check(&link)).await.unwrap_or_else(|late| vec![late]);
    if let Ok(Ok(theirs)) = time {
        found.push(super::clock_of("its", theirs, before, after));
    }
    report.add(about, began.elapsed(), found);
    let began = Instant::now();
    let tried = within(scratch::try_seats(&locks)).await.unwrap_or_else(|late| late);
    report.add(&format!("{about} seats"), began.elapsed(), [tried]);
}
