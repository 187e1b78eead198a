//! `rowlock check` on a working system and on a misconfigured one.

use crate::prelude::*;

/// Runs the command. Returns whether seats can be sold, and the report.
pub async fn check(world: &World, flags: &[&str]) -> (bool, Value) {
    let arguments: Vec<&str> = ["check", "--json"].iter().chain(flags).copied().collect();
    let (good, said) = world.command(&arguments).await;
    let report = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("no report in:\n{said}"));
    let report: Value = serde_json::from_str(report).expect("JSON");
    assert_eq!(report["ok"], good, "{report}");
    (good, report)
}

/// The worst finding about a component.
pub fn state<'a>(report: &'a Value, about: &str) -> &'a str {
    let findings = report["findings"].as_array().expect("findings");
    let about = findings.iter().filter(|finding| finding["about"] == about).map(|finding| text(&finding["state"]));
    about
        .max_by_key(|state| ["ok", "skipped", "warning", "failed"].iter().position(|known| known == state))
        .expect("the component is checked")
}

async fn shows_in_redis(world: &World) -> Vec<String> {
    let pattern = format!("{}*{{show:*", world.setting("REDIS_PREFIX"));
    redis::cmd("KEYS").arg(pattern).query_async(&mut world.redis().await).await.expect("keys are listed")
}

#[tokio::test(flavor = "multi_thread")]
async fn working_system_passes_the_check_and_is_left_unchanged() {
    let world = World::start(1, &[]).await;
    let (good, report) = check(&world, &["--public-url", &world.servers[0].url]).await;
    assert!(good, "{report:#}");
    for about in ["settings", "redis seats", "gateway simulator", "public address", "live map"] {
        assert_eq!(state(&report, about), "ok", "{about}: {report:#}");
    }
    // Test stores are not durable, and mails go to files: a warning, and no failure.
    for about in ["postgres", "redis", "mail"] {
        assert_ne!(state(&report, about), "failed", "{about}: {report:#}");
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 0);
    let left = shows_in_redis(&world).await;
    let of_ours = world.show.simple().to_string();
    assert!(left.iter().all(|key| key.replace('-', "").contains(&of_ours)), "a hidden show is left: {left:?}");
    let (good, table) = world.command(&["check", "--public-url", &world.servers[0].url]).await;
    assert!(good && table.contains("a seat was granted, refused to a second"), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn simulator_behind_https_fails_the_check_or_warns_where_allowed() {
    let world = World::start(0, &[]).await;
    let address = ["--public-url", "https://127.0.0.1:9"];
    let (good, report) = check(&world, &address).await;
    assert!(!good && state(&report, "settings") == "failed", "{report:#}");
    assert!(report.to_string().contains("names the payment simulator, where no money moves"), "{report:#}");
    let (_, report) = check(&world, &[&address[..], &["--allow-simulator"]].concat()).await;
    assert_eq!(state(&report, "settings"), "ok", "{report:#}");
    assert_eq!(state(&report, "gateway simulator"), "warning", "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_broken_setting_is_named_and_the_other_checks_still_run() {
    let world = World::start(0, &[]).await;
    world.execute("DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)").await;
    let (good, report) = check(&world, &["--simulator-api-key", "another", "--public-url", "http://127.0.0.1:9"]).await;
    assert!(!good, "{report:#}");
    for about in ["postgres", "gateway simulator", "public address"] {
        assert_eq!(state(&report, about), "failed", "{about}: {report:#}");
    }
    assert_eq!(state(&report, "redis seats"), "ok", "{report:#}");
    // The key differs and is too short.
    assert!(report.to_string().contains("SIMULATOR_API_KEY needs 32 characters"), "{report:#}");
    assert!(report.to_string().contains("are missing: rowlock migrate"), "{report:#}");
    let (good, report) = check(&world, &["--redis-url", "redis://127.0.0.1:1/", "--commit-queue", "0"]).await;
    assert!(!good && state(&report, "redis") == "failed" && state(&report, "settings") == "failed", "{report:#}");
    assert_eq!(state(&report, "gateway simulator"), "ok", "{report:#}");
}
