//! Settings from flags, the environment and a file; all errors are reported at once. `rowlock check` on a working system
//! and on a misconfigured one.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::prelude::*;

fn run(arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_rowlock"))
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .output()
        .expect("it starts");
    (status.code(), String::from_utf8([stdout, stderr].concat()).expect("text"))
}

struct SettingsFile(PathBuf);

impl SettingsFile {
    fn with(text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rowlock-{}.toml", platform::ids::new_id().simple()));
        std::fs::write(&path, text).expect("the file is written");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path")
    }
}

impl Drop for SettingsFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const SECRET: &str = "not to be shown";
const LONG: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn server_reports_all_invalid_settings_at_once() {
    let (code, output) = run(
        &["serve", "--listen", "nowhere"],
        &[
            ("COMMIT_QUEUE", "many"),
            ("COMMIT_GATHER_MS", "soon"),
            ("TOKEN_SECRET", SECRET),
            ("REDIS_URL", "mysql://somewhere"),
            ("PUBLIC_URL", "cinema.example"),
            ("PAYMENT_GATEWAYS", "simulator,stripe"),
            ("STRIPE_SECRET_KEY", LONG),
            ("HOLD_MS", "0"),
            ("CATALOGUE_DATABASE_URL", "nowhere"),
        ],
    );
    assert_eq!(code, Some(2), "{output}");
    for setting in [
        "LISTEN",
        "COMMIT_QUEUE",
        "COMMIT_GATHER_MS",
        "DATABASE_URL is not set",
        "CATALOGUE_DATABASE_URL is no address",
        "TOKEN_SECRET needs 32",
        "REDIS_URL",
        "PUBLIC_URL",
        "HOLD_MS is 0",
        "SIMULATOR_URL",
        "SIMULATOR_API_KEY",
        "SIMULATOR_WEBHOOK_SECRET",
        "STRIPE_WEBHOOK_SECRET",
        "SMTP_URL",
    ] {
        assert!(
            output.lines().any(|line| line.trim_start().starts_with(setting)),
            "{setting} is not named in:\n{output}"
        );
    }
    assert!(!output.contains("STRIPE_SECRET_KEY") && !output.contains(SECRET), "{output}");
}

#[test]
fn database_is_not_accepted_as_its_own_standby() {
    let same = "postgres://rowlock@127.0.0.1:1/rowlock";
    let (code, output) = run(&["serve"], &[("DATABASE_URL", same), ("CATALOGUE_DATABASE_URL", same)]);
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("CATALOGUE_DATABASE_URL is DATABASE_URL"), "{output}");
    let (_, output) =
        run(&["serve"], &[("DATABASE_URL", same), ("CATALOGUE_DATABASE_URL", "postgres://127.0.0.1:2/r")]);
    assert!(!output.contains("CATALOGUE_DATABASE_URL"), "{output}");
}

#[test]
fn legal_pages_need_an_absolute_address_with_tls_if_the_site_has_it() {
    const TLS: &str = "https://cinema.example";
    for setting in ["TERMS_URL", "PRIVACY_URL", "IMPRINT_URL"] {
        let wrong = format!("{setting} is no address of a page: https://host/path");
        for url in ["", "/terms", "cinema.example/terms", "javascript:alert(1)"] {
            let (code, output) = run(&["serve"], &[(setting, url)]);
            assert_eq!(code, Some(2), "{output}");
            assert!(output.contains(&wrong), "{url}: {wrong} is not in:\n{output}");
        }
        let (_, output) = run(&["serve"], &[(setting, "http://cinema.example/terms"), ("PUBLIC_URL", TLS)]);
        assert!(output.contains(&wrong), "{wrong} is not in:\n{output}");
        for (scheme, site) in [("http", "http://127.0.0.1:3000"), ("https", "http://127.0.0.1:3000"), ("https", TLS)] {
            let url = format!("{scheme}://cinema.example/terms");
            let (_, output) = run(&["serve"], &[(setting, url.as_str()), ("PUBLIC_URL", site)]);
            assert!(!output.contains(setting), "{url} at {site}: {output}");
        }
    }
}

