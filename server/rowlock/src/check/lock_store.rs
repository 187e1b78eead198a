//! Checks Redis and the shadow Redis: reachable, durable, granting seats of a hidden show correctly.

use std::collections::HashMap;
use std::time::Instant;

use domain::time::MINUTE_MS;
use uuid::Uuid;

use super::{CheckFinding, Report, clock_of, now_ms, within};
use crate::config::Config;
use crate::start;
use platform::ids;
use platform::redis_link::Link;
use seats::seat_locks::{
    HoldLimits, LockAttempt, RebuildInput, RedisLocks, Refusal, RequestIdentity, SeatLocks, Selection, StoreError,
    StoredHold,
};

/// Oldest version with the scripting that we use.
const OLDEST: u32 = 7;
/// Share of its memory above which a warning is given.
const FULL: f64 = 0.9;
/// Seats of the hidden show.
const SEATS: usize = 2;
const TERMS: HoldLimits = HoldLimits { per_person: 10, length_ms: MINUTE_MS, life_ms: MINUTE_MS };

pub(super) async fn check(config: &Config, report: &mut Report) {
    check_redis("redis", &config.redis_url, &config.redis_prefix, report).await;
    if let Some(shadow) = &config.shadow_redis_url {
        check_redis("redis shadow", shadow, &config.redis_prefix, report).await;
    }
}

async fn check_redis(about: &str, url: &str, prefix: &str, report: &mut Report) {
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
    let mut found = within(settings(&link)).await.unwrap_or_else(|late| vec![late]);
    if let Ok(Ok(theirs)) = time {
        found.push(clock_of("its", theirs, before, after));
    }
    report.add(about, began.elapsed(), found);
    let began = Instant::now();
    let tried = within(try_seats(&locks)).await.unwrap_or_else(|late| late);
    report.add(&format!("{about} seats"), began.elapsed(), [tried]);
}

/// Judges Redis' `INFO`, and the setting `save`, which is not in it.
async fn settings(link: &Link) -> Vec<CheckFinding> {
    let info = match link.ask_any(&redis::cmd("INFO")).await {
        Ok(info) => info,
        Err(cause) => return vec![CheckFinding::bad(format!("INFO failed: {cause}"))],
    };
    match redis::from_redis_value::<String>(info) {
        Ok(info) => {
            let save = read_save(link).await;
            judge(&format!("{info}\r\nsave:{save}"))
        }
        Err(cause) => vec![CheckFinding::bad(format!("INFO is no text: {cause}"))],
    }
}

/// Reads the setting `save`. Empty if there are no snapshots, or if this user may not read settings.
async fn read_save(link: &Link) -> String {
    let answer = link.ask_any(redis::cmd("CONFIG").arg("GET").arg("save")).await.ok();
    let settings = answer.and_then(|answer| redis::from_redis_value::<HashMap<String, String>>(answer).ok());
    settings.and_then(|mut settings| settings.remove("save")).unwrap_or_default()
}

fn judge(info: &str) -> Vec<CheckFinding> {
    let of = |name: &str| {
        info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':')).unwrap_or_default()
    };
    let number = |name: &str| of(name).parse::<f64>().unwrap_or_default();
    let version = of("redis_version");
    let major: u32 = version.split('.').next().and_then(|word| word.parse().ok()).unwrap_or_default();
    let mut found = vec![if major < OLDEST {
        CheckFinding::bad(format!("Redis {version} is too old: {OLDEST} or newer"))
    } else {
        CheckFinding::good(format!("Redis {version} answers"))
    }];
    match of("maxmemory_policy") {
        "noeviction" => {}
        "" => found.push(CheckFinding::warning("does not return its maxmemory-policy: it must be noeviction")),
        policy => found.push(CheckFinding::bad(format!(
            "maxmemory-policy is {policy}: an evicted key is a forgotten hold; set it to noeviction"
        ))),
    }
    if number("maxmemory") > 0.0 && number("used_memory") > FULL * number("maxmemory") {
        found.push(CheckFinding::warning(format!(
            "{} of {} bytes are used: a full Redis refuses holds",
            of("used_memory"),
            of("maxmemory")
        )));
    }
    if of("maxmemory") == "0" {
        found.push(CheckFinding::warning("has no maxmemory: a rush can fill its machine, whose kernel then kills it"));
    }
    if of("aof_enabled") == "0" {
        found.push(CheckFinding::warning("keeps no append-only file: a restart loses every hold (no paid seat)"));
    }
    if of("aof_enabled") == "1" && !of("save").is_empty() {
        found.push(CheckFinding::warning(format!(
            "writes snapshots beside its append-only file (save is {}): each costs a core and memory; set save to \"\"",
            of("save")
        )));
    }
    if of("aof_enabled") == "1" && of("aof_last_write_status") == "err" {
        found.push(CheckFinding::bad("cannot write its append-only file"));
    }
    if of("role") == "slave" {
        found.push(CheckFinding::bad("is a replica that takes no writes: REDIS_URL must lead to the master"));
    }
    if of("loading") == "1" {
        found.push(CheckFinding::bad("is still loading its data"));
    }
    found
}

