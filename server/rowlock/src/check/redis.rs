//! Checks Redis' `INFO`.

use super::CheckFinding;
use platform::redis_link::Link;

/// Oldest version with the scripting that we use.
const OLDEST: u32 = 7;
/// Share of its memory above which a warning is given.
const FULL: f64 = 0.9;

pub(super) async fn check(link: &Link) -> Vec<CheckFinding> {
    let said = match link.ask_any(&::redis::cmd("INFO")).await {
        Ok(said) => said,
        Err(cause) => return vec![CheckFinding::bad(format!("INFO failed: {cause}"))],
    };
    match ::redis::from_redis_value::<String>(said) {
        Ok(info) => judge(&info),
        Err(cause) => vec![CheckFinding::bad(format!("INFO is no text: {cause}"))],
    }
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
    if of("aof_enabled") == "0" {
        found.push(CheckFinding::warning("keeps no append-only file: a restart loses every hold (no paid seat)"));
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

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    const GOOD: &str = "# Server\r\nredis_version:7.0.15\r\nloading:0\r\nused_memory:10\r\nmaxmemory:100\r\n\
                        maxmemory_policy:noeviction\r\naof_enabled:1\r\naof_last_write_status:ok\r\nrole:master\r\n";

    #[test]
    fn each_setting_of_redis_has_its_finding() {
        assert_eq!(judge(GOOD), [CheckFinding::good("Redis 7.0.15 answers")]);
        for (line, instead, state, words) in [
            ("7.0.15", "6.2.1", Severity::Bad, "too old"),
            ("noeviction", "allkeys-lru", Severity::Bad, "allkeys-lru"),
            ("used_memory:10", "used_memory:95", Severity::Warning, "95 of 100"),
            ("aof_enabled:1", "aof_enabled:0", Severity::Warning, "append-only"),
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