#[test]
fn cdn_settings_need_both_an_address_and_a_token() {
    let url = "https://cdn.example/purge";
    for (given, wrong) in [
        (vec![("CDN_PURGE_URL", url)], "CDN_PURGE_TOKEN is not set"),
        (vec![("CDN_PURGE_TOKEN", LONG)], "CDN_PURGE_TOKEN is set, and CDN_PURGE_URL is not"),
        (vec![("CDN_PURGE_URL", "cdn.example"), ("CDN_PURGE_TOKEN", LONG)], "CDN_PURGE_URL is no address"),
        (vec![("CDN_PURGE_URL", url), ("CDN_PURGE_TOKEN", "a token\n")], "CDN_PURGE_TOKEN is empty, or has in it"),
    ] {
        let (code, output) = run(&["serve"], &given);
        assert_eq!(code, Some(2), "{output}");
        assert!(output.contains(wrong) && !output.contains(LONG), "{wrong} is not in:\n{output}");
    }
    let (_, output) = run(&["serve"], &[("CDN_PURGE_URL", url), ("CDN_PURGE_TOKEN", LONG)]);
    assert!(!output.contains("CDN_PURGE"), "{output}");
}

#[test]
fn short_and_published_secrets_are_refused_by_name_and_never_printed() {
    const SHORT: &str = "abcdefghijklmnopqrstuvwxyz01234";
    const PUBLISHED: &str = "replace-me-replace-me-replace-me-replace-me";
    let secrets = [
        "TOKEN_SECRET",
        "METRICS_TOKEN",
        "CDN_PURGE_TOKEN",
        "SIMULATOR_API_KEY",
        "SIMULATOR_WEBHOOK_SECRET",
        "STRIPE_SECRET_KEY",
        "STRIPE_WEBHOOK_SECRET",
    ];
    for (value, why) in [(SHORT, "needs 32 characters or more"), (PUBLISHED, "is the value of a public example")] {
        let given = secrets.map(|setting| (setting, value));
        let (code, output) = run(&["serve"], &given);
        assert_eq!(code, Some(2), "{output}");
        for setting in secrets {
            assert!(output.contains(&format!("{setting} {why}")), "{setting} {why} is not in:\n{output}");
        }
        assert!(!output.contains(value), "{output}");
    }
    // One bad secret of two is refused; if all are valid, none is named.
    for setting in ["TOKEN_SECRET", "SIMULATOR_WEBHOOK_SECRET", "STRIPE_WEBHOOK_SECRET"] {
        let both = format!("{LONG},{SHORT}");
        let (_, output) = run(&["serve"], &[(setting, both.as_str())]);
        assert!(output.contains(&format!("{setting} needs 32")) && !output.contains(SHORT), "{output}");
    }
    let (_, output) = run(&["serve"], &secrets.map(|setting| (setting, LONG)));
    assert!(!output.contains("needs 32") && !output.contains("example"), "{output}");
    for (setting, address) in [
        ("DATABASE_URL", "postgres://rowlock:replace-me@127.0.0.1:1/rowlock"),
        ("REDIS_URL", "redis://:Replace-Me@127.0.0.1:1/"),
        ("SMTP_URL", "smtps://user:password@127.0.0.1"),
    ] {
        let (_, output) = run(&["serve"], &[(setting, address)]);
        assert!(output.contains(&format!("{setting} has the password of a public example")), "{output}");
        assert!(!output.contains(address), "{output}");
    }
}

#[test]
fn simulator_behind_https_needs_permission() {
    const ADDRESS: &str = "https://cinema.example";
    let stripe = [("PAYMENT_GATEWAYS", "stripe"), ("STRIPE_SECRET_KEY", LONG), ("STRIPE_WEBHOOK_SECRET", LONG)];
    let elsewhere = [&stripe[..], &[("STRIPE_URL", "http://127.0.0.1:3010")]].concat();
    for (given, why) in [
        (vec![], "PAYMENT_GATEWAYS names the payment simulator"),
        (vec![("PAYMENT_GATEWAYS", "stripe,simulator")], "PAYMENT_GATEWAYS names the payment simulator"),
        (elsewhere, "STRIPE_URL is not at api.stripe.com"),
    ] {
        for address in [ADDRESS, "HTTPS://cinema.example"] {
            let (code, output) = run(&["serve"], &[&given[..], &[("PUBLIC_URL", address)]].concat());
            assert_eq!(code, Some(2), "{output}");
            assert!(output.contains(why) && output.contains("ALLOW_SIMULATOR=true"), "{why} is not in:\n{output}");
        }
        for allowed in [
            [("PUBLIC_URL", "http://127.0.0.1:3000"), ("ALLOW_SIMULATOR", "false")],
            [("PUBLIC_URL", ADDRESS), ("ALLOW_SIMULATOR", "true")],
        ] {
            let (_, output) = run(&["serve"], &[&given[..], &allowed].concat());
            assert!(!output.contains(why), "{allowed:?}: {output}");
        }
    }
    let (_, output) = run(&["serve"], &[&stripe[..], &[("PUBLIC_URL", ADDRESS)]].concat());
    assert!(!output.contains("ALLOW_SIMULATOR"), "Stripe needs no permission: {output}");
}