/// Checks that a seat is granted once, refused to a second visitor, and granted again after its release.
async fn try_seats(locks: &RedisLocks) -> CheckFinding {
    let show = ids::new_id();
    let tried = try_in(locks, show).await;
    // Deleted after a failure too.
    let forgotten = locks.forget(show).await;
    match (tried, forgotten) {
        (Ok(None), Ok(())) => CheckFinding::good("a seat was granted, refused to a second, let go and granted again"),
        (Ok(Some(wrong)), _) => CheckFinding::bad(wrong),
        (Err(cause), _) | (Ok(None), Err(cause)) => CheckFinding::bad(format!("the scripts do not run: {cause:?}")),
    }
}

async fn try_in(locks: &RedisLocks, show: Uuid) -> Result<Option<String>, StoreError> {
    locks.load(show, &RebuildInput { map: vec![0; SEATS], ..RebuildInput::default() }).await?;
    let ann = match try_lock(locks, show, "check-one", vec![0, 1]).await? {
        Some(Ok(held)) => held,
        other => return Ok(Some(format!("free seats were not granted: {other:?}"))),
    };
    match try_lock(locks, show, "check-two", vec![1]).await? {
        Some(Err(Refusal::Taken(seats))) if seats.len() == 1 => {}
        other => return Ok(Some(format!("a seat that is held was not refused: {other:?}"))),
    }
    if let Err(refusal) = locks.release(show, ann.hold, "check-one").await? {
        return Ok(Some(format!("a hold could not be let go: {refusal:?}")));
    }
    match try_lock(locks, show, "check-two", vec![1]).await? {
        Some(Ok(_)) => Ok(None),
        other => Ok(Some(format!("a seat that was let go was not granted: {other:?}"))),
    }
}

async fn try_lock(
    locks: &RedisLocks,
    show: Uuid,
    owner: &str,
    seats: Vec<u32>,
) -> Result<Option<Result<StoredHold, Refusal>>, StoreError> {
    let asked = RequestIdentity { id: ids::new_id(), digest: 1 };
    let attempt =
        LockAttempt { asked, owner: owner.to_owned(), selection: Selection::of_seats(seats), takes_kept: false };
    Ok(locks.lock(show, TERMS, &[attempt]).await?.pop())
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    const GOOD: &str = "# Server\r\nredis_version:7.0.15\r\nloading:0\r\nused_memory:10\r\nmaxmemory:100\r\n\
                        maxmemory_policy:noeviction\r\naof_enabled:1\r\naof_last_write_status:ok\r\nrole:master\r\n\
                        save:\r\n";

    #[test]
    fn each_setting_of_redis_has_its_finding() {
        assert_eq!(judge(GOOD), [CheckFinding::good("Redis 7.0.15 answers")]);
        for (line, instead, state, words) in [
            ("7.0.15", "6.2.1", Severity::Bad, "too old"),
            ("noeviction", "allkeys-lru", Severity::Bad, "allkeys-lru"),
            ("used_memory:10", "used_memory:95", Severity::Warning, "95 of 100"),
            ("maxmemory:100", "maxmemory:0", Severity::Warning, "no maxmemory"),
            ("aof_enabled:1", "aof_enabled:0", Severity::Warning, "append-only"),
            ("save:", "save:3600 1 300 100", Severity::Warning, "3600 1 300 100"),
            ("status:ok", "status:err", Severity::Bad, "cannot write"),
            ("role:master", "role:slave", Severity::Bad, "replica"),
            ("loading:0", "loading:1", Severity::Bad, "loading"),
        ] {
            let found = judge(&GOOD.replace(line, instead));
            let complaint = found.iter().find(|finding| finding.state != Severity::Good);
            let complaint = complaint.unwrap_or_else(|| panic!("nothing is said of {instead}"));
            assert!(complaint.state == state && complaint.words.contains(words), "{instead}: {complaint:?}");
        }
    }
}
