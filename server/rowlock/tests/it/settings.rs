//! Settings from flags, the environment and a file; all that is wrong with them is said at once.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Runs a command that ends by itself, with this environment and no other.
fn run(arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_rowlock"))
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .output()
        .expect("it starts");
    (status.code(), String::from_utf8([stdout, stderr].concat()).expect("text"))
}

/// A file of settings, gone with the test.
struct File(PathBuf);

impl File {
    fn with(text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rowlock-{}.toml", platform::ids::new_id().simple()));
        std::fs::write(&path, text).expect("it is written");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const SECRET: &str = "not to be shown";
/// A secret that may be used.
const LONG: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn a_server_that_cannot_start_says_all_that_is_wrong_with_its_settings_at_once() {
    let (code, said) = run(
        &["serve", "--listen", "nowhere"],
        &[
            ("COMMITS", "sometimes"),
            ("COMMIT_QUEUE", "many"),
            ("TOKEN_SECRET", SECRET),
            ("REDIS_URL", "mysql://somewhere"),
            ("PUBLIC_URL", "cinema.example"),
            ("PAYMENT_GATEWAYS", "simulator,stripe"),
            ("STRIPE_SECRET_KEY", LONG),
            ("HOLD_MS", "0"),
            ("CATALOGUE_DATABASE_URL", "nowhere"),
        ],
    );
    assert_eq!(code, Some(2), "{said}");
    for setting in [
        "LISTEN",
        "COMMITS",
        "COMMIT_QUEUE",
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
        assert!(said.lines().any(|line| line.trim_start().starts_with(setting)), "{setting} is not named in:\n{said}");
    }
    assert!(!said.contains("STRIPE_SECRET_KEY") && !said.contains(SECRET), "{said}");
}

#[test]
fn a_database_is_not_taken_for_its_own_standby() {
    let same = "postgres://rowlock@127.0.0.1:1/rowlock";
    let (code, said) = run(&["serve"], &[("DATABASE_URL", same), ("CATALOGUE_DATABASE_URL", same)]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("CATALOGUE_DATABASE_URL is DATABASE_URL"), "{said}");
    let (_, said) = run(&["serve"], &[("DATABASE_URL", same), ("CATALOGUE_DATABASE_URL", "postgres://127.0.0.1:2/r")]);
    assert!(!said.contains("CATALOGUE_DATABASE_URL"), "{said}");
}

#[test]
fn a_cdn_is_told_with_a_token_at_an_address_or_not_at_all() {
    let url = "https://cdn.example/purge";
    for (given, wrong) in [
        (vec![("CDN_PURGE_URL", url)], "CDN_PURGE_TOKEN is not set"),
        (vec![("CDN_PURGE_TOKEN", LONG)], "CDN_PURGE_TOKEN is set, and CDN_PURGE_URL is not"),
        (vec![("CDN_PURGE_URL", "cdn.example"), ("CDN_PURGE_TOKEN", LONG)], "CDN_PURGE_URL is no address"),
        (vec![("CDN_PURGE_URL", url), ("CDN_PURGE_TOKEN", "a token\n")], "CDN_PURGE_TOKEN is empty, or has in it"),
    ] {
        let (code, said) = run(&["serve"], &given);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(wrong) && !said.contains(LONG), "{wrong} is not in:\n{said}");
    }
    let (_, said) = run(&["serve"], &[("CDN_PURGE_URL", url), ("CDN_PURGE_TOKEN", LONG)]);
    assert!(!said.contains("CDN_PURGE"), "{said}");
}

#[test]
fn secrets_that_are_short_or_published_are_refused_by_name_and_never_shown() {
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
        let (code, said) = run(&["serve"], &given);
        assert_eq!(code, Some(2), "{said}");
        for setting in secrets {
            assert!(said.contains(&format!("{setting} {why}")), "{setting} {why} is not in:\n{said}");
        }
        assert!(!said.contains(value), "{said}");
    }
    // One of two is as bad as both; where all can be used, none is named.
    for setting in ["TOKEN_SECRET", "SIMULATOR_WEBHOOK_SECRET", "STRIPE_WEBHOOK_SECRET"] {
        let both = format!("{LONG},{SHORT}");
        let (_, said) = run(&["serve"], &[(setting, both.as_str())]);
        assert!(said.contains(&format!("{setting} needs 32")) && !said.contains(SHORT), "{said}");
    }
    let (_, said) = run(&["serve"], &secrets.map(|setting| (setting, LONG)));
    assert!(!said.contains("needs 32") && !said.contains("example"), "{said}");
    for (setting, address) in [
        ("DATABASE_URL", "postgres://rowlock:replace-me@127.0.0.1:1/rowlock"),
        ("REDIS_URL", "redis://:Replace-Me@127.0.0.1:1/"),
        ("SMTP_URL", "smtps://user:password@127.0.0.1"),
    ] {
        let (_, said) = run(&["serve"], &[(setting, address)]);
        assert!(said.contains(&format!("{setting} has the password of a public example")), "{said}");
        assert!(!said.contains(address), "{said}");
    }
}

