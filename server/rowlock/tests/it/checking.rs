//! `rowlock check` on a system that runs, and on one that does not quite.

use serde_json::Value;

use crate::world::{World, text};

/// Runs it; whether it found seats to be sellable, and what it found.
pub async fn check(world: &World, flags: &[&str]) -> (bool, Value) {
    let arguments: Vec<&str> = ["check", "--json"].iter().chain(flags).copied().collect();
    let (good, said) = world.command(&arguments).await;
    let report = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("no report in:\n{said}"));
    let report: Value = serde_json::from_str(report).expect("JSON");
    assert_eq!(report["ok"], good, "{report}");
    (good, report)
}

/// The worst that is said about something.
pub fn state<'a>(report: &'a Value, about: &str) -> &'a str {
    let findings = report["findings"].as_array().expect("findings");
    let about = findings.iter().filter(|finding| finding["about"] == about).map(|finding| text(&finding["state"]));
    about
        .max_by_key(|state| ["ok", "skipped", "warning", "failed"].iter().position(|known| known == state))
        .expect("it is looked at")
}

async fn shows_in_redis(world: &World) -> Vec<String> {
    let pattern = format!("{}*{{show:*", world.setting("REDIS_PREFIX"));
    redis::cmd("KEYS").arg(pattern).query_async(&mut world.redis().await).await.expect("keys are listed")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_system_that_sells_is_found_to_sell_and_left_as_it_was() {
    let world = World::start(1, &[]).await;
    let (good, report) = check(&world, &["--public-url", &world.servers[0].url]).await;
    assert!(good, "{report:#}");
    for about in ["settings", "redis seats", "gateway simulator", "public address", "live map"] {
        assert_eq!(state(&report, about), "ok", "{about}: {report:#}");
    }
    // Tests' stores keep nothing, and their mails are files: said, and no reason not to sell.
    for about in ["postgres", "redis", "mail"] {
        assert_ne!(state(&report, about), "failed", "{about}: {report:#}");
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 0);
    let left = shows_in_redis(&world).await;
    let of_ours = world.show.simple().to_string();
    assert!(left.iter().all(|key| key.replace('-', "").contains(&of_ours)), "a show nobody sees is left: {left:?}");
    let (good, table) = world.command(&["check", "--public-url", &world.servers[0].url]).await;
    assert!(good && table.contains("a seat was granted, refused to a second"), "{table}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_simulator_behind_https_is_found_and_where_it_is_allowed_warned_of() {
    let world = World::start(0, &[]).await;
    let address = ["--public-url", "https://127.0.0.1:9"];
    let (good, report) = check(&world, &address).await;
    assert!(!good && state(&report, "settings") == "failed", "{report:#}");
    assert!(report.to_string().contains("names the payment simulator, where no money moves"), "{report:#}");
    let (_, report) = check(&world, &[&address[..], &["--allow-simulator"]].concat()).await;
    assert_eq!(state(&report, "settings"), "ok", "{report:#}");
    assert_eq!(state(&report, "gateway simulator"), "warning", "{report:#}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_broken_is_named_and_keeps_nothing_else_from_being_looked_at() {
    let world = World::start(0, &[]).await;
    sqlx::query("DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)")
        .execute(&world.pg)
        .await
        .expect("a migration is missing");
    let (good, report) = check(&world, &["--simulator-api-key", "another", "--public-url", "http://127.0.0.1:9"]).await;
    assert!(!good, "{report:#}");
    for about in ["postgres", "gateway simulator", "public address"] {
        assert_eq!(state(&report, about), "failed", "{about}: {report:#}");
    }
    assert_eq!(state(&report, "redis seats"), "ok", "{report:#}");
    // The key is another, and too short.
    assert!(report.to_string().contains("SIMULATOR_API_KEY needs 32 characters"), "{report:#}");
    assert!(report.to_string().contains("are missing: rowlock migrate"), "{report:#}");
    let (good, report) = check(&world, &["--redis-url", "redis://127.0.0.1:1/", "--commit-queue", "0"]).await;
    assert!(!good && state(&report, "redis") == "failed" && state(&report, "settings") == "failed", "{report:#}");
    assert_eq!(state(&report, "gateway simulator"), "ok", "{report:#}");
    world.end().await;
}