#[test]
fn settings_file_supplements_the_environment() {
    let file = SettingsFile::with(
        "commit_queue = 0\nhold_ms = 5\nredis_url = \"redis://127.0.0.1:1/\"\npayment_gateways = [\"bank\"]\n",
    );
    // Named by a flag or by the environment; the environment overrides the file.
    for (arguments, named) in [(vec!["--config", file.path(), "serve"], None), (vec!["serve"], Some(file.path()))] {
        let mut environment = vec![("HOLD_MS", "1000")];
        environment.extend(named.map(|path| ("ROWLOCK_CONFIG", path)));
        let (code, output) = run(&arguments, &environment);
        assert_eq!(code, Some(2), "{output}");
        for setting in ["COMMIT_QUEUE is 0", "PAYMENT_GATEWAYS names \"bank\"", "DATABASE_URL is not set"] {
            assert!(output.contains(setting), "{setting} is not in:\n{output}");
        }
        assert!(!output.contains("HOLD_MS") && !output.contains("REDIS_URL"), "{output}");
    }
}

#[test]
fn settings_file_with_unknown_names_is_refused() {
    let file = SettingsFile::with("colour = \"red\"\nlisten = 2.5\n");
    let (code, output) = run(&["serve", "--config", file.path()], &[]);
    assert_eq!(code, Some(2), "{output}");
    assert!(
        output.contains("colour in ") && output.contains("listen in ") && !output.contains("DATABASE_URL"),
        "{output}"
    );
    let (code, output) = run(&["serve", "--config", "/nowhere/rowlock.toml"], &[]);
    assert!(code == Some(2) && output.contains("/nowhere/rowlock.toml"), "{output}");
}

#[test]
fn server_raises_its_limit_of_open_files_and_warns_if_that_is_too_low() {
    let Output { stdout, stderr, .. } = Command::new("/bin/sh")
        .args(["-c", "ulimit -S -n 256 && ulimit -H -n 1024 && exec \"$0\" serve", env!("CARGO_BIN_EXE_rowlock")])
        .env_clear()
        .envs([
            // No address of this machine (RFC 5737): the server ends before it connects to anything.
            ("LISTEN", "192.0.2.1:3000"),
            ("DATABASE_URL", "postgres://127.0.0.1:1/rowlock"),
            ("REDIS_URL", "redis://127.0.0.1:1/"),
            ("TOKEN_SECRET", LONG),
            ("SIMULATOR_URL", "http://127.0.0.1:1"),
            ("SIMULATOR_API_KEY", LONG),
            ("SIMULATOR_WEBHOOK_SECRET", LONG),
            ("MAILBOX_DIR", "/nowhere"),
        ])
        .output()
        .expect("it starts");
    let output = String::from_utf8([stdout, stderr].concat()).expect("text");
    assert!(output.contains("cannot listen on 192.0.2.1:3000"), "{output}");
    assert!(output.contains("the limit of open files is too low") && output.contains("limit=1024"), "{output}");
}

/// Runs the command. Returns whether seats can be sold, and the report.
pub async fn check(world: &World, flags: &[&str]) -> (bool, Value) {
    let arguments: Vec<&str> = ["check", "--json"].iter().chain(flags).copied().collect();
    let (good, said) = world.command(&arguments).await;
    let report = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("no report in:\n{said}"));
    let report: Value = serde_json::from_str(report).expect("JSON");
    assert_eq!(report["ok"], good, "{report}");
    (good, report)
}

pub fn state<'a>(report: &'a Value, about: &str) -> &'a str {
    let findings = report["findings"].as_array().expect("findings");
    let about = findings.iter().filter(|finding| finding["about"] == about).map(|finding| text(&finding["state"]));
    about
        .max_by_key(|state| ["ok", "skipped", "warning", "failed"].iter().position(|known| known == state))
        .expect("the component is checked")
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
    let left = world.redis_keys("*{show:*").await;
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