#[test]
fn the_simulator_is_refused_behind_https_unless_it_is_allowed() {
    const ADDRESS: &str = "https://cinema.example";
    let stripe = [("PAYMENT_GATEWAYS", "stripe"), ("STRIPE_SECRET_KEY", LONG), ("STRIPE_WEBHOOK_SECRET", LONG)];
    let elsewhere = [&stripe[..], &[("STRIPE_URL", "http://127.0.0.1:3010")]].concat();
    for (given, why) in [
        (vec![], "PAYMENT_GATEWAYS names the payment simulator"),
        (vec![("PAYMENT_GATEWAYS", "stripe,simulator")], "PAYMENT_GATEWAYS names the payment simulator"),
        (elsewhere, "STRIPE_URL is not at api.stripe.com"),
    ] {
        for address in [ADDRESS, "HTTPS://cinema.example"] {
            let (code, said) = run(&["serve"], &[&given[..], &[("PUBLIC_URL", address)]].concat());
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains(why) && said.contains("ALLOW_SIMULATOR=true"), "{why} is not in:\n{said}");
        }
        for allowed in [
            [("PUBLIC_URL", "http://127.0.0.1:3000"), ("ALLOW_SIMULATOR", "false")],
            [("PUBLIC_URL", ADDRESS), ("ALLOW_SIMULATOR", "true")],
        ] {
            let (_, said) = run(&["serve"], &[&given[..], &allowed].concat());
            assert!(!said.contains(why), "{allowed:?}: {said}");
        }
    }
    let (_, said) = run(&["serve"], &[&stripe[..], &[("PUBLIC_URL", ADDRESS)]].concat());
    assert!(!said.contains("ALLOW_SIMULATOR"), "Stripe itself needs no leave: {said}");
}

#[test]
fn a_file_says_what_the_environment_does_not() {
    let file = File::with(
        "commit_queue = 0\nhold_ms = 5\nredis_url = \"redis://127.0.0.1:1/\"\npayment_gateways = [\"bank\"]\n",
    );
    // Named by a flag or by the environment; what the environment says goes before what it says.
    for (arguments, named) in [(vec!["--config", file.path(), "serve"], None), (vec!["serve"], Some(file.path()))] {
        let mut environment = vec![("HOLD_MS", "1000")];
        environment.extend(named.map(|path| ("ROWLOCK_CONFIG", path)));
        let (code, said) = run(&arguments, &environment);
        assert_eq!(code, Some(2), "{said}");
        for setting in ["COMMIT_QUEUE is 0", "PAYMENT_GATEWAYS names \"bank\"", "DATABASE_URL is not set"] {
            assert!(said.contains(setting), "{setting} is not in:\n{said}");
        }
        assert!(!said.contains("HOLD_MS") && !said.contains("REDIS_URL"), "{said}");
    }
}

#[test]
fn a_file_that_is_none_of_settings_is_refused_as_a_whole() {
    let file = File::with("colour = \"red\"\nlisten = 2.5\n");
    let (code, said) = run(&["serve", "--config", file.path()], &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("colour in ") && said.contains("listen in ") && !said.contains("DATABASE_URL"), "{said}");
    let (code, said) = run(&["serve", "--config", "/nowhere/rowlock.toml"], &[]);
    assert!(code == Some(2) && said.contains("/nowhere/rowlock.toml"), "{said}");
}
